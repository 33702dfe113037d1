#!/usr/bin/env python3
"""When a server with an empty cache gives the first answer of models that it has never seen: of one ResNet-50, and of
each of twenty models, of which clients ask for the last by name from the beginning. Each is asked over HTTP as soon as
it is ready; it ends when all of them serve all their batch sizes."""

import argparse
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
import tritonclient.http as triton
from foliot_tools.server import ROOT, Server

sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "tests/figures"))
from figure import Figure, print_figures, say  # noqa: E402
from tools import models  # noqa: E402

BATCH_SIZES = (1, 2, 4, 8, 16)
ONE = ("resnet50_v1b",)
ASKED = "yolo8_nano"
TWENTY = (
    "densenet121", "densenet201", "dla34", "dlrm", "efficientnet_b0", "googlenet", "gru_classifier", "lstm_classifier", "m5",
    "minilm", "mobilenet_v2", "mobilenet_v3_large", "mobilenet_v3_small", "resnet18_v1", "resnet18_v1b", "resnet18_v2",
    "resnet34_v1b", "se_resnet18", "text_detection", ASKED,
)
CHANGES = {"minilm": {"sequence": 128}}
LOOK_SECONDS = 0.01
# Where something is wrong.
WAIT_SECONDS_MAX = 900


@dataclasses.dataclass
class Observed:
    """Seconds after the server's start."""

    first: dict = dataclasses.field(default_factory=dict)  # first answer of each model
    whole: dict = dataclasses.field(default_factory=dict)  # from when on each serves all its batch sizes
    cpu: float = 0.0  # of the server and all its processes


def write(folder, names):
    """{name: inputs of one row}"""
    inputs = {}
    for name in names:
        network = models.build(name, **CHANGES.get(name, {}))
        models.write(network, folder / name / "1/model.onnx")
        settings = f"batch_sizes = {list(BATCH_SIZES)}\n" + network.settings()
        (folder / name / "1/model.toml").unlink(missing_ok=True)
        (folder / name / "model.toml").write_text(settings)
        inputs[name] = network.examples(1, np.random.default_rng(7))
    return inputs


def infer(client, name, arrays):
    requests = []
    for key, array in arrays.items():
        requests.append(triton.InferInput(key, array.shape, triton.np_to_triton_dtype(array.dtype)))
        requests[-1].set_data_from_numpy(array)
    client.infer(name, requests)


def batch_sizes(client, name):
    return client.get_model_config(name).get("dynamic_batching", {}).get("preferred_batch_size", [])


def look(client, inputs, asked, begin, observed):
    """Asks each model that has become ready, and `asked` in any case."""
    states = {entry["name"]: entry["state"] for entry in client.get_model_repository_index()}
    for name in inputs:
        if name not in observed.first and states.get(name) == "UNAVAILABLE":
            raise RuntimeError(f"'{name}' is not served; see the server's output")
        if name not in observed.first and (states.get(name) == "READY" or name == asked):
            try:
                infer(client, name, inputs[name])
                observed.first[name] = time.monotonic() - begin
            except triton.InferenceServerException:
                if name != asked:
                    raise
        if name in observed.first and name not in observed.whole and batch_sizes(client, name) == list(BATCH_SIZES):
            observed.whole[name] = time.monotonic() - begin


def observe(repository, inputs, folder, asked=None):
    observed = Observed()
    server = Server(repository, folder / "console", cache=folder / "cache")
    begin = time.monotonic()
    with open(server.console, "wb") as console:
        server.process = subprocess.Popen(server.command, stdout=console, stderr=subprocess.STDOUT)
    try:
        with triton.InferenceServerClient(server.http, network_timeout=60) as client:
            while len(observed.whole) < len(inputs):
                if time.monotonic() - begin > WAIT_SECONDS_MAX or server.process.poll() is not None:
                    raise RuntimeError(f"not all sizes are served:\n{server.output()}")
                try:
                    look(client, inputs, asked, begin, observed)
                except OSError:
                    pass  # it does not listen yet
                time.sleep(LOOK_SECONDS)
    finally:
        server.process.terminate()
        _, _, used = os.wait4(server.process.pid, 0)
        server.process.returncode = 0
        observed.cpu = used.ru_utime + used.ru_stime
    return observed


def measure(names, folder, rounds, asked=None):
    inputs = write(folder / "models", names)
    results = []
    for number in range(rounds):
        (folder / str(number)).mkdir()
        results.append(observe(folder / "models", inputs, folder / str(number), asked))
    return results


def figures_of_one(results):
    first = sorted(result.first[ONE[0]] for result in results)
    whole = sorted(result.whole[ONE[0]] for result in results)
    cpu = sorted(result.cpu for result in results)
    middle = len(results) // 2
    seconds = ", ".join(f"{value:.2f}" for value in first)
    return [
        Figure("an unseen ResNet-50, empty cache: first answer", "at most 1.5 s",
               f"{first[middle]:.2f} s, median of {seconds}", first[middle] <= 1.5),
        Figure("all its batch sizes, server included", "at most 15 s of CPU",
               f"{cpu[middle]:.1f} s of CPU, after {whole[middle]:.1f} s", cpu[middle] <= 15),
    ]


def figures_of_twenty(result):
    firsts, wholes = sorted(result.first.values()), sorted(result.whole.values())
    earlier = sum(value < result.first[ASKED] for value in firsts)
    print("\n| model | first answer, s | all batch sizes, s |\n|---|---|---|")
    for name, value in sorted(result.first.items(), key=lambda entry: entry[1]):
        print(f"| {name} | {value:.1f} | {result.whole[name]:.1f} |")
    return [
        Figure("twenty models: first answers", "of all before the first serves all its sizes",
               f"{firsts[0]:.1f} to {firsts[-1]:.1f} s, median {firsts[len(firsts) // 2]:.1f} s; all sizes after "
               f"{wholes[0]:.1f} to {wholes[-1]:.1f} s, {result.cpu:.0f} s of CPU", firsts[-1] < wholes[0]),
        Figure(f"of which {ASKED}, the last by name, which clients ask for", "among the first four",
               f"number {earlier + 1}, after {result.first[ASKED]:.1f} s", earlier < 4),
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="of the one model")
    parser.add_argument("--only", choices=("one", "twenty"), help="one of the two parts")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("out/first_answer.json"))
    arguments = parser.parse_args()
    figures, record = [], {}
    if arguments.only != "twenty":
        with tempfile.TemporaryDirectory(prefix="foliot-first-") as folder:
            say(f"one model, {arguments.rounds} times")
            results = measure(ONE, pathlib.Path(folder), arguments.rounds)
        figures += figures_of_one(results)
        record["one"] = [dataclasses.asdict(result) for result in results]
    if arguments.only != "one":
        with tempfile.TemporaryDirectory(prefix="foliot-first-") as folder:
            say("twenty models")
            (result,) = measure(TWENTY, pathlib.Path(folder), 1, ASKED)
        figures += figures_of_twenty(result)
        record["twenty"] = dataclasses.asdict(result)
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps(record, indent=1))
    return print_figures(figures)


if __name__ == "__main__":
    sys.exit(main())
