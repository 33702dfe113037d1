#!/usr/bin/env python3
"""Foliot's runtime beside onnxruntime and, where the Python package openvino is installed
(tools/python-environment bench), OpenVINO: the same model, input and number of threads,
taking turns on one machine; a loop of pure arithmetic beside them shows how much
of the tail is the machine's own. bench/start.py compares how long they take to start."""

import argparse
import dataclasses
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnxruntime
from foliot_tools.server import ROOT, foliot_binary

try:
    import openvino
except ImportError:
    openvino = None

sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "tests/figures"))
from figure import machine  # noqa: E402
from tools import models  # noqa: E402

MODELS = {
    "resnet50_v1b": {}, "densenet121": {}, "inception_v3": {}, "mobilenet_v2": {},
    "efficientnet_b0": {}, "vgg16": {}, "unet": {}, "yolo_small": {}, "vit_b16": {}, "bert_base": {"sequence": 128},
    "lstm_classifier": {}, "dlrm": {}, "yolo8_nano": {}, "text_detection": {}, "whisper_tiny_encoder": {},
    "smart_turn": {},
}
# Those whose tails are shown beside that of arithmetic.
TAILED = ("resnet50_v1b", "mobilenet_v2", "bert_base")
RIVALS = ("onnxruntime", "openvino") if openvino else ("onnxruntime",)
SIDES = ("foliot", *RIVALS, "loop")
QUANTILES = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999}
# The largest difference over the largest value, in float32.
RELATIVE_ERROR_MAX = 1e-4
# So that the threads of one side have stopped spinning when the other begins.
PAUSE_SECONDS = 0.02


@dataclasses.dataclass
class Plan:
    """How long to measure."""

    rounds: int
    seconds: float  # of each side of a cell, over all rounds


class FoliotSide:
    """A process that only executes (bench/runtime_runner.cc)."""

    def __init__(self, package, threads):
        runner = pathlib.Path(foliot_binary()).with_name("runtime_runner")
        if not runner.exists():
            sys.exit(f"error: there is no {runner}: cmake --build build/release --target runtime_runner")
        self.process = subprocess.Popen([runner, package, str(threads)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)
        parts = [number / 1e9 for number in self.numbers()]
        self.start = dict(zip(("open", "allocate", "prepare", "load", "first_run", "prepare_more"), parts))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()

    def numbers(self):
        """Of the next line, as they are."""
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("runtime_runner died")
        return [int(word) for word in line.split() if word.isdigit()]

    def ask(self, *words):
        print(*words, file=self.process.stdin, flush=True)
        return self.numbers()

    def durations(self, *words):
        return [number / 1e9 for number in self.ask(*words)]

    def run(self, position, count):
        return self.durations("run", position, count)

    def loop(self, iterations, count):
        return self.durations("loop", "arithmetic", iterations, count)

    def turns(self, position, kind, iterations, count):
        """As bench/runtime_runner.cc has it, in nanoseconds."""
        return self.ask("turns", position, kind, iterations, count)

    def put(self, position, arrays, folder):
        for number, array in enumerate(arrays):
            array.tofile(folder / "input.bin")
            self.ask("input", position, number, folder / "input.bin")

    def get(self, position, expected, folder):
        answers = []
        for number, reference in enumerate(expected):
            self.ask("output", position, number, folder / "output.bin")
            answers.append(np.fromfile(folder / "output.bin", reference.dtype).reshape(reference.shape))
        return answers


class OnnxruntimeSide:
    """A session with inputs and outputs bound, so that nothing is copied."""

    def __init__(self, model, threads):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        start = time.perf_counter()
        self.session = onnxruntime.InferenceSession(model, options)
        self.start = time.perf_counter() - start
        self.binding = None

    def put(self, inputs):
        self.binding = self.session.io_binding()
        for name, array in inputs.items():
            self.binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(array))
        expected = self.session.run(None, inputs)
        for output, array in zip(self.session.get_outputs(), expected):
            self.binding.bind_ortvalue_output(output.name, onnxruntime.OrtValue.ortvalue_from_numpy(array))
        return expected

    def run(self, count):
        durations = []
        for _ in range(count):
            start = time.perf_counter_ns()
            self.session.run_with_iobinding(self.binding)
            durations.append((time.perf_counter_ns() - start) / 1e9)
        return durations


