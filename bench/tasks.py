#!/usr/bin/env python3
"""Tasks on a real server (INFaaS, Figure 8, and its question whether choosing variants pays): ResNet-50 and MobileNetV2 with
random weights, in float32 and int8, whose accuracies are those that are published of the trained networks.

offline: requests for ResNet-50 within 500 ms, from 3 to 8 per second, alone and beside jobs of many images (`--jobs`), by
turns. How many images the jobs do meanwhile, and what it costs the requests.

ramp: requests of two kinds, of which one asks for an accuracy that ResNet-50 alone has, rising to ten times as many, which is what
the fastest variants of each kind can answer on this machine (measured first, unless `--rate` says otherwise). They ask the task, or,
by turns, one of its variants for all. What counts is answered in time and as accurately as asked; a refused request is missed.

Clients run on the same cores, those of the offline part before all others. `make bench-tasks` runs both."""

import argparse
import concurrent.futures
import contextlib
import json
import math
import os
import pathlib
import shutil
import statistics
import sys
import tempfile

import numpy as np

import foliot.jobs
from foliot_tools.bench import bench
from foliot_tools.server import ROOT, Server
from foliot_tools.waiting import eventually

sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "tests/figures"))
from figure import machine, say  # noqa: E402
from tools import models  # noqa: E402
from tools.models import quantized  # noqa: E402

# The top-1 accuracy on ImageNet that torchvision publishes of these networks, trained.
ACCURACIES = {"mobilenet-float32": 0.71878, "mobilenet-int8": 0.71658, "resnet-float32": 0.76130, "resnet-int8": 0.75920}
NETWORKS = {"mobilenet": "mobilenet_v2", "resnet": "resnet50_v1b"}
IMAGE = (3, 224, 224)
ONLINE = {"rate": 3, "arrivals": "ramp", "ramp_rate": 8, "deadline": "500ms"}
RAMP = 10  # times as many requests at the end
CLIENTS = 16  # twice the largest batch
CLIENT_NICE = -19  # offline: a job leaves no processor idle


def write_repository(folder):
    """The task `animals`, kept for the next time."""
    if (folder / "animals").exists():
        return
    making = folder.with_suffix(".made")
    shutil.rmtree(making, ignore_errors=True)
    for name, family in NETWORKS.items():
        network = models.build(family)
        paths = {precision: making / f"{name}-{precision}/model.onnx" for precision in ("float32", "int8")}
        models.write(network, paths["float32"])
        quantized.quantize(network, paths["int8"])
        for path in paths.values():
            (path.parent / "model.toml").write_text("batch_sizes = [1, 2, 4, 8]\n")
    (making / "animals").mkdir()
    (making / "animals/task.toml").write_text("".join(
        f'[[variant]]\nmodel = "{name}"\naccuracy = {accuracy}\n\n' for name, accuracy in ACCURACIES.items()))
    making.rename(folder)


def write_images(path, count):
    rows = np.lib.format.open_memmap(path, "w+", np.float32, (count, *IMAGE))
    random = np.random.default_rng(1)
    for row in rows:
        row[:] = random.random(IMAGE, np.float32)
    rows.flush()


def wait_for_all(server):
    """Until every batch size of every variant is served."""
    def sizes(name):
        return server.get(f"/v2/models/{name}/config")[1].get("max_batch_size")

    eventually(lambda: all(sizes(name) == 8 for name in ACCURACIES), timeout=1200)


def answers_per_second(server, model):
    """Of clients that wait for each answer, so many that every batch is full."""
    return bench(server.grpc, model, concurrency=CLIENTS, duration="5s")["answered_per_second"]


def go_before_others():
    """This process and the clients that it starts, where the system allows it: they stand for other machines."""
    with contextlib.suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, CLIENT_NICE)


