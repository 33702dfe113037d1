#!/usr/bin/env python3
"""Containers of scikit-learn, as in Figures 3.3 and 3.4 of Clipper: how long batches take in the container's process alone,
and how many requests per second `foliot serve` answers within 20 ms with and without batching,
beside adaptive batching (AIMD) and quantile regression. Then what a container adds to a call, by one that returns its
input; replicas (Figure 3.6), and what happens where one is killed; and what a busy container on a core of its own costs a
compiled model on another.

The throughput is the largest rate at which 99 % of a Poisson process are answered within the deadline in most turns. The
sides are measured by turns, each at its own rates, and when the one before is idle again. Clients run on the same cores. The images are the digits of scikit-learn, enlarged to 28 x 28, with noise."""

import argparse
import contextlib
import datetime
import itertools
import math
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import skops.io
from onnx import TensorProto, helper
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC

from foliot_tools import onnx_models
from foliot_tools.bench import bench
from foliot_tools.log import read_log
from foliot_tools.replica import Replica
from foliot_tools.server import ROOT, Server
from foliot_tools.staircase import Staircase

sys.path.insert(0, str(ROOT / "tests/figures"))
from figure import machine, say  # noqa: E402

PIXELS = 28 * 28
SLO_MS = 20
MODELS = {
    "linear_svm": lambda: LinearSVC(max_iter=200, tol=1e-2),
    "logistic_regression": lambda: LogisticRegression(max_iter=30),
    "kernel_svm": lambda: SVC(),
    "random_forest": lambda: RandomForestClassifier(n_estimators=100, random_state=1),
    "random_features": lambda: make_pipeline(RBFSampler(gamma=0.005, n_components=2000, random_state=1),
                                             LogisticRegression(max_iter=30)),
    "neural_network": lambda: MLPClassifier((128,), max_iter=30, random_state=1),
    "no_op": None,
}
ECHO = """import foliot

@foliot.model(inputs={{"x": ("FP32", [{width}])}}, outputs={{"y": ("FP32", [{width}])}})
def predict(batch):
    return {{"y": batch["x"]}}
"""
NO_OP = """import foliot, numpy

@foliot.model(inputs={"x": ("FP32", [784])}, outputs={"y": ("INT64", [])})
def predict(batch):
    return {"y": numpy.zeros(len(batch["x"]), int)}
"""
# What serves the batches: {side: (batch_size_max, policy)}; 0: what the argument says.
SIDES = {"no batching": (1, "foliot"), "AIMD": (0, "adaptive_batching"),
         "quantile regression": (0, "adaptive_batching_quantile"), "foliot": (0, "foliot")}
ATTAINED = 0.99
QUICK_MODELS = ("linear_svm", "no_op")
KILL_SECONDS = 1.5  # between two; a replica is back before


def images(count):
    """(rows of 784 numbers from 0 to 1, labels)."""
    data = load_digits()
    random = np.random.default_rng(1)
    chosen = random.integers(0, len(data.images), count)
    enlarged = np.kron(data.images[chosen] / 16, np.ones((1, 3, 3)))
    framed = np.pad(enlarged, ((0, 0), (2, 2), (2, 2)))
    return np.clip(framed + random.normal(0, 0.1, framed.shape), 0, 1).reshape(count, PIXELS).astype(np.float32), data.target[chosen]


def write_containers(folder, names):
    """{name: folder of its model.py}."""
    rows, labels = images(5000)
    warnings.simplefilter("ignore")  # of training that ends before it converges
    written = {}
    for name in names:
        version = folder / name / "1"
        version.mkdir(parents=True)
        if MODELS[name] is None:
            (version / "model.py").write_text(NO_OP)
        else:
            say(f"training {name}")
            skops.io.dump(MODELS[name]().fit(rows, labels), version / "model.skops")
            (version / "model.py").write_text('import foliot\nfoliot.sklearn("model.skops")\n')
        written[name] = version
    return written


def quantiles(seconds, *shares):
    return [float(np.quantile(seconds, share)) for share in shares]


