#!/usr/bin/env python3
"""Personal models beside other work on the same server (Velox, chapter 2).

native: a network that Foliot compiled, asked at a fixed rate alone and while users are served and learned, by turns.
What that does to its p99. The network is not small, as most are not; `--network small` is one of 0.1 ms.

retraining: users are served and learn while `foliot retrain` makes version after version, which the server takes, and, by
turns, while nothing else runs. What that does to their p99, whether a call was refused or failed, and whether the log
has each acknowledged observation once: the server is stopped, and one more training counts them.

Calls are due at fixed rates, and latencies count from then. Clients run on the same cores.
`make bench-personal-beside` runs both."""

import argparse
import contextlib
import multiprocessing
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time

import grpc
import numpy as np
from foliot import personal
from foliot_tools import onnx_models
from foliot_tools.bench import bench
from foliot_tools.grpc_protocol import personal_protocol
from foliot_tools.server import ROOT, Server, foliot_binary

sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "tests/figures"))
from figure import machine, say  # noqa: E402
from tools import models  # noqa: E402

MODEL = "films"
PER_CALL = 10  # observations
KINDS = ("predict", "topk", "observe")
NETWORK = "mobilenet_v2"


class Users:
    """A process that predicts, lists and observes at fixed rates for drawn users, from start() to stop()."""

    def __init__(self, address, arguments, seed):
        self._arguments = address, arguments, seed
        self._stop = multiprocessing.Event()
        self._results = multiprocessing.Queue()

    def __enter__(self):
        ready = multiprocessing.Event()
        self._process = multiprocessing.Process(target=self._run, args=(ready,))
        self._process.start()
        ready.wait()
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.join()

    def stop(self):
        """{kind: [(when it was due, by time.monotonic(); seconds)]}, acknowledged observations, errors."""
        self._stop.set()
        return self._results.get()

    def _run(self, ready):
        address, arguments, seed = self._arguments
        random = np.random.default_rng(seed)
        messages, stub_of = personal_protocol()
        taste = np.random.default_rng(1).normal(size=(arguments.users, 8))
        worth = np.random.default_rng(2).normal(size=(arguments.items, 8))
        latencies, errors = {kind: [] for kind in KINDS}, []
        acknowledged, under_way = [0], threading.Semaphore(0)

        def user():
            return int(random.integers(arguments.users))

        def request(kind, number):
            if kind == "predict":
                pairs = [{"user": {"number": user()}, "item": int(random.integers(arguments.items))}]
                return messages.PredictRequest(model=MODEL, pairs=pairs)
            if kind == "topk":
                return messages.TopKRequest(model=MODEL, users=[{"number": user()}], k=10)
            rows = []
            for place in range(PER_CALL):
                who, what = user(), int(random.integers(arguments.items))
                value = taste[who] @ worth[what] + random.normal(0, 0.5)
                rows.append({"user_number": who, "item": what, "value": value, "id_number": (seed << 40) + number * PER_CALL + place})
            return messages.ObserveRequest(model=MODEL, observations=rows)

        with grpc.insecure_channel(address) as channel:
            stub = stub_of(channel)
            calls = {"predict": stub.Predict, "topk": stub.TopK, "observe": stub.Observe}
            gaps = {kind: 1 / getattr(arguments, f"{kind}_rate") for kind in KINDS}
            grpc.channel_ready_future(channel).result(timeout=10)
            ready.set()
            due = {kind: time.monotonic() + gap * random.random() for kind, gap in gaps.items()}
            numbers = dict.fromkeys(KINDS, 0)

            def done(kind, begin, call):
                if call.exception():
                    errors.append(f"{kind}: {call.exception()}")
                else:
                    latencies[kind].append((begin, time.monotonic() - begin))
                    acknowledged[0] += PER_CALL if kind == "observe" else 0
                under_way.release()

            while not self._stop.is_set():
                kind = min(due, key=due.get)
                message = request(kind, numbers[kind])
                time.sleep(max(0, due[kind] - time.monotonic()))
                future = calls[kind].future(message, timeout=10)
                future.add_done_callback(lambda call, kind=kind, begin=due[kind]: done(kind, begin, call))
                numbers[kind] += 1
                due[kind] += gaps[kind]
            for _ in range(sum(numbers.values())):
                under_way.acquire()
        self._results.put((latencies, acknowledged[0], errors))


def write_model(repository, arguments):
    rows = np.random.default_rng(3).normal(0, arguments.features**-0.5, (arguments.items, arguments.features))
    personal.write_items(repository / MODEL / "1/items.features", np.arange(arguments.items), rows)
    (repository / MODEL / "personal.toml").write_text("[limits]\nobservations_per_user = 20000\n")


def observe_first(server, arguments):
    """Every user has some observations before anything is measured. Returns how many there are."""
    random = np.random.default_rng(4)
    count = 50 * arguments.users
    with personal.Client(server.http, MODEL) as films:
        for begin in range(0, count, 5000):
            rows = zip((np.arange(begin, min(begin + 5000, count)) % arguments.users).tolist(),
                       random.integers(0, arguments.items, 5000).tolist(), random.normal(0, 1, 5000).tolist())
            films.observe_all([personal.Observation(*row, id=begin + i) for i, row in enumerate(rows)])
    return count


def quantiles(seconds):
    return np.quantile(seconds, (0.5, 0.99, 0.999)) * 1e3


def rates(arguments):
    return (f"{arguments.predict_rate:g} predictions, {arguments.topk_rate:g} lists of 10 and {arguments.observe_rate:g} x {PER_CALL} "
            f"observations a second of {arguments.users} users, {arguments.items} items, d = {arguments.features}")


