#!/usr/bin/env python3
"""Whether calls end by their deadlines on a real server, whatever they wait for, and whether a slow model and a tiny one
leave each other alone on the cores of this machine. Flags of the servers are their defaults, but for ports and memory.

  bench/deadlines.py                  # all of it, into docs/RESULTS.md: some fifteen minutes, on a quiet machine
  bench/deadlines.py --calls 50 --no-document

How late a call ends counts from its deadline, which counts from when the call was due; an answer is here when the kernel
has it. The exit code is 4 if a goal is missed.
"""

import argparse
import asyncio
import contextlib
import json
import math
import pathlib
import random
import socket
import statistics
import sys
import tempfile
import threading
import time
import types
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from foliot_tools import onnx_models
from foliot_tools.bench import bench
from foliot_tools.cluster import Cluster
from foliot_tools.http_load import SO_TIMESTAMPNS, Asked, Connection
from foliot_tools.interval import Interval
from foliot_tools.server import ROOT, Server, frozen
from foliot_tools.waiting import standstills
from onnx import TensorProto, helper

sys.path.insert(0, str(ROOT / "tests/figures"))
sys.path.insert(0, str(ROOT / "tests"))
from figure import machine, say  # noqa: E402
from test_deadlines import BAD, GOOD, LONG, PIPELINE, await_served, write_doubling, write_hanging, write_long  # noqa: E402

DOCUMENT = ROOT / "docs/RESULTS.md"
RATE = 10  # calls a second
DEADLINES = (0.05, 0.7)  # seconds; drawn between
SLOW_MS = 190  # of a row of the slow model, alone, for which its images get their size on this machine
SIDE = 112  # pixels, to begin with
LATE_P999_MAX, LATE_MAX = 0.005, 0.020  # seconds
MEMORY = {"page_size": "256KiB", "page_cache": "256MiB"}


async def call(address, model, values, due, deadline):
    """(seconds after its deadline, HTTP status) of one call that was due at `due`."""
    host, port = address.rsplit(":", 1)
    connecting = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    connecting.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    connecting.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    await asyncio.get_running_loop().sock_connect(connecting, (host, int(port)))
    connection = Connection(types.SimpleNamespace(options={"deadline_seconds": deadline}, stray=0), connecting)
    left = max(due + deadline - time.monotonic(), 1e-6)
    body = json.dumps({"inputs": [{"name": "x", "shape": [1, 4], "datatype": "FP32", "data": values}],
                       "parameters": {"timeout": int(left * 1e6)}})
    request = f"POST /v2/models/{model}/infer HTTP/1.1\r\nHost: foliot\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    received, status, _ = await connection.ask(request.encode(), Asked(due, due + deadline))
    connection._close(None)
    return received - due - deadline, status


async def calls(address, model, values, count, seed, deadlines=DEADLINES):
    """What call() says of `count` calls at RATE by a Poisson process, with deadlines that are drawn."""
    draw, due, asked = random.Random(seed), time.monotonic(), []
    for _ in range(count):
        due += draw.expovariate(RATE)
        await asyncio.sleep(max(due - time.monotonic(), 0))
        asked.append(asyncio.create_task(call(address, model, values, due, draw.uniform(*deadlines))))
    return await asyncio.gather(*asked)


# ---- What calls wait for. Each is a context that yields (address, model, values) ----

@contextlib.contextmanager
def server_of(folder):
    models = folder / "models"
    write_hanging(models / "hanging")
    for name in ("double", "twice"):
        write_doubling(models / name / "model.onnx")
    (models / "three").mkdir()
    (models / "three/application.toml").write_text('models = ["double", "hanging", "twice"]\npolicy = "majority"\n')
    (models / "line").mkdir()
    (models / "line/pipeline.toml").write_text(PIPELINE)
    with Server(models, folder / "console", **MEMORY) as server:
        await_served(server, "hanging")
        yield server


@contextlib.contextmanager
def container(folder):
    """a container that hangs in every call"""
    with server_of(folder) as server:
        yield server.http, "hanging", BAD


