#!/usr/bin/env python3
"""Checks the networks of tools/models, all or those named, against onnxruntime:
every batch size, every bucket, plans cut in two, and the planner's workspace
against the least possible. Takes from half an hour to an hour for all."""

import argparse
import dataclasses
import json
import pathlib
import sys
import tempfile

from foliot_tools.model_check import BATCH_SIZES, check_model, models
from foliot_tools.server import ROOT

sys.path.insert(0, str(ROOT / "tests/figures"))
from figure import machine  # noqa: E402

HEADER = "| model | error | workspace / least | seconds | |\n|---|---|---|---|---|"


def warning(check):
    return f"; on reference kernels: {', '.join(check.slow)}" if check.slow else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="models, e.g. resnet50_v1b (default: all)")
    parser.add_argument("--batch-sizes", default=BATCH_SIZES, type=lambda text: [int(size) for size in text.split(",")])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=pathlib.Path, help="also write the results here")
    arguments = parser.parse_args()
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
    checks = []
    print(HEADER)
    with tempfile.TemporaryDirectory(prefix="foliot-zoo-") as folder:
        for name in arguments.names or models.MODELS:
            check = check_model(name, pathlib.Path(folder) / name, arguments.batch_sizes, arguments.threads)
            checks.append(check)
            print(f"| {name} | {check.error:.1e} | {check.workspace_ratio:.3f} | {check.seconds:.0f} | "
                  f"{check.failure or 'ok'}{warning(check)} |", flush=True)
            if arguments.json:
                arguments.json.write_text(json.dumps([dataclasses.asdict(check) for check in checks], indent=1))
    failed = [check.name for check in checks if check.failure]
    print(f"\n{len(checks) - len(failed)} of {len(checks)} pass. {machine()}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
