#!/usr/bin/env python3
"""A personal model over its protocols: durable observations over gRPC (closed and open loop) and HTTP (one at a
time), then predict and topk, one call at a time. The server and its clients share the machine.

    make bench-personal-serving [FLAGS='--items 10000 --features 100 --seconds 10']
"""

import argparse
import multiprocessing
import pathlib
import tempfile
import threading
import time

import grpc
import numpy as np
from foliot import personal
from foliot_tools.grpc_protocol import personal_protocol
from foliot_tools.server import Server

MODEL = "films"
USERS = 10_000
OPTIONS = {"page_size": "256KiB", "page_cache": "16MiB"}


def observations(random, count, items, first_id):
    users, chosen = random.integers(0, USERS, count), random.integers(0, items, count)
    return [
        {"user_number": int(user), "item": int(item), "value": float(value), "id_number": first_id + i}
        for i, (user, item, value) in enumerate(zip(users, chosen, random.normal(0, 1, count)))
    ]


def observe_over_grpc(address, arguments, per_call, seed, results, rate=None):
    """Closed loop with `in_flight` calls, or `rate` observations a second, whose latencies count from when they were due."""
    messages, stub_of = personal_protocol()
    random = np.random.default_rng(seed)
    requests = [
        messages.ObserveRequest(model=MODEL, observations=observations(random, per_call, arguments.items, (seed << 40) + (n << 20)))
        for n in range(200)
    ]
    latencies, failures = [], []
    permits = threading.Semaphore(arguments.in_flight)
    with grpc.insecure_channel(address) as channel:
        stub = stub_of(channel)
        stub.Observe(requests[0], timeout=10)
        start = time.monotonic()
        number = 0

        def done(begin, call):
            (failures if call.exception() else latencies).append(time.monotonic() - begin)
            permits.release()

        while (begin := time.monotonic()) < start + arguments.seconds:
            if rate is not None:
                due = start + number * per_call / rate
                time.sleep(max(0, due - begin))
            permits.acquire()
            request = requests[number % len(requests)]
            for each in request.observations:  # an id that was there already would not be written
                each.id_number += len(requests) << 20
            number += 1
            begin = due if rate is not None else time.monotonic()
            stub.Observe.future(request, timeout=10).add_done_callback(lambda call, begin=begin: done(begin, call))
        for _ in range(arguments.in_flight):
            permits.acquire()
    results.put((latencies, len(failures)))


def observe_over_http(address, arguments, per_call, seed, results):
    random = np.random.default_rng(seed)
    latencies = []
    with personal.Client(address, MODEL) as films:
        end = time.monotonic() + arguments.seconds
        number = 0
        while time.monotonic() < end:
            number += 1
            batch = [
                personal.Observation(each["user_number"], each["item"], each["value"], each["id_number"])
                for each in observations(random, per_call, arguments.items, (seed << 40) + (number << 20))
            ]
            begin = time.monotonic()
            films.observe_all(batch)
            latencies.append(time.monotonic() - begin)
    results.put((latencies, 0))


def quantiles(latencies):
    return " | ".join(f"{value * 1e3:.2f}" for value in (*np.quantile(latencies, (0.5, 0.99, 0.999)), max(latencies)))


def measure_observe(name, function, address, arguments, per_call, first_seed, rate=None):
    results = multiprocessing.Queue()
    more = () if rate is None else (rate / arguments.clients,)
    clients = [
        multiprocessing.Process(target=function, args=(address, arguments, per_call, first_seed + i, results, *more))
        for i in range(arguments.clients)
    ]
    for client in clients:
        client.start()
    answered = [results.get() for _ in clients]
    for client in clients:
        client.join()
    latencies = np.concatenate([each for each, _ in answered])
    name += f", {per_call} per call" + (f", open loop at {rate:,.0f}/s" if rate is not None else "")
    reached = len(latencies) * per_call / arguments.seconds
    failed = sum(failures for _, failures in answered)
    print(f"| {name} | {reached:,.0f} observations/s | {quantiles(latencies)} | {failed} |", flush=True)


def measure_reads(name, call, seconds):
    for _ in range(20):
        call()
    latencies = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        begin = time.monotonic()
        call()
        latencies.append(time.monotonic() - begin)
    print(f"| {name} | {len(latencies) / seconds:,.0f} calls/s | {quantiles(latencies)} | 0 |", flush=True)


def measure_all_reads(server, arguments):
    messages, stub_of = personal_protocol()
    random = np.random.default_rng(3)
    with grpc.insecure_channel(server.grpc) as channel, personal.Client(server.http, MODEL) as films:
        stub = stub_of(channel)

        def user():
            return {"number": int(random.integers(0, USERS))}

        def predict():
            pair = {"user": user(), "item": int(random.integers(0, arguments.items))}
            stub.Predict(messages.PredictRequest(model=MODEL, pairs=[pair]), timeout=10)

        def top_k():
            stub.TopK(messages.TopKRequest(model=MODEL, users=[user()], k=10), timeout=10)

        measure_reads("predict over gRPC", predict, arguments.seconds)
        measure_reads("topk, k = 10, over gRPC", top_k, arguments.seconds)
        measure_reads("predict over HTTP", lambda: films.predict(user()["number"], 3), arguments.seconds)
        measure_reads("topk, k = 10, over HTTP", lambda: films.top_k(user()["number"], 10), arguments.seconds)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=10_000)
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=10, help="for each row")
    parser.add_argument("--clients", type=int, default=2, help="client processes of observe")
    parser.add_argument("--in-flight", type=int, default=32, help="calls of each client over gRPC")
    parser.add_argument("--rate", type=float, default=30_000, help="observations a second of the open loop")
    parser.add_argument("--folder", type=pathlib.Path, help="on the disk to measure (default: that of temporary files)")
    arguments = parser.parse_args()
    random = np.random.default_rng(1)
    with tempfile.TemporaryDirectory(prefix="foliot-bench-", dir=arguments.folder) as folder:
        repository = pathlib.Path(folder) / "models"
        rows = random.normal(0, arguments.features**-0.5, (arguments.items, arguments.features))
        personal.write_items(repository / MODEL / "1/items.features", np.arange(arguments.items), rows)
        (repository / MODEL / "personal.toml").write_text("[limits]\nobservations_per_user = 20000\n")
        with Server(repository, pathlib.Path(folder) / "log", **OPTIONS) as server:
            print("| | rate | p50 ms | p99 ms | p99.9 ms | max ms | failed |\n|---|---|---|---|---|---|---|")
            for seed, per_call in ((10, 1), (20, 10), (30, 100)):
                measure_observe("observe over gRPC", observe_over_grpc, server.grpc, arguments, per_call, seed)
            for seed, per_call in ((35, 10), (37, 100)):
                measure_observe(
                    "observe over gRPC", observe_over_grpc, server.grpc, arguments, per_call, seed, arguments.rate)
            for seed, per_call in ((40, 1), (50, 100)):
                measure_observe("observe over HTTP", observe_over_http, server.http, arguments, per_call, seed)
            measure_all_reads(server, arguments)


if __name__ == "__main__":
    main()
