#!/usr/bin/env python3
"""Figure: models are added, updated and removed while others are served, and the
others do not notice.

Open-loop load on a few models during rounds of three windows, in an order that turns:
one in which nothing changes, one in which small models are added, then updated, then
removed through the repository API, and one in which nothing changes but another process
computes at SCHED_IDLE, as the compiler does: what any work beside a server costs it on
this machine. Latencies are the server's own, from its log: arrival at the front end to
the answer; a request of each window's marker model says when a window began, and what
arrives in the first PAUSE of one, when the last change may still have its aftermath, is
left out. What is refused counts as infinitely late.

How sure is the ratio? Rounds are drawn again, with replacement, 1,000 times; between the
2.5th and the 97.5th percentile of the ratios so found lies the interval that is printed:
if that holds the limit, a longer measurement (--seconds) is needed.
"""

import argparse
import math
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np

from figure import Figure, print_figures, say
from foliot_tools import onnx_models
from foliot_tools.log import read_log
from foliot_tools.server import Server, foliot_binary

SERVED = ["steady_0", "steady_1", "steady_2", "steady_3"]
MARKER = "marker"
RATIO_MAX = 1.05
PAUSE = 0.2  # seconds
RESAMPLES = 1000
QUANTILES = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999}
KINDS = ["nothing", "changes", "computing"]


def write_served(folder):
    for seed, name in enumerate(SERVED):
        onnx_models.random_dense_network(folder / name / "1/model.onnx", (256, 1024, 1024, 10), seed=seed)
    onnx_models.random_dense_network(folder / MARKER / "1/model.onnx", (4, 4), seed=9)


def write_guest(folder, name, version):
    onnx_models.random_dense_network(folder / name / f"{version}/model.onnx", (64, 64, 10),
                                     seed=hash((name, version)) % 2**32)
    # Few batch sizes: what is measured is the disturbance, not how long a compilation takes.
    (folder / name / "model.toml").write_text("batch_sizes = [1, 4]\n")


def write_guests(folder, count):
    """Beforehand: models are made on another machine."""
    for name in (f"guest_{i}" for i in range(count)):
        for version in (1, 2):
            write_guest(folder, name, version)


def changes(folder, guests, count):
    """(what is done, what to do first, the model, load or unload), in order."""
    names = [f"guest_{i}" for i in range(count)]
    for name in names:
        yield "add", lambda n=name: shutil.copytree(guests / n, folder / n, ignore=lambda *_: ["2"]), name, "load"
    for name in names:
        yield "update", lambda n=name: (guests / n / "2").rename(folder / n / "2"), name, "load"
    for name in names:
        yield "remove", lambda: None, name, "unload"


def mark(server):
    pixels = {"name": "pixels", "shape": [1, 4], "datatype": "FP32", "data": [0, 0, 0, 0]}
    status, answer = server.post(f"/v2/models/{MARKER}/infer", {"inputs": [pixels]})
    assert status == 200, answer


def start_load(server, rate, seconds):
    command = [foliot_binary(), "bench", "--url", server.grpc, "--rate", str(rate), "--duration", f"{seconds}s",
               "--deadline", "100ms", "--zipf", "0"]
    for name in SERVED:
        command += ["--model", name]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL)


def compute_beside():
    command = [sys.executable, "-c", "while True: pass"]
    return subprocess.Popen(command, preexec_fn=lambda: os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0)))


def alternate(server, steps, options):
    """Windows by turns; returns which kind each was of, and what was done."""
    windows, done, left = [], {}, True
    end = time.monotonic() + options.seconds
    while left and time.monotonic() + len(KINDS) * options.window < end:
        first = len(windows) // len(KINDS) % len(KINDS)
        for kind in KINDS[first:] + KINDS[:first]:
            mark(server)
            windows.append(kind)
            window_end = time.monotonic() + options.window
            beside = compute_beside() if kind == "computing" else None
            while kind == "changes" and left and time.monotonic() < window_end:
                step = next(steps, None)
                if step is None:
                    left = False
                    break
                what, put_files, name, action = step
                put_files()
                status, answer = server.post(f"/v2/repository/models/{name}/{action}")
                assert status == 200, answer
                done[what] = done.get(what, 0) + 1
            time.sleep(max(0, window_end - time.monotonic()))
            if beside:
                beside.kill()
                beside.wait()
    mark(server)
    return windows, done


