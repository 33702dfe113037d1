#!/usr/bin/env python3
"""How long a compiled model takes to start, beside onnxruntime's session creation,
in turns.

Foliot's start is what must happen before a model that joins a running server can
answer: its package is opened, the kernels of its smallest batch size are made, its
weights are loaded, and whatever its first EXEC takes longer than the later ones. Only
then are the kernels of the other batch sizes made; when a model could have answered
with all of them ready, as one that takes another's place must be, is a figure of its
own. Each start is a new process, so nothing is warm but the file in the kernel's
memory. The device's memory belongs to the server, which takes it once; it has a column
of its own. onnxruntime's start is its session, which serves every batch size, and
whatever its first run takes longer than the later ones."""

import argparse
import json
import pathlib
import time

import numpy as np
import onnxruntime
from runtime import FoliotSide, MODELS, OnnxruntimeSide, compile_model, machine, models

STARTED = ("resnet50_v1b", "bert_base")
LATER_RUNS = 5
COLUMNS = ("open", "prepare", "load", "first_run_excess", "start", "prepare_more", "whole_start", "session",
           "reference_start", "ratio", "whole_ratio", "allocate")


def excess(first, later):
    """What a first run takes longer than the later ones."""
    return max(0.0, first - float(np.median(later)))


def start_foliot(package, threads):
    """Seconds of each part."""
    with FoliotSide(package, threads) as foliot:
        parts = dict(foliot.start)
        parts["first_run_excess"] = excess(parts["first_run"], foliot.run(0, LATER_RUNS))
    parts["start"] = sum(parts[name] for name in ("open", "prepare", "load", "first_run_excess"))
    parts["whole_start"] = parts["start"] + parts["prepare_more"]
    return parts


def start_onnxruntime(model, threads, inputs):
    reference = OnnxruntimeSide(model, threads)
    durations = []
    for _ in range(1 + LATER_RUNS):
        start = time.perf_counter()
        reference.session.run(None, inputs)
        durations.append(time.perf_counter() - start)
    return {"session": reference.start, "reference_start": reference.start + excess(durations[0], durations[1:])}


def compiled(network, name, batch_sizes, threads, folder):
    """The paths of model and package, made now if they are not there yet."""
    sizes = "_".join(map(str, batch_sizes))
    model = folder / name / "model.onnx"
    package = folder / f"{name}_{threads}_{sizes}.foliot"
    if not model.exists():
        models.write(network, model)
    if not package.exists():
        compile_model(model, package, batch_sizes, threads)
    return model, package


def starts_of(name, batch_sizes, threads, rounds, folder):
    """Medians in milliseconds over the rounds."""
    network = models.build(name, **MODELS[name])
    model, package = compiled(network, name, batch_sizes, threads, folder)
    inputs = network.examples(1, np.random.default_rng(7))
    times = [{**start_foliot(package, threads), **start_onnxruntime(model, threads, inputs)} for _ in range(rounds)]
    medians = {part: float(np.median([each[part] for each in times])) * 1e3 for part in times[0]}
    return {"model": name, "batch_sizes": batch_sizes, "threads": threads, **medians,
            "ratio": medians["start"] / medians["reference_start"],
            "whole_ratio": medians["whole_start"] / medians["reference_start"]}


def main():
    def numbers(text):
        return [int(number) for number in text.split(",")]

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=lambda text: text.split(","), default=STARTED, metavar="NAME,...")
    parser.add_argument("--batch-sizes", type=numbers, nargs="+", default=[[1], [1, 2, 4, 8, 16]], metavar="1,2,4")
    parser.add_argument("--threads", type=numbers, default=[1, 2])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("out/start"),
                        help="where models and packages are kept for the next time (2 GB)")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("out/start.json"))
    arguments = parser.parse_args()
    onnxruntime.set_default_logger_severity(3)
    print("ms, medians\n| model | batch sizes | threads | open | make kernels of the smallest | LOAD "
          "| first EXEC, excess | start | make the other kernels | start with all | onnxruntime's session | its start "
          "| ratio | ratio with all | (take the device's memory) |\n" + "|---" * 15 + "|")
    starts = []
    for name in arguments.models:
        for batch_sizes in arguments.batch_sizes:
            for threads in arguments.threads:
                start = starts_of(name, batch_sizes, threads, arguments.rounds, arguments.folder)
                starts.append(start)
                figures = " | ".join(f"{start[column]:.2f}" for column in COLUMNS)
                print(f"| {name} | {','.join(map(str, batch_sizes))} | {threads} | {figures} |", flush=True)
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps({"machine": machine(), "starts": starts}, indent=1))
    print(f"\n{machine()}; onnxruntime {onnxruntime.__version__}; written to {arguments.output}")


if __name__ == "__main__":
    main()
