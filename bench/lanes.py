#!/usr/bin/env python3
"""What the choice of lanes for each batch is worth on this machine: `foliot serve` with a
lane for each core, and with its defaults, beside one device of all cores and a device for each core
(--devices), which serve the same six models at the same loads in turn.

Requests come as a Poisson process, over all models alike, from 10 % to 300 % of the
capacity, which is what the devices of one core answer to clients that wait. Latency is
measured from the scheduled send time; what is refused or late is missed. Clients run on
the same cores.

With --rivals the others are OpenVINO (hints LATENCY and THROUGHPUT) and onnxruntime (two sessions of one thread, and
one of two), each behind bench/rival_front_end.py with the same deadline. `make bench-lanes-rivals`
installs them."""

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
QUICK_LOADS = (0.1, 0.5, 0.9, 1.5, 3)
CLIENTS = 8  # that find the capacity


OURS = ("lanes", "default")


class Rival(Server):
    """An engine behind bench/rival_front_end.py."""

    def __init__(self, repository, console, **flags):
        super().__init__(repository, console)
        front_end = ROOT / "bench/rival_front_end.py"
        self.command = [sys.executable, str(front_end), str(repository), "--port", str(self.grpc_port),
                        *(f"--{name}={value}" for name, value in flags.items())]


def cores():
    return [str(core) for core in sorted(os.sched_getaffinity(0))]


def devices():
    """{name: flags} of `foliot serve`: lanes, the defaults, and what both are to be as good as."""
    return {"lanes": {"devices": ",".join(cores()), "lanes": len(cores())},
            "default": {},
            "wide": {"devices": ",".join(cores()), "lanes": 1},
            "narrow": {"devices": ";".join(cores())}}


def rivals():
    """{name: flags} of bench/rival_front_end.py."""
    count = len(cores())
    return {"OpenVINO LATENCY": {"engine": "openvino", "hint": "LATENCY"},
            "OpenVINO THROUGHPUT": {"engine": "openvino", "hint": "THROUGHPUT"},
            f"onnxruntime 1 x {count}": {"engine": "onnxruntime", "threads": 1, "sessions": count},
            f"onnxruntime {count} x 1": {"engine": "onnxruntime", "threads": count, "sessions": 1}}


def server_of(side, arguments):
    """Not started yet."""
    repository, console = arguments.folder / "models", arguments.folder / f"{side.replace(' ', '_')}.log"
    if side in rivals():
        return Rival(repository, console, **rivals()[side])
    return Server(repository, console, cache=arguments.folder / "cache", **devices()[side])


def measure_capacity(arguments):
    with server_of("narrow", arguments) as server:
        return bench(server.grpc, None, concurrency=CLIENTS, duration=arguments.duration)["answered_per_second"]


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


def to_the_better(figures_of_side, others):
    """(goodput, p50) as ratios to the best of the others in each, above 1 where better."""
    return (figures_of_side["goodput"] / max(other["goodput"] for other in others),
            min(other["p50"] for other in others) / figures_of_side["p50"])


def row(load, rate, result):
    others = [result[side] for side in result if side not in OURS]
    ratios = {side: to_the_better(result[side], others) for side in OURS}
    cells = [f"{load:.0%}", f"{rate:.0f}"]
    for key, form in (("goodput", ".0f"), ("p50", ".2f"), ("p99", ".1f")):
        cells += [" / ".join(f"{result[side][key]:{form}}" for side in result)]
    for i in range(2):
        cells += [" / ".join(f"{ratios[side][i]:.3f}" for side in ratios)]
    return {"load": load, "rate": rate, "ratios": ratios, **result}, cells


def print_head(sides, capacity, arguments):
    print(f"capacity {capacity:.0f}/s, deadline {arguments.deadline}; {' / '.join(sides)}\n"
          "| load | requests/s | in time/s | p50 ms | p99 ms | goodput, to the best other (lanes / default) | p50, to the best "
          "other |\n" + "|---" * 7 + "|", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=lambda text: text.split(","), default=list(MODELS), metavar="NAME,...")
    parser.add_argument("--loads", type=lambda text: [float(load) for load in text.split(",")])
    parser.add_argument("--capacity", type=float, help="requests per second; measured where it is not given")
    parser.add_argument("--rivals", action="store_true", help="beside OpenVINO and onnxruntime, not other devices")
    parser.add_argument("--quick", action="store_true",
                        help="one short turn of fewer loads, unless given: two minutes once models are compiled")
    parser.add_argument("--turns", type=int)
    parser.add_argument("--duration")
    parser.add_argument("--warmup", default="1s")
    parser.add_argument("--deadline", default="50ms")
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("out/lanes"),
                        help="where models and packages are kept for the next time")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("out/lanes.json"))
    arguments = parser.parse_args()
    turns, duration, loads = (1, "2s", QUICK_LOADS) if arguments.quick else (3, "5s", LOADS)
    arguments.turns = arguments.turns or turns
    arguments.duration = arguments.duration or duration
    arguments.loads = arguments.loads or loads
    write_models(arguments.models, arguments.folder / "models")
    capacity = arguments.capacity or measure_capacity(arguments)
    rows = []
    with contextlib.ExitStack() as stack:
        servers = {}
        for side in (*OURS, *rivals()) if arguments.rivals else devices():
            say(f"starting '{side}'")
            servers[side] = stack.enter_context(server_of(side, arguments))
        print_head(servers, capacity, arguments)
        for load in arguments.loads:
            result, cells = row(load, load * capacity, measure(servers, load * capacity, arguments))
            rows.append(result)
            print("| " + " | ".join(cells) + " |", flush=True)
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps({"machine": machine(), "capacity": capacity, "rows": rows}, indent=2))
    print(f"\n{machine()}")


if __name__ == "__main__":
    main()