def latencies(log, windows):
    """Milliseconds of the requests of each round, by kind of window."""
    marks = sorted(r.arrival_us for r in log.requests if r.model == MARKER)
    assert len(marks) == len(windows) + 1, "a marker is missing in the log"
    rounds = [{kind: [] for kind in KINDS} for _ in range(len(windows) // len(KINDS))]
    for request in log.requests:
        window = np.searchsorted(marks, request.arrival_us) - 1
        if request.model not in SERVED or not 0 <= window < len(windows):
            continue
        if request.arrival_us - marks[window] < PAUSE * 1e6:
            continue
        served = request.status == "served"
        rounds[window // len(KINDS)][windows[window]].append(
            (request.departure_us - request.arrival_us) / 1000 if served else math.inf)
    return [{kind: np.array(values) for kind, values in one.items()} for one in rounds]


def quantile(values, q):
    return float(np.sort(values)[min(len(values) - 1, math.ceil(q * len(values)) - 1)])


def ratio_of(rounds, kind, q):
    with_it, without = (quantile(np.concatenate([one[k] for one in rounds]), q) for k in (kind, "nothing"))
    return with_it / without


def interval(rounds, kind, q):
    draw = np.random.default_rng(1)
    ratios = [ratio_of([rounds[i] for i in draw.integers(len(rounds), size=len(rounds))], kind, q)
              for _ in range(RESAMPLES)]
    return np.nanquantile(ratios, [0.025, 0.975])


def measure(options):
    with tempfile.TemporaryDirectory(prefix="foliot-updates-") as folder:
        folder = pathlib.Path(folder)
        write_served(folder / "models")
        write_guests(folder / "guests", options.models)
        say("compiling what is served throughout")
        with Server(folder / "models", folder / "console", page_size="256KiB", page_cache="128MiB",
                    log=folder / "log") as server:
            steps = changes(folder / "models", folder / "guests", options.models)
            load = start_load(server, options.rate, options.seconds + 10)
            while not any(SERVED[-1] in name for name in server.metrics()):
                time.sleep(0.5)
            memory = server.memory_bytes()
            say(f"windows of {options.window} s, {options.rate}/s on {len(SERVED)} models")
            windows, done = alternate(server, steps, options)
            load.terminate()
            load.wait()
            growth = (server.memory_bytes() - memory) / 2**20
            server.stop()
        return figures_of(latencies(read_log(folder / "log"), windows), done, growth)


def figures_of(rounds, done, growth):
    what = ", ".join(f"{count} {name}" for name, count in done.items()) or "no changes"
    check = f"models change: {what}"
    latency = {kind: np.concatenate([one[kind] for one in rounds]) for kind in KINDS}
    rows = []
    for name, q in QUANTILES.items():
        text = f"{quantile(latency['nothing'], q):.3f} ms beside nothing"
        for kind in KINDS[1:]:
            low, high = interval(rounds, kind, q)
            text += f"; beside {kind} {ratio_of(rounds, kind, q):.3f} times (95 %: {low:.3f} to {high:.3f})"
        kept = name != "p99.9" or ratio_of(rounds, "changes", q) <= RATIO_MAX
        rows.append(Figure(check, f"{name} within {RATIO_MAX - 1:.0%}" if name == "p99.9" else name, text, kept))
    requests = ", ".join(f"{len(latency[kind])} beside {kind}" for kind in KINDS)
    refused = {kind: int(np.isinf(latency[kind]).sum()) for kind in KINDS}
    rows.append(Figure(check, "nothing refused", f"{sum(refused.values())} of {requests}; {len(rounds)} rounds",
                       sum(refused.values()) == 0))
    rows.append(Figure(check, "memory", f"{growth:+.1f} MiB", True))
    return rows


def read_options(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=int, default=100, help="added, then updated, then removed")
    parser.add_argument("--seconds", type=float, default=240, help="at most")
    parser.add_argument("--window", type=float, default=3, help="seconds")
    parser.add_argument("--rate", type=float, default=300, help="requests per second")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(print_figures(measure(read_options())))
