"""Random models through Foliot's whole compiler and its CPU device, beside onnxruntime.

    fuzz_models.py --runner build/release/bin/node_test_runner [--seconds 60] [--seed N] [--keep]

A model has one to a few operators, with random attributes, shapes, types and numbers, among them NaN,
infinities, ties and denormal numbers, or what exporters write. It is compiled for a batch, and for one
row, and both are compared with onnxruntime without optimisations; where they differ by more than
rounding, onnx's reference decides. Every run has a seed of its own, which it prints; case I of a run is
the same whatever came before it. A disagreement is shrunk; --keep writes it to kept/. What is kept there
is run first. Exits with 1 if anything disagrees, or ends the runner.
"""

import argparse
import collections
import pathlib
import re
import sys
import tempfile
import time
import warnings

import numpy as np
import onnx
from foliot_tools.seeds import fresh_seed

import generator
import idioms
import oracle
import shrink

KEPT = pathlib.Path(__file__).parent / "kept"
ENDED = re.compile(r"the runner ended with")


def make_case(seed, case, has_idioms):
    """One in two is made of idioms, if any are."""
    return (idioms if has_idioms and case % 2 else generator).make_case(f"{seed} {case}")


def describe(model, inputs):
    lines = [onnx.printer.to_text(model.graph)]
    for name, array in inputs.items():
        lines.append(f"  {name} = {np.array2string(np.asarray(array), threshold=40)}")
    return "\n".join(lines)


def keep(model, inputs, name):
    onnx.save(model, KEPT / f"{name}.onnx")
    np.savez(KEPT / f"{name}.npz", **inputs)
    return KEPT / f"{name}.onnx"


def kept_cases():
    for path in sorted(KEPT.glob("*.onnx")):
        with np.load(path.with_suffix(".npz")) as values:
            inputs = {name: values[name] for name in values.files}
        yield path.stem, onnx.load(path), inputs, len(next(iter(inputs.values())))


class Run:
    def __init__(self, runner, folder):
        self.foliot = oracle.Foliot(runner, folder)
        self.cases, self.failures = 0, []
        self.refusals = collections.Counter()

    def attempt(self, model, inputs, rows, must_run=False):
        """The disagreement, or None."""
        self.cases += 1
        try:
            return oracle.judge(self.foliot, model, inputs, rows)
        except oracle.Refused as refused:
            message = str(refused)
            if must_run or ENDED.search(message):
                return oracle.Disagreement("end", message)
            self.refusals[re.sub(r"'[^']*'|\d+", "_", message)[:160]] += 1
            return None

    def fail(self, name, found, model, inputs):
        self.failures.append(name)
        print(f"\n{name}: {found.what}: {found.detail}\n{describe(model, inputs)}", flush=True)


def first_disagreement(runner, seed, cases):
    """The first model of a run that disagrees, shrunk; None if none of so many does."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        run = Run(runner, folder)
        for case in range(cases):
            model, inputs, rows = make_case(seed, case, has_idioms=False)
            found = run.attempt(model, inputs, rows)
            if found is not None:
                return shrink.shrunk(run.foliot, model, inputs, rows, found.what)[0]
    return None


def fuzz(run, seed, deadline, first, keeps, has_idioms):
    case = first
    while time.monotonic() < deadline:
        name = f"seed{seed}_{case}"
        model, inputs, rows = make_case(seed, case, has_idioms)
        found = run.attempt(model, inputs, rows)
        if found is not None:
            if found.what != "end":
                model, inputs, rows = shrink.shrunk(run.foliot, model, inputs, rows, found.what)
                found = run.attempt(model, inputs, rows) or found
            run.fail(name, found, model, inputs)
            if keeps:
                print(f"kept as {keep(model, inputs, name)}")
        case += 1


def run(runner, seconds, seed=None, first=0, keeps=False, has_idioms=False):
    """The Run: how many models it tried, and the names of those that disagree."""
    warnings.simplefilter("ignore")
    seed = fresh_seed() if seed is None else seed
    deadline = time.monotonic() + seconds
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        it = Run(runner, folder)
        for name, model, inputs, rows in kept_cases():
            if found := it.attempt(model, inputs, rows, must_run=True):
                it.fail(name, found, model, inputs)
        fuzz(it, seed, deadline, first, keeps, has_idioms)
    for message, count in it.refusals.most_common(12):
        print(f"not computed {count} times: {message}")
    print(f"seed {seed}: {it.cases} models, {sum(it.refusals.values())} not computed, {len(it.failures)} disagree")
    return it


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runner", required=True, help="the program node_test_runner")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, help="that of an earlier run; a fresh one without it")
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument("--keep", action="store_true", help="write what disagrees to kept/")
    arguments = parser.parse_args()
    found = run(arguments.runner, arguments.seconds, arguments.seed, arguments.first, arguments.keep, has_idioms=True)
    return 1 if found.failures else 0


if __name__ == "__main__":
    sys.exit(main())
