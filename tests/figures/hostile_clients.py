#!/usr/bin/env python3
"""Figures: what a client with deadlines notices of others that mean harm, on every port.

200 requests/s with a deadline of 20 ms, sent over HTTP, beside each attack in turn, on one server. The attack shows
another key ("key"), or there are no keys and it comes from one address ("address"), or from a hundred ("addresses").
The figure is the share of requests that were answered in time, from the instant at which they were due to when the
client's kernel had the answer, and how much memory the server took. Attackers have what the server and the load leave
of the processors (nice 19 beside -20), as they would have machines of their own. A request is left out if a core stood
still beside it for 4 ms or longer, for a thread that has priority over all others: that is the host's doing. Needs root.

    tests/figures/hostile_clients.py [--seconds 4] [--seed 1] [--by key|address|addresses ...] [--keep FILE] [ATTACK ...]
    tests/figures/hostile_clients.py --table FILE
"""

import argparse
import collections
import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

from figure import Figure, print_figures, say
from foliot_tools import onnx_models
from foliot_tools.cluster import Cluster
from foliot_tools.host import HostStandstills
from foliot_tools.hostile import Attack
from foliot_tools.http_load import HttpLoad
from foliot_tools.server import Server, foliot_binary, free_ports

RATE = 200
DEADLINE = 0.02
GROWTH_MAX_MIB = 1024
FIRST, LAST = -20, ("nice", "-n", "39")  # of the server and the load, and before the attackers' commands
# By whom the attack comes: how many addresses, and the least share in time.
SOURCES = {"key": (1, 0.999), "address": (1, 0.99), "addresses": (100, 0.99)}
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
    "10 times JSON 300,000 lists deep": ("deep", "http", 10),
    "10 times JSON of 300,000 members": ("wide", "http", 10),
    "10 times 60,000 parameters": ("quadratic", "http", 10),
    "10 bodies of 128 KiB gzip, 29 MB of JSON": ("bomb", "http", 10),
    "10 times 12 MB of JSON to the index": ("index", "http", 10),
    "1,000 requests in a piece, 10 connections": ("pipelined", "http", 10),
    "300 answers of 8 MiB that are not read": ("unread", "http", 300),
    "300 answers of 8 MiB, 10 KB/s each": ("slow_reader", "http", 300),
    "100 half-closed requests": ("half_closed", "http", 100),
    "requests whose clients are gone": ("gone", "http", 1000),
    "connections that are closed at once": ("opened", "http", 1000),
    "100 idle connections, 64 descriptors": ("idle", "few", 100),
    "10 streams whose answers are not read": ("unread_stream", "grpc", 10),
    "10 connections of pings": ("pings", "grpc", 10),
    "10 connections of settings": ("settings", "grpc", 10),
    "10 connections of empty frames": ("empty_frames", "grpc", 10),
    "10,000 calls a second that are reset": ("resets", "grpc", 10),
    "100 messages a second of 20,000 inputs": ("many_inputs", "grpc", 10),
    "1,000 messages a second of 32 MiB in 32 KB": ("bomb_grpc", "grpc", 10),
    "headers of 1.5 MB": ("headers_grpc", "grpc", 10),
}


def new_key(name, folder):
    made = subprocess.run([foliot_binary(), "keys", "new", name, "--scope", "infer"], capture_output=True, text=True, check=True)
    with open(folder / "keys.toml", "a") as file:
        file.write(made.stdout)
    return made.stderr.split()[-1]


class OneProcess:
    """`foliot serve`."""

    PORTS = "http", "grpc", "metrics", "admin"
    PREFIX = ()

    def __init__(self, folder, stack, **options):
        admin_port = free_ports(1)[0]
        self._server = stack.enter_context(Server(folder / "models", folder / "log", page_cache="128MiB", prefix=self.PREFIX,
                                                  page_size="256KiB", request_timeout="5s", cache=folder / "cache",
                                                  admin_port=admin_port, bodies_max="256MiB", **options))
        self.http = self._server.http
        self.ports = {name: f"127.0.0.1:{getattr(self._server, name + '_port')}" for name in ("http", "grpc", "metrics")}
        self.ports |= {"admin": f"127.0.0.1:{admin_port}", "few": self.http}

    def memory_bytes(self):
        return self._server.memory_bytes()


