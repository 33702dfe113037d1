"""A call ends by its deadline, whatever it waits for: a container that hangs, a worker or a controller that stands still,
a long EXEC, a model of an application, a stage of a pipeline."""

import contextlib
import http.client
import json
import sys
import time
import urllib.request

import numpy as np
import pytest
from onnx import TensorProto, helper

from foliot_tools import onnx_models
from foliot_tools.cluster import Cluster
from foliot_tools.server import frozen
from foliot_tools.waiting import await_output, eventually, standstills
from test_containers import is_gone, replicas

OPTIONS = {"page_size": "256KiB", "page_cache": "256MiB", "threads": 1}
# What a busy machine may add beside its standstills, which are measured. A call that waits for what hangs used to end a
# second late, or later.
LATE_SECONDS_MAX = 0.25
DEADLINES = [0.05, 0.15, 0.4, 0.7]
WORDS = {"expired", "late", "unmeetable", "overload", "worker_lost"}
HANGING = """import foliot, time

@foliot.model(inputs={"x": ("FP32", [4])}, outputs={"y": ("FP32", [4])}, batch_size_max=4)
def predict(batch):
    if batch["x"].max() > 8:
        time.sleep(3600)
    return {"y": 2 * batch["x"]}
"""
LONG = 1024
GOOD, BAD = [0, 1, 2, 3], [0, 1, 2, 9]
PIPELINE = """
[[stage]]
name = "first"
model = "double"
inputs = { x = "x" }
[[stage]]
name = "second"
model = "hanging"
inputs = { x = "first.y" }
[[output]]
name = "y"
from = "second.y"
"""


def write_hanging(folder):
    (folder / "1").mkdir(parents=True)
    (folder / "1/model.py").write_text(HANGING)
    (folder / "model.toml").write_text(f'[container]\npython = "{sys.executable}"\n')


def write_doubling(path):
    return onnx_models.save(path, [helper.make_node("MatMul", ["x", "w"], ["y"], "product")],
                            {"x": (TensorProto.FLOAT, ["batch", 4])}, {"y": (TensorProto.FLOAT, ["batch", 4])},
                            {"w": 2 * np.eye(4, dtype=np.float32)})


def write_long(folder, layers=12):
    """One row takes a good part of a second, on one core."""
    nodes = [helper.make_node("MatMul", [f"h{i}" if i else "x", "w"], [f"h{i + 1}" if i + 1 < layers else "y"], f"m{i}")
             for i in range(layers)]
    shape = (TensorProto.FLOAT, ["batch", LONG, LONG])
    onnx_models.save(folder / "model.onnx", nodes, {"x": shape}, {"y": shape}, {"w": np.eye(LONG, dtype=np.float32)})
    (folder / "model.toml").write_text("batch_sizes = [1]\n")


def call(address, model, values, seconds=None):
    """(status, reason or None, seconds that it took, without those in which the machine stood still)."""
    body = {"inputs": [{"name": "x", "shape": [1, 4], "datatype": "FP32", "data": values}]}
    if seconds is not None:
        body["parameters"] = {"timeout": int(seconds * 1e6)}
    connection = http.client.HTTPConnection(address, timeout=60)
    with contextlib.closing(connection):
        connection.connect()
        with standstills() as machine:
            begin = time.monotonic()
            connection.request("POST", f"/v2/models/{model}/infer", json.dumps(body))
            response = connection.getresponse()
            answer = json.loads(response.read())
            took = time.monotonic() - begin
        return response.status, answer.get("reason"), took - machine.seconds


def check_ends_in_time(address, model, values, seconds):
    status, reason, took = call(address, model, values, seconds)
    assert status in (503, 504) and reason in WORDS, (status, reason)
    assert took < seconds + LATE_SECONDS_MAX, f"{model}: {reason} after {took:.3f} s, with a deadline of {seconds} s"
    return reason


def await_served(server, model, seconds=1):
    eventually(lambda: call(server.http, model, GOOD, seconds)[0] == 200, otherwise=server.output)


@pytest.fixture(name="repository")
def models(tmp_path):
    folder = tmp_path / "models"
    write_hanging(folder / "hanging")
    for name in ("double", "twice"):
        write_doubling(folder / name / "model.onnx")
    return folder


