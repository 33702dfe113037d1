#!/usr/bin/env python3
"""MLPerf LoadGen, scenario Server, against a small ResNet-50 on this machine."""

import argparse
import pathlib
import sys
import tempfile

from foliot_tools.generated import write_resnet50
from foliot_tools.loadgen import run_server_scenario
from foliot_tools.server import ROOT, Server

sys.path.insert(0, str(ROOT / "tests/figures"))
from figure import machine  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--qps", type=float, default=50)
    parser.add_argument("--latency", type=float, default=100, metavar="MS")
    parser.add_argument("--seconds", type=float, default=30)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="foliot-loadgen-") as folder:
        folder = pathlib.Path(folder)
        write_resnet50(folder / "models/resnet50/1/model.onnx", resolution=64)
        with Server(folder / "models", folder / "console", page_cache="256MiB") as server:
            result = run_server_scenario(server.grpc, "resnet50", arguments.qps, arguments.latency,
                                         seconds=arguments.seconds)
    print(result.summary)
    print(f"outcomes: {result.outcomes}\n\n{machine()}")
    return 0 if result.valid else 1


if __name__ == "__main__":
    sys.exit(main())
