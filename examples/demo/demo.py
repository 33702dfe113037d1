#!/usr/bin/env python3
"""Watch handwritten digits being read under a deadline.

Trains a small network on scikit-learn's digits, keeps a quarter of them back,
and serves 20 copies of it beside a ResNet-50, from a page cache that holds only
part of them. The kept-back images then arrive as Poisson traffic through the
plain tritonclient; each answer must come within 50 ms of the moment at which its
request was due. Exits with 1 unless more than 95 % of the digits are read right
and more than 99 % of all answers are in time.
"""

import argparse
import asyncio
import dataclasses
import gc
import pathlib
import sys
import tempfile
import time

import numpy as np
import tritonclient.grpc.aio as triton
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from tritonclient.utils import InferenceServerException

from foliot_tools import onnx_models
from foliot_tools.log import read_log
from foliot_tools.generated import write_resnet50
from foliot_tools.server import ROOT, Server
from picture import draw

COPIES = 20
DEADLINE = 0.050
SEED = 7
# A ResNet-50 of half the width and for small images, so that two cores do for all.
RESNET = "resnet50"
RESNET_WIDTH = 0.5
RESNET_RESOLUTION = 64

ACCURACY_WANTED = 0.95
ATTAINMENT_WANTED = 0.99

NEXT = """
Try next:
  {foliot} explain --log {log} --slowest
      what the slowest request waited for
  {foliot} trace export {log} -o out/demo-trace.json
      the whole run for https://ui.perfetto.dev
  {foliot} simulate examples/simulate/resnets.toml
      the same server in virtual time
Models of your own: README.md, "Five minutes with a model of your own".
"""


@dataclasses.dataclass
class Answer:
    """What came of one request; times in seconds since the traffic began."""

    model: str
    due: float
    finished: float
    refusal: str = ""
    right: bool | None = None

    @property
    def latency(self):
        """Counted from when the request was due, not from when it could be sent."""
        return self.finished - self.due

    @property
    def in_time(self):
        return not self.refusal and self.latency <= DEADLINE


def say(text):
    print(f"-- {text}", flush=True)


def train():
    """(network, held-out images, their digits), always the same."""
    digits = load_digits()
    pixels = (digits.data / 16).astype(np.float32)
    train_x, test_x, train_y, test_y = train_test_split(
        pixels, digits.target, test_size=0.25, random_state=SEED, stratify=digits.target
    )
    network = MLPClassifier((256, 128), max_iter=200, random_state=SEED).fit(train_x, train_y)
    return network, test_x, test_y


def make_repository(folder, network):
    """Twenty registered copies of the network, and a ResNet-50 for company."""
    copies = [f"digits_{i:02}" for i in range(COPIES)]
    for copy in copies:
        onnx_models.dense_network(folder / copy / "1/model.onnx", network.coefs_, network.intercepts_)
    write_resnet50(folder / RESNET / "1/model.onnx", RESNET_RESOLUTION, RESNET_WIDTH)
    (folder / RESNET / "model.toml").write_text("batch_sizes = [1, 2]\n")
    return copies


def poisson(random, rate, seconds):
    """The instants of a Poisson process."""
    times = np.cumsum(random.exponential(1 / rate, int(rate * seconds * 1.2) + 50))
    return times[times < seconds]


def make_traffic(random, copies, images, labels, rate, resnet_rate, seconds):
    """[(due, model, input, right digit or None)] in order of time."""
    traffic = []
    for i, due in enumerate(poisson(random, rate, seconds)):
        image = i % len(images)
        traffic.append((due, str(random.choice(copies)), images[image : image + 1], labels[image]))
    picture = random.normal(size=(1, 3, RESNET_RESOLUTION, RESNET_RESOLUTION)).astype(np.float32)
    traffic += [(due, RESNET, picture, None) for due in poisson(random, resnet_rate, seconds)]
    return sorted(traffic, key=lambda entry: entry[0])


async def ask(client, begin, names, due, model, pixels, label):
    """Sends one request and waits for its Answer."""
    request = triton.InferInput(names[model][0], list(pixels.shape), "FP32")
    request.set_data_from_numpy(pixels)
    try:
        result = await client.infer(model, [request], timeout=round(DEADLINE * 1e6))
    except InferenceServerException as error:
        return Answer(model, due, time.perf_counter() - begin, refusal=error.message())
    finished = time.perf_counter() - begin
    right = None if label is None else bool(np.argmax(result.as_numpy(names[model][1])) == label)
    return Answer(model, due, finished, right=right)


async def send(server, models, traffic, seconds):
    """All answers, in the order in which the requests were due."""
    async with triton.InferenceServerClient(server.grpc) as client:
        names = {}
        for model in models:
            metadata = await client.get_model_metadata(model)
            names[model] = (metadata.inputs[0].name, metadata.outputs[0].name)
        gc.collect()
        gc.disable()  # its pauses would count as the server's latency
        begin = time.perf_counter()
        tasks = []
        next_report = 5
        for due, *rest in traffic:
            while (wait := begin + due - time.perf_counter()) > 0:
                await asyncio.sleep(wait)
            if due >= next_report:
                say(f"{next_report:3} of {seconds} s, {len(tasks)} requests sent")
                next_report += 5
            tasks.append(asyncio.create_task(ask(client, begin, names, due, *rest)))
        answers = await asyncio.gather(*tasks)
        gc.enable()
        return answers


def quantile(values, q):
    return float(np.quantile(values, q, method="higher")) if len(values) else float("nan")


