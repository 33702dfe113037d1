#!/usr/bin/env python3
"""What a request costs the server: processor time, switches of threads and latency by protocol and rate, with a network
of one small product, so that the way of the request is nearly all of it.

    bench/request_cost.py                                    # a table by protocol and rate
    bench/request_cost.py --threads                          # and one by thread of the server
    bench/request_cost.py --against OLD/foliot --rounds 5    # two builds in turns, the same client for both

`full` in place of a rate is a closed loop of 16 users."""

import argparse
import collections
import contextlib
import dataclasses
import math
import pathlib
import statistics
import sys
import tempfile
import time

import scipy.stats
from foliot_tools import onnx_models
from foliot_tools.bench import bench
from foliot_tools.server import ROOT, Server, foliot_binary

sys.path.insert(0, str(ROOT / "tests/figures"))
from figure import machine  # noqa: E402

FULL = "full"
USERS_OF_FULL = 16
COLUMNS = {"us": 1, "waits": 2, "answers/s": 0, "p50": 3, "p99": 3, "p99.9": 3}  # and digits


@dataclasses.dataclass
class Usage:
    """Of one thread, or of all of a name."""

    microseconds: float = 0
    waits: int = 0  # it gave the processor up by itself, and was woken later
    preemptions: int = 0

    def __add__(self, other):
        return Usage(self.microseconds + other.microseconds, self.waits + other.waits,
                     self.preemptions + other.preemptions)

    def __sub__(self, other):
        return Usage(self.microseconds - other.microseconds, self.waits - other.waits,
                     self.preemptions - other.preemptions)


def usage_by_thread(pid):
    """By the kernel's accounts, which are exact to the nanosecond (schedstat)."""
    usage = collections.defaultdict(Usage)
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError):  # it has ended
            nanoseconds = int((task / "schedstat").read_text().split()[0])
            status = dict(line.split(":", 1) for line in (task / "status").read_text().splitlines())
            usage[(task.name, status["Name"].strip())] = Usage(
                nanoseconds / 1e3, int(status["voluntary_ctxt_switches"]), int(status["nonvoluntary_ctxt_switches"]))
    return usage


def measure(server, protocol, rate, seconds):
    """By thread, each a request: processor time and switches; and the client's report."""
    load = {"concurrency": USERS_OF_FULL} if rate == FULL else {"rate": rate}
    before = usage_by_thread(server.process.pid)
    report = bench(getattr(server, protocol), "product", protocol=protocol, deadline="50ms", duration=f"{seconds}s",
                   **load)
    after = usage_by_thread(server.process.pid)
    requests = max(report["answered_per_second"] * seconds, 1)
    by_name = collections.defaultdict(Usage)
    for thread, usage in after.items():
        by_name[thread[1]] += usage - before.get(thread, Usage())
    by_thread = {name: Usage(used.microseconds / requests, used.waits / requests, used.preemptions / requests)
                 for name, used in by_name.items()}
    return by_thread, report


def idle_wakes(server, seconds):
    """By thread, how often it was woken in a second while nothing was asked."""
    before = usage_by_thread(server.process.pid)
    time.sleep(seconds)
    after = usage_by_thread(server.process.pid)
    wakes = {thread: (usage - before.get(thread, Usage())).waits / seconds for thread, usage in after.items()}
    return {f"{name} ({task})": rate for (task, name), rate in wakes.items() if rate > 0}


def resident_megabytes(server):
    status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) * 1024 / 1e6


def figures_of(by_thread, report):
    used = sum(by_thread.values(), Usage())
    return {"us": used.microseconds, "waits": used.waits, "answers/s": report["answered_per_second"],
            **{q: report["latency_milliseconds"][q] for q in ("p50", "p99", "p99.9")}}


def medians_of(runs):
    rounds = [figures_of(*run) for run in runs]
    return {name: f"{statistics.median(each[name] for each in rounds):.{digits}f}" for name, digits in COLUMNS.items()}


def ratios_of(starts, others):
    """The geometric mean of the ratios, and where it lies with 95 % (Student's t of the logarithms, each of which is the
    mean of a start's rounds: rounds of one start have more in common than starts have)."""
    def logarithm(name, runs, of_other):
        return statistics.fmean(math.log(max(figures_of(*run)[name], 1e-9) / max(figures_of(*other)[name], 1e-9))
                                for run, other in zip(runs, of_other, strict=True))
    return {name: ratio([logarithm(name, *pair) for pair in zip(starts, others, strict=True)]) for name in COLUMNS}


