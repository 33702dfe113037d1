"""Stages that are visited for each element of an output: a detector's boxes are classified one by one."""

import shutil

import numpy as np
import pytest
import tritonclient.grpc as grpc_client
import tritonclient.http as http_client
from onnx import TensorProto, helper
from tritonclient.utils import InferenceServerException

import foliot
from foliot_tools import onnx_models
from foliot_tools.cluster import Cluster
from foliot_tools.model_check import open_session
from cluster_calls import check_one_end_each_though_a_worker_is_killed
from test_cluster_pipelines import await_pipeline, stage_input_bytes
from test_pipelines import start

CELLS = 4  # of an image, each of which is an object or none
CLASSES = 5


def write_detector(path):
    """A convolution says of each quarter of an image how sure it is that there is an object. The output: how many it is
    sure of, and all quarters and their corners, with the surest first."""
    random = np.random.default_rng(1)
    corners = np.array([[y, x, y + 8, x + 8] for y in (0, 8) for x in (0, 8)], np.float32)
    return onnx_models.save(
        path,
        [helper.make_node("Conv", ["image", "filters"], ["map"], "map", kernel_shape=[8, 8], strides=[8, 8]),
         helper.make_node("Flatten", ["map"], ["sure"], "sure"),
         helper.make_node("Greater", ["sure", "zero"], ["found"], "found"),
         helper.make_node("Cast", ["found"], ["ones"], "ones", to=TensorProto.FLOAT),
         helper.make_node("ReduceSum", ["ones", "axis"], ["count"], "count", keepdims=1),
         helper.make_node("TopK", ["sure", "cells"], ["surest", "order"], "order", axis=1),
         helper.make_node("Gather", ["corners", "order"], ["boxes"], "boxes", axis=0),
         helper.make_node("Reshape", ["image", "split"], ["parts"], "parts"),
         helper.make_node("Transpose", ["parts"], ["cut"], "cut", perm=[0, 2, 4, 1, 3, 5]),
         helper.make_node("Reshape", ["cut", "joined"], ["quarters"], "quarters"),
         helper.make_node("Unsqueeze", ["order", "last"], ["places"], "places"),
         helper.make_node("GatherND", ["quarters", "places"], ["crops"], "crops", batch_dims=1)],
        {"image": (TensorProto.FLOAT, ["batch", 3, 16, 16])},
        {"count": (TensorProto.FLOAT, ["batch", 1]), "boxes": (TensorProto.FLOAT, ["batch", CELLS, 4]),
         "crops": (TensorProto.FLOAT, ["batch", CELLS, 3, 8, 8])},
        {"filters": random.normal(size=(1, 3, 8, 8)).astype(np.float32), "zero": np.zeros(1, np.float32),
         "axis": np.array([1]), "cells": np.array([CELLS]), "corners": corners, "split": np.array([0, 3, 2, 8, 2, 8]),
         "joined": np.array([0, CELLS, 3, 8, 8]), "last": np.array([2])})


def write_classifier(path):
    """Scores of a crop and of where it was."""
    random = np.random.default_rng(2)
    return onnx_models.save(
        path,
        [helper.make_node("Conv", ["crop", "filters"], ["maps"], "maps", kernel_shape=[3, 3]),
         helper.make_node("Relu", ["maps"], ["bounded"], "bounded"),
         helper.make_node("GlobalAveragePool", ["bounded"], ["pooled"], "pooled"),
         helper.make_node("Flatten", ["pooled"], ["means"], "means"),
         helper.make_node("Concat", ["means", "box"], ["features"], "features", axis=1),
         helper.make_node("MatMul", ["features", "weights"], ["scores"], "scores")],
        {"crop": (TensorProto.FLOAT, ["batch", 3, 8, 8]), "box": (TensorProto.FLOAT, ["batch", 4])},
        {"scores": (TensorProto.FLOAT, ["batch", CLASSES])},
        {"filters": random.normal(size=(6, 3, 3, 3)).astype(np.float32),
         "weights": random.normal(size=(10, CLASSES)).astype(np.float32)})


