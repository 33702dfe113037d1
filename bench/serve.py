#!/usr/bin/env python3
"""What serving costs: throughput and latency of a small network through HTTP and
gRPC, by number of users, with everything on this machine.

    bench/serve.py
    bench/serve.py --against OLD/foliot --rounds 5    # two builds in turns, the same client for both"""

import argparse
import contextlib
import pathlib
import statistics
import sys
import tempfile

from foliot_tools import onnx_models
from foliot_tools.bench import bench
from foliot_tools.server import ROOT, Server, foliot_binary

sys.path.insert(0, str(ROOT / "tests/figures"))
from figure import machine  # noqa: E402

QUANTILES = ("p50", "p99", "p99.9", "max")


def measure(server, protocol, users, seconds):
    report = bench(getattr(server, protocol), "dense", protocol=protocol, concurrency=users, duration=f"{seconds}s")
    return {"answers/s": report["answered_per_second"], **report["latency_milliseconds"]}


def median_of(runs):
    return {name: statistics.median(run[name] for run in runs) for name in ("answers/s", *QUANTILES)}


def row(protocol, users, build, median):
    cells = " | ".join(f"{median[q]:.2f}" for q in QUANTILES)
    print(f"| {protocol} | {users} | {build} | {median['answers/s']:.0f} | {cells} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", metavar="FOLIOT", help="another build, which is measured in turns with this one")
    parser.add_argument("--rounds", type=int, default=1, help="of which the medians are shown [%(default)s]")
    parser.add_argument("--seconds", type=float, default=5, help="of a run [%(default)s]")
    parser.add_argument("--users", type=lambda text: [int(n) for n in text.split(",")], default=[1, 4, 16, 64],
                        help="at once [1,4,16,64]")
    options = parser.parse_args()
    builds = {"this": foliot_binary(), **({"other": options.against} if options.against else {})}
    with tempfile.TemporaryDirectory(prefix="foliot-bench-") as folder, contextlib.ExitStack() as stack:
        folder = pathlib.Path(folder)
        servers = {}
        for name, binary in builds.items():
            onnx_models.random_dense_network(folder / name / "dense/model.onnx", (64, 256, 128, 10))
            servers[name] = stack.enter_context(Server(folder / name, folder / f"{name}.log", foliot=binary,
                                                       page_cache="16MiB", page_size="1MiB"))
        print("| protocol | users | build | answers/s | p50 ms | p99 ms | p99.9 ms | max ms |\n|" + "---|" * 8)
        for users in options.users:
            # Both protocols at each size in turn: machines are noisy.
            for protocol in ("http", "grpc"):
                runs = {name: [] for name in servers}
                for turn in range(options.rounds):
                    for name in list(servers)[:: -1 if turn % 2 else 1]:
                        runs[name].append(measure(servers[name], protocol, users, options.seconds))
                medians = {name: median_of(each) for name, each in runs.items()}
                for name, median in medians.items():
                    row(protocol, users, name, median)
                if options.against:
                    ratio = {key: medians["this"][key] / medians["other"][key] for key in medians["this"]}
                    print(f"| {protocol} | {users} | this / other | {ratio['answers/s']:.3f} | "
                          + " | ".join(f"{ratio[q]:.3f}" for q in QUANTILES) + " |", flush=True)
    print(f"\n{machine()}")


if __name__ == "__main__":
    main()
