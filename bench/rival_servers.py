"""The servers of bench/rivals.py: how each of them is installed, started and asked to serve the module `digits` of
bench/rival_models.py."""

import os
import shutil
import signal
import subprocess
import sys

from foliot_tools.server import ROOT, Server, free_ports

sys.path.insert(0, str(ROOT / "tests/figures"))
from figure import say  # noqa: E402

DEADLINE = 0.1

MOSEC = """
import numpy
from mosec import Server, Worker

class Digits(Worker):
    def __init__(self):
        from digits import predict
        self.predict = predict
    def forward(self, batch):
        return [int(digit) for digit in self.predict(numpy.array([row["pixels"] for row in batch], numpy.float32))]

if __name__ == "__main__":
    server = Server()
    server.append_worker(Digits, num=1, max_batch_size={batch}, max_wait_time={wait_ms})
    server.run()
"""
LITSERVE = """
import litserve, numpy

class Digits(litserve.LitAPI):
    def setup(self, device):
        from digits import predict
        self.predict_rows = predict
    def decode_request(self, request):
        return request["pixels"]
    def batch(self, rows):
        return numpy.array(rows, numpy.float32)
    def predict(self, rows):
        return self.predict_rows(numpy.atleast_2d(rows))
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
import bentoml, numpy

@bentoml.service(workers=1, traffic={{"timeout": 10}})
class Digits:
    def __init__(self):
        from digits import predict
        self.predict_rows = predict
    @bentoml.api(batchable=True, max_batch_size={batch}, max_latency_ms={deadline_ms})
    def predict(self, pixels: numpy.ndarray) -> numpy.ndarray:
        return self.predict_rows(pixels.astype(numpy.float32)).astype(numpy.int64)
"""
PYTRITON = """
import numpy
from digits import predict
from pytriton.decorators import batch
from pytriton.model_config import DynamicBatcher, ModelConfig, Tensor
from pytriton.triton import Triton, TritonConfig

@batch
def infer(pixels):
    return {{"digit": predict(pixels).reshape(-1, 1).astype(numpy.int64)}}

with Triton(config=TritonConfig(http_port={port}, grpc_port={grpc_port}, metrics_port={metrics_port})) as triton:
    triton.bind(model_name="digits", infer_func=infer, inputs=[Tensor(name="pixels", dtype=numpy.float32, shape=(64,))],
                outputs=[Tensor(name="digit", dtype=numpy.int64, shape=(1,))],
                config=ModelConfig(max_batch_size={batch},
                                   batcher=DynamicBatcher(max_queue_delay_microseconds={wait_ms} * 1000)))
    triton.serve()
"""
FOLIOT = """
import digits, foliot

@foliot.model(inputs={{"pixels": ("FP32", [64])}}, outputs={{"digit": ("INT64", [])}}, batch_size_max={batch})
def predict(batch):
    return {{"digit": digits.predict(batch["pixels"])}}
"""
KSERVE = "/v2/models/digits/infer"


def kserve_body(row):
    return {"inputs": [{"name": "pixels", "shape": [1, 64], "datatype": "FP32", "data": row}]}


def plain_body(row):
    return {"pixels": row}


class Side:
    """One server of the model while it runs: its address, and the processes that belong to it. `model` is the folder that
    the model was written into, `wait_ms` for how long a rival waits for a batch to fill. Foliot finds that itself."""

    path, body = "/predict", staticmethod(plain_body)

    def __init__(self, name, model, folder, batch_size_max, wait_ms):
        self.name = name
        self.model = model
        self.folder = folder
        self.batch_size_max = batch_size_max
        self.wait_ms = wait_ms
        self.port, self.grpc_port, self.metrics_port = free_ports(3)
        self.process = None

    def write_code(self, folder, name):
        """The model, and the server's code for it."""
        shutil.copytree(self.model, folder)
        text = self.code.format(batch=self.batch_size_max, wait_ms=self.wait_ms, deadline_ms=int(1000 * DEADLINE), port=self.port,
                                grpc_port=self.grpc_port, metrics_port=self.metrics_port)
        (folder / name).write_text(text)

    def python(self):
        return str(environment_of(self.name) / "bin/python")

    def console(self):
        """What it has printed."""
        return (self.folder / "console").read_text(errors="replace")

    def start(self):
        self.write_code(self.folder, "serve.py")
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
    code, path, body = FOLIOT, KSERVE, staticmethod(kserve_body)

    def start(self):
        repository = self.folder / "models"
        self.write_code(repository / "digits/1", "model.py")
        (repository / "digits/model.toml").write_text(
            f'default_slo = "{int(1000 * DEADLINE)}ms"\n[container]\npython = "{sys.executable}"\n')
        self.server = Server(repository, self.folder / "console").start()
        self.port = self.server.http_port
        return self.server.process.pid

    def stop(self):
        self.server.stop()


SIDES = {"foliot": Foliot, "mosec": Mosec, "litserve": LitServe, "bentoml": BentoMl,
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
