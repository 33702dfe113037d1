#!/usr/bin/env python3
"""Figure: a flood of requests that can wait takes nothing from a stream of urgent ones.

A controller with default flags and an emulated worker, whose device is busy for as long as a
V100 would be (DenseNet-169, 732 requests/s in full batches), so nothing but the controller and
the senders takes this machine's processors. Each flood fills the controller's queue first. Then
the urgent stream is measured with it and, before and after, without: with a controller that has
just started. What is lost is what the mean of the two has over it.
"""

import contextlib
import dataclasses
import json
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

from figure import Figure, print_figures, say
from foliot_tools.server import foliot_binary

PROFILE = "densenet169:1"
URGENT_RATE = 150
SECONDS = 30
LOSS_MAX_POINTS = 0.1
# So many requests a second fill a queue of 65,536, for so long.
FILL_RATE, FILL_SECONDS = 12_000, 8


@dataclasses.dataclass(frozen=True)
class Flood:
    name: str
    urgent_deadline: str
    rate: int
    flags: tuple
    urgent_flags: tuple = ()


FLOODS = [
    Flood("best effort, 800/s", "50ms", 800, ("--best-effort",)),
    Flood("best effort, 8,000/s", "50ms", 8000, ("--best-effort",)),
    Flood("deadlines of an hour, 12,000/s", "300ms", 12_000, ("--deadline", "3600s")),
    Flood("another tenant's, 100 ms, 8,000/s", "50ms", 8000, ("--deadline", "100ms", "--tenant", "flood"),
          ("--tenant", "urgent")),
]


@contextlib.contextmanager
def running(*command, ready=False):
    process = subprocess.Popen([foliot_binary(), *map(str, command)], text=True, stderr=subprocess.DEVNULL,
                               stdout=subprocess.PIPE if ready else subprocess.DEVNULL)
    try:
        yield process.stdout.readline() if ready else None
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextlib.contextmanager
def cluster():
    """The address of a controller with an emulated worker."""
    with running("controller", "--listen", "127.0.0.1:0", ready=True) as line:
        address = "127.0.0.1:" + re.search(r"port (\d+)", line)[1]
        with running("worker", "--emulate", PROFILE, "--controller", address, ready=True):
            yield address


def load(address, rate, seconds, *flags):
    return ["bench-controller", address, "--rate", rate, "--duration", f"{seconds}s", *flags]


def urgent_attainment(flood, seconds, flooded):
    """Of the urgent stream, and what the flood was refused for."""
    with cluster() as address, contextlib.ExitStack() as stack, tempfile.TemporaryDirectory() as folder:
        if flooded:
            with running(*load(address, FILL_RATE, 600, "--warmup", "0s", *flood.flags)):
                time.sleep(FILL_SECONDS)
            stack.enter_context(running(*load(address, flood.rate, 600, "--warmup", "0s", "--seed", 2, *flood.flags)))
        report = pathlib.Path(folder) / "report.json"
        subprocess.run([foliot_binary(), *map(str, load(address, URGENT_RATE, seconds, "--warmup", "2s", "--deadline",
                                                        flood.urgent_deadline, "--json", report, *flood.urgent_flags))],
                       check=True, stdout=subprocess.DEVNULL)
        return json.loads(report.read_text())


def measure(seconds=SECONDS):
    figures = []
    for flood in FLOODS:
        say(flood.name)
        before, with_it, after = (urgent_attainment(flood, seconds, flooded) for flooded in (False, True, False))
        alone = (before["load"]["attainment"] + after["load"]["attainment"]) / 2
        lost = 100 * (alone - with_it["load"]["attainment"])
        controller = with_it["controller"]
        figures.append(Figure(
            f"{flood.name} beside {URGENT_RATE}/s of {flood.urgent_deadline}",
            f"the urgent stream loses < {LOSS_MAX_POINTS} points",
            f"{lost:.3f} points: {100 * with_it['load']['attainment']:.3f} %, alone {100 * before['load']['attainment']:.3f} "
            f"and {100 * after['load']['attainment']:.3f} %; a turn's p99.9 "
            f"{controller['decision_microseconds']['p99.9']:.0f} us",
            lost < LOSS_MAX_POINTS))
    return figures


if __name__ == "__main__":
    sys.exit(print_figures(measure(int(sys.argv[1]) if len(sys.argv) > 1 else SECONDS)))
