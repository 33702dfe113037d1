#!/usr/bin/env python3
"""Figure: the simulator says what a real server does. A server is measured under
Poisson load; the arrivals, durations and stalls that its own log shows are put into
an experiment and simulated; the two distributions of latency are compared.

What is compared is the server's latency, from arrival at the front end to the answer,
since the client and its way are not simulated. How fast the machine was at which time
is taken from the log too: two cores that a server shares with its load are not equally
fast at all times, and which requests met the slow ones is no business of the scheduler.
A batch took as long as from when it could begin (it had come, and the one before it was
answered) until it was answered: a thread that had to wait for a core shows in that, and
in the duration of an EXEC it does not. What is compared is therefore what came of
queueing and batching, not the cost of threads and copies."""

import collections
import dataclasses
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

from figure import Figure, print_figures, say
from foliot_tools.bench import bench
from foliot_tools.generated import write_resnet50
from foliot_tools.log import read_log
from foliot_tools.server import Server, foliot_binary

MODEL = "resnet50"
BATCH_SIZES = (1, 2, 4, 8, 16)
SLO_MS = 200
RATE = 60
SECONDS = 30
ERROR_MAX = 0.05
MEASURED_MIN = 5  # batches of one size, for their durations to be believed
GROWTH = 1.9      # of the duration from one size to the next, where it was not measured

EXPERIMENT = """
duration = "{duration:.3f}s"

[cluster]
link = "0us"
link_jitter = "0us"

[noise]
exec_speeds = "speeds"
load_deviation = 0
copy = "0us"

[[profiles]]
name = "measured"
weights = "100MB"
load = "{load_ms:.4f}ms"
batch_sizes = {batch_sizes}
exec = {exec}

[[models]]
profile = "measured"
slo = "{slo_ms}ms"

[[streams]]
arrivals = "replay"
instants = "instants"
"""


@dataclasses.dataclass(frozen=True)
class Batch:
    """From when it could begin until its last answer."""

    size: int
    ready_us: float
    answered_us: float

    @property
    def duration_us(self):
        return max(self.answered_us - self.ready_us, 1)


def batches_of(log):
    requests = {request.id: request for request in log.requests}
    batches = []
    free_us = 0
    for action in sorted((action for action in log.done() if action.type == "INFER"), key=lambda action: action.start_us):
        rows = [requests[number] for number in action.requests]
        ready_us = max(free_us, min(row.arrival_us for row in rows))
        free_us = max(ready_us, *(row.departure_us for row in rows))
        batches.append(Batch(action.batch_size, ready_us, free_us))
    return batches


def profile_of(batches):
    """Duration in ms per batch size when nothing disturbs it: the 10th percentile."""
    durations = collections.defaultdict(list)
    for batch in batches:
        durations[batch.size].append(batch.duration_us / 1e3)
    profile = {}
    for before, size in zip((None, *BATCH_SIZES), BATCH_SIZES):
        known = before is None or len(durations[size]) >= MEASURED_MIN
        profile[size] = float(np.percentile(durations[size], 10)) if known else GROWTH * profile[before]
        profile[size] = max(profile[size], profile.get(before, 0))
    return profile


def write_experiment(folder, log):
    """The measured run as an experiment file."""
    begin = min(request.arrival_us for request in log.requests)
    instants = sorted((request.arrival_us - begin) / 1e6 for request in log.requests)
    batches = batches_of(log)
    profile = profile_of(batches)
    (folder / "instants").write_text("".join(f"{instant:.9f}\n" for instant in instants))
    # From each batch to the next, the device is as fast as it was in that one.
    (folder / "speeds").write_text("".join(
        f"{(batch.ready_us - begin) / 1e6:.9f} {profile[batch.size] * 1e3 / batch.duration_us:.6f}\n"
        for batch in batches))
    file = folder / "experiment.toml"
    file.write_text(EXPERIMENT.format(
        duration=instants[-1] + 1,
        load_ms=np.median([action.duration_us for action in log.done() if action.type == "LOAD"]) / 1e3,
        batch_sizes=list(profile), exec=[f"{ms:.4f}ms" for ms in profile.values()], slo_ms=SLO_MS))
    say("profile in ms: " + ", ".join(f"{size}: {ms:.2f}" for size, ms in profile.items()))
    return file


def latencies(log):
    """Of all that were answered, in ms."""
    return np.array([request.departure_us - request.arrival_us for request in log.requests
                     if request.status in ("served", "late")]) / 1e3


def simulate(file, folder):
    subprocess.run([foliot_binary(), "simulate", str(file), "--log", str(folder)], check=True,
                   stdout=subprocess.DEVNULL)
    return read_log(folder / "foliot")


def measure(seconds=SECONDS, rate=RATE):
    with tempfile.TemporaryDirectory(prefix="foliot-simulation-") as folder:
        folder = pathlib.Path(folder)
        write_resnet50(folder / "models" / MODEL / "1/model.onnx", resolution=64)
        say("compiling")
        with Server(folder / "models", folder / "console", page_cache="256MiB", log=folder / "real") as server:
            say(f"measuring a server at {rate} requests/s for {seconds} s")
            bench(server.grpc, MODEL, rate=rate, duration=f"{seconds}s", deadline=f"{SLO_MS}ms")
            server.stop()
        real = read_log(folder / "real")
        simulated = simulate(write_experiment(folder, real), folder / "simulated")
    return figures_of(real, simulated)


def figures_of(real, simulated):
    here, there = latencies(real), latencies(simulated)
    check = f"simulation against a real run, {len(real.requests)} requests"
    figures = []
    for quantile in (50, 99):
        measured, predicted = np.percentile(here, quantile), np.percentile(there, quantile)
        error = predicted / measured - 1
        figures.append(Figure(check, f"p{quantile} within {ERROR_MAX:.0%}",
                              f"{predicted:.2f} ms simulated, {measured:.2f} ms measured: {error:+.1%}",
                              abs(error) <= ERROR_MAX))
    return figures


if __name__ == "__main__":
    sys.exit(print_figures(measure()))
