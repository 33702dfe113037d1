#!/usr/bin/env python3
"""A model of scikit-learn or PyTorch behind Foliot's containers and behind mosec, LitServe, BentoML and PyTriton: goodput
within 100 ms and processor time for each answer, with 1, 8 and 32 clients that wait, and for Poisson arrivals at 0.5 to 3
times a capacity.

All sides run the same code on the same file with the same batch limit, one process for the model, and get the same JSON over
HTTP from the same client, which gives an answer up at its deadline. Sides alternate, and each round begins with another one.
Rivals are installed into environments of their own, from python/requirements-rival-NAME.txt; what cannot be installed is
named and left out. PyTorch is that of the tools' environment for all (tools/python-environment torch)."""

import argparse
import asyncio
import gc
import json
import os
import pathlib
import random
import statistics
import sys
import tempfile
import time

import aiohttp
import numpy as np
from rival_models import MODELS
from rival_servers import DEADLINE, SIDES, install

from foliot_tools.server import ROOT

sys.path.insert(0, str(ROOT / "tests/figures"))
from figure import machine, say  # noqa: E402

CLIENTS = (1, 8, 32)
RATES = (0.5, 1, 1.5, 2, 3)  # of the capacity
READY_SECONDS = 120


def family(pid):
    """The process and all that it started, directly or not, which live now."""
    children = {}
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append(int(entry.name))
    found = [pid]
    for parent in found:
        found += children.get(parent, [])
    return found


def processor_seconds(pid):
    """What the process and its descendants have used, those that ended included."""
    ticks = 0
    for each in family(pid):
        try:
            fields = pathlib.Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += sum(int(field) for field in fields[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def digit_in(answer):
    """The digit that any of the sides answers."""
    if isinstance(answer, dict):
        answer = answer["outputs"][0]["data"] if "outputs" in answer else answer["digit"]
    while isinstance(answer, list):
        answer = answer[0]
    return answer


class Load:
    """Asks one side, and counts what comes back in time, late, wrong, or not at all."""

    def __init__(self, side, rows, answers):
        self.address = side.address()
        self.bodies = [json.dumps(side.body(row)).encode() for row in rows]
        self.expected = answers
        self.counts = dict.fromkeys(("good", "late", "refused", "failed"), 0)
        self.latencies = []
        self.first_failure = None

    async def ask(self, session, index, due):
        """One request that was due then."""
        index %= len(self.bodies)
        try:
            left = due + DEADLINE - time.monotonic()
            if left <= 0:
                raise TimeoutError
            async with session.post(self.address, data=self.bodies[index], headers={"Content-Type": "application/json"},
                                    timeout=aiohttp.ClientTimeout(total=left)) as response:
                text = await response.read()
        except TimeoutError:
            self.counts["late"] += 1
            return
        except aiohttp.ClientError as error:
            self.fail(repr(error))
            return
        took = time.monotonic() - due
        if response.status in (429, 503, 504):
            self.counts["refused"] += 1
        elif response.status != 200 or digit_in(json.loads(text)) != self.expected[index]:
            self.fail(f"{response.status}: {text[:200]!r}")
        elif took > DEADLINE:
            self.counts["late"] += 1
        else:
            self.counts["good"] += 1
            self.latencies.append(took)

    def fail(self, why):
        self.counts["failed"] += 1
        self.first_failure = self.first_failure or why

    async def closed(self, clients, seconds):
        """Clients that each wait for their answer."""
        end = time.monotonic() + seconds

        async def client(first):
            index = first
            while time.monotonic() < end:
                await self.ask(session, index, time.monotonic())
                index += clients

        async with self.session() as session:
            await asyncio.gather(*(client(first) for first in range(clients)))

    async def open(self, rate, seconds, seed):
        """A Poisson process; each request counts from when it was due."""
        drawn = random.Random(seed)
        begin = due = time.monotonic()
        waiting = set()
        async with self.session() as session:
            index = 0
            while due < begin + seconds:
                due += drawn.expovariate(rate)
                await asyncio.sleep(max(0, due - time.monotonic()))
                task = asyncio.create_task(self.ask(session, index, due))
                waiting.add(task)
                task.add_done_callback(waiting.discard)
                index += 1
            await asyncio.gather(*waiting)

    @staticmethod
    def session():
        return aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))


def measure(side, pid, rows, answers, seconds, run):
    """Goodput, processor milliseconds for each good answer, p99 in ms, and the counts."""
    load = Load(side, rows, answers)
    gc.collect()
    gc.disable()  # with all of PyTorch it takes a tenth of a second, in which answers would be late
    begin, used = time.monotonic(), processor_seconds(pid)
    asyncio.run(run(load))
    gc.enable()
    # What was given up may still be computed, and is this run's.
    used, took = processor_seconds(pid) - used, max(seconds, time.monotonic() - begin)
    good = load.counts["good"]
    p99 = 1e3 * float(np.quantile(load.latencies, 0.99)) if load.latencies else float("nan")
    if load.first_failure:
        say(f"{side.name}: {load.counts['failed']} failed, the first: {load.first_failure}")
    return {"goodput": good / took, "cpu_ms": 1e3 * used / good if good else float("inf"), "p99_ms": p99, **load.counts}


