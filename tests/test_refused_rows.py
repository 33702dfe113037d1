"""Rows whose inputs a compiled model refuses: 400 with the values, and the neighbours' answers are right."""

import concurrent.futures

import numpy as np
import pytest
from onnx import TensorProto, helper

from foliot_tools import onnx_models

ROWS = 8


@pytest.fixture
def server(serve, tmp_path):
    table = np.arange(20, dtype=np.float32).reshape(10, 2)
    onnx_models.save(
        tmp_path / "models/lookup/1/model.onnx",
        [helper.make_node("Gather", ["table", "ids"], ["y"], "embed", axis=0)],
        {"ids": (TensorProto.INT64, ["batch", 3])},
        {"y": (TensorProto.FLOAT, ["batch", 3, 2])},
        {"table": table},
    )
    onnx_models.save(
        tmp_path / "models/convolution/1/model.onnx",
        [helper.make_node("Conv", ["x", "w"], ["t"]), helper.make_node("Relu", ["t"], ["y"])],
        {"x": (TensorProto.FLOAT, ["batch", 3, 8, 8])},
        {"y": (TensorProto.FLOAT, ["batch", 16, 8, 8])},
        {"w": np.ones((16, 3, 1, 1), np.float32)},
    )
    return serve(tmp_path / "models")


def infer(server, model, name, datatype, rows):
    inputs = [{"name": name, "shape": list(rows.shape), "datatype": datatype, "data": rows.ravel().tolist()}]
    return server.post(f"/v2/models/{model}/infer", {"inputs": inputs})


def test_an_index_out_of_range_is_refused_alone(server):
    def call(i):
        return infer(server, "lookup", "ids", "INT64", np.array([[0, i % 3, 10 if i % 2 else -10]]))

    with concurrent.futures.ThreadPoolExecutor(ROWS) as pool:
        answers = list(pool.map(call, range(8 * ROWS)))
    for i, (status, answer) in enumerate(answers):
        if i % 2:
            assert status == 400 and answer["reason"] == "model_error", answer
            assert "input 'ids' holds 0 to 10" in answer["error"]
        else:
            assert status == 200, answer
            assert answer["outputs"][0]["data"][-2:] == [0.0, 1.0]


def test_nan_that_a_convolution_would_lose_is_refused(server):
    rows = np.ones((2, 3, 8, 8), np.float32)
    assert infer(server, "convolution", "x", "FP32", rows)[0] == 200
    body = np.ones((1, 3, 8, 8), np.float32)
    body[0, 1, 2, 3] = np.nan
    header = b'{"inputs":[{"name":"x","shape":[1,3,8,8],"datatype":"FP32","parameters":{"binary_data_size":768}}]}'
    status, answer = server.post(
        "/v2/models/convolution/infer", header + body.tobytes(), {"Inference-Header-Content-Length": str(len(header))}
    )
    assert status == 400 and "input 'x' holds nan (row 0, element 83)" in answer["error"], answer