@contextlib.contextmanager
def application(folder):
    """an application of three models, of which one hangs"""
    with server_of(folder) as server:
        yield server.http, "three", BAD


@contextlib.contextmanager
def pipeline(folder):
    """a pipeline, of which the second stage hangs"""
    with server_of(folder) as server:
        yield server.http, "line", BAD


@contextlib.contextmanager
def worker(folder):
    """a worker that stands still, 1 s of every 3"""
    models = folder / "models"
    write_doubling(models / "double/model.onnx")
    ended = threading.Event()
    with Cluster(folder, models, workers=1, frontends=1) as cluster:
        frontend, process = cluster.frontends[0], cluster.workers[0].process
        frontend.await_ready()

        def freeze():
            while not ended.wait(2):
                with frozen(process):
                    ended.wait(1)

        freezing = threading.Thread(target=freeze)
        freezing.start()
        try:
            yield frontend.http, "double", GOOD
        finally:
            ended.set()
            freezing.join()


@contextlib.contextmanager
def exec_ahead(folder):
    """EXECs of 0.1 s and more without a deadline ahead, one after the other"""
    models = folder / "models"
    write_long(models / "long")
    write_doubling(models / "double/model.onnx")
    ended = threading.Event()
    with Server(models, folder / "console", **MEMORY) as server:
        await_served(server, "double")

        def load():
            while not ended.is_set():
                bench(server.grpc, "long", concurrency=2, duration="2s", warmup="0s", shape=f"x:1,{LONG},{LONG}")

        loading = threading.Thread(target=load)
        loading.start()
        try:
            yield server.http, "double", GOOD
        finally:
            ended.set()
            loading.join()


WAITS = (container, worker, exec_ahead, application, pipeline)