def wait_until_ready(side, rows, answers):
    """Asks until the first right answer."""
    end = time.monotonic() + READY_SECONDS
    while time.monotonic() < end:
        load = Load(side, rows, answers)
        asyncio.run(load.closed(1, 0.2))
        if load.counts["good"] > 0:
            return
        if side.process is not None and side.process.poll() is not None:
            break
        time.sleep(0.2)
    raise RuntimeError(f"{side.name} did not become ready:\n{side.console()[-3000:]}")


class Results(dict):
    """{load: {side: [one measurement for each round]}}."""

    def add(self, load, side, measured):
        self.setdefault(load, {}).setdefault(side, []).append(measured)


def run_side(side, rows, answers, arguments, capacity, round_number, results):
    """All loads on one side, which is started for it. Returns the capacity, measured here if there was none."""
    pid = side.start()
    try:
        wait_until_ready(side, rows, answers)
        measure(side, pid, rows, answers, 1, lambda load: load.closed(8, 1))  # warms it up
        for clients in CLIENTS:
            measured = measure(side, pid, rows, answers, arguments.seconds,
                               lambda load, clients=clients: load.closed(clients, arguments.seconds))
            results.add(f"{clients} client{'s' if clients > 1 else ''}", side.name, measured)
            if clients == 8 and capacity is None:
                capacity = max(measured["goodput"], 1)
        for rate in RATES:
            measured = measure(side, pid, rows, answers, arguments.seconds,
                               lambda load, rate=rate: load.open(rate * capacity, arguments.seconds, round_number))
            results.add(f"Poisson {rate}x", side.name, measured)
    finally:
        side.stop()
    return capacity


def print_results(results, sides):
    def median(measurements, key):
        return statistics.median(each[key] for each in measurements)

    print(f"\n| load | side | answers/s within {1000 * DEADLINE:.0f} ms | CPU ms an answer | p99 ms | late | refused | failed |")
    print("|---|---|---|---|---|---|---|---|")
    for load, by_side in results.items():
        for name in sides:
            runs = by_side.get(name)
            if not runs:
                continue
            counts = " | ".join(str(sum(each[key] for each in runs)) for key in ("late", "refused", "failed"))
            print(f"| {load} | {name} | {median(runs, 'goodput'):.0f} | {median(runs, 'cpu_ms'):.3f} | "
                  f"{median(runs, 'p99_ms'):.1f} | {counts} |")
    print("\nGoodput and processor time of Foliot relative to each rival, the least and the most over all loads\n")
    for name in sides:
        if name == "foliot":
            continue
        both = [(by_side["foliot"], by_side[name]) for by_side in results.values() if name in by_side and "foliot" in by_side]
        answered = [(ours, its) for ours, its in both if median(its, "goodput") > 0]
        goodput, cpu = ([median(ours, key) / median(its, key) for ours, its in answered] for key in ("goodput", "cpu_ms"))
        if not answered:
            print(f"- beside {name}: that answered nothing in time")
            continue
        silent = f"; that answered nothing in time at {len(both) - len(answered)} loads" if len(answered) < len(both) else ""
        print(f"- beside {name}: goodput {min(goodput):.2f} to {max(goodput):.2f}, CPU {min(cpu):.2f} to {max(cpu):.2f}{silent}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=MODELS, default="forest", help="a random forest of scikit-learn (default), or a "
                        "convolutional network of PyTorch")
    parser.add_argument("--sides", default=",".join(SIDES), help="of these; foliot always")
    parser.add_argument("--seconds", type=float, default=10, help="of each load in each round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batch-size-max", type=int, default=64, help="of all sides")
    parser.add_argument("--wait-ms", type=int, default=5, help="for how long rivals wait for a batch to fill (default: 5)")
    parser.add_argument("--capacity", type=float, help="requests per second that 1x means; default: what the first side "
                        "of the first round answers 8 clients, rivals first")
    parser.add_argument("--quick", action="store_true", help="one round of 1 second: to see that it works")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.seconds, arguments.rounds = 1, 1
    wanted = [name for name in SIDES if name in arguments.sides.split(",") or name == "foliot"]
    left_out = {name: why for name in wanted if name != "foliot" and (why := install(name)) is not None}
    sides = [name for name in wanted if name not in left_out]
    results, capacity = Results(), arguments.capacity
    with tempfile.TemporaryDirectory(prefix="foliot-rivals-") as folder:
        for round_number in range(arguments.rounds):
            round_folder = pathlib.Path(folder) / str(round_number)
            model = round_folder / "model"
            model.mkdir(parents=True)
            rows, answers = (each.tolist() for each in MODELS[arguments.model](model))
            shift = (round_number + 1) % len(sides)  # a rival is the first
            for name in sides[shift:] + sides[:shift]:
                say(f"round {round_number + 1} of {arguments.rounds}: {name}")
                try:
                    side = SIDES[name](name, model, round_folder / name, arguments.batch_size_max,
                                       arguments.wait_ms)
                    capacity = run_side(side, rows, answers, arguments, capacity, round_number, results)
                except RuntimeError as error:
                    left_out[name] = str(error)
                    say(str(error))
    print_results(results, [name for name in sides if name not in left_out])
    print(f"\n{arguments.model}; 1x is {capacity:.0f} requests/s; medians of {arguments.rounds} rounds of "
          f"{arguments.seconds:g} s; batches up to {arguments.batch_size_max}; {machine()}")
    for name, why in left_out.items():
        print(f"\nLeft out: {name}: {why.strip().splitlines()[-1]}")


if __name__ == "__main__":
    main()
