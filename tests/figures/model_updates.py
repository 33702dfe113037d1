#!/usr/bin/env python3
"""Figure: models are added, updated and removed while others are served, and the
others do not notice.

Open-loop load on a few models during pairs of windows, one in which nothing changes and
one in which small models are added, then updated, then removed through the repository
API, either of them first by turns. Latencies are the server's own, from its log: arrival
at the front end to the answer; a request of each window's marker model says when a window
began, and what arrives in the first PAUSE of one, when the last change may still have its
aftermath, is left out. What is refused counts as infinitely late.

How sure is the ratio? Pairs are drawn again, with replacement, 1,000 times; between the
2.5th and the 97.5th percentile of the ratios so found lies the interval that is printed:
if that holds the limit, a longer measurement (--seconds) is needed to tell.
"""

import argparse
import math
import pathlib
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


def write_served(folder):
    for seed, name in enumerate(SERVED):
        onnx_models.random_dense_network(folder / name / "1/model.onnx", (256, 1024, 1024, 10), seed=seed)
    onnx_models.random_dense_network(folder / MARKER / "1/model.onnx", (4, 4), seed=9)


def write_guest(folder, name, version):
    onnx_models.random_dense_network(folder / name / f"{version}/model.onnx", (64, 64, 10),
                                     seed=hash((name, version)) % 2**32)
    # Few batch sizes: what is measured is the disturbance, not how long a compilation takes.
    (folder / name / "model.toml").write_text("batch_sizes = [1, 4]\n")


def changes(folder, count):
    """(what is done, the files to write first, the model, load or unload), in order."""
    names = [f"guest_{i}" for i in range(count)]
    for version in (1, 2):
        for name in names:
            yield ("add", "update")[version - 1], lambda n=name, v=version: write_guest(folder, n, v), name, "load"
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


def alternate(server, steps, options):
    """Windows by turns; returns which of them had changes, and what was done."""
    windows, done, left = [], {}, True
    end = time.monotonic() + options.seconds
    while left and time.monotonic() + 2 * options.window < end:
        for churn in (False, True) if len(windows) % 4 == 0 else (True, False):
            mark(server)
            windows.append(churn)
            window_end = time.monotonic() + options.window
            while churn and left and time.monotonic() < window_end:
                step = next(steps, None)
                if step is None:
                    left = False
                    break
                what, write, name, action = step
                write()
                status, answer = server.post(f"/v2/repository/models/{name}/{action}")
                assert status == 200, answer
                done[what] = done.get(what, 0) + 1
            time.sleep(max(0, window_end - time.monotonic()))
    mark(server)
    return windows, done


def latencies(log, windows):
    """Milliseconds of the requests of each pair of windows: (without changes, with them)."""
    marks = sorted(r.arrival_us for r in log.requests if r.model == MARKER)
    assert len(marks) == len(windows) + 1, "a marker is missing in the log"
    pairs = [{False: [], True: []} for _ in range(len(windows) // 2)]
    for request in log.requests:
        window = np.searchsorted(marks, request.arrival_us) - 1
        if request.model not in SERVED or not 0 <= window < len(windows):
            continue
        if request.arrival_us - marks[window] < PAUSE * 1e6:
            continue
        served = request.status == "served"
        pairs[window // 2][windows[window]].append(
            (request.departure_us - request.arrival_us) / 1000 if served else math.inf)
    return [(np.array(pair[False]), np.array(pair[True])) for pair in pairs]


def quantile(values, q):
    return float(np.sort(values)[min(len(values) - 1, math.ceil(q * len(values)) - 1)])


def ratio_of(pairs, q):
    without, with_changes = (quantile(np.concatenate(side), q) for side in zip(*pairs))
    return with_changes / without


def interval(pairs, q):
    draw = np.random.default_rng(1)
    ratios = [ratio_of([pairs[i] for i in draw.integers(len(pairs), size=len(pairs))], q) for _ in range(RESAMPLES)]
    return np.nanquantile(ratios, [0.025, 0.975])


def measure(options):
    with tempfile.TemporaryDirectory(prefix="foliot-updates-") as folder:
        folder = pathlib.Path(folder)
        write_served(folder / "models")
        say("compiling what is served throughout")
        with Server(folder / "models", folder / "console", page_size="256KiB", page_cache="128MiB",
                    log=folder / "log") as server:
            steps = changes(folder / "models", options.models)
            load = start_load(server, options.rate, options.seconds + 4)
            time.sleep(2)
            memory = server.memory_bytes()
            say(f"windows of {options.window} s, {options.rate}/s on {len(SERVED)} models")
            windows, done = alternate(server, steps, options)
            load.terminate()
            load.wait()
            growth = (server.memory_bytes() - memory) / 2**20
            server.stop()
        return figures_of(latencies(read_log(folder / "log"), windows), done, growth)


def figures_of(pairs, done, growth):
    quiet, churn = (np.concatenate(side) for side in zip(*pairs))
    what = ", ".join(f"{count} {name}" for name, count in done.items()) or "no changes"
    check = f"models change: {what}"
    rows = []
    for name, q in QUANTILES.items():
        without, with_changes = quantile(quiet, q), quantile(churn, q)
        low, high = interval(pairs, q)
        rows.append(Figure(check, f"{name} within {RATIO_MAX - 1:.0%}" if name == "p99.9" else name,
                           f"{without:.3f} ms without ({len(quiet)} requests), {with_changes:.3f} ms with "
                           f"({len(churn)}), ratio {with_changes / without:.3f} (95 %: {low:.3f} to {high:.3f}, "
                           f"{len(pairs)} pairs)", name != "p99.9" or with_changes <= RATIO_MAX * without))
    refused = int(np.isinf(quiet).sum()), int(np.isinf(churn).sum())
    rows.append(Figure(check, "nothing refused", f"{refused[0]} without, {refused[1]} with", sum(refused) == 0))
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
