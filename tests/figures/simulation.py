#!/usr/bin/env python3
"""Figure: the simulator says what a real server does. A server is measured under
Poisson load; the arrivals, durations and stalls that its own log shows are put into
an experiment and simulated; the two distributions of latency are compared.

What is compared is the server's latency, from arrival at the front end to the answer,
since the client and its way are not simulated. How fast the device was at which time
is taken from the log too: a machine that others use is not equally fast at all times,
and which requests met its slow times is no business of the scheduler."""

import collections
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
link = "{link_us:.1f}us"
link_jitter = "1us"

[noise]
exec_speeds = "speeds"
load_deviation = 0
copy = "{copy_us:.1f}us"

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


def infers(log):
    return sorted((action for action in log.done() if action.type == "INFER"), key=lambda action: action.start_us)


def profile_of(log):
    """Duration in ms per batch size when nothing disturbs it: the 10th percentile."""
    durations = collections.defaultdict(list)
    for action in infers(log):
        durations[action.batch_size].append(action.duration_us / 1e3)
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
    profile = profile_of(log)
    actions = infers(log)
    idle = [action for action in actions if action.expected_start_us == action.sent_us]
    (folder / "instants").write_text("".join(f"{instant:.9f}\n" for instant in instants))
    # From each EXEC to the next, the device is as fast as it was in that one.
    (folder / "speeds").write_text("".join(
        f"{max(action.start_us - begin, 0) / 1e6:.9f} {profile[action.batch_size] * 1e3 / action.duration_us:.6f}\n"
        for action in actions))
    file = folder / "experiment.toml"
    file.write_text(EXPERIMENT.format(
        duration=instants[-1] + 1,
        link_us=max(np.median([action.start_us - action.sent_us - action.input_us for action in idle]), 0),
        copy_us=np.median([action.input_us / action.rows for action in actions]),
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