class OpenvinoSide:
    """A compiled model whose inputs are bound, in float32 as the others compute."""

    def __init__(self, model, threads):
        self.request = openvino.Core().compile_model(model, "CPU", {
            "INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32",
        }).create_infer_request()

    def put(self, inputs):
        for name, array in inputs.items():
            self.request.set_tensor(name, openvino.Tensor(array, shared_memory=True))

    def run(self, count):
        durations = []
        for _ in range(count):
            start = time.perf_counter_ns()
            self.request.infer()
            durations.append((time.perf_counter_ns() - start) / 1e9)
        return durations


def measure(foliot, position, rivals, plan):
    """{side: durations}, in turns. The loop is made about as long as a run."""
    single = min(foliot.run(position, 5))
    iterations = max(1, int(1_000_000 * single / min(foliot.loop(1_000_000, 5))))
    count = max(1, int(plan.seconds / plan.rounds / single))
    turns = {"foliot": lambda: foliot.run(position, count), "loop": lambda: foliot.loop(iterations, count)}
    for name, rival in rivals.items():
        rival.run(2)
        turns[name] = lambda rival=rival: rival.run(count)
    durations = {side: [] for side in SIDES}
    for turn in range(plan.rounds):
        for shift in range(len(SIDES)):  # each side is first in its turn
            side = SIDES[(turn + shift) % len(SIDES)]
            durations[side] += turns[side]()
            time.sleep(PAUSE_SECONDS)
    return durations


def summary(durations):
    """Milliseconds; a quantile is None where there are too few runs to tell it."""
    result = {"runs": len(durations)}
    for name, share in QUANTILES.items():
        told = len(durations) * (1 - share) >= 1
        result[name] = float(np.quantile(durations, share)) * 1e3 if told else None
    return result


def tail(side):
    """p99.9 over the median, or the highest quantile that is known."""
    highest = next((side[name] for name in reversed(QUANTILES) if side[name] is not None), None)
    return highest / side["p50"]


def compile_model(model, package, batches, threads):
    subprocess.run([foliot_binary(), "compile", model, "--output", package, "--threads", str(threads),
                    "--batch-sizes", ",".join(map(str, batches)), "--profile-runs", "1"], check=True,
                   capture_output=True)


def check_answers(name, foliot, position, expected, folder):
    for answer, reference in zip(foliot.get(position, expected, folder), expected):
        error = np.max(np.abs(answer - reference)) / np.max(np.abs(reference))
        if not error <= RELATIVE_ERROR_MAX:
            raise RuntimeError(f"{name}: the two differ by {error:.1e}, so their times mean nothing")


def cells_of(name, batches, threads, plan, folder):
    """Measures one model at all batch sizes."""
    network = models.build(name, **MODELS[name])
    model = models.write(network, folder / f"{name}/model.onnx")
    package = folder / f"{name}.foliot"
    compile_model(model, package, batches, threads)
    rivals = {"onnxruntime": OnnxruntimeSide(model, threads)}
    if openvino:
        rivals["openvino"] = OpenvinoSide(model, threads)
    with FoliotSide(package, threads) as foliot:
        for position, batch in enumerate(batches):
            inputs = network.examples(batch, np.random.default_rng(7))
            expected = rivals["onnxruntime"].put(inputs)
            if openvino:
                rivals["openvino"].put(inputs)
            foliot.put(position, inputs.values(), folder)
            foliot.run(position, 1)
            check_answers(name, foliot, position, expected, folder)
            sides = {side: summary(times) for side, times in measure(foliot, position, rivals, plan).items()}
            yield {"model": name, "batch": batch, "threads": threads, **sides,
                   "ratio": sides["foliot"]["p50"] / min(sides[rival]["p50"] for rival in RIVALS),
                   "tail_over_loop": tail(sides["foliot"]) / tail(sides["loop"])}


def print_cell(cell):
    def milliseconds(side):
        return " / ".join("-" if cell[side][name] is None else f"{cell[side][name]:.2f}" for name in QUANTILES)

    columns = (cell["model"], cell["batch"], cell["threads"], *(milliseconds(side) for side in SIDES),
               f"{cell['ratio']:.2f}", f"{cell['tail_over_loop']:.2f}")
    print("| " + " | ".join(map(str, columns)) + " |", flush=True)


