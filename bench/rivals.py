#!/usr/bin/env python3
"""A scikit-learn model behind Foliot's containers and behind mosec, LitServe, BentoML and PyTriton: goodput within 100 ms and
processor time for each answer, with 1, 8 and 32 clients that wait, and for Poisson arrivals at 0.5 to 3 times a capacity.

All sides serve the same file with the same batch limit, one process for the model, and get the same JSON over HTTP from the
same client, which gives an answer up at its deadline. Sides alternate, and each round begins with another one. Rivals are
installed into environments of their own, from python/requirements-rival-NAME.txt; what cannot be installed is named and
left out."""

import argparse
import asyncio
import itertools
import json
import os
import pathlib
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import aiohttp
import numpy as np
import skops.io
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier

from foliot_tools.server import ROOT, Server, free_ports

sys.path.insert(0, str(ROOT / "tests/figures"))
from figure import machine, say  # noqa: E402

DEADLINE = 0.1
CLIENTS = (1, 8, 32)
RATES = (0.5, 1, 1.5, 2, 3)  # of the capacity
BATCH_MS = 5  # how long rivals wait for a batch to fill; Foliot does not
DELAY_MS = 10  # how long Foliot waits on the side foliot_delayed: its p99 is then about that of the rivals
READY_SECONDS = 120

MOSEC = """
import numpy, skops.io
from mosec import Server, Worker

class Digits(Worker):
    def __init__(self):
        self.model = skops.io.load("digits.skops", trusted=["sklearn.tree._tree.Tree"])
    def forward(self, batch):
        return [int(digit) for digit in self.model.predict(numpy.array([row["pixels"] for row in batch], numpy.float32))]

if __name__ == "__main__":
    server = Server()
    server.append_worker(Digits, num=1, max_batch_size={batch}, max_wait_time={wait_ms})
    server.run()
"""
LITSERVE = """
import litserve, numpy, skops.io

class Digits(litserve.LitAPI):
    def setup(self, device):
        self.model = skops.io.load("digits.skops", trusted=["sklearn.tree._tree.Tree"])
    def decode_request(self, request):
        return request["pixels"]
    def batch(self, rows):
        return numpy.array(rows, numpy.float32)
    def predict(self, rows):
        return self.model.predict(numpy.atleast_2d(rows))
    def unbatch(self, digits):
        return list(digits)
    def encode_response(self, digit):
        return {{"digit": int(numpy.ravel(digit)[0])}}

if __name__ == "__main__":
    server = litserve.LitServer(Digits(max_batch_size={batch}, batch_timeout={wait_ms} / 1000), accelerator="cpu",
                                workers_per_device=1)
    server.run(host="127.0.0.1", port={port}, num_api_servers=1, generate_client_file=False, log_level="warning")
"""
BENTOML = """
import bentoml, numpy, skops.io

@bentoml.service(workers=1, traffic={{"timeout": 10}})
class Digits:
    def __init__(self):
        self.model = skops.io.load("digits.skops", trusted=["sklearn.tree._tree.Tree"])
    @bentoml.api(batchable=True, max_batch_size={batch}, max_latency_ms={deadline_ms})
    def predict(self, pixels: numpy.ndarray) -> numpy.ndarray:
        return self.model.predict(pixels.astype(numpy.float32)).astype(numpy.int64)
"""
PYTRITON = """
import numpy, skops.io
from pytriton.decorators import batch
from pytriton.model_config import DynamicBatcher, ModelConfig, Tensor
from pytriton.triton import Triton, TritonConfig

model = skops.io.load("digits.skops", trusted=["sklearn.tree._tree.Tree"])

@batch
def predict(pixels):
    return {{"digit": model.predict(pixels).reshape(-1, 1).astype(numpy.int64)}}

with Triton(config=TritonConfig(http_port={port}, grpc_port={grpc_port}, metrics_port={metrics_port})) as triton:
    triton.bind(model_name="digits", infer_func=predict, inputs=[Tensor(name="pixels", dtype=numpy.float32, shape=(64,))],
                outputs=[Tensor(name="digit", dtype=numpy.int64, shape=(1,))],
                config=ModelConfig(max_batch_size={batch},
                                   batcher=DynamicBatcher(max_queue_delay_microseconds={wait_ms} * 1000)))
    triton.serve()
"""
FOLIOT = """
import foliot, skops.io

model = skops.io.load("digits.skops", trusted=["sklearn.tree._tree.Tree"])

@foliot.model(inputs={{"pixels": ("FP32", [64])}}, outputs={{"digit": ("INT64", [])}}, batch_size_max={batch})
def predict(batch):
    return {{"digit": model.predict(batch["pixels"])}}
"""
KSERVE = "/v2/models/digits/infer"