def measure_native(folder, arguments):
    repository = folder / "models"
    write_model(repository, arguments)
    if arguments.network == "small":
        onnx_models.random_dense_network(repository / "network/1/model.onnx", (784, 1024, 10))
    else:
        models.write(models.build(arguments.network), repository / "network/1/model.onnx")
    found = {"alone": [], "beside users": []}
    good = dict.fromkeys(found, 0)
    offered = dict.fromkeys(found, 0)
    with Server(repository, folder / "console", ready_timeout=1200) as server:
        observe_first(server, arguments)
        for turn in range(arguments.turns):
            for side in found:
                with contextlib.ExitStack() as stack:
                    users = side != "alone" and stack.enter_context(Users(server.grpc, arguments, turn + 1))
                    report = bench(server.grpc, "network", rate=arguments.rate, deadline=arguments.deadline, seed=turn + 1,
                                   duration=f"{arguments.seconds}s")
                    found[side].append([report["latency_milliseconds"][share] for share in ("p50", "p99", "p99.9")])
                    good[side] += report["good"]
                    offered[side] += report["offered"]
                    if users:
                        errors = users.stop()[2]
                        assert not errors, errors[:3]
    print(f"\n{arguments.network} at {arguments.rate}/s, deadline {arguments.deadline}, alone and beside {rates(arguments)}; "
          f"medians of {arguments.turns} turns of {arguments.seconds} s\n")
    print("| | in time | p50 ms | p99 ms | p99.9 ms |\n|---|---|---|---|---|")
    for side, each in found.items():
        print(f"| {side} | {good[side] / offered[side]:.2%} | {' | '.join(f'{value:.3f}' for value in np.median(each, axis=0))} |")
    ratios = np.array(found["beside users"]) / np.array(found["alone"])
    print(f"| times | | {' | '.join(f'{value:.2f}' for value in np.median(ratios, axis=0))} |")
    print(f"\np99 of each turn, times alone: {', '.join(f'{value:.2f}' for value in ratios[:, 1])}", flush=True)


def retrain(repository, state):
    """How many observations the training read."""
    done = subprocess.run([foliot_binary(), "retrain", str(repository / MODEL), "--state", str(state / MODEL), "--python", sys.executable],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"foliot retrain failed:\n{done.stdout}{done.stderr}")
    return int(re.search(r"(\d+) observations of", done.stdout + done.stderr)[1])


def measure_retraining(folder, arguments):
    repository, state = folder / "models", folder / "state"
    write_model(repository, arguments)
    spans = {"nothing else": [], "retraining": []}
    with Server(repository, folder / "console", observations=state) as server:
        first = observe_first(server, arguments)
        with Users(server.grpc, arguments, 1) as users:
            for number in range(arguments.retrainings):
                begin = time.monotonic()
                time.sleep(arguments.pause)
                middle = time.monotonic()
                retrain(repository, state)
                status, answer = server.post(f"/v2/repository/models/{MODEL}/load", {})
                assert status == 200, answer
                spans["nothing else"].append((begin, middle))
                spans["retraining"].append((middle, time.monotonic()))
                say(f"version {number + 2} is served after {time.monotonic() - middle:.1f} s")
            latencies, acknowledged, errors = users.stop()
        with personal.Client(server.http, MODEL) as films:  # a training leaves out the last record, which no other follows
            films.observe(arguments.users, 0, 0.0)
            films.observe(arguments.users, 0, 0.0)
        version = server.get(f"/v2/models/{MODEL}")[1].get("versions")
    in_log = retrain(repository, state)
    print(f"\n{arguments.retrainings} retrainings under {rates(arguments)}; served at the end: version {version}\n")
    print("| | calls | p50 ms | p99 ms | p99.9 ms | p99 while retraining, times that beside nothing else |\n|---|---|---|---|---|---|")
    for kind in KINDS:
        p99 = {}
        for side, of_side in spans.items():
            chosen = [seconds for due, seconds in latencies[kind] if any(begin <= due < end for begin, end in of_side)]
            values = quantiles(chosen)
            p99[side] = values[1]
            times = f"{values[1] / p99['nothing else']:.2f}" if side == "retraining" else ""
            print(f"| {kind}, {side} | {len(chosen)} | {' | '.join(f'{value:.2f}' for value in values)} | {times} |")
    print(f"\n- {len(errors)} calls were refused or failed{': ' + errors[0] if errors else ''}")
    print(f"- {first + acknowledged} observations were acknowledged, the log has {in_log - 1}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = {"native": measure_native, "retraining": measure_retraining}
    parser.add_argument("--parts", nargs="+", choices=parts, default=list(parts))
    parser.add_argument("--users", type=int, default=2000)
    parser.add_argument("--items", type=int, default=2000)
    parser.add_argument("--features", type=int, default=50)
    parser.add_argument("--predict-rate", type=float, default=200)
    parser.add_argument("--topk-rate", type=float, default=50)
    parser.add_argument("--observe-rate", type=float, default=20, help=f"calls of {PER_CALL} observations")
    parser.add_argument("--network", default=NETWORK, help="a network of tools/models, or small")
    parser.add_argument("--rate", type=float, default=30, help="of the network, requests/s")
    parser.add_argument("--deadline", default="100ms", help="of the network's requests")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=20, help="of a turn")
    parser.add_argument("--retrainings", type=int, default=20)
    parser.add_argument("--pause", type=float, default=10, help="seconds before each retraining, for the comparison")
    arguments = parser.parse_args()
    for part in arguments.parts:
        with tempfile.TemporaryDirectory(prefix="foliot-bench-") as folder:
            parts[part](pathlib.Path(folder), arguments)
    print(f"\n{machine()}")


if __name__ == "__main__":
    main()
