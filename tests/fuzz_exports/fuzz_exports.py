"""Random small networks written in torch, scikit-learn, XGBoost, LightGBM and CatBoost with random options, exported by
their own tools, through Foliot's whole compiler and its CPU device, beside the framework and onnxruntime.

    fuzz_exports.py --runner build/release/bin/node_test_runner [--seconds 60] [--count N] [--seed N] [--only torch] [--keep FOLDER]

`make fuzz-exports` installs what exports them. Each is compiled for 1, 2, 4 and 6 rows. Three trials of 6 rows: ordinary
ones; ones whose neighbours are large, constant and tiny; ones whose neighbours have NaN and infinity. Of what is batched
each row must be what onnxruntime or the framework makes of it alone, and the first row must be the same in all batches.
Case I of a seed is the same whatever came before it. Exits with 1 if anything disagrees, or ends the runner.
"""

import argparse
import collections
import os
import pathlib
import random
import re
import sys
import tempfile
import time
import traceback
import zlib

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(threads, "1")

import numpy as np
import onnx
import onnxruntime
from foliot_tools.seeds import fresh_seed

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "fuzz_models"), str(HERE.parent / "node_tests")]

import exports
import node_tests
import oracle

FRAMEWORKS = {"torch": 0.6, "scikit-learn": 0.22, "xgboost": 0.06, "lightgbm": 0.08, "catboost": 0.04}
DYNAMO_SHARE = 0.02  # of torch's networks: this exporter takes seconds
ROWS, TRIALS = 6, 3
SHARE = 2e-4  # of the largest value of a row, that it may differ by
BATCHED_SHARE = 1e-6  # that a row may differ by from itself in another batch


def make_case(seed, only=""):
    """(framework, Case)"""
    r = random.Random(seed)
    framework = only or r.choices(list(FRAMEWORKS), FRAMEWORKS.values())[0]
    if framework == "torch":
        import networks

        return framework, networks.make(r, DYNAMO_SHARE)
    import tables

    return framework, tables.make(r, framework)


def trials_of(case, seed):
    """TRIALS times {input: array of ROWS}: the neighbours of row 0 become hostile."""
    state = np.random.default_rng(seed)
    result = []
    for trial in range(TRIALS):
        values = {}
        for name, rows in case.rows.items():
            array = np.resize(rows, (TRIALS * ROWS, *rows.shape[1:]))[trial * ROWS : (trial + 1) * ROWS].copy()
            if array.dtype.kind == "f" and trial == 1:
                array[1] *= 30
                array[2] = 0
                array[3] = array[3].ravel()[0]
                array[4] *= 1e-4
                array[5] *= 1e3
            if array.dtype.kind == "f" and trial == 2:
                for row, special in enumerate([np.nan, np.inf, -np.inf, 3e38, 1e-42], 1):
                    array[row].flat[state.integers(array[row].size)] = special
            values[name] = array
        result.append(values)
    return result


def session_of(model):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])


def as_numbers(answer, model):
    """A tensor of numbers: of what ZipMap makes a column for each class, of names their positions among all."""
    if isinstance(answer, list):
        return np.array([list(row.values()) for row in answer], np.float32)
    if answer.dtype.kind in "OUS":
        names = next(list(a.strings) for node in model.graph.node for a in node.attribute
                     if a.name in ("classlabels_strings", "values_strings", "class_ids"))  # fmt: skip
        return np.array([names.index(name.encode()) for name in answer.ravel()], np.int64).reshape(answer.shape)
    return answer


def by_onnxruntime(session, case, values):
    return [as_numbers(answer, case.model) for answer in session.run(None, values)]


