#!/usr/bin/env python3
"""What running models beside each other is worth on this machine (Abacus): `foliot profile` of pairs of
models on a lane for each core, then `foliot serve` of each pair with the scheduler overlap beside one query at
a time (edf, fcfs), batches on lanes (foliot) and clockwork, on the same device at the same loads in turn.

For each pair it prints the gain (how many times as long both take in turn on all cores as together), the
held-out error of the predictor beside that of Abacus' features, the spread of repeats, and what is answered in
time. Requests come as a Poisson process over both models alike; a load of 100 % is what edf answers to
clients that wait. Clients run on the same cores. Nothing else should run."""

import argparse
import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys

from foliot_tools.bench import bench
from foliot_tools.server import ROOT, Server, foliot_binary

sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "tests/figures"))
from figure import machine, say  # noqa: E402
from tools import models  # noqa: E402

PAIRS = (("mobilenet_v2", "minilm"), ("mobilenet_v3_small", "minilm"), ("googlenet", "resnet50_v1"),
         ("vgg16", "vgg19"))
CHANGES = {"minilm": {"sequence": 32}}
GOALS = {("mobilenet_v2", "minilm"): 1.08, ("mobilenet_v3_small", "minilm"): 1.20,
         ("googlenet", "resnet50_v1"): 1.06, ("vgg16", "vgg19"): 0.98}
SCHEDULERS = ("overlap", "edf", "fcfs", "foliot", "clockwork")
LOADS = (0.5, 0.9, 1.2)
QUICK_LOADS = (0.5, 1.2)
CLIENTS = 4  # that find the capacity


def device():
    """Flags of one device of all cores, with a lane for each."""
    cores = sorted(os.sched_getaffinity(0))
    return {"devices": ",".join(map(str, cores)), "lanes": len(cores)}


def write_models(names, folder):
    for name in names:
        path = folder / name / "model.onnx"
        if not path.exists():
            models.write(models.build(name, **CHANGES.get(name, {})), path)
        # Queries are one batch each, as in the paper.
        (path.parent / "model.toml").write_text("batch_sizes = [1]\n")


def profile(pair, repository, cache, arguments):
    report = cache.parent / f"{'+'.join(pair)}.json"
    flags = [f"--{name}={value}" for name, value in device().items()]
    subprocess.run([foliot_binary(), "profile", repository, f"--overlap={','.join(pair)}", f"--cache={cache}", *flags,
                    f"--samples={arguments.samples}", f"--repeats={arguments.repeats}", f"--report-json={report}"],
                   check=True, stdout=subprocess.DEVNULL)
    data = json.loads(report.read_text())
    return {**data["pairs"][0], "held_out": data["held_out_error"]}


def goodput(server, rate, arguments):
    turns = [bench(server.grpc, None, rate=f"{rate:.1f}", deadline=arguments.deadline, duration=arguments.duration,
                   warmup="1s", seed=turn + 1)["goodput_per_second"] for turn in range(arguments.turns)]
    return statistics.median(turns)


def serve(repository, cache, arguments):
    """{load: {scheduler: answers in time per second}}; each scheduler has the machine to itself."""
    results = {}
    capacity = arguments.capacity
    for scheduler in ("edf", *(name for name in SCHEDULERS if name != "edf")):
        with Server(repository, cache.parent / f"{scheduler}.log", cache=cache, scheduler=scheduler, **device()) as server:
            capacity = capacity or bench(server.grpc, None, concurrency=CLIENTS,
                                         duration=arguments.duration)["answered_per_second"]
            for load in arguments.loads:
                results.setdefault(load, {})[scheduler] = goodput(server, load * capacity, arguments)
    return {"capacity": capacity, "loads": results}


def measure(pair, arguments):
    folder = arguments.folder / "+".join(pair)
    repository, cache = folder / "models", folder / "cache"
    with contextlib.suppress(FileExistsError):
        repository.mkdir(parents=True)
    write_models(pair, repository)
    say(f"profiling {' and '.join(pair)}")
    profiled = profile(pair, repository, cache, arguments)
    print(f"{' + '.join(pair)}: gain {profiled['gain']:.2f} (goal {GOALS.get(pair, '-')}), held-out error "
          f"{profiled['held_out']['correction']:.1%} (Abacus' features {profiled['held_out']['abacus']:.1%}), spread of repeats "
          f"{profiled['spread']:.1%}, {profiled['groups']} groups", flush=True)
    if arguments.no_serving:
        return {"pair": pair, "profile": profiled}
    served = serve(repository, cache, arguments)
    for load, by_scheduler in served["loads"].items():
        shown = ", ".join(f"{name} {by_scheduler[name]:.1f}" for name in SCHEDULERS)
        print(f"  {load:.0%} of {served['capacity']:.0f}/s, in time/s: {shown}", flush=True)
    return {"pair": pair, "profile": profiled, **served}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=lambda text: [tuple(pair.split("+")) for pair in text.split(",")], default=PAIRS,
                        metavar="A+B,...")
    parser.add_argument("--samples", type=int, help="groups of a pair at most")
    parser.add_argument("--repeats", type=int, help="runs of each group")
    parser.add_argument("--quick", action="store_true",
                        help="few samples, and one short turn of two loads, unless given: a minute for each pair")
    parser.add_argument("--loads", type=lambda text: [float(load) for load in text.split(",")])
    parser.add_argument("--capacity", type=float, help="requests per second; measured where it is not given")
    parser.add_argument("--turns", type=int)
    parser.add_argument("--duration")
    parser.add_argument("--deadline", default="50ms")
    parser.add_argument("--no-serving", action="store_true", help="profile alone")
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("out/overlap"),
                        help="where models, packages and samples are kept for the next time")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("out/overlap.json"))
    arguments = parser.parse_args()
    turns, duration, loads = (1, "2s", QUICK_LOADS) if arguments.quick else (3, "5s", LOADS)
    samples, repeats = (200, 3) if arguments.quick else (2000, 5)
    arguments.samples = arguments.samples or samples
    arguments.repeats = arguments.repeats or repeats
    arguments.turns = arguments.turns or turns
    arguments.duration = arguments.duration or duration
    arguments.loads = arguments.loads or loads
    results = [measure(pair, arguments) for pair in arguments.pairs]
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps({"machine": machine(), "pairs": results}, indent=2))
    print(f"\n{machine()}")


if __name__ == "__main__":
    main()