def timed(replica, rows, turns):
    """Durations of calls, in seconds."""
    inputs = images(rows)[0] if replica.description["inputs"][0]["shape"] == [PIXELS] else None
    for view in replica.views("inputs", rows, 0).values():
        view[...] = 0 if inputs is None else inputs
    durations = []
    for _ in range(turns):
        begin = time.perf_counter()
        replica.send_call(rows, 0, 1 << 22)
        durations.append(time.perf_counter() - begin)
    return durations[turns // 10:]


def round_trip(folder, arguments):
    """What the process of a container and the way there and back cost, without a server."""
    print("\nA call to the process of a container that returns its input, microseconds\n")
    print("| bytes there, and back | p50 | p99 | p99.9 |\n|---|---|---|---|")
    for size in (64, 600_000):
        path = folder / f"echo_{size}"
        path.mkdir()
        (path / "model.py").write_text(ECHO.format(width=size // 4))
        with Replica(path) as replica:
            replica.start()
            replica.share_memory(1 << 23)
            p50, p99, p999 = quantiles(timed(replica, 1, arguments.calls), 0.5, 0.99, 0.999)
        print(f"| {size} | {p50 * 1e6:.1f} | {p99 * 1e6:.1f} | {p999 * 1e6:.1f} |", flush=True)


def profiles(containers, arguments):
    """Figure 3.3, in the container's process alone."""
    sizes = [1 << power for power in range(9) if 1 << power <= arguments.batch_size_max]
    print(f"\nMilliseconds of a batch in the container's process, p99; and rows per second of the largest within {SLO_MS} ms\n")
    print(f"| model | {' | '.join(map(str, sizes))} | rows/s of 1 | rows/s | gain |\n|---|{'---|' * (len(sizes) + 3)}")
    for name, path in containers.items():
        with Replica(path) as replica:
            replica.start()
            replica.share_memory(1 << 23)
            durations = {size: timed(replica, size, 60) for size in sizes}
        tails = {size: quantiles(each, 0.99)[0] for size, each in durations.items()}
        largest = max((size for size in sizes if tails[size] * 1e3 <= SLO_MS), default=1)
        one, most = 1 / np.mean(durations[1]), largest / np.mean(durations[largest])
        cells = " | ".join(f"{tails[size] * 1e3:.2f}" for size in sizes)
        print(f"| {name} | {cells} | {one:.0f} | {most:.0f} | {most / one:.1f} |", flush=True)


def throughput(folder, containers, arguments):
    """Figure 3.4, through the server."""
    print(f"\nRequests per second of which 99 % are answered within {SLO_MS} ms (± standard error; p99 in ms), and the gain over no batching\n")
    print(f"| model | {' | '.join(SIDES)} | gain of foliot |\n|---|{'---|' * (len(SIDES) + 1)}")
    for name, path in containers.items():
        with contextlib.ExitStack() as running:
            servers, searches, latencies = {}, {}, {}
            for side, (batch_size_max, policy) in SIDES.items():
                # A repository of this model alone.
                repository = folder / f"{name} {side}"
                shutil.copytree(path.parent, repository / name)
                (repository / name / "model.toml").write_text(
                    f'[container]\npython = "{sys.executable}"\n'
                    f'batch_size_max = {batch_size_max or arguments.batch_size_max}\n')
                servers[side] = running.enter_context(Server(repository, folder / f"{name} {side}.log", scheduler=policy))
            ask = {"duration": arguments.duration, "protocol": arguments.protocol}
            for side, server in servers.items():
                users = 2 * arguments.batch_size_max
                most = bench(getattr(server, arguments.protocol), name, concurrency=users, **ask)["answered_per_second"]
                server.wait_until_idle()
                searches[side], latencies[side] = Staircase(most), []
            for seed in itertools.count(1):
                wanting = [side for side, search in searches.items() if search.rate is not None]
                for side in wanting:
                    report = bench(getattr(servers[side], arguments.protocol), name, rate=searches[side].rate,
                                   deadline=f"{SLO_MS}ms", seed=seed, **ask)
                    attained = report["attainment"] >= ATTAINED
                    if attained:
                        latencies[side].append(report["latency_milliseconds"]["p99"])
                    searches[side].add(attained)
                    servers[side].wait_until_idle()
                if not wanting:
                    break
        found = {side: search.result() for side, search in searches.items()}
        say(f"{name}: " + ", ".join(f"{side} {rate:.0f}/s" for side, (rate, _) in found.items()))
        cells = " | ".join(f"{rate:.0f} ± {error:.0f} ({statistics.median(latencies[side] or [math.nan]):.1f})"
                           for side, (rate, error) in found.items())
        gain = found["foliot"][0] / found["no batching"][0] if found["no batching"][0] else float("nan")
        print(f"| {name} | {cells} | {gain:.1f} |", flush=True)


def overhead(folder, arguments):
    """What a container adds to a call, beside the same model compiled by Foliot."""
    repository = folder / "overhead"
    for size in (64, 600_000):
        width = size // 4
        container = repository / f"container_{size}"
        (container / "1").mkdir(parents=True)
        (container / "1/model.py").write_text(ECHO.format(width=width))
        (container / "model.toml").write_text(f'[container]\npython = "{sys.executable}"\nbatch_size_max = 1\n')
        onnx_models.save(repository / f"native_{size}/1/model.onnx", [helper.make_node("Neg", ["x"], ["y"], "negate")],
                         {"x": (TensorProto.FLOAT, ["batch", width])}, {"y": (TensorProto.FLOAT, ["batch", width])})
        (repository / f"native_{size}/model.toml").write_text("batch_sizes = [1]\n")
    print("\nOne call after the other over gRPC, milliseconds\n")
    print("| bytes there, and back | side | p50 | p99 | p99.9 |\n|---|---|---|---|---|")
    with Server(repository, folder / "log") as server:
        for size in (64, 600_000):
            reports = {side: bench(server.grpc, f"{side}_{size}", concurrency=1, duration=arguments.duration)
                       for side in ("native", "container")}
            for side, report in reports.items():
                cells = " | ".join(f"{report['latency_milliseconds'][share]:.3f}" for share in ("p50", "p99", "p99.9"))
                print(f"| {size} | {side} | {cells} |", flush=True)


SLEEPER = """import foliot, time

@foliot.model(inputs={"x": ("FP32", [16])}, outputs={"y": ("FP32", [16])}, batch_size_max=1)
def predict(batch):
    time.sleep(%s)
    return {"y": batch["x"]}
"""


def write_sleeper(repository, seconds, replica_count):
    (repository / "sleeper").mkdir(parents=True)
    (repository / "sleeper/model.py").write_text(SLEEPER % seconds)
    (repository / "sleeper/model.toml").write_text(f'[container]\npython = "{sys.executable}"\nreplicas = {replica_count}\n')
    return repository


def replicas(folder, arguments):
    """Figure 3.6, with replicas that sleep, since they share two cores."""
    print("\nCalls per second of replicas that sleep for 20 ms, closed loop of four clients for each\n")
    print("| replicas | calls/s | to one |\n|---|---|---|")
    rates = []
    for count in range(1, 5):
        with Server(write_sleeper(folder / f"sleepers_{count}", 0.02, count), folder / "log") as server:
            bench(server.grpc, "sleeper", concurrency=4 * count, duration="1s")
            rates.append(bench(server.grpc, "sleeper", concurrency=4 * count,
                               duration=arguments.duration)["answered_per_second"])
        print(f"| {count} | {rates[-1]:.1f} | {rates[-1] / rates[0]:.2f} |", flush=True)


BUSY = """import foliot, numpy

weights = numpy.random.default_rng(1).random((1500, 1500), numpy.float32)

@foliot.model(inputs={"x": ("FP32", [16])}, outputs={"y": ("FP32", [16])}, batch_size_max=1)
def predict(batch):
    return {"y": batch["x"] + (weights @ weights)[0, :16]}
"""


def process_ids(server):
    """Of the replicas of a server."""
    children = pathlib.Path(f"/proc/{server.process.pid}/task").glob("*/children")
    return [int(child) for file in children for child in file.read_text().split()]


def kills(folder, arguments):
    """The older process of two replicas is killed under load, again and again."""
    repository = write_sleeper(folder / "killed", 0.001, 2)
    seconds = KILL_SECONDS * arguments.kills + 2
    with Server(repository, folder / "killed.log") as server, ThreadPoolExecutor(1) as pool:
        time.sleep(1)
        load = pool.submit(bench, server.grpc, "sleeper", rate=200, deadline="100ms", duration=f"{seconds:.0f}s")
        time.sleep(1.5)
        for _ in range(arguments.kills):
            os.kill(min(process_ids(server)), signal.SIGKILL)
            time.sleep(KILL_SECONDS)
        report = load.result()
        lines = [line for line in server.output().splitlines() if " serve: replica" in line]

    def instants(replica, event):
        return [datetime.datetime.fromisoformat(line[:24]) for line in lines if f" {replica}:" in line and event in line]

    times = [(back - gone).total_seconds() for replica in ("sleeper/0", "sleeper/1")
             for gone, back in zip(instants(replica, "Killed"), instants(replica, "serves again"))]
    print(f"\n{arguments.kills} kills of one of two replicas under 200 requests/s with a deadline of 100 ms\n")
    print(f"- {report['offered']} requests: {report['good']} in time, {report['late']} late, {report['refused']} refused, "
          f"{report['failed']} failed")
    print(f"- back after p50 {quantiles(times, 0.5)[0]:.2f} s, at most {max(times):.2f} s ({len(times)} restarts)", flush=True)


# The same work in a process that no server knows.
PLAIN = """import numpy

weights = numpy.random.default_rng(1).random((1500, 1500), numpy.float32)
while True:
    weights @ weights
"""
# Dense layers: weights in the core's own cache, and weights that each inference reads from memory.
NETWORKS = {"3 MB of weights": (784, 512, 512, 10), "80 MB of weights": (784, 4096, 4096, 10)}


PAUSE = 0.5  # seconds before each run


@contextlib.contextmanager
def plain_process(core):
    process = subprocess.Popen([sys.executable, "-c", PLAIN], env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
                               preexec_fn=lambda: os.sched_setaffinity(0, {core}))
    try:
        yield
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def busy_container(server):
    with ThreadPoolExecutor(1) as pool:
        load = pool.submit(bench, server.grpc, "busy", concurrency=2, duration="4s")
        yield
        load.result()


def runs_in(log):
    """Milliseconds in the server of what was answered, a list for each run: pauses separate them."""
    requests = sorted((each for each in read_log(log).requests if each.model == "native"), key=lambda each: each.arrival_us)
    runs, last = [], -math.inf
    for each in requests:
        if each.arrival_us - last > PAUSE / 2 * 1e6:
            runs.append([])
        last = each.arrival_us
        runs[-1].append((each.departure_us - each.arrival_us) / 1e3)
    return runs


def neighbours(folder, arguments):
    """A compiled model on the first core, in turns: alone, beside a container that is busy on the last one, and beside a
    process that does the same, which shows what the processor's shared parts cost. The client is on both cores."""
    first, last = min(os.sched_getaffinity(0)), max(os.sched_getaffinity(0))
    print(f"\nA compiled model on core {first} at {arguments.load:.0%} of what it answers one client, alone and beside what "
          f"computes on core {last}: in the server, and as its client sees it; medians of {arguments.rounds} rounds of 3 s, "
          "milliseconds (to alone)\n")
    print(f"| network | beside | server: p50 | p99 | client: p50 | p99 |\n|---|{'---|' * 5}")
    for name, sizes in NETWORKS.items():
        repository, log = folder / f"neighbours_{sizes[1]}", folder / f"neighbours_{sizes[1]}_log"
        onnx_models.random_dense_network(repository / "native/1/model.onnx", sizes)
        (repository / "busy/1").mkdir(parents=True)
        (repository / "busy/1/model.py").write_text(BUSY)
        (repository / "busy/model.toml").write_text(f'[container]\npython = "{sys.executable}"\ncores = "{last}"\n')
        with Server(repository, folder / "console", devices=first, log=log) as server:
            sides = {"nothing": contextlib.nullcontext, "a container": lambda server=server: busy_container(server),
                     "a process": lambda: plain_process(last)}
            rate = arguments.load * bench(server.grpc, "native", concurrency=1, duration="2s")["answered_per_second"]
            seen = []
            for seed in range(arguments.rounds):
                for beside in sides.values():
                    with beside():
                        time.sleep(PAUSE)
                        seen.append(bench(server.grpc, "native", rate=rate, duration="3s", seed=seed)["latency_milliseconds"])
        measured = np.array([[*quantiles(run, 0.5, 0.99), latency["p50"], latency["p99"]]
                             for run, latency in zip(runs_in(log)[1:], seen, strict=True)])
        medians = [np.median(measured[side :: len(sides)], axis=0) for side in range(len(sides))]
        for side, each in zip(sides, medians):
            cells = " | ".join(f"{value:.3f} ({ratio:.2f})" for value, ratio in zip(each, each / medians[0]))
            print(f"| {name} | {side} | {cells} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch-size-max", type=int, default=64)
    parser.add_argument("--duration", default="3s", help="of each measurement through a server (default: 3s)")
    parser.add_argument("--calls", type=int, default=5000, help="of each measurement without a server (default: 5000)")
    parser.add_argument("--protocol", choices=("grpc", "http"), default="grpc", help="of the throughput (default: grpc)")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--kills", type=int, default=100, help="of replicas under load (default: 100)")
    parser.add_argument("--load", type=float, default=0.25, help="of the compiled model that has neighbours (default: 0.25)")
    parser.add_argument("--rounds", type=int, default=9, help="of the compiled model that has neighbours (default: 9)")
    parser.add_argument("--quick", action="store_true", help="a second of each measurement, two models, five kills: to see that "
                        "it works")
    parts = ("round_trip", "profiles", "throughput", "overhead", "replicas", "kills", "neighbours")
    parser.add_argument("--parts", nargs="+", choices=parts, default=parts)
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.duration, arguments.calls, arguments.kills, arguments.rounds = "1s", 1000, 5, 1
        arguments.models = [name for name in arguments.models if name in QUICK_MODELS]
    print(machine())
    with tempfile.TemporaryDirectory(prefix="foliot-bench-") as name:
        folder = pathlib.Path(name)
        trained = {"profiles", "throughput"} & set(arguments.parts)
        containers = write_containers(folder / "containers", arguments.models) if trained else {}
        if "round_trip" in arguments.parts:
            round_trip(folder, arguments)
        if "profiles" in arguments.parts:
            profiles(containers, arguments)
        if "throughput" in arguments.parts:
            throughput(folder, containers, arguments)
        if "overhead" in arguments.parts:
            overhead(folder, arguments)
        if "replicas" in arguments.parts:
            replicas(folder, arguments)
        if "kills" in arguments.parts:
            kills(folder, arguments)
        if "neighbours" in arguments.parts:
            neighbours(folder, arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main())
