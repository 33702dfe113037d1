#!/usr/bin/env python3
"""How much longer the slowest runs take than the median one, beside a loop of pure
arithmetic of the same length on as many threads, or of reading memory as large as the
model's weights (--beside reading), which meets what others do to caches and memory. A run
and a loop alternate in one process, at the priority of a server's EXEC executor where that
is allowed: whatever the machine does meets both.
Of the slowest runs it says how many were preempted or faulted; what EXEC itself could do
to be late, allocate or call the system, src/engine/device/cpu/prepared_program_test.cc forbids."""

import argparse
import json
import os
import pathlib
import tempfile
import time

import numpy as np
from runtime import FoliotSide, MODELS, TAILED, machine, models
from start import compiled

# As of src/node/threads/executor_thread.cc.
NICE = -10
QUANTILES = (0.99, 0.999)
COLUMNS = ("run", "loop", "faults", "preemptions")
# The first guess of how long a loop must be, and the turns that correct it.
ITERATIONS_FIRST = 1_000_000
TURNS_FIRST = 30
# Asked for at a time, so that the limit of time is kept.
TURNS_AT_ONCE = 50


def put_first(process):
    """With all its threads; False: not allowed."""
    try:
        for thread in os.listdir(f"/proc/{process.pid}/task"):
            os.setpriority(os.PRIO_PROCESS, int(thread), NICE)
    except PermissionError:
        return False
    return True


def turns_of(foliot, beside, iterations, count):
    """{column: one figure per turn}."""
    turns = np.array(foliot.turns(0, beside, iterations, count))
    return dict(zip(COLUMNS, turns.reshape(-1, len(COLUMNS)).T))


def matched_iterations(foliot, beside):
    """With so many the loop's median is that of the runs."""
    iterations = ITERATIONS_FIRST
    for _ in range(2):
        turns = turns_of(foliot, beside, iterations, TURNS_FIRST)
        iterations = max(1, int(iterations * np.median(turns["run"]) / np.median(turns["loop"])))
    return iterations


def take_turns(foliot, beside, count, seconds):
    """As many as that, or as there is time for."""
    iterations = matched_iterations(foliot, beside)
    end = time.monotonic() + seconds
    parts = []
    while len(parts) * TURNS_AT_ONCE < count and (not parts or time.monotonic() < end):
        parts.append(turns_of(foliot, beside, iterations, TURNS_AT_ONCE))
    return {column: np.concatenate([part[column] for part in parts]) for column in COLUMNS}


def tail(durations):
    """{quantile: over the median}, as far as there are enough runs to tell."""
    return {share: float(np.quantile(durations, share) / np.median(durations)) for share in QUANTILES
            if len(durations) * (1 - share) >= 1}


def summary(name, turns):
    slowest = np.argsort(turns["run"])[-max(1, len(turns["run"]) // 1000):]
    run, loop = tail(turns["run"]), tail(turns["loop"])
    return {"model": name, "turns": len(turns["run"]), "median_ms": float(np.median(turns["run"])) / 1e6,
            "loop_median_ms": float(np.median(turns["loop"])) / 1e6, "run": run, "loop": loop,
            "ratio": {share: run[share] / loop[share] for share in run}, "slowest": len(slowest),
            "slowest_preempted": int(np.count_nonzero(turns["preemptions"][slowest])),
            "slowest_faulted": int(np.count_nonzero(turns["faults"][slowest]))}


def measure(name, threads, beside, turns, seconds, folder):
    network = models.build(name, **MODELS[name])
    _, package = compiled(network, name, [1], threads, folder)
    with FoliotSide(package, threads) as foliot:
        with tempfile.TemporaryDirectory(prefix="foliot-tail-") as inputs:
            foliot.put(0, network.examples(1, np.random.default_rng(7)).values(), pathlib.Path(inputs))
        foliot.run(0, 1)  # so that all threads are there
        first = put_first(foliot.process)
        return {**summary(name, take_turns(foliot, beside, turns, seconds)), "nice": NICE if first else 0}


def print_row(row):
    def cell(tails):
        return " / ".join(f"{tails[share]:.2f}" if share in tails else "-" for share in QUANTILES)

    print(f"| {row['model']} | {row['turns']} | {row['median_ms']:.2f}, {row['loop_median_ms']:.2f} "
          f"| {cell(row['run'])} | {cell(row['loop'])} | {cell(row['ratio'])} "
          f"| {row['slowest_preempted']} + {row['slowest_faulted']} of {row['slowest']} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=lambda text: text.split(","), default=TAILED, metavar="NAME,...")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--beside", choices=("arithmetic", "reading"), default="arithmetic")
    parser.add_argument("--turns", type=int, default=5000, help="for each model (p99.9 needs 1000)")
    parser.add_argument("--seconds", type=float, default=420, help="at most, for each model")
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("out/start"),
                        help="where models and packages are kept for the next time")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("out/tail.json"))
    arguments = parser.parse_args()
    print(f"batch 1; p99 / median, p99.9 / median\n| model | turns | medians, ms | EXEC | {arguments.beside} | ratio "
          "| slowest: preempted + faulted |\n" + "|---" * 7 + "|")
    rows = []
    for name in arguments.models:
        rows.append(measure(name, arguments.threads, arguments.beside, arguments.turns, arguments.seconds,
                            arguments.folder))
        print_row(rows[-1])
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps({"machine": machine(), "threads": arguments.threads,
                                            "beside": arguments.beside, "rows": rows}, indent=1))
    print(f"\n{machine()}; {arguments.threads} thread{'s' * (arguments.threads > 1)}, nice {rows[0]['nice']}; "
          f"written to {arguments.output}")


if __name__ == "__main__":
    main()