def by_framework(case, values, expected):
    """The framework's answers in the form of onnxruntime's; None where it has none, or in another form."""
    try:
        answers = case.answers(values) or [None] * len(expected)
    except Exception:  # what a framework refuses (NaN, mostly) is of many types
        return [None] * len(expected)
    found = []
    for answer, e in zip(answers, expected):
        fits = answer is not None and answer.dtype.kind not in "OUS" and answer.size == e.size
        found.append(np.asarray(answer).reshape(e.shape).astype(e.dtype) if fits else None)
    return found + [None] * (len(expected) - len(found))


def far(a, b, share):
    """Which elements of two results differ by more than `share` of the largest of the row, whose first dimension it is."""
    if a.dtype.kind not in "f":
        return a != b
    with np.errstate(all="ignore"):
        a, b = a.astype(np.float64), b.astype(np.float64)
        size = np.where(np.isfinite(b), np.abs(b), 0)
        scale = size.max(axis=tuple(range(1, b.ndim)), keepdims=True, initial=0.0) if b.ndim else size
        close = np.abs(a - b) <= share * np.maximum(scale, 1e-2)
        huge = (np.abs(a) > 3e37) & (np.abs(b) > 3e37) & (np.sign(a) == np.sign(b))
    return ~(close | (a == b) | (np.isnan(a) & np.isnan(b)) | huge)


def joined(evaluate, values, size, batched, i):
    """Output i by a function of {input: array}: each row alone where they are batched."""
    calls = [slice(row, row + 1) for row in range(size)] if batched else [slice(0, size)]
    parts = [evaluate({n: v[r] for n, v in values.items()})[i] for r in calls]
    return np.concatenate(parts) if batched else parts[0]


def is_unsteady(case, session, values, size, batched, i, expected, rows, wrong):
    """Whether onnxruntime's own result moves there when inputs, or what operators hand on, move by a rounding: ranks,
    steps, poles, sums that cancel."""
    state, moved_there = np.random.default_rng(1), np.zeros(wrong.shape, bool)

    def look(its_session, given):
        nonlocal moved_there
        e = joined(lambda part: by_onnxruntime(its_session, case, part), given, size, batched, i)
        if e.shape == expected.shape:
            moved_there |= far(e[rows], expected[rows], SHARE / 20) if expected.ndim else far(e, expected, SHARE / 20)

    for scale in (2e-7, 2e-7, 1e-6, 1e-6, 3e-6, 3e-6):
        look(session, {n: (v * (1 + scale * state.choice([-1, 1], v.shape))).astype(v.dtype) if v.dtype.kind == "f" else v for n, v in values.items()})
    for _ in range(6):
        try:
            one_call = {n: v[: 1 if batched else size] for n, v in values.items()}
            look(session_of(oracle.with_moved_values(case.model, one_call, state)), values)
        except Exception:  # onnxruntime raises types of its own
            break
    return not (wrong & ~moved_there).any()


def by_reference(case, values, size, batched, i, like, evaluate):
    """By onnx's reference, in the form of another result; None where it does not compute the model."""
    numbers = lambda given: [as_numbers(answer, case.model) for answer in evaluate(given)]  # noqa: E731
    try:
        with np.errstate(all="ignore"):
            e = joined(numbers, values, size, batched, i)
    except Exception:  # whatever numpy raises
        return None
    return e.reshape(like.shape) if e.size == like.size else None


def is_the_reference(case, values, size, batched, i, got, rows, wrong):
    """Whether onnx's reference gives what was got, where that is wrong by the others."""
    e = by_reference(case, values, size, batched, i, got, lambda given: oracle.by_reference(case.model, given))
    if e is None:
        return False
    return not (wrong & (far(got[rows], e[rows], SHARE) if got.ndim else far(got, e, SHARE))).any()


def is_as_exact(case, values, size, batched, i, got, expected, rows, wrong):
    """Whether what was got is near the result in float64, or as near as onnxruntime's is, but for a factor: sums that
    cancel, and what overflows on the way in one of two orders."""
    right = by_reference(case, values, size, batched, i, got, lambda given: oracle.in_float64(case.model, given))
    if right is None or got.dtype.kind != "f" or not got.ndim:
        return False
    with np.errstate(all="ignore"):
        own, others = (np.abs(a.astype(np.float64) - right)[rows] for a in (got, expected))
        return not (wrong & far(got[rows], right[rows], SHARE) & ~(own <= 4 * others)).any()


