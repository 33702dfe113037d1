#!/usr/bin/env python3
"""Two builds of Foliot's runtime beside each other: EXEC of the same compiled models, in
turns, so that what else the machine does meets both. Prints the ratio of their medians
for each model and batch size, and the geometric mean.

    bench/versions.py OLD/runtime_runner NEW/runtime_runner [--quick]

A runner may have other environment variables: "LD_PRELOAD=libjemalloc.so.2 NEW/runtime_runner"."""

import argparse
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
import time

import numpy as np
from foliot_tools.server import ROOT

sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "bench"))
import runtime  # noqa: E402
from tools import models  # noqa: E402


class Runner(runtime.FoliotSide):
    """A runtime_runner of one of the builds."""

    def __init__(self, command, package, threads):
        words = shlex.split(command)
        settings = [word for word in words[:-1] if "=" in word]
        environment = {**os.environ, **dict(word.split("=", 1) for word in settings)}
        self.process = subprocess.Popen([words[-1], package, str(threads)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, env=environment)
        self.numbers()


def compare(sides, position, rounds, seconds):
    """Durations of each side, in turns; each is first in every other turn."""
    single = min(sides[0].run(position, 5) + sides[1].run(position, 5))
    count = max(1, int(seconds / rounds / single))
    durations = [[], []]
    for turn in range(rounds):
        for which in ((0, 1), (1, 0))[turn % 2]:
            durations[which] += sides[which].run(position, count)
            time.sleep(runtime.PAUSE_SECONDS)
    return durations


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--models", type=lambda text: text.split(","), default=list(runtime.MODELS), metavar="NAME,...")
    parser.add_argument("--batches", type=lambda text: [int(n) for n in text.split(",")], default=[1, 4, 16])
    parser.add_argument("--threads", type=lambda text: [int(n) for n in text.split(",")], default=[1, 2])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=5, help="for each side of a cell, over all rounds")
    parser.add_argument("--quick", action="store_true", help="a look: 10 rounds, a second for each side of a cell")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.rounds, arguments.seconds = 10, 1
    print("| model | batch | threads | old p50 / p99 ms | new p50 / p99 ms | new / old |\n|---|---|---|---|---|---|")
    ratios = []
    for threads in arguments.threads:
        for name in arguments.models:
            with tempfile.TemporaryDirectory(prefix="foliot-bench-") as folder:
                folder = pathlib.Path(folder)
                network = models.build(name, **runtime.MODELS[name])
                model = models.write(network, folder / "model.onnx")
                runtime.compile_model(model, folder / "model.foliot", arguments.batches, threads)
                with Runner(arguments.old, folder / "model.foliot", threads) as old, \
                        Runner(arguments.new, folder / "model.foliot", threads) as new:
                    for position, batch in enumerate(arguments.batches):
                        inputs = network.examples(batch, np.random.default_rng(7))
                        for side in (old, new):
                            side.put(position, inputs.values(), folder)
                        durations = compare((old, new), position, arguments.rounds, arguments.seconds)
                        medians = [float(np.median(side)) for side in durations]
                        told = [f"{np.median(side) * 1e3:.3f} / {np.quantile(side, 0.99) * 1e3:.3f}" for side in durations]
                        ratios.append(medians[1] / medians[0])
                        print(f"| {name} | {batch} | {threads} | {told[0]} | {told[1]} | {ratios[-1]:.3f} |", flush=True)
    print(f"\nnew / old: geometric mean {np.exp(np.mean(np.log(ratios))):.4f}, largest {max(ratios):.3f}; "
          f"{runtime.machine()}")


if __name__ == "__main__":
    main()
