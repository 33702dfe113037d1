#!/usr/bin/env python3
"""Ensembles of 500 trees over 100 features beside onnxruntime, on one thread, taking turns.
Every run has rows of its own: with the same rows again and again, a processor that predicts
branches learns the way through the trees."""

import argparse
import pathlib
import sys
import tempfile
import time

import numpy as np
import onnx
from foliot_tools.server import ROOT, foliot_binary

sys.path.insert(0, str(ROOT / "bench"))
from runtime import FoliotSide, OnnxruntimeSide, machine  # noqa: E402

sys.path.insert(0, str(ROOT))
from foliot_tools.model_check import compile_model  # noqa: E402
from tools.models import classic  # noqa: E402

BATCH_SIZES = (1, 16, 64)
INPUTS = 32
ERROR_MAX = 1e-5


def rows_of(model, batch_size, random):
    return [model.rows[random.integers(0, len(model.rows), batch_size)] for _ in range(INPUTS)]


def measure(foliot, position, reference, model, batch_size, rounds, folder):
    """{side: durations in seconds}: for every input, one side after the other."""
    random = np.random.default_rng(1)
    name = model.model.graph.input[0].name
    durations = {"foliot": [], "onnxruntime": []}
    for _ in range(rounds):
        inputs = rows_of(model, batch_size, random)
        for rows in inputs:
            foliot.put(position, [rows], folder)
            durations["foliot"] += foliot.run(position, 1)
            expected = reference.put({name: rows})
            durations["onnxruntime"] += reference.run(1)
            for actual, wanted in zip(foliot.get(position, expected, folder), expected):
                error = np.max(np.abs(actual - wanted)) / max(1, np.max(np.abs(wanted)))
                if error > ERROR_MAX:
                    sys.exit(f"{model.name}: answers differ by {error:.1e}")
    return durations


def microseconds(durations, share):
    return float(np.quantile(durations, share)) * 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20, help=f"of {INPUTS} inputs each (default: 20)")
    parser.add_argument("--trees", type=int, default=500)
    arguments = parser.parse_args()
    print(f"{machine()}, one thread, microseconds\n")
    print("| model | batch | Foliot p50 | p99 | onnxruntime p50 | p99 | ratio of p50 |\n|---|---|---|---|---|---|---|")
    for model in classic.large_ensembles(arguments.trees):
        with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
            folder = pathlib.Path(name)
            onnx.save(model.model, folder / "model.onnx")
            compile_model(folder / "model.onnx", folder / "model.foliot", BATCH_SIZES, 1)
            reference = OnnxruntimeSide(folder / "model.onnx", 1)
            with FoliotSide(folder / "model.foliot", 1) as foliot:
                for position, batch_size in enumerate(BATCH_SIZES):
                    times = measure(foliot, position, reference, model, batch_size, arguments.rounds, folder)
                    ours, theirs = times["foliot"], times["onnxruntime"]
                    print(f"| {model.name} | {batch_size} | {microseconds(ours, 0.5):.1f} | {microseconds(ours, 0.99):.1f} "
                          f"| {microseconds(theirs, 0.5):.1f} | {microseconds(theirs, 0.99):.1f} "
                          f"| {microseconds(ours, 0.5) / microseconds(theirs, 0.5):.2f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
