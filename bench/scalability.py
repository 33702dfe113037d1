#!/usr/bin/env python3
"""Measures what one controller carries over TCP (Clockwork, section 6.6, Figure 11).

For each number of emulated workers it starts a controller and the workers, and offers
load past all front ends at several shares of what the devices could do: a trace like
that of Azure Functions over thousands of models, of which each worker holds some, so
that models are loaded all the time (--functions 0: Poisson load). The highest goodput
is the peak; then it measures, with a controller that has just started, how long turns
take at half of the peak, by the wall clock and in processor time. The controller runs
with its default flags. All processes share this machine.

Prints a table, writes it as CSV and draws it in the axes of the paper.
"""

import argparse
import csv
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402

SHARES = (0.65, 0.8, 0.95)
# At most so many requests per second does one device of the V100 table run, in batches of 16.
CAPACITY = {"resnet18": 16 / 7.02e-3, "resnet50": 16 / 15.67e-3}
# What the paper's controller served, on 32 cores: workers, requests per second.
PAPER = (110, 103_387)


class Process:
    """A running part of the cluster, ready; stopped when the block ends."""

    def __init__(self, *command):
        self.process = subprocess.Popen(
            [str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self.ready = self.process.stdout.readline()
        if not self.ready.startswith("ready"):
            sys.exit(f"{' '.join(map(str, command))}: it did not start")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGINT)
        self.process.wait()


def measure(options, workers, rate):
    """One run of load against a fresh controller and fresh workers."""
    controller = [options.foliot, "controller", "--listen", "127.0.0.1:0", "--scheduler", options.scheduler]
    if options.margin:
        controller += ["--deadline-margin", options.margin]
    with Process(*controller) as running, tempfile.NamedTemporaryFile() as report:
        address = "127.0.0.1:" + re.search(r"port (\d+)", running.ready)[1]
        models = f"{options.profile}:{options.models}"
        with Process(options.foliot, "worker", "--emulate", models, "--count", workers, "--controller", address):
            load = [options.foliot, "bench-controller", address, "--rate", rate, "--deadline", options.deadline]
            load += ["--warmup", options.warmup, "--duration", options.duration, "--json", report.name]
            load += ["--seed", options.seed]
            if options.functions:
                load += ["--functions", options.functions]
            subprocess.run([str(part) for part in load], check=True, stdout=subprocess.DEVNULL)
        return json.load(report)


def say(text):
    """Progress, apart from the table."""
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


def peak_and_half(options, workers):
    """A row of the table."""
    runs = []
    for rate in (round(share * workers * CAPACITY[options.profile]) for share in SHARES):
        runs.append(measure(options, workers, rate))
        load = runs[-1]["load"]
        say(f"{workers} workers, {rate} r/s: goodput {load['goodput_per_second']:.0f} r/s, attainment "
            f"{load['attainment']:.2%}, cold starts {runs[-1]['cold_starts']}, "
            f"turn p99.9 {runs[-1]['controller']['decision_microseconds']['p99.9']:.0f} us")
    best = max(runs, key=lambda run: run["load"]["goodput_per_second"])
    half = measure(options, workers, round(best["load"]["goodput_per_second"] / 2))
    decision = half["controller"]["decision_microseconds"]
    processor = half["controller"]["decision_processor_microseconds"]
    return {
        "workers": workers,
        "peak_goodput": round(best["load"]["goodput_per_second"]),
        "attainment_at_peak": round(best["load"]["attainment"], 4),
        "cold_starts_at_peak": best["cold_starts"],
        "peak_decision_p999_us": best["controller"]["decision_microseconds"]["p99.9"],
        "controller_core_share": best["controller"]["processor_share"],
        "device_limit": round(workers * CAPACITY[options.profile]),
        "half_goodput": round(half["load"]["goodput_per_second"]),
        "half_decision_p50_us": decision["p50"],
        "half_decision_p99_us": decision["p99"],
        "half_decision_p999_us": decision["p99.9"],
        "half_decision_cpu_p99_us": processor["p99"],
        "half_decision_cpu_p999_us": processor["p99.9"],
    }


def draw(rows, path):
    """The peak by number of workers, and how long turns take at half of it."""
    workers = [row["workers"] for row in rows]
    figure, (peak, turns) = pyplot.subplots(1, 2, figsize=(11, 4), layout="constrained")
    peak.plot(workers, [row["peak_goodput"] for row in rows], "o-", color="tab:red", label="here, two cores for all")
    peak.plot(workers, [row["device_limit"] for row in rows], "--", color="black", linewidth=1, label="devices allow")
    peak.plot(*PAPER, "*", color="tab:blue", markersize=12, label="the paper's controller, 32 cores")
    peak.set(xlabel="workers", ylabel="peak goodput, r/s", ylim=0)
    turns.plot(workers, [row["half_decision_p999_us"] for row in rows], "o-", color="tab:red", label="by the wall clock")
    turns.plot(workers, [row["half_decision_cpu_p999_us"] for row in rows], "o:", color="tab:red", label="in CPU time")
    turns.set(xlabel="workers", ylabel="p99.9 of a turn at half of the peak, us", ylim=0)
    for axes in (peak, turns):
        axes.legend()
    figure.savefig(path, dpi=100)


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--foliot", type=pathlib.Path, default=root / "build/release/bin/foliot")
    parser.add_argument("--workers", type=int, nargs="+", default=list(range(10, 151, 10)))
    parser.add_argument("--scheduler", default="foliot")
    parser.add_argument("--profile", choices=CAPACITY, default="resnet18")
    parser.add_argument("--models", type=int, default=4000, help="models of that profile; a worker holds some 400")
    parser.add_argument("--functions", type=int, default=46_000, help="of the trace; 0: Poisson load, as of one function")
    parser.add_argument("--margin", help="--deadline-margin of the controller [its default]")
    parser.add_argument("--warmup", default="10s", help="of each run, while the load grows and models are loaded")
    parser.add_argument("--deadline", default="100ms")
    parser.add_argument("--seed", type=int, default=1, help="of the trace [1]")
    parser.add_argument("--duration", default="10s", help="of each run, after the warm-up")
    parser.add_argument("--csv", type=pathlib.Path, default=root / "out/scalability.csv")
    parser.add_argument("--plot", type=pathlib.Path, default=root / "out/scalability.png")
    options = parser.parse_args()

    options.csv.parent.mkdir(parents=True, exist_ok=True)
    commit = subprocess.run(["git", "-C", root, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    print(f"commit {commit.stdout.strip()}, {os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f} at the start")
    with options.csv.open("w", newline="") as file:
        table, rows = None, []
        for workers in options.workers:
            row = peak_and_half(options, workers)
            if table is None:
                table = csv.DictWriter(file, row.keys())
                table.writeheader()
                print("  ".join(row))
            table.writerow(row)
            rows.append(row)
            file.flush()
            print("  ".join(f"{value:>{len(name)}}" for name, value in row.items()), flush=True)
    draw(rows, options.plot)


if __name__ == "__main__":
    main()