def kserve_body(row):
    return {"inputs": [{"name": "pixels", "shape": [1, 64], "datatype": "FP32", "data": row}]}


def plain_body(row):
    return {"pixels": row}


class Side:
    """One server of the model while it runs: its address, and the processes that belong to it."""

    path, body = "/predict", staticmethod(plain_body)

    def __init__(self, name, folder, arguments):
        self.name = name
        self.folder = folder / name
        self.folder.mkdir()
        (self.folder / "digits.skops").write_bytes((folder / "digits.skops").read_bytes())
        self.arguments = arguments
        self.port, self.grpc_port, self.metrics_port = free_ports(3)
        self.process = None

    def fill(self, text):
        return text.format(batch=self.arguments.batch_size_max, wait_ms=BATCH_MS, deadline_ms=int(1000 * DEADLINE),
                           port=self.port, grpc_port=self.grpc_port, metrics_port=self.metrics_port)

    def python(self):
        return str(environment_of(self.name) / "bin/python")

    def start(self):
        (self.folder / "serve.py").write_text(self.fill(self.code))
        threads = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
        with open(self.folder / "console", "wb") as console:
            self.process = subprocess.Popen(self.command(), cwd=self.folder, stdout=console, stderr=subprocess.STDOUT,
                                            stdin=subprocess.DEVNULL, start_new_session=True, env={**os.environ, **threads})
        return self.process.pid

    def stop(self):
        os.killpg(self.process.pid, signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def address(self):
        return f"http://127.0.0.1:{self.port}{self.path}"


class Mosec(Side):
    code, path = MOSEC, "/inference"

    def command(self):
        return [self.python(), "serve.py", "--port", str(self.port), "--timeout", "10000", "--log-level", "warning"]


class LitServe(Side):
    code = LITSERVE

    def command(self):
        return [self.python(), "serve.py"]


class BentoMl(Side):
    code = BENTOML

    @staticmethod
    def body(row):
        return {"pixels": [row]}

    def command(self):
        return [self.python(), "-m", "bentoml", "serve", "serve:Digits", "--host", "127.0.0.1", "--port", str(self.port),
                "--working-dir", str(self.folder)]


class PyTriton(Side):
    code, path, body = PYTRITON, KSERVE, staticmethod(kserve_body)

    def command(self):
        return [self.python(), "serve.py"]


class Foliot(Side):
    path, body = KSERVE, staticmethod(kserve_body)
    settings = ""

    def start(self):
        version = self.folder / "models/digits/1"
        version.mkdir(parents=True, exist_ok=True)
        (version / "model.py").write_text(self.fill(FOLIOT))
        (version / "digits.skops").write_bytes((self.folder / "digits.skops").read_bytes())
        (version.parent / "model.toml").write_text(
            f'default_slo = "{int(1000 * DEADLINE)}ms"\n{self.settings}[container]\npython = "{sys.executable}"\n')
        self.server = Server(self.folder / "models", self.folder / "console").start()
        self.port = self.server.http_port
        return self.server.process.pid

    def stop(self):
        self.server.stop()


class DelayedFoliot(Foliot):
    """It waits for a batch to fill."""
    settings = f'batch_delay = "{DELAY_MS}ms"\n'


SIDES = {"foliot": Foliot, "foliot_delayed": DelayedFoliot, "mosec": Mosec, "litserve": LitServe, "bentoml": BentoMl,
         "pytriton": PyTriton}


def environment_of(rival):
    return ROOT / "build/rivals" / rival


def install(rival):
    """Makes the rival's environment if it is not there. Returns what went wrong, or None."""
    environment = environment_of(rival)
    requirements = ROOT / f"python/requirements-rival-{rival}.txt"
    stamp = environment / "made-from"
    if stamp.exists() and stamp.read_text() == requirements.read_text():
        return None
    say(f"installing {rival}")
    for command in ([sys.executable, "-m", "venv", "--clear", str(environment)],
                    [str(environment / "bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                     "--requirement", str(requirements)]):
        made = subprocess.run(command, capture_output=True, text=True, check=False)
        if made.returncode != 0:
            lines = (made.stderr.strip() or made.stdout.strip() or "no reason given").splitlines()
            return next((line for line in lines if line.startswith("ERROR")), lines[-1])
    stamp.write_text(requirements.read_text())
    return None


def write_model(folder):
    """Trains the model; returns rows to ask it about, and what it says of them."""
    digits = load_digits()
    rows = digits.data.astype(np.float32)
    model = RandomForestClassifier(n_estimators=100, random_state=1).fit(rows[:1000], digits.target[:1000])
    skops.io.dump(model, folder / "digits.skops")
    asked = rows[1000:]
    return asked.tolist(), model.predict(asked).tolist()


def family(pid):
    """The process and all that it started, directly or not, which live now."""
    children = {}
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append(int(entry.name))
    found = [pid]
    for parent in found:
        found += children.get(parent, [])
    return found


def processor_seconds(pid):
    """What the process and its descendants have used, those that ended included."""
    ticks = 0
    for each in family(pid):
        try:
            fields = pathlib.Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += sum(int(field) for field in fields[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def digit_in(answer):
    """The digit that any of the sides answers."""
    if isinstance(answer, dict):
        answer = answer["outputs"][0]["data"] if "outputs" in answer else answer["digit"]
    while isinstance(answer, list):
        answer = answer[0]
    return answer


class Load:
    """Asks one side, and counts what comes back in time, late, wrong, or not at all."""

    def __init__(self, side, rows, answers):
        self.address = side.address()
        self.bodies = [json.dumps(side.body(row)).encode() for row in rows]
        self.expected = answers
        self.counts = dict.fromkeys(("good", "late", "refused", "failed"), 0)
        self.latencies = []
        self.first_failure = None

    async def ask(self, session, index, due):
        """One request that was due then."""
        index %= len(self.bodies)
        try:
            left = due + DEADLINE - time.monotonic()
            if left <= 0:
                raise TimeoutError
            async with session.post(self.address, data=self.bodies[index], headers={"Content-Type": "application/json"},
                                    timeout=aiohttp.ClientTimeout(total=left)) as response:
                text = await response.read()
        except TimeoutError:
            self.counts["late"] += 1
            return
        except aiohttp.ClientError as error:
            self.fail(repr(error))
            return
        took = time.monotonic() - due
        if response.status in (429, 503, 504):
            self.counts["refused"] += 1
        elif response.status != 200 or digit_in(json.loads(text)) != self.expected[index]:
            self.fail(f"{response.status}: {text[:200]!r}")
        elif took > DEADLINE:
            self.counts["late"] += 1
        else:
            self.counts["good"] += 1
            self.latencies.append(took)

    def fail(self, why):
        self.counts["failed"] += 1
        self.first_failure = self.first_failure or why

    async def closed(self, clients, seconds):
        """Clients that each wait for their answer."""
        end = time.monotonic() + seconds

        async def client(first):
            index = first
            while time.monotonic() < end:
                await self.ask(session, index, time.monotonic())
                index += clients

        async with self.session() as session:
            await asyncio.gather(*(client(first) for first in range(clients)))

    async def open(self, rate, seconds, seed):
        """A Poisson process; each request counts from when it was due."""
        drawn = random.Random(seed)
        begin = due = time.monotonic()
        waiting = set()
        async with self.session() as session:
            index = 0
            while due < begin + seconds:
                due += drawn.expovariate(rate)
                await asyncio.sleep(max(0, due - time.monotonic()))
                task = asyncio.create_task(self.ask(session, index, due))
                waiting.add(task)
                task.add_done_callback(waiting.discard)
                index += 1
            await asyncio.gather(*waiting)

    @staticmethod
    def session():
        return aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))


def measure(side, pid, rows, answers, seconds, run):
    """Goodput, processor milliseconds for each good answer, p99 in ms, and the counts."""
    load = Load(side, rows, answers)
    begin, used = time.monotonic(), processor_seconds(pid)
    asyncio.run(run(load))
    # What was given up may still be computed, and is this run's.
    used, took = processor_seconds(pid) - used, max(seconds, time.monotonic() - begin)
    good = load.counts["good"]
    p99 = 1e3 * float(np.quantile(load.latencies, 0.99)) if load.latencies else float("nan")
    if load.first_failure:
        say(f"{side.name}: {load.counts['failed']} failed, the first: {load.first_failure}")
    return {"goodput": good / took, "cpu_ms": 1e3 * used / good if good else float("inf"), "p99_ms": p99, **load.counts}


def wait_until_ready(side, rows, answers):
    """Asks until the first right answer."""
    end = time.monotonic() + READY_SECONDS
    while time.monotonic() < end:
        load = Load(side, rows, answers)
        asyncio.run(load.closed(1, 0.2))
        if load.counts["good"] > 0:
            return
        if side.process is not None and side.process.poll() is not None:
            break
        time.sleep(0.2)
    raise RuntimeError(f"{side.name} did not become ready:\n{(side.folder / 'console').read_text(errors='replace')[-3000:]}")


class Results(dict):
    """{load: {side: [one measurement for each round]}}."""

    def add(self, load, side, measured):
        self.setdefault(load, {}).setdefault(side, []).append(measured)


def run_side(side, rows, answers, arguments, capacity, round_number, results):
    """All loads on one side, which is started for it. Returns the capacity, measured here if there was none."""
    pid = side.start()
    try:
        wait_until_ready(side, rows, answers)
        measure(side, pid, rows, answers, 1, lambda load: load.closed(8, 1))  # warms it up
        for clients in CLIENTS:
            measured = measure(side, pid, rows, answers, arguments.seconds,
                               lambda load, clients=clients: load.closed(clients, arguments.seconds))
            results.add(f"{clients} client{'s' if clients > 1 else ''}", side.name, measured)
            if clients == 8 and capacity is None:
                capacity = max(measured["goodput"], 1)
        for rate in RATES:
            measured = measure(side, pid, rows, answers, arguments.seconds,
                               lambda load, rate=rate: load.open(rate * capacity, arguments.seconds, round_number))
            results.add(f"Poisson {rate}x", side.name, measured)
    finally:
        side.stop()
    return capacity


def print_results(results, sides):
    def median(measurements, key):
        return statistics.median(each[key] for each in measurements)

    print(f"\n| load | side | answers/s within {1000 * DEADLINE:.0f} ms | CPU ms an answer | p99 ms | late | refused | failed |")
    print("|---|---|---|---|---|---|---|---|")
    for load, by_side in results.items():
        for name in sides:
            runs = by_side.get(name)
            if not runs:
                continue
            counts = " | ".join(str(sum(each[key] for each in runs)) for key in ("late", "refused", "failed"))
            print(f"| {load} | {name} | {median(runs, 'goodput'):.0f} | {median(runs, 'cpu_ms'):.3f} | "
                  f"{median(runs, 'p99_ms'):.1f} | {counts} |")
    print("\nGoodput and processor time of Foliot relative to each rival, the least and the most over all loads\n")
    own = [name for name in sides if issubclass(SIDES[name], Foliot)]
    for foliot, name in itertools.product(own, [name for name in sides if name not in own]):
        both = [(by_side[foliot], by_side[name]) for by_side in results.values() if name in by_side and foliot in by_side]
        answered = [(ours, its) for ours, its in both if median(its, "goodput") > 0]
        goodput, cpu = ([median(ours, key) / median(its, key) for ours, its in answered] for key in ("goodput", "cpu_ms"))
        if not answered:
            print(f"- {foliot} beside {name}: that answered nothing in time")
            continue
        silent = f"; that answered nothing in time at {len(both) - len(answered)} loads" if len(answered) < len(both) else ""
        print(f"- {foliot} beside {name}: goodput {min(goodput):.2f} to {max(goodput):.2f}, CPU {min(cpu):.2f} to {max(cpu):.2f}{silent}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sides", default=",".join(SIDES), help="of these; foliot always")
    parser.add_argument("--seconds", type=float, default=10, help="of each load in each round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batch-size-max", type=int, default=64, help="of all sides")
    parser.add_argument("--capacity", type=float, help="requests per second that 1x means; default: what the first side "
                        "of the first round answers 8 clients, rivals first")
    parser.add_argument("--quick", action="store_true", help="one round of 1 second: to see that it works")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.seconds, arguments.rounds = 1, 1
    wanted = [name for name in SIDES if name in arguments.sides.split(",") or name == "foliot"]
    left_out = {name: why for name in wanted if not issubclass(SIDES[name], Foliot) and (why := install(name)) is not None}
    sides = [name for name in wanted if name not in left_out]
    results, capacity = Results(), arguments.capacity
    with tempfile.TemporaryDirectory(prefix="foliot-rivals-") as folder:
        for round_number in range(arguments.rounds):
            round_folder = pathlib.Path(folder) / str(round_number)
            round_folder.mkdir()
            rows, answers = write_model(round_folder)
            shift = (round_number + 1) % len(sides)  # a rival is the first
            for name in sides[shift:] + sides[:shift]:
                say(f"round {round_number + 1} of {arguments.rounds}: {name}")
                try:
                    capacity = run_side(SIDES[name](name, round_folder, arguments), rows, answers, arguments, capacity,
                                        round_number, results)
                except RuntimeError as error:
                    left_out[name] = str(error)
                    say(str(error))
    print_results(results, [name for name in sides if name not in left_out])
    print(f"\n1x is {capacity:.0f} requests/s; medians of {arguments.rounds} rounds of {arguments.seconds:g} s; batches up to "
          f"{arguments.batch_size_max}; {machine()}")
    for name, why in left_out.items():
        print(f"\nLeft out: {name}: {why.strip().splitlines()[-1]}")


if __name__ == "__main__":
    main()
