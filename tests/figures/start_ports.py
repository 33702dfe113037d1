#!/usr/bin/env python3
"""Figure: ports open within a second of the start, with ten thousand models in the folder."""

import argparse
import pathlib
import socket
import subprocess
import sys
import tempfile
import time

import numpy as np

from figure import Figure, print_figures, say
from foliot_tools import onnx_models
from foliot_tools.server import Server, foliot_binary

SECONDS_MAX = 1.0
LISTED_TIMEOUT = 120
READY_TIMEOUT = 600
OPTIONS = {"page_size": "64KiB", "page_cache": "256MiB", "models_max": 16384}


def write_models(folder, count, distinct):
    """Small dense networks. The weights of distinct ones differ in one number, which is found by its bytes."""
    marker = np.float32(123.456)
    weights = np.random.default_rng(1).random((16, 8), np.float32)
    weights[0, 0] = marker
    template = onnx_models.dense_network(folder / "m00000/model.onnx", [weights], [np.zeros(8, np.float32)])
    content = template.read_bytes()
    assert content.count(marker.tobytes()) == 1
    for i in range(count):
        path = folder / f"m{i:05}/model.onnx"
        path.parent.mkdir(parents=True, exist_ok=True)
        value = np.float32(i if distinct else 1)
        path.write_bytes(content.replace(marker.tobytes(), value.tobytes()))


def await_ports(server, begin):
    """Seconds from the start until each port accepts connections."""
    seconds = {}
    for name, port in (("http", server.http_port), ("grpc", server.grpc_port), ("metrics", server.metrics_port)):
        while True:
            assert server.process.poll() is None, server.output()
            try:
                socket.create_connection(("127.0.0.1", port), timeout=10).close()
                break
            except ConnectionRefusedError:
                time.sleep(0.002)
        seconds[name] = time.monotonic() - begin
    return seconds


def start(server):
    begin = time.monotonic()
    with open(server.console, "wb") as console:
        server.process = subprocess.Popen(server.command, stdin=subprocess.DEVNULL, stdout=console, stderr=console)
    return begin


def models_command(server):
    """Seconds and lines of `foliot models --url`."""
    begin = time.monotonic()
    listed = subprocess.run([foliot_binary(), "models", "--url", server.http], capture_output=True, text=True,
                            timeout=LISTED_TIMEOUT, check=False)
    return time.monotonic() - begin, len(listed.stdout.splitlines()) - 1


def await_listed(server, count, begin):
    """Seconds from the start until the index has all models."""
    while len(server.post("/v2/repository/index", {})[1] or ()) < count:
        assert server.process.poll() is None and time.monotonic() - begin < LISTED_TIMEOUT, server.output()
        time.sleep(0.05)
    return time.monotonic() - begin


def measure(count):
    with tempfile.TemporaryDirectory(prefix="foliot-ports-") as folder:
        folder = pathlib.Path(folder)
        say(f"writing {count} models")
        write_models(folder / "distinct", count, True)
        server = Server(folder / "distinct", folder / "log", **OPTIONS)
        begin = start(server)
        try:
            ports = await_ports(server, begin)
            live = server.get("/v2/health/live")[0]
            listed = await_listed(server, count, begin)
            command, lines = models_command(server)
            memory = server.memory_bytes() / 2**20
        finally:
            server.stop()
        say(f"ports {ports}, live {live}, listed after {listed:.2f} s, `foliot models --url` {command:.2f} s, "
            f"{memory:.0f} MiB")

        write_models(folder / "alike", count, False)
        server = Server(folder / "alike", folder / "log", **OPTIONS)
        begin = start(server)
        try:
            await_ports(server, begin)
            while "ready:" not in server.output():
                assert server.process.poll() is None and time.monotonic() - begin < READY_TIMEOUT, server.output()
                time.sleep(0.05)
            ready = time.monotonic() - begin
            served = server.memory_bytes() / 2**20
        finally:
            server.stop()
        say(f"alike: ready after {ready:.2f} s, {served:.0f} MiB")
    last = max(ports.values())
    return [
        Figure(f"ports open with {count} models", f"< {SECONDS_MAX:.0f} s from the start", f"{last:.2f} s",
               last < SECONDS_MAX and live == 200),
        Figure(f"{count} models listed", f"all, within {LISTED_TIMEOUT} s",
               f"{lines}, {listed:.1f} s after the start; `foliot models --url` takes {command:.2f} s; {memory:.0f} MiB "
               "resident", lines == count),
        Figure(f"{count} models of one content served", f"within {READY_TIMEOUT} s", f"{ready:.1f} s, {served:.0f} MiB "
               "resident, the page cache of 256 MiB included", True),
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=10_000)
    sys.exit(print_figures(measure(parser.parse_args().models)))