class Compiled:
    """The plans of a case, and what they made of the trials."""

    def __init__(self, process, case, trials, folder):
        for old in folder.iterdir():
            old.unlink()
        onnx.save(case.model, folder / "model.onnx")
        for trial, values in enumerate(trials):
            for i, value in enumerate(case.model.graph.input):
                (folder / f"{trial}_input_{i}.bin").write_bytes(np.ascontiguousarray(values[value.name]).tobytes())
        status, *rest = process.run(folder, "rows")
        self.error = rest[0] if status != "ok" else ""
        self.folder = folder
        if not self.error:
            self.batched, self.sizes, self.notes = rest[0] == "batched", [int(size) for size in rest[1].split()], rest[2]

    def refused(self, trial, size):
        """The rows that an operator refused."""
        path = self.folder / f"{trial}_{size}_refused"
        return {int(row) for row in path.read_text().split()} if path.exists() else set()

    def output(self, trial, size, i, like):
        data = np.frombuffer((self.folder / f"{trial}_{size}_output_{i}.bin").read_bytes(), like.dtype)
        return data.reshape(like.shape) if data.size == like.size else None


def expectations(case, session, values, size, batched):
    """(onnxruntime's outputs, the framework's) of the first `size` rows: each alone where they are batched."""
    calls = [slice(row, row + 1) for row in range(size)] if batched else [slice(0, size)]
    theirs = [by_onnxruntime(session, case, {n: v[rows] for n, v in values.items()}) for rows in calls]
    own = [by_framework(case, {n: v[rows] for n, v in values.items()}, e) for rows, e in zip(calls, theirs)]
    join = lambda parts: None if any(p is None for p in parts) else np.concatenate(parts) if batched else parts[0]  # noqa: E731
    return [join(parts) for parts in zip(*theirs)], [join(parts) for parts in zip(*own)]


def has_log_of_sigmoid(model):
    """As exporters write LogSigmoid: below -88 onnxruntime's is infinite, which a float32 is below -104 only."""
    sigmoids = {node.output[0] for node in model.graph.node if node.op_type == "Sigmoid"}
    return any(node.op_type == "Log" and node.input[0] in sigmoids for node in model.graph.node)


def judged_rows(model, trial, size):
    """Those with numbers that an answer can be expected for: hostile neighbours are there to be beside."""
    large = (1, 5) if trial == 1 and has_log_of_sigmoid(model) else ()
    return range(1) if trial == 2 else [row for row in range(size) if row not in large]


