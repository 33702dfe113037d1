#!/usr/bin/env python3
"""Exports the architectures of tools/models/torch_exports.py by both of torch's exporters,
lets `foliot init` write a model.toml, compiles, runs several batch sizes, and compares with
onnxruntime: outputs within 1e-4 of their largest value. An architecture passes if it does as
both exporters write it. `make test-torch-exports` installs what exports them."""

import argparse
import dataclasses
import pathlib
import subprocess
import sys
import tempfile
import tomllib

import numpy as np
import onnxruntime
from foliot_tools.server import ROOT, foliot_binary

sys.path.insert(0, str(ROOT))
from tools.models import torch_exports  # noqa: E402

BATCH_SIZES = (1, 2, 4)
ERROR_MAX = 1e-4
# Rows must differ by more than that, or agreement would prove nothing.
SPREAD_MIN = 10 * ERROR_MAX
PASSED_MIN = 29


class Failed(Exception):
    """Why a network is not served, or not right."""


@dataclasses.dataclass
class Outcome:
    error: float = 0.0
    failure: str = ""


def foliot(*arguments):
    """Runs a command and returns what it wrote to its standard error."""
    result = subprocess.run([foliot_binary(), *map(str, arguments)], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise Failed(f"{arguments[0]}: {result.stderr.strip().splitlines()[-1] if result.stderr else result.returncode}")
    return result.stderr


def length_of(settings):
    """The first length that it is compiled for."""
    lengths = settings.get("buckets", {})
    return next(iter(lengths.values()))[0] if lengths else 0


def check(architecture, folder):
    outcome = Outcome()
    model, package = folder / "model.onnx", folder / "model.foliot"
    foliot("init", model)
    settings = tomllib.loads((folder / "model.toml").read_text())
    if settings.get("batch_sizes", [])[-1:] != [16]:
        raise Failed(f"init wrote batch sizes {settings.get('batch_sizes')}")
    notes = foliot("compile", model, "--output", package, "--batch-sizes", ",".join(map(str, BATCH_SIZES)))
    if "without batching" in notes:
        raise Failed(next(line for line in notes.splitlines() if "without batching" in line))
    session = onnxruntime.InferenceSession(model)
    inputs = architecture.rows(max(BATCH_SIZES), length_of(settings), seed=1)
    given = {value.name for value in session.get_inputs()}
    inputs = {name: values for name, values in inputs.items() if name in given}
    arguments = []
    for name, values in inputs.items():
        np.save(folder / f"{name}.npy", values)
        arguments += ["--input", f"{name}={folder}/{name}.npy"]
    expected = {value.name: output for value, output in zip(session.get_outputs(), session.run(None, inputs))}
    for name, values in expected.items():
        spread = np.ptp(values, axis=0).max() / np.max(np.abs(values))
        if not spread >= SPREAD_MIN:
            raise Failed(f"rows of '{name}' differ by {spread:.1e} only: the comparison proves nothing")
    for batch_size in BATCH_SIZES:
        foliot("run", package, "--batch", batch_size, *arguments, "--output", folder / "answers")
        for name, values in expected.items():
            actual = np.load(folder / "answers" / f"{name}.npy")
            if actual.shape != values.shape:
                raise Failed(f"output '{name}' has shape {actual.shape} instead of {values.shape}")
            outcome.error = max(outcome.error, float(np.max(np.abs(actual - values)) / np.max(np.abs(values))))
    if not outcome.error <= ERROR_MAX:
        raise Failed(f"outputs differ by {outcome.error:.1e}")
    return outcome


def check_export(name, exporter, keep):
    """(Outcome, whether torch could export it)"""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        folder = pathlib.Path(folder) if keep is None else keep / f"{name}-{exporter}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "model.toml").unlink(missing_ok=True)
        architecture = torch_exports.build(name)
        try:
            torch_exports.export(architecture, exporter, folder / "model.onnx")
        except torch_exports.NotExported as failure:
            return Outcome(failure=f"not exported: {failure}")
        try:
            return check(architecture, folder)
        except Failed as failure:
            return Outcome(failure=str(failure))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="the architectures; all, if none is named")
    parser.add_argument("--exporter", choices=torch_exports.EXPORTERS, help="that one only")
    parser.add_argument("--keep", type=pathlib.Path, metavar="DIR", help="keep the exported models here")
    arguments = parser.parse_args()
    names = arguments.names or list(torch_exports.ARCHITECTURES)
    exporters = [arguments.exporter] if arguments.exporter else torch_exports.EXPORTERS
    passed = 0
    for name in names:
        outcomes = []
        for exporter in exporters:
            outcome = check_export(name, exporter, arguments.keep)
            outcomes.append(outcome)
            print(f"{name:32} {exporter:12} {'ok' if not outcome.failure else 'FAILED':7} {outcome.error:.1e}  "
                  f"{outcome.failure}", flush=True)
        passed += all(not outcome.failure for outcome in outcomes)
    print(f"{passed} of {len(names)} architectures are served and agree with onnxruntime, as all exporters write them")
    return 1 if passed < (len(names) if arguments.names else PASSED_MIN) else 0


if __name__ == "__main__":
    sys.exit(main())
