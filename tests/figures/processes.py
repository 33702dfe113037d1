#!/usr/bin/env python3
"""Figures: the controller's traffic does not depend on the size of inputs, and what
the way over several processes costs.

Two front ends and four workers; as many requests with small inputs as with large
ones (600 kB); the controller's bytes are those that the kernel counts on its sockets.
"""

import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import tritonclient.grpc as triton
from onnx import TensorProto, helper

from figure import Figure, print_figures, say
from foliot_tools import onnx_models
from foliot_tools.cluster import Cluster
from foliot_tools.server import Server

SIZES = {"small": 16, "large": 150_000}  # floats: 64 B and 600 kB
REQUESTS = 400
RATIO_MAX = 1.1


def write_models(folder):
    """For each size a model that sums its input."""
    for name, size in SIZES.items():
        onnx_models.save(
            folder / name / "model.onnx",
            [helper.make_node("ReduceSum", ["x", "axes"], ["sum"], "sum", keepdims=1)],
            {"x": (TensorProto.FLOAT, ["batch", size])},
            {"sum": (TensorProto.FLOAT, ["batch", 1])},
            {"axes": np.array([1], np.int64)},
        )


def socket_bytes(port):
    """Sent and received so far by the process that listens on `port`, over the connections of now."""
    lines = subprocess.run(
        ["ss", "-tinH", "state", "established", f"( sport = :{port} )"], capture_output=True, text=True, check=True
    ).stdout
    return sum(int(count) for count in re.findall(r"bytes_(?:sent|received):(\d+)", lines))


def infer(addresses, name, count):
    """Latencies in milliseconds of `count` requests one after another."""
    x = np.ones((1, SIZES[name]), np.float32)
    request = triton.InferInput("x", x.shape, "FP32")
    request.set_data_from_numpy(x)
    clients = [triton.InferenceServerClient(address) for address in addresses]
    milliseconds = []
    for i in range(count):
        begin = time.perf_counter()
        answer = clients[i % len(clients)].infer(name, [request]).as_numpy("sum")
        milliseconds.append(1e3 * (time.perf_counter() - begin))
        assert np.isclose(answer[0, 0], SIZES[name])
    return milliseconds


def quantiles(milliseconds):
    percentiles = statistics.quantiles(milliseconds, n=100)
    return f"p50 {percentiles[49]:.2f} ms, p99 {percentiles[98]:.2f} ms"


def measure_cluster(folder):
    with Cluster(folder, folder / "models", workers=4, frontends=2) as cluster:
        port = cluster.address.split(":")[1]
        addresses = [frontend.grpc for frontend in cluster.frontends]
        per_request, latencies = {}, {}
        for name in SIZES:
            infer(addresses, name, REQUESTS // 4)
            before, begin = socket_bytes(port), time.monotonic()
            latencies[name] = infer(addresses, name, REQUESTS)
            per_request[name] = (socket_bytes(port) - before) / REQUESTS
            say(f"{name}: {per_request[name]:.0f} B per request through the controller, {time.monotonic() - begin:.1f} s")
        return per_request, latencies


def measure_server(folder):
    with Server(folder / "models", folder / "server.log", cache=folder / "cache", page_size="256KiB",
                page_cache="16MiB", threads=1) as server:
        latencies = {}
        for name in SIZES:
            infer([server.grpc], name, REQUESTS // 4)
            latencies[name] = infer([server.grpc], name, REQUESTS)
        return latencies


def measure():
    with tempfile.TemporaryDirectory(prefix="foliot-processes-") as folder:
        folder = pathlib.Path(folder)
        write_models(folder / "models")
        per_request, apart = measure_cluster(folder)
        together = measure_server(folder)
    ratio = per_request["large"] / per_request["small"]
    figures = [
        Figure(
            "controller's bytes per request, inputs of 600 kB against 64 B",
            f"at most {RATIO_MAX} times as many",
            f"{per_request['large']:.0f} and {per_request['small']:.0f}: {ratio:.2f} times",
            ratio < RATIO_MAX,
        )
    ]
    for name in SIZES:
        figures.append(
            Figure(f"latency over processes, {name} inputs, gRPC", "for the record",
                   f"{quantiles(apart[name])}; foliot serve: {quantiles(together[name])}", True)
        )
    return figures


if __name__ == "__main__":
    sys.exit(print_figures(measure()))
