#!/usr/bin/env python3
"""What bfloat16 and int8 gain: the same network compiled in float32, in bfloat16 and
quantised, each in a process of its own, taking turns on one machine; onnxruntime on
the float32 and on the quantised model beside them. Prints medians and how many times
faster than its own float32 each is."""

import argparse
import json
import pathlib
import subprocess
import tempfile
import time

import numpy as np
import onnxruntime
import runtime
from foliot_tools.server import foliot_binary
from runtime import FoliotSide, OnnxruntimeSide, machine, models
from tools.models import quantized

MODELS = ("resnet50_v1b", "mobilenet_v2", "bert_base")
SIDES = ("float32", "bfloat16", "int8", "onnxruntime float32", "onnxruntime int8")


def compile_model(model, package, batches, threads, precision):
    """The largest error against float32, as the compiler sees it; None for float32 itself."""
    report = package.with_suffix(".json")
    subprocess.run([foliot_binary(), "compile", model, "--output", package, "--threads", str(threads), "--precision",
                    precision, "--batch-sizes", ",".join(map(str, batches)), "--profile-runs", "1", "--report-json",
                    report], check=True, capture_output=True)
    return json.loads(report.read_text()).get("narrowing_error")


def measure(sides, plan):
    """{side: median seconds}; each is first in its turn."""
    single = {name: min(run(3)) for name, run in sides.items()}
    durations = {name: [] for name in sides}
    for turn in range(plan.rounds):
        for shift in range(len(sides)):
            name = list(sides)[(turn + shift) % len(sides)]
            durations[name] += sides[name](max(1, int(plan.seconds / plan.rounds / single[name])))
            time.sleep(runtime.PAUSE_SECONDS)
    return {name: float(np.median(times)) for name, times in durations.items()}


def cells_of(name, batches, threads, plan, folder):
    network = models.build(name, **runtime.MODELS[name])
    real = models.write(network, folder / f"{name}/model.onnx")
    whole = quantized.quantize(network, folder / f"{name}_int8/model.onnx")
    variants = {"float32": (real, "float32"), "bfloat16": (real, "bfloat16"), "int8": (whole, "float32")}
    errors, processes = {}, {}
    for side, (model, precision) in variants.items():
        package = folder / f"{side}.foliot"
        errors[side] = compile_model(model, package, batches, threads, precision)
        processes[side] = FoliotSide(package, threads)
    references = {"onnxruntime float32": OnnxruntimeSide(real, threads), "onnxruntime int8": OnnxruntimeSide(whole, threads)}
    for position, batch in enumerate(batches):
        inputs = network.examples(batch, np.random.default_rng(7))
        sides = {}
        for side, process in processes.items():
            process.put(position, inputs.values(), folder)
            sides[side] = lambda count, process=process: process.run(position, count)
        for side, reference in references.items():
            reference.put(inputs)
            sides[side] = reference.run
        yield {"model": name, "batch": batch, "threads": threads, "errors": errors, "median": measure(sides, plan)}
    for process in processes.values():
        process.__exit__()


def print_cell(cell):
    median = cell["median"]
    milliseconds = [f"{median[side] * 1e3:.2f}" for side in SIDES]
    gains = [f"{median['float32'] / median[side]:.2f}" for side in SIDES[1:3]]
    gains.append(f"{median['onnxruntime int8'] / median['int8']:.2f}")
    print("| " + " | ".join(map(str, (cell["model"], cell["batch"], cell["threads"], *milliseconds, *gains))) + " |",
          flush=True)


def parse_arguments():
    def numbers(text):
        return [int(number) for number in text.split(",")]

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=lambda text: text.split(","), default=MODELS, metavar="NAME,...")
    parser.add_argument("--batches", type=numbers, default=[1, 4, 16])
    parser.add_argument("--threads", type=numbers, default=[1])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=5, help="for each side of a cell, over all rounds")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("out/bench-precisions"))
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    onnxruntime.set_default_logger_severity(3)
    plan = runtime.Plan(arguments.rounds, arguments.seconds)
    header = ("model", "batch", "threads", *(f"{side} ms" for side in SIDES), "bfloat16 gains", "int8 gains",
              "int8 over onnxruntime's")
    print("| " + " | ".join(header) + " |\n" + "|---" * len(header) + "|")
    cells = []
    for threads in arguments.threads:
        for name in arguments.models:
            with tempfile.TemporaryDirectory(prefix="foliot-bench-") as folder:
                for cell in cells_of(name, arguments.batches, threads, plan, pathlib.Path(folder)):
                    cells.append(cell)
                    print_cell(cell)
    for cell in {cell["model"]: cell for cell in cells}.values():
        print(f"{cell['model']}: largest error against float32: "
              + ", ".join(f"{side} {error:.1e}" for side, error in cell["errors"].items() if error is not None))
    arguments.output.mkdir(parents=True, exist_ok=True)
    result = {"machine": machine(), "onnxruntime": onnxruntime.__version__, "cells": cells}
    (arguments.output / "precisions.json").write_text(json.dumps(result, indent=1))
    print(f"\n{machine()}; onnxruntime {onnxruntime.__version__}; written to {arguments.output}")


if __name__ == "__main__":
    main()
