"""The alerts that are shipped fire when they should, and not before: a real Prometheus
server scrapes a cluster of processes while each fault is made. Minutes of the rules are
seconds here; nothing else of them is changed."""

import contextlib
import re
import signal
import subprocess
import threading
import time

import numpy as np
import pytest
import tritonclient.http as http_client
from onnx import TensorProto, helper
from tritonclient.utils import InferenceServerException

import test_pipeline_tuning
import test_tasks
from foliot import personal
from foliot_tools import onnx_models, prometheus
from foliot_tools.cluster import Cluster
from foliot_tools.jobs import TASK
from foliot_tools.server import foliot_binary

SMALL = 16  # models of one page each
PAGES = 6  # of a worker: the two hold some half of all models


def write_slow(path, layers=8, channels=64, size=56):
    """x [batch, 1, size, size] -> y: convolutions that take some 20 ms together, with few weights."""
    random = np.random.default_rng(1)
    nodes, weights, value = [], {}, "x"
    for i in range(layers):
        last = i == layers - 1
        extents = (1 if last else channels, 1 if i == 0 else channels, 3, 3)
        weights[f"w{i}"] = random.normal(0, 0.02, extents).astype(np.float32)
        output = "y" if last else f"h{i}"
        nodes.append(helper.make_node("Conv", [value, f"w{i}"], [output], f"conv{i}", pads=[1, 1, 1, 1]))
        value = output
    shape = ["batch", 1, size, size]
    onnx_models.save(path, nodes, {"x": (TensorProto.FLOAT, shape)}, {"y": (TensorProto.FLOAT, shape)}, weights)
    path.with_name("model.toml").write_text("batch_sizes = [1]\n")


@pytest.fixture(name="repository", scope="module")
def repository_of_models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("alerts") / "models"
    write_slow(folder / "slow/model.onnx")
    for i in range(SMALL):
        onnx_models.random_dense_network(folder / f"small_{i}/model.onnx", (64, 128, 10), seed=i)
    return folder