def print_tails(cells):
    """How much longer one run in a thousand takes than the median one."""
    print("\np99.9 / median (of fewer than 1000 runs: the highest quantile known)\n"
          f"| model | batch | threads | Foliot | {' | '.join(RIVALS)} | arithmetic | Foliot's over arithmetic's |\n"
          + "|---" * (5 + len(RIVALS)) + "|")
    for cell in cells:
        if cell["model"] in TAILED:
            tails = " | ".join(f"{tail(cell[side]):.2f}" for side in SIDES)
            print(f"| {cell['model']} | {cell['batch']} | {cell['threads']} | {tails} | {cell['tail_over_loop']:.2f} |")


def plot(cells, path):
    """The ratio of medians of every cell: below 1 Foliot is faster."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    names = list(dict.fromkeys(cell["model"] for cell in cells))
    kinds = sorted({(cell["threads"], cell["batch"]) for cell in cells})
    figure, axes = pyplot.subplots(figsize=(10, 0.45 * len(names) + 1.5))
    for i, (threads, batch) in enumerate(kinds):
        chosen = [cell for cell in cells if (cell["threads"], cell["batch"]) == (threads, batch)]
        heights = [names.index(cell["model"]) + (i - len(kinds) / 2) * 0.1 for cell in chosen]
        label = f"batch {batch}, {threads} thread{'s' * (threads > 1)}"
        axes.plot([cell["ratio"] for cell in chosen], heights, "os^"[i % 3], label=label)
    axes.axvline(1, color="grey", linewidth=1)
    axes.set_yticks(range(len(names)), names)
    axes.set_xlabel("median of Foliot / median of the faster rival (left of 1: Foliot is faster)")
    axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def parse_arguments():
    def numbers(text):
        return [int(number) for number in text.split(",")]

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=lambda text: text.split(","), default=list(MODELS), metavar="NAME,...")
    parser.add_argument("--batches", type=numbers, default=[1, 4, 16])
    parser.add_argument("--threads", type=numbers, default=[1, 2])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=20, help="for each side of a cell, over all rounds")
    parser.add_argument("--quick", action="store_true", help="a look: 3 rounds, half a second for each side of a cell")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("out/bench-runtime"))
    arguments = parser.parse_args()
    unknown = set(arguments.models) - MODELS.keys()
    if unknown:
        parser.error(f"no model {', '.join(sorted(unknown))}; there are {', '.join(MODELS)}")
    if arguments.quick:
        arguments.rounds, arguments.seconds = 3, 0.5
    return arguments


def main():
    arguments = parse_arguments()
    onnxruntime.set_default_logger_severity(3)
    plan = Plan(arguments.rounds, arguments.seconds)
    cells = []
    quantiles = " / ".join(QUANTILES)
    print(f"ms, {quantiles}\n| model | batch | threads | Foliot | {' | '.join(RIVALS)} | arithmetic "
          "| ratio of medians, to the faster rival | tail over arithmetic's |\n" + "|---" * (6 + len(RIVALS)) + "|")
    for threads in arguments.threads:
        for name in arguments.models:
            with tempfile.TemporaryDirectory(prefix="foliot-bench-") as folder:
                for cell in cells_of(name, arguments.batches, threads, plan, pathlib.Path(folder)):
                    cells.append(cell)
                    print_cell(cell)
    print_tails(cells)
    ratios = [cell["ratio"] for cell in cells]
    print(f"\nratio of medians: geometric mean {np.exp(np.mean(np.log(ratios))):.3f}, largest {max(ratios):.3f}")
    arguments.output.mkdir(parents=True, exist_ok=True)
    versions = {"onnxruntime": onnxruntime.__version__} | ({"openvino": openvino.__version__} if openvino else {})
    result = {"machine": machine(), **versions, "cells": cells}
    (arguments.output / "runtime.json").write_text(json.dumps(result, indent=1))
    plot(cells, arguments.output / "runtime.png")
    print(f"\n{machine()}; {versions}; written to {arguments.output}")


if __name__ == "__main__":
    main()