def ratio(logarithms):
    mean = statistics.fmean(logarithms)
    if len(logarithms) < 2:
        return f"{math.exp(mean):.3f}"
    half = scipy.stats.t.ppf(0.975, len(logarithms) - 1) * statistics.stdev(logarithms) / math.sqrt(len(logarithms))
    return f"{math.exp(mean):.3f} ({math.exp(mean - half):.3f} to {math.exp(mean + half):.3f})"


def print_threads(protocol, rate, name, runs):
    print(f"\n| {protocol} {rate}, {name}: thread | us a request | waits a request | preemptions a request |\n|" + "---|" * 4)
    names = sorted({thread for by_thread, _ in runs for thread in by_thread})
    for thread in names:
        each = [by_thread.get(thread, Usage()) for by_thread, _ in runs]
        used = [statistics.median(getattr(usage, part) for usage in each)
                for part in ("microseconds", "waits", "preemptions")]
        if used[0] >= 0.1:
            print(f"| {thread} | {used[0]:.1f} | {used[1]:.2f} | {used[2]:.2f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", metavar="FOLIOT", help="another build, which is measured in turns with this one")
    parser.add_argument("--starts", type=int, default=3, help="of the servers, each with all rounds [%(default)s]")
    parser.add_argument("--rounds", type=int, default=2, help="of a start; medians of all are shown [%(default)s]")
    parser.add_argument("--seconds", type=float, default=4, help="of a run [%(default)s]")
    parser.add_argument("--rates", default=f"50,500,2000,{FULL}", help="requests a second [%(default)s]")
    parser.add_argument("--protocols", default="http,grpc", help="[%(default)s]")
    parser.add_argument("--threads", action="store_true", help="show each thread, too")
    options = parser.parse_args()
    builds = {"this": foliot_binary(), **({"other": options.against} if options.against else {})}
    cases = [(protocol, rate) for rate in options.rates.split(",") for protocol in options.protocols.split(",")]
    runs = {case: {name: [] for name in builds} for case in cases}  # by start, then by round
    idle = {}
    for start in range(options.starts):
        with tempfile.TemporaryDirectory(prefix="foliot-bench-") as folder, contextlib.ExitStack() as stack:
            servers = {}
            for name, binary in builds.items():
                models = pathlib.Path(folder) / name
                onnx_models.random_dense_network(models / "product/model.onnx", (16, 16))
                servers[name] = stack.enter_context(Server(models, models.with_suffix(".log"), foliot=binary))
            for case in cases:
                print(f"start {start + 1} of {options.starts}: {case[0]}, {case[1]}", file=sys.stderr)
                of_start = measure_in_turns(servers, *case, options)
                for name in builds:
                    runs[case][name].append(of_start[name])
            if start + 1 == options.starts:
                idle = {name: idle_state(server, options.seconds) for name, server in servers.items()}
    print_table(runs)
    for case in cases if options.threads else ():
        for name, starts in runs[case].items():
            print_threads(*case, name, rounds_of(starts))
    for name, state in idle.items():
        print(f"\n{name}: {state}")
    print(f"\n{machine()}")


def measure_in_turns(servers, protocol, rate, options):
    runs = {name: [] for name in servers}
    for turn in range(options.rounds):
        for name in list(servers)[:: -1 if turn % 2 else 1]:
            runs[name].append(measure(servers[name], protocol, rate, options.seconds))
    return runs


def rounds_of(starts):
    return [run for start in starts for run in start]


def idle_state(server, seconds):
    wakes = ", ".join(f"{thread} {rate:.1f}" for thread, rate in sorted(idle_wakes(server, seconds).items()))
    return f"resident {resident_megabytes(server):.1f} MB; wake-ups a second when idle: {wakes or 'none'}"


def print_table(runs):
    print("| protocol | rate | build | us a request | waits a request | answers/s | p50 ms | p99 ms | p99.9 ms |\n|"
          + "---|" * 9)
    for (protocol, rate), of_case in runs.items():
        rows = {name: medians_of(rounds_of(starts)) for name, starts in of_case.items()}
        if len(of_case) > 1:
            rows["this / other"] = ratios_of(*of_case.values())
        for name, row in rows.items():
            print(f"| {protocol} | {rate} | {name} | {' | '.join(row.values())} |")


if __name__ == "__main__":
    main()