def ends(options):
    """Lines of the table of calls, and how many goals are missed."""
    lines, missed = [], 0
    for number, wait in enumerate(WAITS):
        with tempfile.TemporaryDirectory() as folder, wait(pathlib.Path(folder)) as asked, standstills() as machine_stood:
            results = asyncio.run(calls(*asked, options.calls, options.seed + number))
        late = sorted(1e3 * max(0, seconds) for seconds, _ in results)
        p999 = late[-1 - len(late) // 1000]
        met = p999 <= 1e3 * LATE_P999_MAX and late[-1] <= 1e3 * LATE_MAX
        missed += not met
        lines.append([wait.__doc__, f"{len(late):,}", str(sum(status == 200 for _, status in results)),
                      f"{statistics.median(late):.1f}", f"{p999:.1f}", f"{late[-1]:.1f}", f"{1e3 * machine_stood.seconds:.0f}",
                      "met" if met else "**missed**"])
        say(" | ".join(lines[-1]))
    head = ["what calls wait for", "calls", "answered", "late by p50, ms", "p99.9", "most", "machine stood, ms", "<= 5 and 20 ms"]
    return [head, *lines], missed


# ---- A slow model beside a tiny one ----

def write_slow(path, side, layers=36, channels=128):
    """A network of convolutions over images of so many pixels a side."""
    draw = np.random.default_rng(1)
    nodes, weights, value, wide = [], {}, "x", 3
    for i in range(layers):
        weights[f"w{i}"] = (draw.standard_normal((channels, wide, 3, 3)) / np.sqrt(9 * wide)).astype(np.float32)
        nodes += [helper.make_node("Conv", [value, f"w{i}"], [f"c{i}"], pads=[1] * 4),
                  helper.make_node("Relu", [f"c{i}"], [f"r{i}"])]
        value, wide = f"r{i}", channels
    nodes += [helper.make_node("GlobalAveragePool", [value], ["p"]), helper.make_node("Flatten", ["p"], ["y"])]
    onnx_models.save(path, nodes, {"x": (TensorProto.FLOAT, ["batch", 3, side, side])},
                     {"y": (TensorProto.FLOAT, ["batch", channels])}, weights)


def beside(options):
    """Lines of the table of the slow and the tiny model, and how many goals are missed."""
    rounds = []
    with tempfile.TemporaryDirectory() as folder:
        models = pathlib.Path(folder) / "models"
        write_slow(models / "slow/model.onnx", SIDE)
        write_doubling(models / "tiny/model.onnx")
        with Server(models, pathlib.Path(folder) / "console") as server:
            seen = alone_ms(server)
        side = round(SIDE * math.sqrt(SLOW_MS / seen))
        say(f"{SIDE} pixels a side take {seen:.0f} ms, so {side} are taken")
        write_slow(models / "slow/model.onnx", side)
        with Server(models, pathlib.Path(folder) / "console") as server:
            warm = alone_ms(server)
            for seed in range(options.seed, options.seed + options.rounds):
                rounds.append(one_round(server, options.seconds, seed))
                say(f"seed {seed}: " + ", ".join(str(figure) for figure in rounds[-1]))
    small, slow, asked, alone, together = zip(*rounds)
    ratios = Interval(b / a for a, b in zip(alone, together))
    figures = [("of the tiny one in time, %", f"{Interval(small):.2f}", ">= 99", statistics.fmean(small) >= 99),
               ("of the slow one in time", f"{sum(slow)} of {sum(asked)}", "all", sum(slow) == sum(asked)),
               ("p99 of the tiny one beside it over p99 alone", f"{ratios:.2f}", "<= 1.3", ratios <= 1.3)]
    say(f"the slow one alone: {warm:.0f} ms; p99 of the tiny one alone {Interval(alone):.2f} ms")
    lines = [[what, figure, goal, "met" if met else "**missed**"] for what, figure, goal, met in figures]
    return [["a slow model beside a tiny one", "seen", "goal", ""], *lines], sum(not met for *_, met in figures)


def alone_ms(server):
    """The median time of a call of the slow model."""
    return bench(server.grpc, "slow", concurrency=1, duration="3s", warmup="1s")["latency_milliseconds"]["p50"]


def one_round(server, seconds, seed):
    """(% of the tiny model in time, of the slow one in time, of how many, p99 in ms of the tiny one alone and beside it)"""
    tiny = {"rate": 100, "deadline": "20ms", "duration": f"{seconds}s", "warmup": "2s", "seed": seed}
    slow = {"rate": 0.5, "arrivals": "uniform", "deadline": "2s", "duration": f"{seconds}s", "warmup": "2s", "seed": seed}
    alone = bench(server.grpc, "tiny", **tiny)
    with ThreadPoolExecutor(1) as other:
        asking = other.submit(bench, server.grpc, "slow", **slow)
        together = bench(server.grpc, "tiny", **tiny)
        slow = asking.result()
    return (100 * together["attainment"], slow["good"], slow["offered"], alone["latency_milliseconds"]["p99"],
            together["latency_milliseconds"]["p99"])


def document(name, lines):
    """Writes a table between its marks."""
    begin, end = f"<!-- begin deadlines {name} -->", f"<!-- end deadlines {name} -->"
    before, rest = DOCUMENT.read_text().split(begin)
    _, after = rest.split(end)
    head, *others = ("| " + " | ".join(line) + " |" for line in [lines[0], ["---"] * len(lines[0]), *lines[1:]])
    table = "\n".join([head, *others])
    DOCUMENT.write_text(f"{before}{begin}\n{machine()}\n\n{table}\n{end}{after}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=("ends", "beside"), default=("ends", "beside"))
    parser.add_argument("--calls", type=int, default=1000, help="for each thing that calls wait for [%(default)s]")
    parser.add_argument("--rounds", type=int, default=5, help="of the tiny model alone, and beside the slow one [%(default)s]")
    parser.add_argument("--seconds", type=int, default=30, help="of each of them [%(default)s]")
    parser.add_argument("--seed", type=int, default=1, help="[%(default)s]")
    parser.add_argument("--no-document", action="store_true", help="leave docs/RESULTS.md alone")
    options = parser.parse_args()
    all_missed = 0
    for name in options.parts:
        lines, missed = {"ends": ends, "beside": beside}[name](options)
        all_missed += missed
        print("\n".join(" | ".join(line) for line in lines), flush=True)
        if not options.no_document:
            document(name, lines)
    return 4 if all_missed else 0


if __name__ == "__main__":
    sys.exit(main())