def write_sum(path):
    """Of the scores of all boxes, the sum of each class."""
    return onnx_models.save(path, [helper.make_node("ReduceSum", ["scores", "axis"], ["sums"], "sums", keepdims=0)],
                            {"scores": (TensorProto.FLOAT, ["batch", CELLS, CLASSES])},
                            {"sums": (TensorProto.FLOAT, ["batch", CLASSES])}, {"axis": np.array([1])})


def write_teller(path):
    """A number of the call becomes a count."""
    return onnx_models.save(path, [helper.make_node("Mul", ["number", "one"], ["count"], "count")],
                            {"number": (TensorProto.FLOAT, ["batch", 1])}, {"count": (TensorProto.FLOAT, ["batch", 1])},
                            {"one": np.ones(1, np.float32)})


def write_doubler(path):
    return onnx_models.save(path, [helper.make_node("Add", ["x", "x"], ["y"], "y")],
                            {"x": (TensorProto.FLOAT, ["batch", 4])}, {"y": (TensorProto.FLOAT, ["batch", 4])})


@pytest.fixture(name="street", scope="module")
def models(tmp_path_factory):
    """(repository, sessions by name) of the pipelines "street" and "counted"."""
    folder = tmp_path_factory.mktemp("street") / "models"
    written = {name: write(folder / name / "model.onnx") for name, write in
               (("detector", write_detector), ("classifier", write_classifier), ("sum", write_sum),
                ("teller", write_teller), ("doubler", write_doubler))}
    p = foliot.Pipeline("street", slo="20s")
    found = p.model("detect", "detector")(image=p.input("image"))
    scores = p.model("classify", "classifier", for_each=found.count.at_most(CELLS))(
        crop=found.crops.each(), box=found.boxes.each()).scores
    p.output("count", found.count)
    p.output("scores", scores, fill=-1)
    p.output("sums", p.model("sum", "sum")(scores=scores).sums)
    p.write(folder)
    p = foliot.Pipeline("counted", slo="20s")
    given = p.model("tell", "teller")(number=p.input("number"))
    p.output("y", p.model("double", "doubler", for_each=given.count.at_most(3))(x=p.input("x").each()).y, fill=7)
    p.write(folder)
    return folder, {name: open_session(path) for name, path in written.items()}


def images(count, seed=3):
    return np.random.default_rng(seed).normal(size=(count, 3, 16, 16)).astype(np.float32)


def infer(module, address, name, **tensors):
    inputs = []
    for tensor, rows in tensors.items():
        inputs.append(module.InferInput(tensor, list(rows.shape), "FP32"))
        inputs[-1].set_data_from_numpy(rows)
    with module.InferenceServerClient(address) as client:
        return client.infer(name, inputs)


def check_street(answer, rows, sessions):
    """What the models say in onnxruntime, one after another."""
    counts, boxes, crops = sessions["detector"].run(None, {"image": rows})
    np.testing.assert_array_equal(answer.as_numpy("count"), counts)
    scores = np.full((len(rows), CELLS, CLASSES), -1, np.float32)
    for row, count in enumerate(counts[:, 0].astype(int)):
        if count > 0:
            given = {"crop": crops[row, :count], "box": boxes[row, :count]}
            scores[row, :count] = sessions["classifier"].run(None, given)[0]
    np.testing.assert_allclose(answer.as_numpy("scores"), scores, rtol=1e-4, atol=1e-4)
    sums = np.where(np.arange(CELLS)[None, :, None] < counts[:, :, None], scores, 0).sum(axis=1)
    np.testing.assert_allclose(answer.as_numpy("sums"), sums, rtol=1e-4, atol=1e-3)
    return counts[:, 0]


def check_counts(module, address):
    """Each number of elements, and what is none."""
    x = np.arange(12, dtype=np.float32).reshape(1, 3, 4)
    for count in range(4):
        expected = np.where(np.arange(3)[None, :, None] < count, 2 * x, 7)
        answer = infer(module, address, "counted", number=np.full((1, 1), count, np.float32), x=x)
        np.testing.assert_array_equal(answer.as_numpy("y"), expected)
    for text, count in (("4", 4), ("-1", -1), ("1.5", 1.5), ("nan", np.nan)):
        with pytest.raises(InferenceServerException) as refused:
            infer(module, address, "counted", number=np.full((1, 1), count, np.float32), x=x)
        assert f"stage 'tell': its output 'count' is {text}, and must be a whole number from 0 to 3" in str(refused.value)


