"""A model is served from its smallest batch size on, while the others are compiled: over a server's start, and when
it comes later. What is held up is the compiling process, so nothing here depends on how long anything takes."""

import contextlib
import os
import pathlib
import signal
import subprocess
import threading

import numpy as np
import pytest
import tritonclient.http as triton
from onnx import TensorProto, helper

from foliot_tools import onnx_models
from foliot_tools.cluster import Cluster
from foliot_tools.server import Server
from foliot_tools.waiting import await_output, eventually

OPTIONS = {"page_size": "256KiB", "page_cache": "256MiB", "compile_in_background": "false", "compilations": 1}
SIZES = (64, 2048, 2048, 10)  # files of more than 256 KiB: smaller models are compiled as a whole at once
ALL = [1, 2, 4, 8, 16, 32, 64]


def write(folder, name, seed=0):
    path = onnx_models.random_dense_network(folder / name / "model.onnx", SIZES, seed=seed)
    (folder / name / "model.toml").write_text(f"batch_sizes = {ALL}\n")
    return path


def infer(address, model, rows=1):
    with triton.InferenceServerClient(address, network_timeout=60) as client:
        request = triton.InferInput("pixels", [rows, 64], "FP32")
        request.set_data_from_numpy(np.full((rows, 64), 0.5, np.float32))
        return client.infer(model, [request]).as_numpy("probabilities")


def is_ready(server, model):
    with contextlib.suppress(OSError), triton.InferenceServerClient(server.http) as client:
        return client.is_model_ready(model)
    return False


def batch_sizes(address, model):
    with triton.InferenceServerClient(address) as client:
        return client.get_model_config(model)["dynamic_batching"]["preferred_batch_size"]


def processes():
    """(process, parent, command line) of all there are."""
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            yield int(folder.name), parent, (folder / "cmdline").read_bytes()


class Held:
    """Stops every process that compiles for `server` until release(); not those that stand by."""

    def __init__(self, server):
        self._server = server
        self._stopped = set()
        self._released = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self.release()

    def _run(self):
        while not self._released.wait(0.001):
            self._stop()

    def _stop(self):
        everything = list(processes())
        children = {process: b"stand-by" in line for process, parent, line in everything
                    if parent == self._server.process.pid and b"confined-compile" in line}
        compilers = {process for process, stands_by in children.items() if not stands_by}
        compilers |= {process for process, parent, _ in everything if children.get(parent)}
        for process in compilers - self._stopped:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGSTOP)
                self._stopped.add(process)

    def stops_something(self):
        return bool(self._stopped)

    def release(self):
        self._released.set()
        if self._thread.is_alive():
            self._thread.join()
        for process in self._stopped:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGCONT)
        self._stopped.clear()


def packages(cache):
    return list(pathlib.Path(cache).glob("*.foliot"))


@contextlib.contextmanager
def launched(repository, tmp_path, **options):
    """A server that is not waited for."""
    server = Server(repository, tmp_path / "console", **{**OPTIONS, **options})
    with open(server.console, "wb") as console:
        server.process = subprocess.Popen(server.command, stdout=console, stderr=subprocess.STDOUT)
    try:
        yield server
    finally:
        assert server.stop() == 0, server.output()


def test_the_first_answer_does_not_wait_for_all_batch_sizes(tmp_path):
    repository, cache = tmp_path / "models", tmp_path / "cache"
    write(repository, "dense")
    with launched(repository, tmp_path, cache=cache) as server:
        eventually(lambda: is_ready(server, "dense"), otherwise=server.output)
        with Held(server) as held:
            eventually(held.stops_something, otherwise=server.output)
            first = infer(server.http, "dense", rows=3)
            assert not packages(cache), "the whole model is compiled already"
            assert batch_sizes(server.http, "dense") == [1]
            assert server.get("/v2/health/ready")[0] == 200
            held.release()
            failures, answers, stop = [], [], threading.Event()

            def ask():
                while not stop.is_set():
                    try:
                        answers.append(infer(server.http, "dense", rows=3))
                    except Exception as error:  # noqa: BLE001: whatever the client raises is what is tested
                        failures.append(error)

            clients = [threading.Thread(target=ask) for _ in range(3)]
            for client in clients:
                client.start()
            eventually(lambda: batch_sizes(server.http, "dense") == ALL, otherwise=server.output)
            count = len(answers)
            eventually(lambda: len(answers) > count + 20)
            stop.set()
            for client in clients:
                client.join()
        assert not failures, failures[:3]
        for answer in answers:
            np.testing.assert_allclose(answer, first, rtol=1e-4, atol=1e-6)
        assert len(packages(cache)) == 1
    assert len(list(cache.iterdir())) == 1

    with launched(repository, tmp_path, cache=cache) as again:
        eventually(lambda: is_ready(again, "dense"), otherwise=again.output)
        assert batch_sizes(again.http, "dense") == ALL
        assert "compiling" not in again.output()


