#!/usr/bin/env python3
"""What scaling accuracy costs in deadlines: a task of two dense networks on a real server, `--variant-policy scaled` beside
`predicted` by turns, while so many other processes want the cores.

    tests/figures/scaled_accuracy.py [--rates 100 200 400 800] [--noise 0 2 4] [--rounds 2] [--seconds 4]
"""

import argparse
import contextlib
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import tritonclient.http as http_client
from figure import Figure, print_figures, say

from foliot_tools.bench import bench
from foliot_tools.jobs import TASK
from foliot_tools.server import ROOT, Server

sys.path.insert(0, str(ROOT / "tests"))
from test_tasks import OPTIONS, infer, rows_of, write_network, write_task

POINTS_MOST = 0.2
POLICIES = ("predicted", "scaled")
BUSY = "while True: sum(range(10000))"


@contextlib.contextmanager
def busy(count):
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            stack.callback(stack.enter_context(subprocess.Popen([sys.executable, "-c", BUSY])).kill)
        yield


def measure(options):
    figures = []
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        write_network(folder / "models/small/model.onnx", hidden=512)
        write_network(folder / "models/large/model.onnx", shift=1, hidden=2048)
        write_task(folder / "models", "classes", TASK)
        servers = [stack.enter_context(Server(folder / "models", folder / policy, variant_policy=policy,
                                              cache=folder / f"{policy}.cache", **OPTIONS)) for policy in POLICIES]
        for server in servers:
            for model in ("small", "large"):
                infer(http_client, server.http, rows_of(0), task=model)
        for noise in options.noise:
            for rate in options.rates:
                lost = {policy: [] for policy in POLICIES}
                with busy(noise):
                    for _ in range(options.rounds):
                        for policy, server in zip(POLICIES, servers):
                            report = bench(server.grpc, "classes", rate=rate, deadline="50ms", duration=f"{options.seconds}s")
                            lost[policy].append(100 * (1 - report["attainment"]))
                predicted, scaled = (float(np.mean(lost[policy])) for policy in POLICIES)
                say(f"{noise} busy processes, {rate}/s: {lost}")
                figures.append(Figure(f"{noise} busy processes, {rate}/s: lost by predicted, scaled, %",
                                      f"{POINTS_MOST} points more", f"{predicted:.2f}, {scaled:.2f}",
                                      scaled <= predicted + POINTS_MOST))
    return figures


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rates", type=int, nargs="+", default=[100, 200, 400, 800])
    parser.add_argument("--noise", type=int, nargs="+", default=[0, 2, 4])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=int, default=4)
    sys.exit(print_figures(measure(parser.parse_args())))
