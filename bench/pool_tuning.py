#!/usr/bin/env python3
"""A pool of real workers that follows a tuned pipeline: a steady load, a step, a ramp and a spike, through a front end,
with the default tuner. Says what is answered in time, how many workers are wanted beside what capacity needs, how often
that changes, and how long workers take to come.

    python bench/pool_tuning.py [--rate 30] [--seconds 60] [--seed N] [--shapes steady step ramp spike]

Workers are processes with small networks, which take far less than the plan says of them (20 ms for a row, 30 ms for
two), so that a dozen has room on a machine of two cores. So what is seen is how workers come and go, and what they
cost; whether a device is fast enough is not.
"""

import argparse
import contextlib
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np
import tritonclient.grpc as triton
from foliot_tools.cluster import Cluster
from foliot_tools.seeds import fresh_seed
from foliot_tools.server import ROOT, foliot_binary, metrics_of
from foliot_tools.waiting import eventually

sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/figures")]
from cluster_calls import is_ready  # noqa: E402
from figure import Figure, print_figures, say  # noqa: E402
from test_pipeline_tuning import PRICES, PROFILES, write_repository  # noqa: E402

SLO_MS = 200
WORKERS_MOST = 16
ROWS_PER_SECOND = 2 / 0.030  # of a replica, in full batches, by the profiles
STAGES = 3
WARM_UP_SECONDS = 75
SHARE_ON_TIME = 0.99
TIMES_OF_CAPACITY = 2


def rate_at(shape, at, rate, most, seconds):
    """Runs per second at that instant."""
    part = at / seconds
    if shape == "step":
        return rate * (most if 1 / 3 <= part < 2 / 3 else 1)
    if shape == "ramp":
        return rate * (1 + (most - 1) * max(0, 1 - abs(part - 0.5) * 3))
    if shape == "spike":
        return rate * (most if 1 / 3 <= part < 1 / 3 + 1 / 10 else 1)
    return rate


def draw_arrivals(shape, rate, most, seconds, draw):
    """Instants since the beginning, of a Poisson process."""
    arrivals, at = [], 0.0
    while (at := at + draw.expovariate(rate * most)) < seconds:
        if draw.random() * rate * most < rate_at(shape, at, rate, most, seconds):
            arrivals.append(at)
    return arrivals


def save_plan(folder, rate, draw):
    plan = folder / "plans/cascade/plan.toml"
    plan.parent.mkdir(parents=True)
    (folder / "trace.csv").write_text("".join(f"{at}\n" for at in draw_arrivals("steady", rate, 1, 120, draw)))
    (folder / "prices.toml").write_text(PRICES)
    (folder / "profiles.toml").write_text(PROFILES)
    subprocess.run([foliot_binary(), "plan", folder / "models/cascade/pipeline.toml", "--trace", folder / "trace.csv",
                    "--prices", folder / "prices.toml", "--profiles", folder / "profiles.toml", "--slo", f"{SLO_MS}ms",
                    "--confidence", "0.95", "--save", plan], check=True, capture_output=True, text=True)


def write_pools(folder):
    command = ["foliot", "worker", folder / "models", "--cache", folder / "cache", "--threads", 1, "--page-size", "256KiB",
               "--page-cache", "16MiB"]
    (folder / "pools.toml").write_text(f'start_up = "2s"\n[[kind]]\nname = "cpu"\nworkers_most = {WORKERS_MOST}\n'
                                       f"command = {json.dumps([str(word) for word in command])}\n")


class Watch:
    """Looks ten times a second at what the tuner wants, and at how many devices are up."""

    def __init__(self, port):
        self.port = port
        self.seen = []  # (seconds, replicas wanted by stage, devices up)
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.look_on)

    def look(self):
        series = metrics_of(self.port)
        wanted = [value for name, value in sorted(series.items()) if name.startswith("foliot_pipeline_replicas_wanted")]
        return wanted, sum(value for name, value in series.items() if name.startswith("foliot_device_up"))

    def look_on(self):
        while not self.over.wait(0.1):
            self.seen.append((time.monotonic(), *self.look()))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()

    def replica_seconds(self):
        return sum(sum(wanted) * (after[0] - at) for (at, wanted, _), after in zip(self.seen, self.seen[1:]))

    def changes(self):
        return sum(before[1] != after[1] for before, after in zip(self.seen, self.seen[1:]))

    def lacking_seconds(self):
        """Of the longest time in which devices were fewer than replicas."""
        longest, since = 0.0, None
        for at, wanted, up in self.seen:
            since = None if up >= sum(wanted) else since or at
            longest = max(longest, at - since if since else 0)
        return longest