def test_a_stop_during_the_second_step_leaves_nothing_half_done(tmp_path):
    repository, cache = tmp_path / "models", tmp_path / "cache"
    write(repository, "dense")
    with launched(repository, tmp_path, cache=cache) as server:
        eventually(lambda: is_ready(server, "dense"), otherwise=server.output)
        with Held(server) as held:
            eventually(held.stops_something, otherwise=server.output)
            assert server.stop() == 0
        assert "batch size alone" not in server.output()
    assert not list(cache.iterdir())


def write_wide(folder):
    """x [batch, 1] -> y [batch, 1], by way of 80 MB for each row: 64 take more than may be planned."""
    onnx_models.save(
        folder / "model.onnx",
        [helper.make_node("Tile", ["x", "repeats"], ["wide"], "tile"),
         helper.make_node("Exp", ["wide"], ["exponents"], "exponents"),
         helper.make_node("ReduceMax", ["exponents"], ["y"], "largest", axes=[1], keepdims=1)],
        {"x": (TensorProto.FLOAT, ["batch", 1])},
        {"y": (TensorProto.FLOAT, ["batch", 1])},
        {"repeats": np.array([1, 20_000_000], np.int64)},
    )
    (folder / "model.toml").write_text("batch_sizes = [1, 64]\n")
    (folder / "large.bin").write_bytes(bytes(300_000))


def test_a_model_whose_larger_sizes_cannot_be_compiled_says_so(tmp_path, serve):
    write_wide(tmp_path / "models/wide")
    server = serve(tmp_path / "models", **OPTIONS)

    def entry():
        (entry,) = server.post("/v2/repository/index")[1]
        return entry

    eventually(lambda: entry()["reason"], otherwise=server.output)
    assert "smallest batch size alone" in entry()["reason"] and "batch size 64 needs" in entry()["reason"]
    assert entry()["state"] == "READY"
    with triton.InferenceServerClient(server.http, network_timeout=60) as client:
        request = triton.InferInput("x", [2, 1], "FP32")
        request.set_data_from_numpy(np.zeros((2, 1), np.float32))
        np.testing.assert_array_equal(client.infer("wide", [request]).as_numpy("y"), [[1], [1]])
    await_output(server, "batch size 64 needs")


@pytest.mark.parametrize("by", ["client", "watch"])
def test_a_model_that_comes_later_is_served_from_its_smallest_size_on(tmp_path, serve, by):
    repository, cache = tmp_path / "models", tmp_path / "cache"
    onnx_models.constant(repository / "m/1/model.onnx", 1)
    server = serve(repository, cache=cache, **OPTIONS, **({"watch": "100ms"} if by == "watch" else {}))
    write(tmp_path, "late")
    (tmp_path / "late").rename(repository / "late")
    if by == "client":
        assert server.post("/v2/repository/models/late/load")[0] == 200
        assert is_ready(server, "late")
    eventually(lambda: is_ready(server, "late"), otherwise=server.output)
    with Held(server) as held:
        assert infer(server.http, "late").shape == (1, 10)
        assert batch_sizes(server.http, "late") == [1] and len(packages(cache)) == 1
        eventually(held.stops_something, otherwise=server.output)
    eventually(lambda: batch_sizes(server.http, "late") == ALL, otherwise=server.output)


def test_all_first_sizes_come_before_the_larger_ones_of_any(tmp_path):
    repository, cache = tmp_path / "models", tmp_path / "cache"
    names = [f"dense{i}" for i in range(4)]
    for i, name in enumerate(names):
        write(repository, name, seed=i)
    with launched(repository, tmp_path, cache=cache) as server:
        eventually(lambda: all(is_ready(server, name) for name in names), otherwise=server.output)
        with Held(server) as held:
            assert len(packages(cache)) < len(names) - 1, "others were compiled as a whole meanwhile"
            eventually(held.stops_something, otherwise=server.output)
            for name in names:
                assert infer(server.http, name).shape == (1, 10)
        eventually(lambda: all(batch_sizes(server.http, name) == ALL for name in names), 120, server.output)


def test_workers_serve_from_the_smallest_size_on(tmp_path):
    for worker in ("worker0", "worker1"):
        write(tmp_path / worker, "dense")
    options = {"page_cache": "256MiB", "compile_in_background": "false", "compilations": 1}
    with Cluster(tmp_path, lambda name: tmp_path / name, frontends=1, **options) as cluster:
        (frontend,) = cluster.frontends
        failures, answers, stop = [], [], threading.Event()

        def ask():
            while not stop.is_set():
                try:
                    answers.append(infer(frontend.http, "dense", rows=3))
                except Exception as error:  # noqa: BLE001: whatever the client raises is what is tested
                    failures.append(error)

        client = threading.Thread(target=ask)
        client.start()
        eventually(lambda: batch_sizes(frontend.http, "dense") == ALL, 120, cluster.workers[0].output)
        count = len(answers)
        eventually(lambda: len(answers) > count + 20)
        stop.set()
        client.join()
        assert not failures, failures[:3]
        for answer in answers:
            np.testing.assert_allclose(answer, answers[0], rtol=1e-4, atol=1e-6)
