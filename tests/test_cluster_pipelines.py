"""Pipelines of a cluster: stages on several workers, which pass what they compute to one another."""

import re
import urllib.request

import numpy as np
import pytest
import tritonclient.http as http_client
from tritonclient.utils import InferenceServerException

from foliot_tools import onnx_models
from foliot_tools.cluster import Cluster
from foliot_tools.model_check import open_session
from foliot_tools.waiting import eventually
from onnx import TensorProto, helper
from cluster_calls import check_one_end_each_though_a_worker_is_killed, is_ready, reason_of
from test_pipelines import CASCADE, WEIGHTS, expected, infer, write_linear, write_pipeline
from test_steps import photo

CLASSIFY = """
[[stage]]
name = "decode"
step = "decode"
width = 32
height = 32
inputs = { bytes = "photo" }

[[stage]]
name = "normalise"
step = "normalise"
inputs = { image = "decode.image" }

[[stage]]
name = "cheap"
model = "small"
inputs = { image = "normalise.tensor" }

[[stage]]
name = "fine"
model = "big"
inputs = { image = "normalise.tensor" }
when = [{ output = "cheap.scores", value = "element", element = 0, below = LIMIT }]

[[output]]
name = "tensor"
from = "normalise.tensor"

[[output]]
name = "scores"
from = ["fine.scores", "cheap.scores"]
"""


def write_classifier(path, channels, seed, classes=16):
    """Pointwise and depthwise convolutions, as MobileNetV2 has, then the mean of each channel, and classes of that."""
    random = np.random.default_rng(seed)
    return onnx_models.save(
        path,
        [helper.make_node("Conv", ["image", "expand"], ["wide"], "wide", kernel_shape=[1, 1]),
         helper.make_node("Relu", ["wide"], ["bounded"], "bounded"),
         helper.make_node("Conv", ["bounded", "depth"], ["deep"], "deep", kernel_shape=[3, 3], group=channels,
                          pads=[1, 1, 1, 1], strides=[2, 2]),
         helper.make_node("GlobalAveragePool", ["deep"], ["pooled"], "pooled"),
         helper.make_node("Flatten", ["pooled"], ["means"], "means"),
         helper.make_node("MatMul", ["means", "classes"], ["scores"], "classes")],
        {"image": (TensorProto.FLOAT, ["batch", 3, 32, 32])}, {"scores": (TensorProto.FLOAT, ["batch", classes])},
        {"classes": random.normal(size=(channels, classes)).astype(np.float32),
         "expand": random.normal(size=(channels, 3, 1, 1)).astype(np.float32),
         "depth": random.normal(size=(channels, 1, 3, 3)).astype(np.float32),
         })


@pytest.fixture(name="repository")
def models(tmp_path):
    folder = tmp_path / "models"
    for name, weights in (("cheap", WEIGHTS), ("fine", -WEIGHTS), ("doubling", 2 * np.eye(4, dtype=np.float32))):
        write_linear(folder / name / "model.onnx", weights)
    write_pipeline(folder, "cascade", CASCADE)
    return folder


def await_pipeline(frontend, name="cascade"):
    eventually(lambda: is_ready(frontend, name), timeout=60)


def stage_input_bytes(part):
    """By where they were held: own_memory, other_worker."""
    text = urllib.request.urlopen(f"http://127.0.0.1:{part.metrics_port}/metrics").read().decode()
    found = re.findall(r'foliot_worker_stage_input_bytes_total\{from="(\w+)"\} (\S+)', text)
    return {name: float(value) for name, value in found}


