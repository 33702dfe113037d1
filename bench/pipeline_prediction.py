#!/usr/bin/env python3
"""The P99 of a real pipeline of three stages beside what is predicted from its log: decode, MobileNetV2 and, where
that is not sure, ResNet-50 (random weights), asked in an open loop. The prediction is a simulation of what the
log holds: `foliot simulate --from-log`, with the same policy: the same arrivals, each run with the visits that it had,
the device as slow as it was then. On an idle machine:

    python bench/pipeline_prediction.py [--rate 20] [--seconds 300] [--repeats 4] [--share 0.3] [--resolution 224]

A P99 of few runs is chance: twelve of 1,200 lie above it, and they come together, when a queue is long. So runs are
repeated, each with other arrivals, and the interval is said that 95 % of the P99s have when blocks of ten seconds are
drawn with replacement. Of measured and predicted latencies the same blocks are drawn, so that what both share, the
arrivals and the visits, is no part of the interval of their difference.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np
import onnx
import tritonclient.grpc as triton
from foliot_tools.log import read_log
from foliot_tools.server import ROOT, Server, foliot_binary
from foliot_tools.waiting import eventually

sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
from test_steps import photo  # noqa: E402

from tools import models  # noqa: E402

BLOCK_SECONDS = 10
RESAMPLES = 2000
INTERVAL = (0.025, 0.975)
MODELS = {"mobilenet": "mobilenet_v2", "resnet": "resnet50_v1b"}
PIPELINE = """
default_slo = "30s"

[[stage]]
name = "decode"
step = "decode"
width = {resolution}
height = {resolution}
inputs = {{ bytes = "photo" }}

[[stage]]
name = "normalise"
step = "normalise"
inputs = {{ image = "decode.image" }}

[[stage]]
name = "cheap"
model = "mobilenet"
inputs = {{ {mobilenet_input} = "normalise.tensor" }}

[[stage]]
name = "fine"
model = "resnet"
inputs = {{ {resnet_input} = "normalise.tensor" }}
when = [{{ output = "cheap.{mobilenet_output}", value = "element", element = 0, below = {limit!r} }}]

[[output]]
name = "cheap"
from = "cheap.{mobilenet_output}"

