#!/usr/bin/env python3
"""Figure: with 20 compiled models, serving again in less than 3 seconds."""

import pathlib
import sys
import tempfile

from figure import Figure, print_figures, say
from foliot_tools import onnx_models
from foliot_tools.generated import write_resnet50
from foliot_tools.server import Server

MODELS = 20
SECONDS_MAX = 3.0


def write_models(folder):
    """A ResNet-50 and 19 dense networks of about a megabyte."""
    write_resnet50(folder / "resnet50/1/model.onnx", resolution=64)
    for i in range(MODELS - 1):
        onnx_models.random_dense_network(folder / f"dense_{i:02}/1/model.onnx", (64, 512, 512, 10), seed=i)


def measure():
    with tempfile.TemporaryDirectory(prefix="foliot-restart-") as folder:
        folder = pathlib.Path(folder)
        say(f"writing {MODELS} models")
        write_models(folder / "models")
        seconds = []
        for start in ("cold", "again", "and again"):
            with Server(folder / "models", folder / "log", page_cache="256MiB", page_size="1MiB") as server:
                say(f"{start}: ready after {server.seconds_to_ready:.2f} s")
                seconds.append(server.seconds_to_ready)
    again = max(seconds[1:])
    return [Figure(f"restart with {MODELS} compiled models", f"serving again in < {SECONDS_MAX:.0f} s",
                   f"{again:.2f} s (the first start, compiling: {seconds[0]:.1f} s)", again < SECONDS_MAX)]


if __name__ == "__main__":
    sys.exit(print_figures(measure()))