def faults_of(case, compiled, trials, counts):
    session = session_of(case.model)
    faults = []
    for trial, values in enumerate(trials):
        if trial and not compiled.batched:
            break  # no rows to be beside
        largest = max(compiled.sizes)
        known = expectations(case, session, values, largest, compiled.batched)
        for size in compiled.sizes:
            theirs, own = known if size == largest else (
                [[None if p is None else p[:size] for p in side] for side in known]
                if compiled.batched else expectations(case, session, values, size, False))  # fmt: skip
            refused = compiled.refused(trial, size)
            counts["rows refused"] += len(refused)
            counts["rows refused that have an answer"] += sum(
                row < size and all(e.dtype.kind == "f" and np.isfinite(e[row]).all() for e in theirs) for row in refused)  # fmt: skip
            if refused and not compiled.batched:
                continue
            for i, e in enumerate(theirs):
                got = compiled.output(trial, size, i, e)
                if got is None:
                    faults.append(f"trial {trial}, {size} rows, output {i}: another size than {e.shape}")
                    continue
                rows = [row for row in judged_rows(case.model, trial, size) if row not in refused] if compiled.batched else slice(None)
                wrong = far(got[rows], e[rows], SHARE) if e.ndim else far(got, e, SHARE)
                if not wrong.any():
                    if own[i] is not None and e.ndim and far(e[rows], own[i][rows], 1e-3).any():
                        counts[f"the file differs from {case.name.split()[0]}"] += 1
                    continue
                if own[i] is not None and e.ndim:
                    if not far(got[rows], own[i][rows], SHARE)[wrong].any():
                        counts["onnxruntime differs from the framework"] += 1
                        continue
                    # What overflows on the way in the file and not in the framework is no number, infinity or NaN.
                    lost = ~np.isfinite(e[rows]) & ~np.isfinite(got[rows]) & np.isfinite(own[i][rows])
                    if (lost | ~far(got[rows], own[i][rows], SHARE))[wrong].all():
                        counts["onnxruntime differs from the framework"] += 1
                        continue
                    # Where two oracles differ by rounding, a third result may, too.
                    noise = np.abs(e[rows].astype(np.float64) - own[i][rows].astype(np.float64))
                    with np.errstate(all="ignore"):
                        near = np.abs(got[rows].astype(np.float64) - e[rows].astype(np.float64)) <= 10 * noise
                    if (near | ~far(got[rows], own[i][rows], SHARE))[wrong].all():
                        counts["the oracles differ"] += 1
                        continue
                if is_the_reference(case, values, size, compiled.batched, i, got, rows, wrong):
                    counts["onnx's reference decides"] += 1
                    continue
                if is_as_exact(case, values, size, compiled.batched, i, got, e, rows, wrong):
                    counts["float64 decides"] += 1
                    continue
                if is_unsteady(case, session, values, size, compiled.batched, i, e, rows, wrong):
                    counts["rounding decides"] += 1
                    continue
                at = tuple(int(n) for n in np.argwhere(wrong)[0])
                third = "" if own[i] is None or not e.ndim else f" (framework {own[i][rows][at]})"
                faults.append(f"trial {trial}, {size} rows, output {i} at {at}: {(got[rows] if e.ndim else got)[at]}, "
                              f"not {(e[rows] if e.ndim else e)[at]}{third}, {wrong.sum()} of {wrong.size}")
    return faults


def alone_faults(case, compiled, counts, worst):
    """Row 0 alone and in each batch, beside all neighbours."""
    faults = []
    for trial in range(TRIALS):
        for i in range(len(case.model.graph.output)):
            paths = {size: compiled.folder / f"{trial}_{size}_output_{i}.bin" for size in compiled.sizes}
            alone = paths[min(compiled.sizes)].read_bytes()
            number = case.model.graph.output[i].type.tensor_type.elem_type
            kind = onnx.helper.tensor_dtype_to_np_dtype(number) if number else np.dtype(np.float32)
            a = np.frombuffer(alone, kind)
            for size, path in paths.items():
                if 0 in compiled.refused(trial, size):
                    counts["row 0 refused beside others"] += 0 not in compiled.refused(trial, min(compiled.sizes))
                    continue
                first = path.read_bytes()[: len(alone)]
                counts["rows compared in batches"] += 1
                if first == alone:
                    counts["rows equal in all bits"] += 1
                    continue
                b = np.frombuffer(first, kind)
                wrong = far(b[None], a[None], BATCHED_SHARE)
                with np.errstate(all="ignore"):
                    worst[0] = max(worst[0], float(np.nanmax(np.abs(a.astype(float) - b)) / max(1e-2, np.nanmax(np.abs(a)))))
                if wrong.any():
                    faults.append(f"trial {trial}, output {i}: row 0 alone {a[wrong[0]][:3]}, among {size} {b[wrong[0]][:3]}")
    return faults


def general(message):
    return re.sub(r"'[^']*'|/\S+|-?\d+(\.\d+)?", "_", message)[:170]


