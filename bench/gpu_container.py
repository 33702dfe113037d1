#!/usr/bin/env python3
"""A ResNet-50 of torchvision on a GPU, in a container of `foliot serve`: how long batches take in PyTorch alone, input and
output copied, in the same process without a server; then how many requests per second are answered within the deadline,
at rates of Poisson processes, and with what latency. Needs PyTorch, torchvision and a GPU; its weights are random."""

import argparse
import os
import pathlib
import sys
import tempfile
import time

import numpy as np
import torch
import torchvision
from foliot_tools.bench import bench
from foliot_tools.server import ROOT, Server
from foliot_tools.waiting import eventually

sys.path.insert(0, str(ROOT / "tests/figures"))
from figure import machine  # noqa: E402

MODEL = """import foliot
foliot.torch("resnet50.pt", inputs={"image": ("FP32", [3, 224, 224])}, device="cuda", batch_size_max=%d)
"""
SHARES = (0.1, 0.25, 0.4, 0.6, 0.8)  # of what PyTorch alone computes with the largest batch


def alone(network, batch_size, calls):
    """(median, 99th percentile) of a call in milliseconds, from one array of numpy to another."""
    rows = np.random.default_rng(batch_size).random((batch_size, 3, 224, 224), np.float32)
    durations = []
    with torch.inference_mode():
        for call in range(calls + 20):
            begin = time.perf_counter()
            network(torch.from_numpy(rows).to("cuda")).cpu().numpy()
            if call >= 20:
                durations.append(1e3 * (time.perf_counter() - begin))
    return np.percentile(durations, [50, 99])


def thread_seconds(server):
    """{(thread, its name): CPU seconds so far}"""
    seconds = {}
    for task in pathlib.Path(f"/proc/{server.process.pid}/task").iterdir():
        name, fields = (task / "stat").read_text().split("(")[1].rsplit(") ", 1)
        seconds[int(task.name), name] = sum(map(int, fields.split()[11:13])) / os.sysconf("SC_CLK_TCK")
    return seconds


def measured(server, rate, arguments):
    before, begin = thread_seconds(server), time.monotonic()
    report = bench(server.grpc, "resnet50", rate=rate, deadline=arguments.deadline, duration=arguments.duration,
                   connections=16)
    elapsed = time.monotonic() - begin
    busy = {thread: after - before.get(thread, 0) for thread, after in thread_seconds(server).items()}
    busiest = max(busy, key=busy.get)
    good, refused = (100 * report[each] / report["offered"] for each in ("good", "refused"))
    median, tail = (report["latency_milliseconds"][each] for each in ("p50", "p99"))
    return (f"{rate} | {good:.2f} | {refused:.2f} | {median:.2f} | {tail:.2f} | "
            f"{busiest[1]} {100 * busy[busiest] / elapsed:.0f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch-size-max", type=int, default=32)
    parser.add_argument("--deadline", default="50ms")
    parser.add_argument("--duration", default="5s", help="of each rate (default: 5s)")
    parser.add_argument("--grpc-threads", type=int, nargs="+", default=[1, 4], help="of the server, one after another (default: 1 4)")
    parser.add_argument("--calls", type=int, default=200, help="of PyTorch alone, for each batch size (default: 200)")
    arguments = parser.parse_args()
    print(f"{machine()}, {torch.cuda.get_device_name()}, PyTorch {torch.__version__}")
    torch.set_num_threads(1)
    torch.manual_seed(1)
    with tempfile.TemporaryDirectory(prefix="foliot-bench-") as name:
        folder = pathlib.Path(name) / "models/resnet50/1"
        folder.mkdir(parents=True)
        network = torchvision.models.resnet50(weights=None).eval().to("cuda")
        scripted = torch.jit.trace(network, torch.zeros(1, 3, 224, 224, device="cuda"))
        scripted.save(folder / "resnet50.pt")
        (folder / "model.py").write_text(MODEL % arguments.batch_size_max)
        (folder.parent / "model.toml").write_text(f'[container]\npython = "{sys.executable}"\ngpus = [0]\n')
        print("\n| PyTorch alone, batch of | p50, ms | p99, ms | rows/s |\n|---|---|---|---|", flush=True)
        size, most = 1, 0.0
        while size <= arguments.batch_size_max:
            median, tail = alone(scripted, size, arguments.calls)
            most = 1e3 * size / median
            print(f"| {size} | {median:.2f} | {tail:.2f} | {most:.0f} |", flush=True)
            size *= 2
        print(f"\n`foliot serve`, deadline {arguments.deadline}, Poisson arrivals over gRPC\n\n"
              "| --grpc-threads | requests/s | in time, % | refused, % | p50, ms | p99, ms | busiest thread of the server, % CPU |\n"
              "|---|---|---|---|---|---|---|", flush=True)
        for threads in arguments.grpc_threads:
            with Server(pathlib.Path(name) / "models", pathlib.Path(name) / "server.log", grpc_threads=threads) as server:
                eventually(lambda: server.get("/v2/models/resnet50/ready")[0] == 200, 120, server.output)
                for share in SHARES:
                    print(f"| {threads} | " + measured(server, int(share * most), arguments), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
