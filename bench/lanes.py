#!/usr/bin/env python3
"""What the choice of lanes for each batch is worth on this machine: `foliot serve` with a
lane for each core beside one device of all cores and a device for each core (--devices), which
serve the same six models at the same loads in turn.

Requests come as a Poisson process, over all models alike, from 10 % to 300 % of the
capacity, which is what the devices of one core answer to clients that wait. Latency is
measured from the scheduled send time; what is refused or late is missed. Clients run on
the same cores."""

import argparse
import contextlib
import json
import os
import pathlib
import statistics
import sys

from foliot_tools.bench import bench
from foliot_tools.server import ROOT, Server

sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "tests/figures"))
from figure import machine, say  # noqa: E402
from tools import models  # noqa: E402

# Thin, fat, recurrent, transformer.
MODELS = {"mobilenet_v2": {}, "mobilenet_v3_small": {}, "resnet18_v1b": {}, "lstm_classifier": {},
          "minilm": {"sequence": 32}, "mlp": {}}
LOADS = (0.1, 0.25, 0.5, 0.75, 0.9, 1.1, 1.5, 2, 3)
CLIENTS = 8  # that find the capacity


def sides():
    """{name: flags}: lanes, and what they are to be as good as."""
    cores = [str(core) for core in sorted(os.sched_getaffinity(0))]
    return {"lanes": {"devices": ",".join(cores), "lanes": len(cores)},
            "wide": {"devices": ",".join(cores), "lanes": 1},
            "narrow": {"devices": ";".join(cores)}}


def write_models(names, folder):
    for name in names:
        path = folder / name / "model.onnx"
        if not path.exists():
            models.write(models.build(name, **MODELS[name]), path)


def figures(report):
    latency = report["latency_milliseconds"]
    return {"goodput": report["goodput_per_second"], "p50": latency["p50"], "p99": latency["p99"]}


def merged(turns):
    return {key: statistics.median(turn[key] for turn in turns) for key in turns[0]}


def measure(servers, rate, arguments):
    """{side: figures}, medians of turns that the sides take one after the other."""
    turns = {side: [] for side in servers}
    for turn in range(arguments.turns):
        for side, server in servers.items():
            report = bench(server.grpc, None, rate=f"{rate:.1f}", deadline=arguments.deadline,
                           duration=arguments.duration, warmup=arguments.warmup, seed=turn + 1)
            turns[side].append(figures(report))
    return {side: merged(of_side) for side, of_side in turns.items()}


def row(load, rate, result):
    lanes, rivals = result["lanes"], [result["wide"], result["narrow"]]
    goodput = lanes["goodput"] / max(rival["goodput"] for rival in rivals)
    p50 = min(rival["p50"] for rival in rivals) / lanes["p50"]
    cells = [f"{load:.0%}", f"{rate:.0f}"]
    for key, form in (("goodput", ".0f"), ("p50", ".2f"), ("p99", ".1f")):
        cells += [" / ".join(f"{result[side][key]:{form}}" for side in ("lanes", "wide", "narrow"))]
    cells += [f"{goodput:.3f}", f"{p50:.3f}"]
    return {"load": load, "rate": rate, "goodput_ratio": goodput, "p50_ratio": p50, **result}, cells


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=lambda text: text.split(","), default=list(MODELS), metavar="NAME,...")
    parser.add_argument("--loads", type=lambda text: [float(load) for load in text.split(",")], default=LOADS)
    parser.add_argument("--capacity", type=float, help="requests per second; measured where it is not given")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--duration", default="5s")
    parser.add_argument("--warmup", default="1s")
    parser.add_argument("--deadline", default="50ms")
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("out/lanes"),
                        help="where models and packages are kept for the next time")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("out/lanes.json"))
    arguments = parser.parse_args()
    repository = arguments.folder / "models"
    write_models(arguments.models, repository)
    rows = []
    with contextlib.ExitStack() as stack:
        servers = {}
        for side, flags in sides().items():
            say(f"starting '{side}'")
            servers[side] = stack.enter_context(
                Server(repository, arguments.folder / f"{side}.log", cache=arguments.folder / "cache", **flags))
        capacity = arguments.capacity or bench(servers["narrow"].grpc, None, concurrency=CLIENTS,
                                               duration=arguments.duration)["answered_per_second"]
        print(f"capacity {capacity:.0f}/s, deadline {arguments.deadline}; a lane for each core / one device of all cores / a device "
              "for each\n| load | requests/s | in time/s | p50 ms | p99 ms | goodput, to the better | p50, to the better |\n"
              + "|---" * 7 + "|")
        for load in arguments.loads:
            result, cells = row(load, load * capacity, measure(servers, load * capacity, arguments))
            rows.append(result)
            print("| " + " | ".join(cells) + " |", flush=True)
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps({"machine": machine(), "capacity": capacity, "rows": rows}, indent=2))
    print(f"\n{machine()}")


if __name__ == "__main__":
    main()
