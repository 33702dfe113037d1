#!/usr/bin/env python3
"""Figure: what TLS on the links costs, with inputs of 64 B and of 600 kB.

Two clusters of a worker and a front end each, one with TLS, asked in turns.
"""

import contextlib
import pathlib
import statistics
import sys
import tempfile

from figure import Figure, print_figures
from foliot_tools.certificates import Authority, link_flags
from foliot_tools.cluster import Cluster
from processes import SIZES, infer, write_models

ROUNDS = 20
REQUESTS = 50  # of a round, for each


def processor_seconds(cluster):
    """Of the worker and the front end so far."""
    fields = [pathlib.Path(f"/proc/{part.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
              for part in (cluster.workers[0], cluster.frontends[0])]
    return sum(int(each[11]) + int(each[12]) for each in fields) / 100


def measure():
    figures = []
    with tempfile.TemporaryDirectory(prefix="foliot-link-tls-") as folder, contextlib.ExitStack() as stack:
        folder = pathlib.Path(folder)
        write_models(folder / "models")
        flags = {"plain": {}, "TLS": link_flags(Authority(folder), "part")}
        clusters = {}
        for name, part_options in flags.items():
            (folder / name).mkdir()
            clusters[name] = stack.enter_context(
                Cluster(folder / name, folder / "models", workers=1, frontends=1, part_options=part_options))
        for size in SIZES:
            latencies = {name: [] for name in clusters}
            spent = {name: -processor_seconds(cluster) for name, cluster in clusters.items()}
            for _ in range(ROUNDS):
                for name, cluster in clusters.items():
                    latencies[name] += infer([cluster.frontends[0].grpc], size, REQUESTS)
            p50 = {name: statistics.median(each) for name, each in latencies.items()}
            spent = {name: 1e3 * (spent[name] + processor_seconds(cluster)) / (ROUNDS * REQUESTS)
                     for name, cluster in clusters.items()}
            figures.append(Figure(
                f"TLS on the links, {size} inputs, gRPC", "for the record",
                f"p50 {p50['TLS']:.2f} ms, {p50['TLS'] / p50['plain']:.2f} times that without; worker and front end "
                f"{spent['TLS']:.2f} ms of CPU per request, {spent['plain']:.2f} without", True))
    return figures


if __name__ == "__main__":
    sys.exit(print_figures(measure()))
