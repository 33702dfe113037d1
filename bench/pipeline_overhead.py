#!/usr/bin/env python3
"""What a stage of a pipeline costs beside its computation: chains of stages of a model that only copies its input, asked
by one client over gRPC, in turns. A stage more costs the difference of two chains, divided by their stages.

    python bench/pipeline_overhead.py [--rounds 5] [--seconds 3]"""

import argparse
import pathlib
import statistics
import sys
import tempfile

from foliot_tools import onnx_models
from foliot_tools.bench import bench
from foliot_tools.server import ROOT, Server
from onnx import TensorProto, helper

sys.path.insert(0, str(ROOT / "tests/figures"))
from figure import machine  # noqa: E402

CHAINS = (1, 2, 5)
STAGE = """
[[stage]]
name = "stage{number}"
model = "copy"
inputs = {{ x = "{source}" }}
"""


def write_repository(folder):
    onnx_models.save(folder / "copy/model.onnx", [helper.make_node("Identity", ["x"], ["y"], "copy")],
                     {"x": (TensorProto.FLOAT, ["batch", 16])}, {"y": (TensorProto.FLOAT, ["batch", 16])})
    for length in CHAINS:
        pipeline = folder / f"chain{length}/pipeline.toml"
        pipeline.parent.mkdir()
        text = 'default_slo = "1s"\n'
        for number in range(length):
            text += STAGE.format(number=number, source=f"stage{number - 1}.y" if number else "x")
        pipeline.write_text(text + f'\n[[output]]\nname = "y"\nfrom = "stage{length - 1}.y"\n', encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="of which the medians are shown [%(default)s]")
    parser.add_argument("--seconds", type=float, default=3, help="of each chain in a round [%(default)s]")
    options = parser.parse_args()
    print(f"{machine()}\n\n| stages | p50, us | p99, us | a stage more, p50, us |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="foliot-bench-") as name:
        folder = pathlib.Path(name)
        write_repository(folder / "models")
        runs = {length: [] for length in CHAINS}
        with Server(folder / "models", folder / "server.log") as server:
            for _ in range(options.rounds):
                for length in CHAINS:
                    report = bench(server.grpc, f"chain{length}", protocol="grpc", concurrency=1,
                                   duration=f"{options.seconds}s")
                    runs[length].append(report["latency_milliseconds"])
    medians = {length: [1e3 * statistics.median(run[quantile] for run in all_runs) for quantile in ("p50", "p99")]
               for length, all_runs in runs.items()}
    for length, (median, tail) in medians.items():
        more = (median - medians[1][0]) / (length - 1) if length > 1 else None
        print(f"| {length} | {median:.0f} | {tail:.0f} | {'' if more is None else f'{more:.0f}'} |")


if __name__ == "__main__":
    main()
