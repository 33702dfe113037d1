#!/usr/bin/env python3
"""Compiles the models of tools/models/classic.py, runs them at several batch sizes, and
compares every output with onnxruntime's: numbers of classes must be equal, real numbers
within 1e-5 of the largest of the output, or of 1. `make test-classic-models` installs what
trains and exports them."""

import argparse
import dataclasses
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from foliot_tools.server import ROOT, foliot_binary

sys.path.insert(0, str(ROOT))
from tools.models import classic  # noqa: E402

BATCH_SIZES = (1, 2, 16)
ERROR_MAX = 1e-5
SERVED_MIN = 25


class Failed(Exception):
    """Why a model is not served, or not right."""


@dataclasses.dataclass
class Outcome:
    name: str
    served: bool = True
    failure: str = ""
    error: float = 0.0  # the largest of all outputs
    notes: str = ""


def foliot(*arguments):
    """Runs a command and returns what it warned of."""
    result = subprocess.run([foliot_binary(), *map(str, arguments)], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise Failed(result.stderr.strip().split("\n")[-1] or f"exit status {result.returncode}")
    return [line for line in result.stderr.splitlines() if line.startswith("warning:")]


def expected_of(model, rows):
    """onnxruntime's outputs by name, as tensors of numbers: what ZipMap makes as one column for
    each class, names as their positions among all."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # adds up trees in their order
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    answers = session.run(None, {session.get_inputs()[0].name: rows})
    return {output.name: as_numbers(answer, model) for output, answer in zip(session.get_outputs(), answers)}


def as_numbers(answer, model):
    if isinstance(answer, list):
        return np.array([list(row.values()) for row in answer], np.float32)
    if answer.dtype.kind in "OUS":
        names = next(list(attribute.strings) for node in model.graph.node for attribute in node.attribute
                     if attribute.name in ("classlabels_strings", "values_strings"))
        return np.array([names.index(name.encode()) for name in answer.ravel()], np.int64).reshape(answer.shape)
    return answer


def check(model, folder):
    outcome = Outcome(model.name)
    try:
        onnx.save(model.model, folder / "model.onnx")
        package = folder / "model.foliot"
        notes = foliot("compile", folder / "model.onnx", "--output", package, "--batch-sizes",
                       ",".join(map(str, BATCH_SIZES)), "--threads", 1)
        outcome.notes = "; ".join(note.removeprefix("warning: ") for note in notes)
        if "without batching" in outcome.notes:
            raise Failed(outcome.notes)
    except Failed as failure:
        outcome.served, outcome.failure = False, str(failure)
        return outcome
    try:
        compare(outcome, model, package)
    except Failed as failure:
        outcome.failure = str(failure)
    return outcome


def compare(outcome, model, package):
    rows = model.rows[: len(model.rows) // max(BATCH_SIZES) * max(BATCH_SIZES)]
    expected = expected_of(model.model, rows)
    name = model.model.graph.input[0].name
    np.save(package.parent / "rows.npy", rows)
    for batch_size in BATCH_SIZES:
        foliot("run", package, "--batch", batch_size, "--threads", 1, "--input", f"{name}={package.parent}/rows.npy",
               "--output", package.parent / "answers")
        for output in expected:
            compare_output(outcome, output, np.load(package.parent / "answers" / f"{output}.npy"), expected[output])


def compare_output(outcome, output, actual, expected):
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        raise Failed(f"output '{output}' is {actual.dtype}{actual.shape} instead of {expected.dtype}{expected.shape}")
    if actual.dtype.kind != "f":
        wrong = np.count_nonzero(actual != expected)
        if wrong:
            raise Failed(f"{wrong} of {actual.size} numbers of '{output}' differ")
        return
    error = float(np.max(np.abs(actual - expected)) / max(1, np.max(np.abs(expected))))
    outcome.error = max(outcome.error, error)
    if not error <= ERROR_MAX:
        raise Failed(f"output '{output}' differs by {error:.1e}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="the models; all, if none is named")
    arguments = parser.parse_args()
    outcomes = []
    for model in classic.build_all(arguments.names):
        with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
            outcome = check(model, pathlib.Path(folder))
        outcomes.append(outcome)
        verdict = "ok" if not outcome.failure else "WRONG" if outcome.served else "refused"
        print(f"{outcome.name:36} {verdict:8} {outcome.error:.1e}  {outcome.failure or outcome.notes}", flush=True)
    served, wrong = sum(o.served for o in outcomes), [o.name for o in outcomes if o.served and o.failure]
    print(f"{served} of {len(outcomes)} are served; of these {served - len(wrong)} agree with onnxruntime")
    return 1 if wrong or (not arguments.names and served < SERVED_MIN) else 0


if __name__ == "__main__":
    sys.exit(main())