def reason(refusal):
    """The short reason at the head of a refusal's message."""
    for word in ("unmeetable", "overload", "expired", "late", "worker_lost", "unloaded", "cancelled", "draining"):
        if word in refusal:
            return word
    return refusal[:60]


def print_shares(answers, requests, copies):
    """Where the median latency goes: the server's own part, from its log, beside what the client saw."""
    served = [request for request in requests if request.status == "served"]
    print(f"{'median':24}{'client':>11}{'server':>11}{'of it INFER':>14}{'server p99':>13}")
    for name, is_of in (("digits, 20 copies", copies.__contains__), ("ResNet-50", RESNET.__eq__)):
        seen = [answer.latency * 1e3 for answer in answers if is_of(answer.model) and not answer.refusal]
        own = [request for request in served if is_of(request.model)]
        spent = [(request.departure_us - request.arrival_us) / 1e3 for request in own]
        computed = [(request.input_us + request.exec_us + request.output_us) / 1e3 for request in own]
        print(f"{name:24}{quantile(seen, 0.5):8.2f} ms{quantile(spent, 0.5):8.2f} ms{quantile(computed, 0.5):11.2f} ms"
              f"{quantile(spent, 0.99):10.2f} ms")
    print("The rest is this client's: Python, its event loop and the wait for a core.\n")


def print_table(answers, actions, copies):
    """The figures of the run; returns (accuracy, attainment)."""
    digits = [answer for answer in answers if answer.model in copies]
    resnet = [answer for answer in answers if answer.model == RESNET]
    answered = [answer for answer in digits if answer.right is not None]
    accuracy = sum(answer.right for answer in answered) / max(1, len(answered))
    attainment = sum(answer.in_time for answer in answers) / len(answers)

    print(f"\n{'':24}{'requests':>9}{'in time':>10}{'p50':>9}{'p99':>9}{'p99.9':>9}{'max':>9}")
    for name, group in (("digits, 20 copies", digits), ("ResNet-50", resnet), ("all", answers)):
        latencies = [answer.latency * 1e3 for answer in group if not answer.refusal]
        cells = [quantile(latencies, q) for q in (0.5, 0.99, 0.999, 1)]
        in_time = sum(answer.in_time for answer in group) / max(1, len(group))
        print(f"{name:24}{len(group):9}{in_time:10.2%}" + "".join(f"{cell:6.2f} ms" for cell in cells))

    refusals = [reason(answer.refusal) for answer in answers if answer.refusal]
    counts = ", ".join(f"{refusals.count(word)} {word}" for word in sorted(set(refusals)))
    loads = sum(action.type == "LOAD" for action in actions)
    evictions = sum(action.type == "UNLOAD" for action in actions)
    print(f"\naccuracy on held-out digits   {accuracy:.2%} of {len(answered)} answers")
    print(f"attainment of the deadline    {attainment:.2%}")
    print(f"refusals                      {counts or 'none'}")
    print(f"loads, evictions              {loads}, {evictions}\n")
    return accuracy, attainment


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--foliot", default=ROOT / "build/release/bin/foliot", help="the server's program")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "out", help="folder of the picture")
    parser.add_argument("--seconds", type=int, default=30, help="how long traffic is sent")
    parser.add_argument("--rate", type=float, default=200, help="digits per second")
    parser.add_argument("--resnet-rate", type=float, default=20, help="ResNet-50 requests per second")
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)

    say("training a small network on 1,347 handwritten digits, keeping 450 back")
    network, images, labels = train()

    with tempfile.TemporaryDirectory(prefix="foliot-demo-") as folder:
        folder = pathlib.Path(folder)
        say(f"writing {COPIES} copies of it and a small ResNet-50 as ONNX")
        copies = make_repository(folder / "models", network)
        log = arguments.output / "demo-log"

        say("compiling and starting the server; its page cache holds the ResNet and 13 of the copies")
        server = Server(
            folder / "models",
            arguments.output / "demo-server.log",
            foliot=arguments.foliot,
            page_size="256KiB",
            page_cache="30MiB",
            workspace="64MiB",
            log=log,
        )
        with server:
            random = np.random.default_rng(SEED)
            traffic = make_traffic(
                random, copies, images, labels, arguments.rate, arguments.resnet_rate, arguments.seconds
            )
            say(f"sending {len(traffic)} requests in {arguments.seconds} s, each with {DEADLINE * 1e3:.0f} ms to live")
            answers = asyncio.run(send(server, [*copies, RESNET], traffic, arguments.seconds))
            if server.stop() != 0:
                raise SystemExit(f"the server did not stop cleanly:\n{server.output()}")
        record = read_log(log)
        actions = record.done()

    accuracy, attainment = print_table(answers, actions, copies)
    print_shares(answers, record.requests, copies)
    picture = draw(answers, actions, copies, DEADLINE, arguments.output / "demo.png")
    say(f"picture: {picture}")
    print(NEXT.format(foliot=arguments.foliot, log=log))

    if accuracy <= ACCURACY_WANTED:
        print(f"FAILED: accuracy {accuracy:.2%}, wanted more than {ACCURACY_WANTED:.0%}", file=sys.stderr)
    if attainment <= ATTAINMENT_WANTED:
        print(f"FAILED: attainment {attainment:.2%}, wanted more than {ATTAINMENT_WANTED:.0%}", file=sys.stderr)
    return 0 if accuracy > ACCURACY_WANTED and attainment > ATTAINMENT_WANTED else 1


if __name__ == "__main__":
    sys.exit(main())