@contextlib.contextmanager
def load(frontend, model, rate, deadline):
    """Requests, so many a second, as long as the block lasts, whatever comes of them; `deadline` in seconds."""
    models = [] if model == "all" else ["--model", model]
    command = [foliot_binary(), "bench", "--url", frontend.grpc, *models, "--rate", f"{rate:.3f}", "--deadline",
               f"{deadline * 1000:.3f}ms", "--duration", "10m", "--warmup", "0s"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
        assert process.poll() is None, "the load ended by itself"
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def over_and_over(turn):
    """Calls `turn` again and again on a thread until the block ends; what it is given waits, and ends with the block."""
    over = threading.Event()

    def run():
        while not over.is_set():
            turn(over.wait)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@contextlib.contextmanager
def hiccups(parts, stopped, running=0.14):
    """Stops these processes again and again, for so many seconds each, as a machine does that others use."""
    def turn(pause):
        for part in parts:
            part.process.send_signal(signal.SIGSTOP)
        time.sleep(stopped)
        for part in parts:
            part.process.send_signal(signal.SIGCONT)
        pause(running)

    with over_and_over(turn):
        yield


def exec_seconds(watch, model):
    (_, microseconds), = watch.samples(f"nv_inference_compute_infer_duration_us{{model='{model}'}}"
                                       f" / nv_inference_request_success{{model='{model}'}}")
    return microseconds / 1e6


def target(part):
    return f"127.0.0.1:{part.metrics_port}"


def test_each_alert_fires_in_a_cluster_when_its_fault_is_made(repository, tmp_path):
    ready, why = prometheus.available()
    if not ready:
        pytest.skip(f"Prometheus cannot be had here: {why}")
    with Cluster(tmp_path, repository, frontends=1, metrics=True, page_size="256KiB",
                 page_cache=f"{256 * PAGES}KiB") as cluster:
        frontend, (first, second) = cluster.frontends[0], cluster.workers
        jobs = {"foliot-controller": [cluster.controller.metrics_port],
                "foliot-worker": [worker.metrics_port for worker in cluster.workers],
                "foliot-frontend": [frontend.metrics_port]}
        with prometheus.Prometheus(tmp_path / "prometheus", jobs) as watch:
            with load(frontend, "slow", 5, 5), load(frontend, "small_0", 20, 5):
                watch.wait(lambda: len(watch.samples("up == 1") or []) == 4, 10, "not all are scraped")
                time.sleep(7)  # longer than any window of the rules but one
                assert not watch.firing(), "without a fault"
                took = exec_seconds(watch, "slow")
                with load(frontend, "slow", 5, took / 10):
                    watch.await_alert("FoliotUnmeetable", "slow")
                    time.sleep(7)
                    assert ("FoliotMissesDeadlines", "slow") not in watch.firing(), "a deadline that no device can meet is not missed"
                with load(frontend, "slow", 0.5 / took, 4 * took), hiccups(cluster.workers, stopped=min(4 * took, 0.3)):
                    watch.await_alert("FoliotAnswersLate")
                    watch.await_alert("FoliotPredictsBadly", seconds=45)
                with load(frontend, "slow", 8 / took, 10 * took):
                    watch.await_alert("FoliotOverloaded", "slow")
                    watch.await_alert("FoliotMissesDeadlines", "slow")
                    watch.await_alert("FoliotMissesDeadlinesSlowly", "slow", seconds=45)
            with load(frontend, "all", 20, 5):
                watch.await_alert("FoliotThrashes", seconds=45)
            with load(frontend, "small_0", 20, 1):
                second.kill()
                watch.await_alert("FoliotDeviceDown", target(cluster.controller))
                watch.await_alert("FoliotDown", target(second))
                first.kill()
                watch.await_alert("FoliotLosesWork", "small_0")
            assert {name for name, _ in watch.seen} == shipped() - OF_SERVICES, "an alert has no fault here"


# Of tasks, pipelines and personal models.
OF_SERVICES = {"FoliotTaskRefused", "FoliotPipelineBeyondPlan", "FoliotPersonalRefused", "FoliotPersonalDrifts",
               "FoliotRetrainFails"}
FILMS = """
[retrain]
observations_max = 1
after_observations = 1
command = "false"
"""


def shipped():
    return set(re.findall(r"alert: (\w+)", prometheus.RULES.read_text()))


def write_services(tmp_path):
    """A task, a pipeline with a plan, and a personal model whose retraining fails."""
    folder = test_pipeline_tuning.write_repository(tmp_path / "models")
    test_pipeline_tuning.save_plan(tmp_path, folder / "cascade/pipeline.toml", folder / "cascade/plan.toml")
    test_tasks.write_network(folder / "small/model.onnx")
    test_tasks.write_network(folder / "large/model.onnx", shift=1, hidden=1024)
    test_tasks.write_task(folder, "classes", TASK)
    personal.write_items(folder / "films/1/items.features", np.arange(9), np.eye(9))
    (folder / "films/personal.toml").write_text(FILMS)
    return folder


@contextlib.contextmanager
def repeated(call):
    """Calls it again and again, whatever it answers."""
    def turn(pause):
        with contextlib.suppress(personal.PersonalError, InferenceServerException):
            call()
        pause(0.02)

    with over_and_over(turn):
        yield


def test_each_alert_about_a_service_fires_in_a_server(serve, tmp_path):
    ready, why = prometheus.available()
    if not ready:
        pytest.skip(f"Prometheus cannot be had here: {why}")
    server = serve(write_services(tmp_path), page_size="256KiB", page_cache="64MiB")
    with prometheus.Prometheus(tmp_path / "prometheus", {"foliot": [server.metrics_port]}) as watch:
        films = personal.Client(server.http, "films", timeout=10)
        time.sleep(7)  # longer than any window of the rules but one
        assert not watch.firing(), "without a fault"
        random = np.random.default_rng(1)
        for user in range(1, 5):
            films.observe_all([personal.Observation(user, item, random.normal()) for item in random.integers(0, 9, 400)])
        hurried = personal.Client(server.http, "films", timeout=1e-6)
        test_tasks.infer(http_client, server.http, test_tasks.rows_of(0))
        with (repeated(lambda: hurried.predict(1, 1)),
              repeated(lambda: test_tasks.infer(http_client, server.http, test_tasks.rows_of(0), timeout=50)),
              test_pipeline_tuning.Load(server.http)):
            watch.await_alert("FoliotRetrainFails", "films")
            watch.await_alert("FoliotPersonalRefused", "films")
            watch.await_alert("FoliotTaskRefused", "classes")
            watch.await_alert("FoliotPersonalDrifts", "films", seconds=90)
            watch.await_alert("FoliotPipelineBeyondPlan", "cascade", seconds=90)
        assert OF_SERVICES <= {name for name, _ in watch.seen}