def attempt(process, framework, case, seed, folder, tally):
    """What disagrees."""
    trials = trials_of(case, zlib.crc32(seed.encode()))
    try:
        session_of(case.model)
    except Exception as error:  # onnxruntime raises types of its own
        tally.refused[f"onnxruntime refuses a file of {framework}: {general(str(error))}"] += 1
        return []
    compiled = Compiled(process, case, trials, folder)
    if compiled.error:
        if "the runner ended" in compiled.error:
            return [compiled.error]
        tally.refused[f"{framework}: {general(compiled.error)}"] += 1
        tally.refused_by_us.append((seed, case.name, compiled.error))
        return []
    tally.run[framework] += 1
    try:
        faults = faults_of(case, compiled, trials, tally.counts)
    except Exception as error:
        if type(error).__module__.startswith("onnxruntime"):
            tally.refused[f"onnxruntime does not run a file of {framework}: {general(str(error))}"] += 1
            return []
        raise
    if compiled.batched:
        faults += alone_faults(case, compiled, tally.counts, tally.worst)
        if not case.independent:
            tally.counts["coupled, but batched"] += 1
    elif case.independent:
        tally.notes[f"{framework} not batched: {general(compiled.notes)}"] += 1
    return faults


class Tally:
    def __init__(self):
        self.run, self.counts = collections.Counter(), collections.Counter()
        self.refused, self.notes, self.not_exported = collections.Counter(), collections.Counter(), collections.Counter()
        self.refused_by_us, self.failures, self.worst = [], [], [0.0]

    def print(self, seed, tried):
        for title, counter in (("not exported", self.not_exported), ("not computed", self.refused), ("", self.notes)):
            for message, count in counter.most_common(15):
                print(f"{title} {count} times: {message}")
        print(", ".join(f"{name} {count}" for name, count in self.counts.items()))
        print(f"the largest difference of a row in a batch: {self.worst[0]:.1e} of its largest value")
        by = ", ".join(f"{name} {count}" for name, count in self.run.items())
        print(f"seed {seed}: {tried} networks, {sum(self.not_exported.values())} not exported, {sum(self.refused.values())} not "
              f"computed, {sum(self.run.values())} run ({by}), {len(self.failures)} disagree", flush=True)  # fmt: skip


def fuzz(arguments, seed, tally):
    process = node_tests.RunnerProcess(arguments.runner)
    deadline = time.monotonic() + arguments.seconds
    i = arguments.first
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        while time.monotonic() < deadline and sum(tally.run.values()) < arguments.count:
            name = f"{seed} {i}"
            i += 1
            try:
                framework, case = make_case(name, arguments.only)
            except exports.NotExported as error:
                tally.not_exported[general(str(error))] += 1
                continue
            try:
                faults = attempt(process, framework, case, name, pathlib.Path(folder), tally)
            except Exception:
                faults = [traceback.format_exc(limit=-3)]
            if faults:
                tally.failures.append(name)
                print(f"{name}: {case.name}: {len(faults)} faults\n  " + "\n  ".join(faults[:4]), flush=True)
                if arguments.keep:
                    onnx.save(case.model, arguments.keep / f"{name.replace(' ', '_')}.onnx")
    return i - arguments.first


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runner", required=True, help="the program node_test_runner")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--count", type=float, default=float("inf"), help="end after so many that ran")
    parser.add_argument("--seed", type=int, help="that of an earlier run; a fresh one without it")
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument("--only", default="", choices=["", *FRAMEWORKS], help="networks of one framework")
    parser.add_argument("--keep", type=pathlib.Path, help="write what disagrees here")
    arguments = parser.parse_args()
    seed = fresh_seed() if arguments.seed is None else arguments.seed
    tally = Tally()
    tried = fuzz(arguments, seed, tally)
    tally.print(seed, tried)
    return 1 if tally.failures else 0


if __name__ == "__main__":
    sys.exit(main())