class FewDescriptors(OneProcess):
    PORTS = ("few",)
    PREFIX = "prlimit", "--nofile=64:64"


class Processes:
    """A controller, a worker and a front end."""

    PORTS = "controller", "worker"

    def __init__(self, folder, stack, **options):
        self._cluster = stack.enter_context(Cluster(folder, folder / "models", workers=0, frontends=0))
        self._cluster.add_worker()
        self.http = self._cluster.add_frontend(**options).http
        worker_port = self._cluster.workers[0].await_line(r"front ends on port (\d+)")[1]
        self.ports = {"controller": self._cluster.address, "worker": f"127.0.0.1:{worker_port}"}

    def memory_bytes(self):
        parts = [self._cluster.controller, self._cluster.workers[0]]
        return sum(int(pathlib.Path(f"/proc/{part.process.pid}/statm").read_text().split()[1]) * 4096 for part in parts)


class Window:
    """Of a load: while one attack lasts, or none."""

    def __init__(self, name):
        self.name = name
        self.begin, self.end = time.monotonic(), None
        self.growth, self.report = 0, {}

    def of(self, requests, host):
        """(those asked but beside standstills, those that missed, how many were left out, p99 in milliseconds)"""
        asked = [request for request in requests if self.begin <= request.due < self.end]
        counted = [request for request in asked if not host.overlap(request.due, request.due + DEADLINE)]
        took = [1000 * (request.answered - request.due) for request in counted if request.answered]
        missed = [request.outcome for request in counted if not request.good_since_due]
        return len(counted), missed, len(asked) - len(counted), statistics.quantiles(took, n=100)[98] if len(took) > 1 else 0


def measure_windows(names, served, by, attacker, options):
    """[a window for each attack, and one alone before and after them]"""
    windows = []
    for name in [None, *names, None]:
        time.sleep(options.pause)
        before = served.memory_bytes()
        windows.append(window := Window(name or "none"))
        if name is None:
            time.sleep(options.seconds)
        else:
            kind, port, count = ATTACKS[name]
            with Attack(kind, served.ports[port], count, attacker, SOURCES[by][0], LAST) as attack:
                time.sleep(options.seconds)
                window.growth = (served.memory_bytes() - before) / 2**20
                window.end = time.monotonic()
            window.report = attack.report
        window.end = window.end or time.monotonic()
        say(f"{by}: {window.name}: {window.growth:+.0f} MiB, load average {pathlib.Path('/proc/loadavg').read_text().split()[0]}, {window.report}")
    return windows


def measure_one(by, make, names, options):
    with tempfile.TemporaryDirectory(prefix="foliot-hostile-") as folder, contextlib.ExitStack() as stack:
        folder = pathlib.Path(folder)
        write_models(folder / "models")
        victim, attacker, keys = None, "", {}
        if by == "key":
            victim, attacker = new_key("victim", folder), new_key("attacker", folder)
            keys = {"keys": folder / "keys.toml"}
        served = make(folder, stack, **keys)
        pixels = np.random.default_rng(1).random((64, 64), np.float32)
        expected = onnxruntime.InferenceSession(folder / "models/dense/1/model.onnx").run(None, {"pixels": pixels})[0]
        with HttpLoad(served.http, model="dense", inputs=pixels, expected=[expected], rate=RATE, deadline_seconds=DEADLINE,
                      key=victim, seed=options.seed) as load, HostStandstills() as host:
            time.sleep(2)
            windows = measure_windows(names, served, by, attacker, options)
    return [figure_of(window, by, host, load, options) for window in windows]


