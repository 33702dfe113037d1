#!/usr/bin/env python3
"""What serving costs: throughput and latency of a small network through HTTP and
gRPC, by number of users, with everything on this machine."""

import pathlib
import sys
import tempfile

from foliot_tools import onnx_models
from foliot_tools.bench import bench
from foliot_tools.server import ROOT, Server

sys.path.insert(0, str(ROOT / "tests/figures"))
from figure import machine  # noqa: E402


def main():
    with tempfile.TemporaryDirectory(prefix="foliot-bench-") as folder:
        folder = pathlib.Path(folder)
        onnx_models.random_dense_network(folder / "models/dense/model.onnx", (64, 256, 128, 10))
        print("| protocol | users | answers/s | p50 ms | p99 ms | p99.9 ms | max ms |\n|---|---|---|---|---|---|---|")
        with Server(folder / "models", folder / "log", page_cache="16MiB", page_size="1MiB") as server:
            for users in (1, 4, 16, 64):
                # Both protocols at each size in turn: machines are noisy.
                for protocol in ("http", "grpc"):
                    url = getattr(server, protocol)
                    report = bench(url, "dense", protocol=protocol, concurrency=users, duration="5s")
                    latency = report["latency_milliseconds"]
                    cells = " | ".join(f"{latency[q]:.2f}" for q in ("p50", "p99", "p99.9", "max"))
                    print(f"| {protocol} | {users} | {report['answered_per_second']:.0f} | {cells} |", flush=True)
    print(f"\n{machine()}")


if __name__ == "__main__":
    main()
