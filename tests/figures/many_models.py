#!/usr/bin/env python3
"""Figure: 500 models share a page cache that holds 50; every model answers, and
the log shows pages that balance and executors that do one thing at a time."""

import collections
import pathlib
import sys
import tempfile

import numpy as np
import tritonclient.http as triton

from figure import Figure, print_figures, say
from foliot_tools import onnx_models
from foliot_tools.bench import bench
from foliot_tools.log import breaches, read_log
from foliot_tools.server import Server

MODELS = 500
PAGES = 50
SIZES = (64, 128, 10)  # weights of one page
SECONDS = 20


def expected(path_seed, pixels):
    """The answer of random_dense_network(SIZES, seed), by numpy."""
    random = np.random.default_rng(path_seed)
    weights = [random.normal(0, (2 / a) ** 0.5, (a, b)).astype(np.float32) for a, b in zip(SIZES, SIZES[1:])]
    biases = [random.normal(0, 0.1, b).astype(np.float32) for b in SIZES[1:]]
    logits = np.maximum(pixels @ weights[0] + biases[0], 0) @ weights[1] + biases[1]
    exponents = np.exp(logits - logits.max())
    return exponents / exponents.sum()


def count_right(server, names):
    """Models whose answer to one image is right."""
    pixels = np.random.default_rng(0).random((1, SIZES[0]), np.float32)
    right = 0
    with triton.InferenceServerClient(server.http) as client:
        for seed, name in enumerate(names):
            request = triton.InferInput("pixels", list(pixels.shape), "FP32")
            request.set_data_from_numpy(pixels)
            answer = client.infer(name, [request]).as_numpy("probabilities")
            right += np.allclose(answer, expected(seed, pixels), rtol=1e-3, atol=1e-6)
    return right


def measure():
    with tempfile.TemporaryDirectory(prefix="foliot-many-") as folder:
        folder = pathlib.Path(folder)
        names = [f"model_{i:03}" for i in range(MODELS)]
        for seed, name in enumerate(names):
            onnx_models.random_dense_network(folder / "models" / name / "model.onnx", SIZES, seed)
        say(f"compiling {MODELS} models")
        log = folder / "events"
        server = Server(folder / "models", folder / "log", page_size="64KiB", page_cache=f"{64 * PAGES}KiB",
                        log=log, ready_timeout=900)
        with server:
            say(f"ready after {server.seconds_to_ready:.0f} s; asking each model once")
            right = count_right(server, names)
            say(f"{right} right; now Poisson traffic over all of them for {SECONDS} s")
            report = bench(server.grpc, "all", rate=500, duration=f"{SECONDS}s", deadline="100ms")
            server.stop()
        log = read_log(log)
    return figures_of(right, report, log)


def figures_of(right, report, log):
    found = breaches(log, lambda model: 1, PAGES)
    for breach in found[:10]:
        say(breach)
    statuses = collections.Counter(action.status for action in log.actions)
    loads = sum(action.type == "LOAD" for action in log.done())
    answering = sum(model["good"] + model["late"] > 0 for model in report["models"])
    check = f"{MODELS} models, page cache for {PAGES}"
    return [
        Figure(check, "every model answers", f"{right} right; {answering} answered under load",
               right == MODELS == answering),
        Figure(check, "attainment of 100 ms > 99 %",
               f"{report['attainment']:.2%} of {report['offered']}, {loads} loads", report["attainment"] > 0.99),
        Figure(check, "pages balance, no overlap",
               f"{len(found)} breaches in {len(log.actions)} actions and {len(log.requests)} requests", not found),
        Figure(check, "no LOAD or EXEC outside its window", f"actions: {dict(statuses)}", set(statuses) <= {"done"}),
    ]


if __name__ == "__main__":
    sys.exit(print_figures(measure()))
