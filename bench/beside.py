#!/usr/bin/env python3
"""What two models that run at the same time, on a core each, cost and gain: how much longer each takes than alone on its
core, and how much more work is done in a second than in turn on both cores. No core waits for the other: it is what
running beside each other may gain. bench/overlap.py has what the scheduler `overlap` does. Batches of one, all sides in
turns. Nothing else should run."""

import argparse
import contextlib
import itertools
import os
import pathlib
import sys
import tempfile

import numpy as np
from foliot_tools.server import ROOT

sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "bench"))
import overlap  # noqa: E402
import runtime  # noqa: E402
from tools import models  # noqa: E402

# Whose weights are few beside what they compute, at a batch of one.
COMPUTE_BOUND = ("resnet18_v1b", "resnet50_v1", "googlenet", "mobilenet_v2", "minilm")
PAIRS = (*overlap.PAIRS, *(pair for pair in itertools.combinations(COMPUTE_BOUND, 2)
                           if pair not in overlap.PAIRS and pair[::-1] not in overlap.PAIRS))


@contextlib.contextmanager
def pinned(cores):
    """Processes that are started meanwhile run on these cores."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


class Model:
    """A model on one core, on the other, and on both."""

    def __init__(self, name, cores, folder, stack):
        network = models.build(name, **overlap.CHANGES.get(name, {}))
        model = models.write(network, folder / f"{name}.onnx")
        inputs = network.examples(1, np.random.default_rng(7))
        packages = {threads: folder / f"{name}.{threads}.foliot" for threads in (1, 2)}
        for threads, package in packages.items():
            runtime.compile_model(model, package, [1], threads)

        def start(on):
            with pinned(on):
                side = stack.enter_context(runtime.FoliotSide(packages[len(on)], len(on)))
            side.put(0, inputs.values(), folder)
            return side

        self.narrow = [start({core}) for core in cores]
        self.wide = start(set(cores))

    def alone(self, seconds, side):
        return side.run(0, max(3, int(seconds / min(side.run(0, 3)))))


def together(sides, counts):
    """Durations of those runs of each during which the other ran, too."""
    for side, count in zip(sides, counts):
        print("run", 0, count, file=side.process.stdin, flush=True)
    durations = [np.array(side.numbers()) / 1e9 for side in sides]
    end = min(each.sum() for each in durations)
    return [each[np.cumsum(each) <= end] for each in durations]


def measure(pair, rounds, seconds):
    """For each of the pair: seconds alone on a core, beside the other, and alone on both cores."""
    found = {kind: ([], []) for kind in ("alone", "beside", "wide")}
    for turn in range(rounds):
        order = (turn % 2, 1 - turn % 2)
        sides = [model.narrow[core] for model, core in zip(pair, order)]
        for which, model in enumerate(pair):
            found["alone"][which].extend(model.alone(seconds, sides[which]))
            found["wide"][which].extend(model.alone(seconds, model.wide))
        counts = [max(3, int(seconds / np.median(found["alone"][which]))) for which in (0, 1)]
        for which, durations in enumerate(together(sides, counts)):
            found["beside"][which].extend(durations)
    return {kind: [float(np.median(durations)) for durations in both] for kind, both in found.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=lambda text: [tuple(pair.split("+")) for pair in text.split(",")], default=PAIRS,
                        metavar="A+B,...")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=0.5, help="of each side in a round")
    arguments = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))[:2]
    if len(cores) < 2:
        parser.error("needs two cores; this process may run on one")
    print("| pair | on a core, ms | beside the other | slowdown | on both cores | gain |\n|---|---|---|---|---|---|")
    slowdowns = []
    with tempfile.TemporaryDirectory(prefix="foliot-bench-") as folder:
        for pair in arguments.pairs:
            with contextlib.ExitStack() as stack:
                sides = [Model(name, cores, pathlib.Path(folder), stack) for name in pair]
                found = measure(sides, arguments.rounds, arguments.seconds)
            slower = [beside / alone for beside, alone in zip(found["beside"], found["alone"])]
            gain = sum(wide / beside for wide, beside in zip(found["wide"], found["beside"]))
            slowdowns += slower if set(pair) <= set(COMPUTE_BOUND) else []

            def shown(kind):
                return " / ".join(f"{seconds * 1e3:.2f}" for seconds in found[kind])  # noqa: B023
            print(f"| {' + '.join(pair)} | {shown('alone')} | {shown('beside')} | {slower[0]:.3f} / {slower[1]:.3f} "
                  f"| {shown('wide')} | {gain:.2f} |", flush=True)
    if slowdowns:
        print(f"\nslowdown of compute-bound models: median {np.median(slowdowns):.3f}, largest {max(slowdowns):.3f}")
    print(runtime.machine())


if __name__ == "__main__":
    main()