@pytest.mark.parametrize("seconds", DEADLINES)
def test_a_container_that_hangs(repository, serve, seconds):
    server = serve(repository, **OPTIONS)
    await_served(server, "hanging")
    before = replicas(server)
    with standstills() as machine:
        began = time.monotonic()
        check_ends_in_time(server.http, "hanging", BAD, seconds)
        # What hangs does not outlive the deadline of what waits for it, nor a tenth of a second.
        eventually(lambda: all(is_gone(process) for process in before), otherwise=server.output)
        took = time.monotonic() - began
    assert took - machine.seconds < max(seconds, 0.3) + LATE_SECONDS_MAX
    await_served(server, "hanging")
    await_output(server, "did not answer within")


def test_a_container_that_hangs_without_a_deadline(repository, serve):
    """It has the time that it always had, and what waits for it another end than by the clock."""
    server = serve(repository, **OPTIONS)
    await_served(server, "hanging")
    status, reason, took = call(server.http, "hanging", BAD)
    assert (status, reason) == (503, "worker_lost") and took > 0.9
    await_served(server, "hanging")


def test_an_application_of_three_of_which_one_hangs(repository, serve):
    (repository / "three").mkdir()
    (repository / "three/application.toml").write_text('models = ["double", "hanging", "twice"]\npolicy = "majority"\n')
    (repository / "alone").mkdir()
    (repository / "alone/application.toml").write_text('models = ["hanging"]\npolicy = "static"\n')
    server = serve(repository, **OPTIONS)
    for seconds in DEADLINES:
        await_served(server, "hanging")
        for name in ("three", "alone"):
            status, reason, took = call(server.http, name, BAD, seconds)
            assert took < seconds + LATE_SECONDS_MAX, f"{name}: {status} {reason} after {took:.3f} s of {seconds} s"
            assert status == (200 if name == "three" else 504) or reason in WORDS, (status, reason)
            await_served(server, "hanging")


def test_a_pipeline_of_which_a_stage_hangs(repository, serve):
    (repository / "line").mkdir()
    (repository / "line/pipeline.toml").write_text(PIPELINE)
    server = serve(repository, **OPTIONS)
    for seconds in DEADLINES:
        await_served(server, "line")
        check_ends_in_time(server.http, "line", BAD, seconds)
    await_served(server, "line")


def test_small_requests_behind_a_long_exec(repository, serve):
    write_long(repository / "long")
    server = serve(repository, **OPTIONS)
    await_served(server, "double")
    body = bytes(4 * LONG * LONG)
    header = json.dumps({"inputs": [{"name": "x", "shape": [1, LONG, LONG], "datatype": "FP32",
                                     "parameters": {"binary_data_size": len(body)}}],
                         "parameters": {"binary_data_output": True}}).encode()
    connection = http.client.HTTPConnection(server.http, timeout=120)
    for _ in range(3):
        connection.request("POST", "/v2/models/long/infer", header + body,
                           {"Inference-Header-Content-Length": str(len(header))})
        ends = []
        while len(ends) < 10:
            status, reason, took = call(server.http, "double", GOOD, 0.02)
            assert status == 200 or reason in WORDS, (status, reason)
            assert took < 0.02 + LATE_SECONDS_MAX, f"{status} {reason} after {took:.3f} s"
            ends.append(status)
        response = connection.getresponse()
        response.read()
        assert response.status == 200


def discarded_of(frontend_metrics_port):
    with urllib.request.urlopen(f"http://127.0.0.1:{frontend_metrics_port}/metrics", timeout=10) as page:
        text = page.read().decode()
    return sum(float(line.split()[1]) for line in text.splitlines()
               if line.startswith("foliot_discarded_requests_total{"))


@pytest.mark.parametrize("who", ["worker", "controller"])
def test_a_part_of_a_cluster_that_stands_still(tmp_path, who):
    repository = tmp_path / "models"
    write_doubling(repository / "double/model.onnx")
    with Cluster(tmp_path, repository, workers=1, frontends=1) as cluster:
        (frontend,) = cluster.frontends
        part = cluster.workers[0] if who == "worker" else cluster.controller

        def is_served():
            return call(frontend.http, "double", GOOD, 1)[0] == 200

        for seconds in DEADLINES:
            eventually(is_served, otherwise=frontend.output)
            with frozen(part.process):
                check_ends_in_time(frontend.http, "double", GOOD, seconds)
        eventually(is_served, otherwise=frontend.output)
        eventually(lambda: discarded_of(frontend.metrics_port) > 0, otherwise=frontend.output)