def test_each_box_of_a_detector_is_classified(serve, street):
    folder, sessions = street
    server = start(serve, folder)
    rows = images(40)
    for module, address in ((http_client, server.http), (grpc_client, server.grpc)):
        counts = check_street(infer(module, address, "street", image=rows), rows, sessions)
        assert set(counts) >= {0, 1, 2, 3}, "with none, some and most"
        check_counts(module, address)
    shapes = {output["name"]: output["shape"] for output in server.get("/v2/models/street")[1]["outputs"]}
    assert shapes == {"count": [-1, 1], "scores": [-1, CELLS, CLASSES], "sums": [-1, CLASSES]}


def test_many_calls_at_once_get_the_scores_of_their_own_boxes(serve, street):
    folder, sessions = street
    server = start(serve, folder)
    calls = [images(rows, seed) for seed, rows in enumerate(np.random.default_rng(4).integers(1, 5, 60))]
    with http_client.InferenceServerClient(server.http, concurrency=16) as client:
        pending = []
        for rows in calls:
            tensor = http_client.InferInput("image", list(rows.shape), "FP32")
            tensor.set_data_from_numpy(rows)
            pending.append(client.async_infer("street", [tensor]))
        for rows, answer in zip(calls, pending, strict=True):
            check_street(answer.get_result(), rows, sessions)


def test_boxes_are_classified_by_two_workers(street, tmp_path):
    folder, sessions = street
    with Cluster(tmp_path, folder, frontends=1, metrics=True) as cluster:
        (frontend,) = cluster.frontends
        for name in ("street", "counted"):
            await_pipeline(frontend, name)
        passed = 0
        for seed in range(10):
            rows = images(20, seed)
            counts = check_street(infer(http_client, frontend.http, "street", image=rows), rows, sessions)
            # A crop and its corners for each visit, and of all of a row's visits the scores.
            passed += counts.sum() * 4 * (3 * 8 * 8 + 4 + CLASSES)
        check_counts(http_client, frontend.http)
        by_holder = [stage_input_bytes(worker) for worker in cluster.workers]
        assert sum(sum(part.values()) for part in by_holder) >= passed, "of each tensor its own part, and nothing else"
        assert sum(sum(part.values()) for part in by_holder) < 1.5 * passed


def test_each_run_has_one_end_though_a_worker_that_holds_boxes_is_killed(street, tmp_path):
    folder, sessions = street
    with Cluster(tmp_path, folder, frontends=1) as cluster:
        (frontend,) = cluster.frontends
        await_pipeline(frontend, "street")

        def call(random):
            rows = images(random.integers(1, 4), int(random.integers(1000)))
            answer = infer(http_client, frontend.http, "street", image=rows)
            try:
                check_street(answer, rows, sessions)
            except AssertionError as wrong:
                return str(wrong)
            return "served"

        check_one_end_each_though_a_worker_is_killed(cluster, call)


@pytest.mark.parametrize("change, message", [
    (('"detect.crops[]"', '"detect.crops"'), "they must be equal"),
    (("at_most = 4", "at_most = 5"), "its first dimension must be 5"),
    (('count = "detect.count"', 'count = "detect.boxes"'), "a count is one number in a row"),
    (("at_most = 4", "at_most = 255"), "'at_most' must be a whole number from 1 to 254"),
], ids=["whole crops", "other extent", "no number", "too many"])
def test_what_is_wrong_with_elements_is_named(serve, street, tmp_path, change, message):
    folder, _ = street
    repository = tmp_path / "models"
    repository.mkdir()
    for name in ("detector", "classifier", "sum"):
        shutil.copytree(folder / name, repository / name)
    (repository / "broken").mkdir()
    text = (folder / "street" / "pipeline.toml").read_text()
    assert change[0] in text
    (repository / "broken" / "pipeline.toml").write_text(text.replace(*change))
    server = start(serve, repository)
    index = {entry["name"]: entry for entry in server.post("/v2/repository/index", {})[1]}
    assert index["broken"]["state"] == "UNAVAILABLE"
    assert message in index["broken"]["reason"]
