#!/usr/bin/env python3
"""Figures: what a worker's or the controller's sudden death costs clients.

A controller, four workers and the load are processes on this machine, killed with
SIGKILL and started again, 20 times each (--rounds). Workers are emulated: their
LOADs and EXECs take the time that a V100 does, so four of them fit on two cores. A
last part kills real ones, of a small network, under load through a front end.

The window of a fault is the second after it: all requests that arrived in it, or waited
for an answer when it began. A request of it was *meetable* unless it was in flight at
the instant of the fault, with a deadline before the controller could have noticed it
and another worker could have run it alone: DETECTION + EXEC. (Whatever the dead worker
had was computed again, then; three workers have time for all, as the load is half of
what four can carry.) Attainment is the share that was answered within its deadline on
the client's clock. Recovered is the instant from which on, for half a second, as large
a share is answered in time as in the two seconds before the fault, less 1 %.
"""

import argparse
import pathlib
import statistics
import sys
import tempfile
import time

import numpy as np
import onnxruntime

from figure import Figure, print_figures, say
from foliot_tools import onnx_models
from foliot_tools.cluster import Cluster, EmulatedCluster
from foliot_tools.http_load import HttpLoad
from foliot_tools.link import RETRYABLE, Link, await_devices, poisson_load

MODELS = "resnet152:8"
PAGE_CACHE = "1GiB"  # four of the eight models
RATE = 560  # half of the 1,120 requests/s that four such workers answer in time when asked for 1,200
DEADLINE = 0.1
DETECTION, EXEC = 0.010, 0.008  # a closed socket is noticed at once; ResNet-152 takes 7.71 ms alone
WINDOW, BEFORE, AFTER = 1.0, 2.0, 2.0


def attainment(requests):
    return sum(request.good for request in requests) / max(len(requests), 1)


def recovery_seconds(requests, fault):
    """From the fault until all is as before, for requests of before and after it."""
    before = attainment([request for request in requests if fault - BEFORE <= request.at < fault - DEADLINE])
    for step in range(int(AFTER / 0.05)):
        begin = fault + 0.05 * step
        if attainment([request for request in requests if begin <= request.at < begin + 0.5]) >= before - 0.01:
            return 0.05 * step
    return float("inf")


def of_window(requests, fault):
    waited = [request for request in requests
              if request.at < fault and (request.answered is None or request.answered >= fault)]
    arrived = [request for request in requests if fault <= request.at < fault + WINDOW]
    meetable = arrived + [request for request in waited if request.deadline >= fault + DETECTION + EXEC]
    return waited + arrived, meetable


def unsound(requests):
    """How many have no answer or two."""
    return sum(request.answers != 1 for request in requests)


def kill_workers(folder, rounds):
    """One of four, then another, each started again."""
    offered, meetable, recoveries, all_requests = [], [], [], []
    with EmulatedCluster(folder, MODELS, page_cache=PAGE_CACHE) as cluster:
        link = Link(cluster.address)
        await_devices(link, 4)
        poisson_load(link, rate=RATE, seconds=3, deadline_seconds=DEADLINE, seed=99)  # pages fill
        for number in range(rounds):
            victim = cluster.workers[number % 4]
            fault = time.monotonic() + BEFORE
            killed = []

            def kill(now):
                if now >= fault and not killed:
                    killed.append(time.monotonic())
                    victim.kill()

            asked = poisson_load(link, rate=RATE, seconds=BEFORE + AFTER + 0.5, deadline_seconds=DEADLINE, seed=number,
                                 each_turn=kill)
            window, could = of_window(asked, killed[0])
            offered += window
            meetable += could
            all_requests += asked
            recoveries.append(recovery_seconds(asked, killed[0]))
            say(f"kill {number + 1}: {attainment(window):.2%} of {len(window)}, recovered after {recoveries[-1]:.2f} s, "
                f"{link.devices} devices")
            victim.start()
            await_devices(link, 4)
    kept = sum(request.good for request in meetable) / len(meetable)
    check = f"kill -9 one of 4 workers at half load, {rounds} times"
    missed = unsound(all_requests)
    return [
        Figure(check, "every request answered, once", f"{missed} of {len(all_requests)} were not", missed == 0),
        Figure(check, ">= 99 % of what was meetable in the second after",
               f"{kept:.2%} of {len(meetable)}; {attainment(offered):.2%} of all {len(offered)}", kept >= 0.99),
        Figure(check, "recovered in < 1 s",
               f"{max(recoveries):.2f} s at most, median {statistics.median(recoveries):.2f} s", max(recoveries) < 1),
    ]


