#!/usr/bin/env python3
"""Figures: what a steady load notices of clients that mean harm, on every port.

Each attack begins beside a load that has its connections, and is measured in turns with
the load alone, on the same server; the figure is the ratio of the two 99th percentiles,
and how much memory the server took meanwhile.

    tests/figures/hostile_clients.py [--seconds 4] [--turns 2] [ATTACK ...]
"""

import argparse
import concurrent.futures
import contextlib
import pathlib
import statistics
import sys
import tempfile
import time

from figure import Figure, print_figures, say
from foliot_tools import onnx_models
from foliot_tools.bench import bench
from foliot_tools.cluster import Cluster
from foliot_tools.hostile import Attack
from foliot_tools.server import Server, free_ports

RATE = 200
DEADLINE_MS = 100
GROWTH_MAX_MIB = 1024
# name: kind, at which port, how many connections
ATTACKS = {
    "10,000 idle connections, HTTP": ("idle", "http", 10_000),
    "10,000 idle connections, gRPC": ("idle", "grpc", 10_000),
    "10,000 idle connections, metrics": ("idle", "metrics", 10_000),
    "10,000 idle connections, admin": ("idle", "admin", 10_000),
    "10,000 idle connections, controller": ("idle", "controller", 10_000),
    "10,000 idle connections, worker": ("idle", "worker", 10_000),
    "1,000 slow headers": ("slow_header", "http", 1000),
    "1,000 slow bodies": ("slow_body", "http", 1000),
    "1,000 slow chunked bodies": ("slow_chunked", "http", 1000),
    "1,000 slow hellos, gRPC": ("slow_grpc_hello", "grpc", 1000),
    "1,000 slow bodies, gRPC": ("slow_grpc_body", "grpc", 1000),
    "1,000 slow frames, controller": ("slow_frame", "controller", 1000),
    "4 bodies of 1 GB": ("large_body", "http", 4),
    "4 chunked bodies of 1 GB": ("large_chunked", "http", 4),
    "4 bodies of 1 GB whose senders do not listen": ("deaf_body", "http", 4),
    "4 bodies of 1 GB, admin": ("large_body", "admin", 4),
    "4 messages of 1 GB, gRPC": ("large_grpc", "grpc", 4),
    "4 frames of 1 GB, controller": ("large_frame", "controller", 4),
    "random bytes, 50/s, HTTP": ("random_bytes", "http", 50),
    "random bytes, 50/s, gRPC": ("random_bytes", "grpc", 50),
    "random bytes, 50/s, metrics": ("random_bytes", "metrics", 50),
    "random bytes, 50/s, admin": ("random_bytes", "admin", 50),
    "random bytes, 50/s, controller": ("random_bytes", "controller", 50),
    "random bytes, 50/s, worker": ("random_bytes", "worker", 50),
}


class OneProcess:
    """`foliot serve`."""

    def __init__(self, folder, stack):
        admin_port = free_ports(1)[0]
        self._server = stack.enter_context(Server(folder / "models", folder / "log", page_cache="64MiB",
                                                  page_size="256KiB", request_timeout="5s", cache=folder / "cache",
                                                  admin_port=admin_port))
        self.url = self._server.grpc
        self.ports = {name: f"127.0.0.1:{getattr(self._server, name + '_port')}" for name in ("http", "grpc", "metrics")}
        self.ports["admin"] = f"127.0.0.1:{admin_port}"

    def memory_bytes(self):
        return self._server.memory_bytes()


class Processes:
    """A controller, a worker and a front end."""

    def __init__(self, folder, stack):
        self._cluster = stack.enter_context(Cluster(folder, folder / "models", workers=1, frontends=1))
        self.url = self._cluster.frontends[0].grpc
        worker_port = self._cluster.workers[0].await_line(r"front ends on port (\d+)")[1]
        self.ports = {"controller": self._cluster.address, "worker": f"127.0.0.1:{worker_port}"}

    def memory_bytes(self):
        parts = [self._cluster.controller, self._cluster.workers[0]]
        return sum(int(pathlib.Path(f"/proc/{part.process.pid}/statm").read_text().split()[1]) * 4096 for part in parts)


def load(served, seconds):
    report = bench(served.url, "dense", rate=RATE, duration=f"{seconds}s", deadline=f"{DEADLINE_MS}ms")
    return report["latency_milliseconds"]["p99"], report["good"] / report["offered"]


def measure_one(name, served, options):
    kind, port, count = ATTACKS[name]
    alone, attacked, good, memory = [], [], [], []
    before = served.memory_bytes()
    answers = {}
    for _ in range(options.turns):
        alone.append(load(served, options.seconds))
        with concurrent.futures.ThreadPoolExecutor() as executor:
            beside = executor.submit(load, served, options.seconds)
            time.sleep(0.5)  # its connections are there
            with Attack(kind, served.ports[port], count) as attack:
                attacked.append(beside.result())
                memory.append(served.memory_bytes())
        answers |= attack.report["answers"]
    ratio = statistics.median(p99 for p99, _ in attacked) / statistics.median(p99 for p99, _ in alone)
    growth = (max(memory) - before) / 2**20
    good = min(share for _, share in attacked), min(share for _, share in alone)
    said = "; ".join(sorted(answers)) or f"{attack.report['closed']} closed, {attack.report['open']} open"
    say(f"{name}: alone {alone}, attacked {attacked}, {attack.report}")
    return Figure(name, f"p99 as without; below {GROWTH_MAX_MIB} MiB more",
                  f"p99 {ratio:.2f} times, in time {100 * good[0]:.1f} % ({100 * good[1]:.1f} % without), "
                  f"{growth:+.0f} MiB; {said}", good[0] > 0.99 * good[1] and growth < GROWTH_MAX_MIB)


def measure(options):
    names = options.attacks or list(ATTACKS)
    figures = []
    with tempfile.TemporaryDirectory(prefix="foliot-hostile-") as folder:
        folder = pathlib.Path(folder)
        onnx_models.random_dense_network(folder / "models/dense/1/model.onnx", (64, 128, 10))
        for make in (OneProcess, Processes):
            with contextlib.ExitStack() as stack:
                chosen = [name for name in names if (ATTACKS[name][1] in ("controller", "worker")) == (make is Processes)]
                if not chosen:
                    continue
                served = make(folder, stack)
                load(served, 1)
                figures += [measure_one(name, served, options) for name in chosen]
    return figures


def read_options(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("attacks", nargs="*", metavar="ATTACK", help="words of their names; default: all")
    parser.add_argument("--seconds", type=float, default=4, help="of each measurement")
    parser.add_argument("--turns", type=int, default=2)
    options = parser.parse_args(arguments)
    options.attacks = [name for name in ATTACKS if any(word in name for word in options.attacks)]
    return options


if __name__ == "__main__":
    sys.exit(print_figures(measure(read_options(sys.argv[1:]))))