[[output]]
name = "fine"
from = "fine.{resnet_output}"
fill = 0
"""


def write_repository(folder, resolution):
    """The names that pipeline.toml needs."""
    names = {"resolution": resolution}
    for name, family in MODELS.items():
        path = folder / name / "model.onnx"
        path.parent.mkdir(parents=True)
        models.write(models.build(family, resolution=resolution), path)
        graph = onnx.load(path, load_external_data=False).graph
        names[f"{name}_input"], names[f"{name}_output"] = graph.input[0].name, graph.output[0].name
        (path.parent / "model.toml").write_text("batch_sizes = [1, 2, 4, 8]\n", encoding="utf-8")
    return names


def write_pipeline(folder, names, limit):
    (folder / "animals").mkdir(exist_ok=True)
    (folder / "animals/pipeline.toml").write_text(PIPELINE.format(**names, limit=limit), encoding="utf-8")


def tensor_of(jpeg):
    tensor = triton.InferInput("photo", [1, len(jpeg)], "UINT8")
    tensor.set_data_from_numpy(np.frombuffer(jpeg, np.uint8)[None])
    return tensor


def await_pipeline(client):
    eventually(lambda: client.is_model_ready("animals"), timeout=1200)


def find_limit(folder, console, photos, share, options):
    """What that share of the photos is below."""
    with Server(folder, console, ready_timeout=1200, **options) as server, \
            triton.InferenceServerClient(server.grpc) as client:
        await_pipeline(client)
        scores = [client.infer("animals", [tensor_of(each)]).as_numpy("cheap")[0, 0] for each in photos]
    return float(np.quantile(scores, share))


def ask(client, photos, rate, seconds, seed):
    """In an open loop; returns the number of failures."""
    random = np.random.default_rng(seed)
    tensors = [tensor_of(each) for each in photos]
    failures, open_calls = [], threading.Semaphore(0)

    def done(result, error):
        if error is not None:
            failures.append(error)
        open_calls.release()

    calls, due, end = 0, time.monotonic(), time.monotonic() + seconds
    while due < end:
        time.sleep(max(0, due - time.monotonic()))
        client.async_infer("animals", [tensors[random.integers(len(tensors))]], done)
        calls += 1
        due += random.exponential(1 / rate)
    for _ in range(calls):
        open_calls.acquire()
    return len(failures)


def latencies(log):
    """Of the runs, in the order in which they came: arrival in s since the first, and latency in ms."""
    runs = sorted((request.arrival_us, request.departure_us - request.arrival_us) for request in log.requests
                  if request.model == "animals" and request.status == "served")
    arrivals, taken = np.array(runs, float).T
    return (arrivals - arrivals[0]) / 1e6, taken / 1e3


def predict(folder, log, output):
    experiment = output / "experiment.toml"
    experiment.write_text('[cluster]\ndevices = 1\npage_cache = "4GiB"\n', encoding="utf-8")
    simulated = output / "simulated"
    subprocess.run([foliot_binary(), "simulate", experiment, "--from-log", log, "--pipeline",
                    folder / "animals/pipeline.toml", "--log", simulated], check=True, capture_output=True)
    return read_log(simulated / "foliot")


def blocks_of(measured, predicted, warm_up, seconds):
    """Latencies of the runs of each block: as measured, and as simulated."""
    arrivals, real = latencies(measured)
    _, simulated = latencies(predicted)
    if len(real) != len(simulated):
        sys.exit(f"error: {len(real)} runs were measured, and {len(simulated)} simulated; they cannot be compared")
    rows = np.column_stack([real, simulated])
    edges = np.arange(warm_up, seconds, BLOCK_SECONDS)
    return [block for begin in edges
            if len(block := rows[(arrivals >= begin) & (arrivals < begin + BLOCK_SECONDS)])]


def p99s(blocks):
    """Measured and predicted, in ms."""
    return np.quantile(np.concatenate(blocks), 0.99, axis=0, method="inverted_cdf")


def resampled(blocks, seed):
    random = np.random.default_rng(seed)
    return np.array([p99s([blocks[i] for i in random.integers(len(blocks), size=len(blocks))])
                     for _ in range(RESAMPLES)])


def describe(blocks, seed):
    measured, predicted = p99s(blocks)
    drawn = resampled(blocks, seed)
    low, high = np.quantile(drawn[:, 0], INTERVAL)
    least, most = 100 * (np.quantile(drawn[:, 1] / drawn[:, 0], INTERVAL) - 1)
    return (f"{sum(map(len, blocks))} runs: P99 measured {measured:.2f} ms ({low:.2f} to {high:.2f}), predicted "
            f"{predicted:.2f} ms, {100 * (predicted / measured - 1):+.1f} % ({least:+.1f} to {most:+.1f} %)")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=float, default=20, help="calls per second [20]")
    parser.add_argument("--seconds", type=float, default=300, help="of each repeat [300]")
    parser.add_argument("--repeats", type=int, default=4, help="[4]")
    parser.add_argument("--warm-up", type=float, default=10, help="seconds at the beginning that do not count [10]")
    parser.add_argument("--share", type=float, default=0.3, help="of the photos that visit ResNet-50 [0.3]")
    parser.add_argument("--resolution", type=int, default=224)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    photos = [photo(seed, 320 + 16 * (seed % 8), 240) for seed in range(64)]
    with tempfile.TemporaryDirectory() as temporary:
        output = pathlib.Path(temporary)
        folder = output / "models"
        options = {"page_cache": "1GiB", "lanes": 1}  # as the simulated device
        names = write_repository(folder, arguments.resolution)
        write_pipeline(folder, names, -1e30)
        limit = find_limit(folder, output / "console", photos, arguments.share, options)
        write_pipeline(folder, names, limit)
        blocks = []
        for repeat in range(arguments.repeats):
            own = output / str(repeat)
            own.mkdir()
            with Server(folder, output / "console", ready_timeout=1200, log=own / "log", **options) as server, \
                    triton.InferenceServerClient(server.grpc) as client:
                await_pipeline(client)
                failures = ask(client, photos, arguments.rate, arguments.seconds, arguments.seed + repeat)
            if failures:
                sys.exit(f"error: {failures} calls failed; ask for less than {arguments.rate:g} per second")
            predicted = predict(folder, own / "log", own)
            new = blocks_of(read_log(own / "log"), predicted, arguments.warm_up, arguments.seconds)
            print(f"  repeat {repeat + 1}: {describe(new, arguments.seed)}", flush=True)
            blocks += new
    print(f"{arguments.rate:g} per second, {describe(blocks, arguments.seed)}")


if __name__ == "__main__":
    main()