def figure_of(window, by, host, load, options):
    count, missed, left_out, p99 = window.of(load.report.requests, host)
    share = 1 - len(missed) / max(count, 1)
    if options.keep:
        with open(options.keep, "a") as file:
            print(json.dumps({"attack": window.name, "by": by, "seed": options.seed, "count": count, "missed": len(missed),
                              "left_out": left_out, "growth": window.growth, "outcomes": collections.Counter(missed)}), file=file)
    ends = "; ".join(sorted(window.report.get("answers", {}))) or f"{window.report.get('closed', 0)} closed"
    return Figure(f"{window.name}, by {by}", f">= {100 * SOURCES[by][1]:.1f} %",
                  f"{100 * share:.2f} % of {count} ({left_out} left out; {len(missed)} missed: {', '.join(sorted(set(missed))) or '-'}), "
                  f"p99 {p99:.1f} ms, {window.growth:+.0f} MiB; {ends}",
                  share >= SOURCES[by][1] and window.growth < GROWTH_MAX_MIB)


def print_table(path):
    """Of all runs that were kept: the share in time in %, all seeds together, bold where the goal is missed."""
    kept = collections.defaultdict(list)
    for line in pathlib.Path(path).read_text().splitlines():
        row = json.loads(line)
        kept[row["attack"], row["by"]].append(row)
    print(f"| attack | {' | '.join(SOURCES)} | memory, MiB |\n|---|{'---|' * len(SOURCES)}---|")
    met = collections.Counter()
    for name in dict.fromkeys(name for name, _ in kept):
        cells = []
        for by, (_, goal) in SOURCES.items():
            rows = kept[name, by]
            count, missed = (sum(row[which] for row in rows) for which in ("count", "missed"))
            share = 1 - missed / count if count else 0
            met[by] += share >= goal and name != "none"
            cells.append(f"{100 * share:.2f}" if share >= goal else f"**{100 * share:.2f}**")
        growth = max(row["growth"] for by in SOURCES for row in kept[name, by])
        print(f"| {name} | {' | '.join(cells)} | {growth:+.0f} |")
    rows = [row for each in kept.values() for row in each]
    print(f"\nmet: {dict(met)}; {sum(row['count'] for row in rows)} requests, {sum(row['left_out'] for row in rows)} left out")


def write_models(folder):
    onnx_models.random_dense_network(folder / "dense/1/model.onnx", (64, 128, 10))
    width = 1 << 20
    onnx_models.save(folder / "wide/1/model.onnx", [helper.make_node("MatMul", ["x", "weights"], ["y"], "widen")],
                     {"x": (TensorProto.FLOAT, ["batch", 1])}, {"y": (TensorProto.FLOAT, ["batch", width])},
                     {"weights": np.ones((1, width), np.float32)})
    (folder / "wide/model.toml").write_text("batch_sizes = [1]\n")


def measure(options):
    names = options.attacks or list(ATTACKS)
    figures = []
    for by in options.by:
        for make in (OneProcess, FewDescriptors, Processes):
            if chosen := [name for name in names if ATTACKS[name][1] in make.PORTS]:
                figures += measure_one(by, make, chosen, options)
    return figures


def read_options(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("attacks", nargs="*", metavar="ATTACK", help="words of their names; default: all")
    parser.add_argument("--seconds", type=float, default=4, help="of each measurement")
    parser.add_argument("--pause", type=float, default=1, help="seconds between two")
    parser.add_argument("--seed", type=int, default=1, help="of the load's arrivals")
    parser.add_argument("--keep", metavar="FILE", help="adds the figures to this file, as JSON")
    parser.add_argument("--table", metavar="FILE", help="measures nothing; prints a table of what was kept")
    parser.add_argument("--by", nargs="+", choices=list(SOURCES), default=list(SOURCES))
    options = parser.parse_args(arguments)
    options.attacks = [name for name in ATTACKS if any(word in name for word in options.attacks)]
    return options


def main(options):
    if options.table:
        return print_table(options.table)
    os.setpriority(os.PRIO_PROCESS, 0, FIRST)
    return print_figures(measure(options))


if __name__ == "__main__":
    sys.exit(main(read_options(sys.argv[1:])))