def ask_online(server, arguments, seed):
    report = bench(server.grpc, "resnet-float32", duration=f"{arguments.seconds}s", ramp_length=f"{arguments.seconds}s",
                   seed=seed, **ONLINE)
    return {"offered": report["offered"], "met": report["good"],
            "p50": report["latency_milliseconds"]["p50"], "p99": report["latency_milliseconds"]["p99"]}


def measure_offline(arguments):
    """{side: [figures of each turn]}; the images that were done in a turn are in `images`."""
    turns = {"alone": [], "beside the jobs": []}
    with tempfile.TemporaryDirectory(dir=arguments.folder) as root:
        say(f"writing {arguments.images} images")
        write_images(pathlib.Path(root) / "images.npy", arguments.images)
        with Server(arguments.folder / "models", arguments.folder / "offline.log", cache=arguments.folder / "cache",
                    ready_timeout=1200, jobs=root) as server:
            wait_for_all(server)
            go_before_others()
            jobs = foliot.jobs.Jobs(server.http)
            # One runs at a time, and the last is not reached: what all processors could do is done by the others.
            needed = 1 + math.ceil(answers_per_second(server, "resnet-float32") * arguments.seconds / arguments.images)
            for turn in range(arguments.turns):
                turns["alone"].append({**ask_online(server, arguments, turn + 1), "images": 0})
                of_turn = [jobs.submit_offline({"input": "images.npy"}, f"answers{turn}_{number}", model="resnet-float32")["id"]
                           for number in range(needed)]
                figures = ask_online(server, arguments, turn + 1)
                figures["images"] = sum(jobs.get(job)["progress"]["done"] for job in of_turn)
                turns["beside the jobs"].append(figures)
                for job in reversed(of_turn):  # those that wait first, so that none begins
                    with contextlib.suppress(foliot.jobs.JobError):  # it has ended
                        jobs.cancel(job)
                    jobs.wait(job)
    return turns


def print_offline(turns, arguments):
    print(f"\nOffline: {arguments.turns} turns of {arguments.seconds} s, {arguments.images} images\n"
          "| | requests | in time | p50 ms | p99 ms | images done |\n|---|---|---|---|---|---|")
    for side, of_side in turns.items():
        cells = [f"{sum(turn['met'] for turn in of_side) / sum(turn['offered'] for turn in of_side):.2%}",
                 *(f"{statistics.median(turn[key] for turn in of_side):.1f}" for key in ("p50", "p99")),
                 " / ".join(str(turn["images"]) for turn in of_side)]
        print(f"| {side} | {sum(turn['offered'] for turn in of_side)} | " + " | ".join(cells) + " |")
    ratios = [beside["p99"] / alone["p99"] for alone, beside in zip(*turns.values(), strict=True)]
    print(f"p99 beside the jobs, of that alone: {', '.join(f'{ratio:.3f}' for ratio in ratios)}", flush=True)


def first_rate(server, arguments):
    """A tenth of what can be answered as accurately as asked, each kind by its fastest variant: seconds of each kind add up."""
    fastest = {network: max(answers_per_second(server, f"{network}-{precision}") for precision in ("float32", "int8"))
               for network in NETWORKS}
    say(f"answers per second of the fastest variants: {fastest}")
    return 1 / ((1 - arguments.strict) / fastest["mobilenet"] + arguments.strict / fastest["resnet"]) / RAMP


def asks(arguments):
    """What the two kinds of requests ask for, and how many of them come at first."""
    return {0.7: arguments.rate * (1 - arguments.strict), 0.755: arguments.rate * arguments.strict}


def ask_ramp(server, model, arguments, seed):
    """{accuracy that was asked for: report}"""
    is_task = model == "animals"
    with concurrent.futures.ThreadPoolExecutor() as pool:
        running = {
            accuracy: pool.submit(bench, server.grpc, model, rate=f"{rate:.2f}", arrivals="ramp", ramp_rate=f"{RAMP * rate:.2f}",
                                  ramp_length=f"{arguments.seconds}s", duration=f"{arguments.seconds}s",
                                  deadline=arguments.deadline, seed=10 * seed + number,
                                  **({"accuracy": accuracy} if is_task else {}))
            for number, (accuracy, rate) in enumerate(asks(arguments).items())}
        return {accuracy: each.result() for accuracy, each in running.items()}