def test_stages_on_one_worker_pass_nothing_over_sockets(repository, tmp_path):
    with Cluster(tmp_path, repository, workers=1, frontends=1, metrics=True) as cluster:
        await_pipeline(cluster.frontends[0])
        rows = np.random.default_rng(1).uniform(-1, 2, (40, 4)).astype(np.float32)
        scores, fine = expected(rows)
        assert 0 < (fine[:, 0] == -1).sum() < 40, "some rows visit the stage, and some do not"
        result = infer(http_client, cluster.frontends[0].http, "cascade", rows)
        np.testing.assert_allclose(result.as_numpy("scores"), scores, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(result.as_numpy("fine"), fine, rtol=1e-5, atol=1e-6)
        assert stage_input_bytes(cluster.workers[0]) == {"own_memory": 40 * 16, "other_worker": 0}
        cluster.controller.await_line("pipeline 'cascade' is served")


def test_photos_are_classified_by_two_workers(tmp_path):
    """Decoded by one or the other, classified by a small network and, on its advice, by a large one."""
    folder = tmp_path / "models"
    sessions = {name: open_session(write_classifier(folder / name / "model.onnx", width, width))
                for name, width in (("small", 16), ("big", 96))}

    def of(name, tensor):
        return sessions[name].run(None, {"image": tensor})[0]

    def classify(frontend, name, jpeg):
        given = http_client.InferInput("photo", [1, len(jpeg)], "UINT8")
        given.set_data_from_numpy(np.frombuffer(jpeg, np.uint8)[None])
        with http_client.InferenceServerClient(frontend.http) as client:
            answer = client.infer(name, [given], timeout=20_000_000)
        return answer.as_numpy("tensor"), answer.as_numpy("scores")

    jpegs = [photo(seed, 200 + 10 * seed, 150) for seed in range(8)]
    write_pipeline(folder, "plain", CLASSIFY.replace("LIMIT", "-1e9"))
    with Cluster(tmp_path, folder, frontends=1) as cluster:
        await_pipeline(cluster.frontends[0], "plain")
        tensors = [classify(cluster.frontends[0], "plain", jpeg)[0] for jpeg in jpegs]
    limit = float(np.median([of("small", tensor)[0, 0] for tensor in tensors]))
    write_pipeline(folder, "advised", CLASSIFY.replace("LIMIT", repr(limit)))
    (folder / "plain" / "pipeline.toml").unlink()
    (folder / "plain").rmdir()
    with Cluster(tmp_path, folder, frontends=1, metrics=True) as cluster:
        frontend = cluster.frontends[0]
        await_pipeline(frontend, "advised")
        for jpeg in jpegs * 4:
            tensor, scores = classify(frontend, "advised", jpeg)
            name = "big" if of("small", tensor)[0, 0] < limit else "small"
            np.testing.assert_allclose(scores, of(name, tensor), rtol=1e-3, atol=1e-3)
        with pytest.raises(InferenceServerException, match="decode"):
            classify(frontend, "advised", jpegs[0][:200])
        assert sum(sum(stage_input_bytes(worker).values()) for worker in cluster.workers) >= 32 * 3 * 32 * 32 * 4


def test_a_file_that_differs_between_workers_is_an_error_that_names_it(repository, tmp_path):
    other = tmp_path / "other"
    for name, weights in (("cheap", WEIGHTS), ("fine", -WEIGHTS), ("doubling", 2 * np.eye(4, dtype=np.float32))):
        write_linear(other / name / "model.onnx", weights)
    write_pipeline(other, "cascade", CASCADE.replace("below = 2.5", "below = 2.6"))
    with Cluster(tmp_path, lambda name: repository if name == "worker0" else other, frontends=1) as cluster:
        cluster.controller.await_line("pipeline 'cascade' (lacks something|is not served): the workers have different files")
        (frontend,) = cluster.frontends
        eventually(lambda: "different files cascade/pipeline.toml" in reason_of(frontend, "cascade"))


def test_each_call_has_one_answer_though_a_worker_is_killed(repository, tmp_path):
    with Cluster(tmp_path, repository, workers=2, frontends=1) as cluster:
        (frontend,) = cluster.frontends
        await_pipeline(frontend)

        def call(random):
            rows = random.uniform(-1, 2, (4, 4)).astype(np.float32)
            result = infer(http_client, frontend.http, "cascade", rows, timeout=5_000_000)
            right = np.allclose(result.as_numpy("scores"), expected(rows)[0], rtol=1e-5, atol=1e-6)
            return "served" if right else f"{rows}: {result.as_numpy('scores')}"

        check_one_end_each_though_a_worker_is_killed(cluster, call)
