#!/usr/bin/env python3
"""Figures: how much memory a server takes for answers of 8 MiB that no client reads: 10 gRPC streams, and 300 connections
over HTTP, from one address and from a hundred. --bodies-max is the budget; before each, the model has answered.

    tests/figures/unread_answers.py [--seconds 10]
"""

import argparse
import pathlib
import sys
import tempfile
import time

from figure import Figure, print_figures, say
from foliot_tools.hostile import Attack
from foliot_tools.hostile_texts import WIDE_ANSWER
from foliot_tools.server import Server
from hostile_clients import write_models

BUDGET_MIB = 256
# name: kind, port, how many connections, of how many addresses
ATTACKS = {
    "10 streams": ("unread_stream", "grpc", 10, 1),
    "10 streams of 10 addresses": ("unread_stream", "grpc", 10, 10),
    "300 connections": ("unread", "http", 300, 1),
    "300 connections of 100 addresses": ("unread", "http", 300, 100),
}


def measure_one(name, seconds):
    kind, port, count, sources = ATTACKS[name]
    with tempfile.TemporaryDirectory(prefix="foliot-unread-") as folder:
        folder = pathlib.Path(folder)
        write_models(folder / "models")
        with Server(folder / "models", folder / "log", page_cache="128MiB", page_size="256KiB", cache=folder / "cache",
                    bodies_max=f"{BUDGET_MIB}MiB") as server:
            for _ in range(20):
                status, _ = server.request("POST", "/v2/models/wide/infer", WIDE_ANSWER)
                assert status == 200, server.output()
            before = most = server.memory_bytes()
            with Attack(kind, getattr(server, port), count, sources=sources):
                end = time.monotonic() + seconds
                while time.monotonic() < end:
                    most = max(most, server.memory_bytes())
                    time.sleep(0.02)
            alive = server.alive()
    grown = (most - before) / 2**20
    say(f"{name}: {before / 2**20:.0f} MiB before")
    return Figure(f"unread answers of {name}", f"<= {BUDGET_MIB} MiB + 10 %",
                  f"{before / 2**20:.0f} MiB became {most / 2**20:.0f} at most: +{grown:.0f}", alive and grown <= 1.1 * BUDGET_MIB)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10, help="of each")
    options = parser.parse_args()
    return print_figures([measure_one(name, options.seconds) for name in ATTACKS])


if __name__ == "__main__":
    sys.exit(main())