def figures_of_ramp(model, reports):
    """`exact`: answers in time to those that asked for more than MobileNetV2 has."""
    has = ACCURACIES.get(model, 1)  # the task has what was asked for, or refuses
    met = {asked: report["good"] if has >= asked else 0 for asked, report in reports.items()}
    offered = {asked: report["offered"] for asked, report in reports.items()}
    return {"offered": sum(offered.values()), "met": sum(met.values()), "exact_offered": offered[max(offered)],
            "exact": met[max(met)], "p99": max(report["latency_milliseconds"]["p99"] for report in reports.values())}


def measure_ramp(arguments):
    """{what is asked: [figures of each turn]}"""
    turns = {model: [] for model in ("animals", *ACCURACIES)}
    with Server(arguments.folder / "models", arguments.folder / "ramp.log", cache=arguments.folder / "cache",
                ready_timeout=1200, variant_policy=arguments.variant_policy) as server:
        wait_for_all(server)
        arguments.rate = arguments.rate or first_rate(server, arguments)
        for turn in range(arguments.turns):
            for model, of_model in turns.items():
                of_model.append(figures_of_ramp(model, ask_ramp(server, model, arguments, arguments.seed + turn)))
                say(f"turn {turn + 1}, {model}: {of_model[-1]}")
        chosen = [f"{name} {value:.0f}" for name, value in server.metrics().items()
                  if name.startswith("foliot_task_requests_total") and value > 0]
    return turns, chosen


def print_ramp(turns, chosen, arguments):
    print(f"\nRamp: {arguments.rate:.0f} to {RAMP * arguments.rate:.0f} requests/s in {arguments.seconds} s, {arguments.turns} turns, "
          f"deadline {arguments.deadline}; {arguments.strict:.0%} ask for 0.755, the others for 0.7; --variant-policy "
          f"{arguments.variant_policy}\n| asked | requests | in time and as accurate as asked | of those for 0.755 | p99 ms |\n"
          "|---|---|---|---|---|")
    for model, of_model in turns.items():
        total = {key: sum(turn[key] for turn in of_model) for key in of_model[0]}
        print(f"| {'the task' if model == 'animals' else model} | {total['offered']} | {total['met']} "
              f"({total['met'] / total['offered']:.1%}) | {total['exact'] / total['exact_offered']:.1%} | "
              f"{statistics.median(turn['p99'] for turn in of_model):.1f} |")
    print("\n".join(chosen), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", type=lambda text: text.split(","), default=["offline", "ramp"], metavar="NAME,...",
                        help="offline, ramp [both]")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=100, help="of a run of requests [100]")
    parser.add_argument("--images", type=int, default=3000, help="of each offline job [3000]; as many jobs as a turn needs")
    parser.add_argument("--rate", type=float,
                        help=f"ramp: requests per second at first [1/{RAMP} of what the fastest variants can answer]")
    parser.add_argument("--strict", type=float, default=0.1, help="ramp: share that asks for 0.755 [0.1]")
    parser.add_argument("--deadline", default="250ms", help="ramp [250ms]")
    parser.add_argument("--variant-policy", default="predicted", choices=("predicted", "scaled", "infaas"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("out/tasks"),
                        help="where models and packages are kept for the next time")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("out/tasks.json"))
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    write_repository(arguments.folder / "models")
    results = {"machine": machine()}
    if "offline" in arguments.parts:
        results["offline"] = measure_offline(arguments)
        print_offline(results["offline"], arguments)
    if "ramp" in arguments.parts:
        results["ramp"], chosen = measure_ramp(arguments)
        print_ramp(results["ramp"], chosen, arguments)
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps(results, indent=2))
    print(f"\n{machine()}")


if __name__ == "__main__":
    main()
