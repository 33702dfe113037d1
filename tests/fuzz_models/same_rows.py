"""The same row alone, and in each batch and place beside hostile rows: random models, of which every one that is batched
must give a row the same answer, whatever it stands beside.

    same_rows.py --runner build/release/bin/node_test_runner [--models 1000] [--rows 100] [--seed N]

Half of the models are of random operators (generator.py), half networks whose rows are independent (../row_models.py).
Prints how many answers are equal in all bits, and the largest difference of the others, of the largest value of the row.
Exits with 1 if one is beyond 1e-6.
"""

import argparse
import pathlib
import sys
import tempfile
import warnings

import numpy as np
import onnx
from foliot_tools.seeds import fresh_seed

sys.path[:0] = [str(pathlib.Path(__file__).parents[1]), str(pathlib.Path(__file__).parents[1] / "node_tests")]

import generator
import node_tests
import row_models

SIZE = 6  # the largest batch that the runner compiles
DIFFERENCE_MAX = 1e-6
HOSTILE = [1e4, -1e4, 0, 1e-4, 3e38, np.nan, np.inf, -np.inf, 1e-42]


def make_model(seed, case):
    """(model, {input: array of some rows}, inputs without rows)"""
    if case % 2:
        it = row_models.make_case(np.random.default_rng([seed, case]))
        return it.model, it.trials[0], it.shared
    model, inputs, rows = generator.make_case(f"{seed} {case}")
    return model, inputs, {name for name, array in inputs.items() if not array.ndim or array.shape[0] != rows}


def many_rows(state, array, count):
    """`count` rows like those of the array; what are no floats may be positions, and are left as they are."""
    rows = array[state.integers(len(array), size=count)]
    if array.dtype.kind != "f":
        return rows
    with np.errstate(all="ignore"):
        return (rows * (1 + 0.3 * state.normal(size=rows.shape))).astype(array.dtype)


def neighbours(state, array, count):
    rows = many_rows(state, array, count).copy()
    if array.dtype.kind == "f" and array[0].size:
        for row in rows:
            with np.errstate(all="ignore"):
                special = np.asarray(state.choice(HOSTILE)).astype(array.dtype)
            if state.random() < 0.3:
                row[...] = special
            else:
                row.flat[state.integers(row.size)] = special
    return rows


def write_trials(state, folder, model, inputs, shared, count):
    """Two trials for each row: in the first place, and in another, which is returned for each."""
    places = [int(state.integers(1, SIZE)) for _ in range(count)]
    for i, value in enumerate(model.graph.input):
        array = inputs[value.name]
        if value.name in shared:
            for trial in range(2 * count):
                (folder / f"{trial}_input_{i}.bin").write_bytes(np.ascontiguousarray(array).tobytes())
            continue
        for trial, row in enumerate(many_rows(state, array, count)):
            for number, place in ((2 * trial, 0), (2 * trial + 1, places[trial])):
                batch = neighbours(state, array, SIZE)
                batch[place] = row
                (folder / f"{number}_input_{i}.bin").write_bytes(batch.tobytes())
    return places


def is_refused(folder, trial, size, row):
    path = folder / f"{trial}_{size}_refused"
    return path.exists() and str(row) in path.read_text().split()


def differences(folder, i, kind, sizes, places):
    """(number of answers that are equal in all bits, the relative differences of the others, how many are refused in one
    batch and not alone, or the other way round)"""
    equal, others, refused = 0, [], 0
    for row, place in enumerate(places):
        alone = (folder / f"{2 * row}_1_output_{i}.bin").read_bytes()
        for trial, at in ((2 * row, 0), (2 * row + 1, place)):
            for size in sizes:
                if size == 1 or at >= size:
                    continue
                states = {is_refused(folder, trial, size, at), is_refused(folder, 2 * row, 1, 0)}
                if True in states:
                    refused += len(states) - 1
                    continue
                answer = (folder / f"{trial}_{size}_output_{i}.bin").read_bytes()[at * len(alone) :][: len(alone)]
                if answer == alone:
                    equal += 1
                    continue
                a, b = (np.frombuffer(data, kind).astype(np.float64) for data in (alone, answer))
                with np.errstate(all="ignore"):
                    largest = np.abs(a[np.isfinite(a)]).max(initial=1e-30)
                    far = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0, np.abs(a - b))
                others.append(float(np.nan_to_num(far, nan=np.inf).max(initial=0) / largest))
    return equal, others, refused


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runner", required=True, help="the program node_test_runner")
    parser.add_argument("--models", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--seed", type=int)
    arguments = parser.parse_args()
    seed = fresh_seed() if arguments.seed is None else arguments.seed
    warnings.simplefilter("ignore")
    process, batched, case, equal, others, refused, worst = node_tests.RunnerProcess(arguments.runner), 0, 0, 0, 0, 0, (0.0, "")
    while batched < arguments.models:
        state = np.random.default_rng([seed, case, 1])
        model, inputs, shared = make_model(seed, case)
        case += 1
        with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
            folder = pathlib.Path(folder)
            onnx.save(model, folder / "model.onnx")
            places = write_trials(state, folder, model, inputs, shared, arguments.rows)
            status, *rest = process.run(folder, "rows")
            if status != "ok" or rest[0] != "batched":
                continue
            batched += 1
            for i, value in enumerate(model.graph.output):
                kind = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
                same, far, turned_away = differences(folder, i, kind, [int(size) for size in rest[1].split()], places)
                equal, others, refused = equal + same, others + len(far), refused + turned_away
                if max(far, default=0) > worst[0]:
                    worst = max(far), f"case {case - 1}, output {i}: {[node.op_type for node in model.graph.node]}"
                    if worst[0] > DIFFERENCE_MAX:
                        print(f"{worst[0]:.1e}: {worst[1]}", flush=True)
    print(f"seed {seed}: {batched} models of {case}, {arguments.rows} rows each: {equal} answers equal in all bits, {others} not, {refused} refused in a batch but not alone, "
          f"the largest difference {worst[0]:.1e} of the largest value ({worst[1]})")  # fmt: skip
    return 1 if worst[0] > DIFFERENCE_MAX else 0


if __name__ == "__main__":
    sys.exit(main())