def kill_controllers(folder, rounds):
    """The controller, started again at once; every model is resident before that."""
    serving, all_requests, cold, strange = [], [], 0, set()
    with EmulatedCluster(folder, MODELS) as cluster:
        link = Link(cluster.address)
        await_devices(link, 4)
        poisson_load(link, rate=RATE, seconds=3, deadline_seconds=DEADLINE, seed=99)
        for number in range(rounds):
            fault = time.monotonic() + 0.5
            killed = []

            def kill_and_restart(now):
                if now >= fault and not killed:
                    killed.append(time.monotonic())
                    cluster.controller.kill()
                    cluster.controller.start()

            asked = poisson_load(link, rate=RATE, seconds=3, deadline_seconds=DEADLINE, seed=number,
                                 each_turn=kill_and_restart)
            after = [request for request in asked if request.at >= killed[0] and request.outcome == "served"]
            serving.append(min((request.answered for request in after), default=float("inf")) - killed[0])
            cold += sum(request.cold for request in after)
            strange |= {request.outcome for request in asked} - RETRYABLE - {"served"}
            all_requests += asked
            await_devices(link, 4)
            say(f"restart {number + 1}: serving after {serving[-1]:.2f} s")
    check = f"kill -9 and restart the controller, {rounds} times"
    missed = unsound(all_requests)
    return [
        Figure(check, "serving again in < 3 s",
               f"{max(serving):.2f} s at most, median {statistics.median(serving):.2f} s", max(serving) < 3),
        Figure(check, "workers keep their pages", f"{cold} requests waited for a LOAD afterwards", cold == 0),
        Figure(check, "each request ends once, in an answer or an error to retry on",
               f"{missed} of {len(all_requests)} did not; other ends: {', '.join(sorted(strange)) or 'none'}",
               missed == 0 and not strange),
    ]


def kill_real_ones(folder, rounds):
    """A worker and the controller in turns, under load over HTTP."""
    model = folder / "models/dense/model.onnx"
    onnx_models.random_dense_network(model, (64, 256, 10))
    pixels = np.random.default_rng(1).random((64, 64), np.float32)
    expected = onnxruntime.InferenceSession(model).run(None, {"pixels": pixels})[0]
    faults = []
    with Cluster(folder, folder / "models", workers=4, frontends=1) as cluster:
        frontend = cluster.frontends[0]
        with HttpLoad(frontend.http, model="dense", inputs=pixels, expected=[expected], rate=200,
                      deadline_seconds=DEADLINE) as load:
            for number in range(rounds):
                victim = cluster.controller if number % 2 else cluster.workers[number % 4]
                time.sleep(BEFORE)
                faults.append(time.monotonic())
                victim.kill()
                victim.start()
                time.sleep(AFTER)
                frontend.await_ready()
    requests = load.report.requests
    ends = {request.outcome for request in requests} - RETRYABLE - {"served", "503"}
    recoveries = [recovery_seconds(requests, fault) for fault in faults]
    check = f"the same with real workers and a front end, {rounds} times"
    missed = unsound(requests) + load.report.stray
    return [
        Figure(check, "each request ends once, in the right answer or an error to retry on",
               f"{missed} of {len(requests)} did not; other ends: {', '.join(sorted(ends)) or 'none'}",
               missed == 0 and not ends),
        Figure(check, "recovered in < 1 s (worker), < 3 s (controller)",
               f"{max(recoveries[::2]):.2f} s and {max(recoveries[1::2]):.2f} s at most",
               max(recoveries[::2]) < 1 and max(recoveries[1::2]) < 3),
    ]


def measure(rounds):
    figures = []
    for work in (kill_workers, kill_controllers, kill_real_ones):
        with tempfile.TemporaryDirectory(prefix="foliot-faults-") as folder:
            figures += work(pathlib.Path(folder), rounds)
    return figures


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=20, help="of each kind of fault")
    sys.exit(print_figures(measure(parser.parse_args().rounds)))