def ask(address, arrivals):
    """In an open loop; returns the share that is answered in time."""
    row = np.ones((1, 4), np.float32)
    tensor = triton.InferInput("x", list(row.shape), "FP32")
    tensor.set_data_from_numpy(row)
    on_time, ended = [], threading.Semaphore(0)

    def done_by(due):
        def done(result, error):
            if error is None and time.monotonic() <= due + SLO_MS / 1000:
                on_time.append(due)
            ended.release()
        return done

    with triton.InferenceServerClient(address) as client:
        begin = time.monotonic()
        for at in arrivals:
            time.sleep(max(0, begin + at - time.monotonic()))
            client.async_infer("cascade", [tensor], done_by(begin + at), timeout=SLO_MS * 1000)
        for _ in arrivals:
            ended.acquire()
    return len(on_time) / len(arrivals)


def needed_seconds(arrivals, seconds):
    """Replica-seconds that the runs of each second need in full batches; conditional stages count as visited."""
    counts = np.bincount(np.array(arrivals).astype(int), minlength=seconds)
    return float(STAGES * np.maximum(1, np.ceil(counts / ROWS_PER_SECOND)).sum())


def measure_shape(cluster, shape, options, draw):
    most = {"steady": 1, "spike": 1.5 + 0.7 * draw.random()}.get(shape, 1.5 + 2.5 * draw.random())
    arrivals = draw_arrivals(shape, options.rate, most, options.seconds, draw)
    with Watch(cluster.controller.metrics_port) as watch:
        on_time = ask(cluster.frontends[0].grpc, arrivals)
    times = watch.replica_seconds() / needed_seconds(arrivals, options.seconds)
    say(f"{shape} x{most:.1f}, {len(arrivals)} runs: {100 * on_time:.2f} %, {times:.2f} times what capacity needs, "
        f"{watch.changes()} changes, at most {watch.lacking_seconds():.1f} s with fewer devices than replicas")
    yield Figure(f"{shape} x{most:.1f}: in time", f">= {SHARE_ON_TIME:.0%}", f"{100 * on_time:.2f} %", on_time >= SHARE_ON_TIME)
    yield Figure(f"{shape}: replicas in those that capacity needs", f"<= {TIMES_OF_CAPACITY}", f"{times:.2f}",
                 times <= TIMES_OF_CAPACITY)
    if shape == "steady":
        yield Figure("steady: changes", "0", str(watch.changes()), watch.changes() == 0)


def measure(options):
    draw = random.Random(options.seed)
    say(f"seed {options.seed}")
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="foliot-pool-tuning-")))
        write_repository(folder / "models")
        save_plan(folder, options.rate, draw)
        write_pools(folder)
        cluster = stack.enter_context(Cluster(folder, folder / "models", workers=0, frontends=1, metrics=True,
                                              controller_options={"plans": folder / "plans",
                                                                  "worker_pools": folder / "pools.toml"}))
        eventually(lambda: is_ready(cluster.frontends[0], "cascade"), timeout=120)
        for shape in options.shapes:
            # While nothing comes the tuner keeps less than the plan, which it knows again after a minute.
            ask(cluster.frontends[0].grpc, draw_arrivals("steady", options.rate, 1, WARM_UP_SECONDS, draw))
            yield from measure_shape(cluster, shape, options, draw)
        cluster.controller.stop()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=float, default=30)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--shapes", nargs="+", default=["steady", "step", "ramp", "spike"])
    flags = parser.parse_args()
    flags.seed = fresh_seed() if flags.seed is None else flags.seed
    sys.exit(print_figures(list(measure(flags))))
