"""Outputs of padded inputs are cut back where their length follows, and marked as padded elsewhere. With the
unmodified tritonclient."""

import numpy as np
import pytest
import tritonclient.grpc as grpc_client
import tritonclient.http as http_client
from foliot_tools import onnx_models
from onnx import TensorProto, helper


@pytest.fixture
def server(tmp_path, serve):
    """x [batch, 1, length] -> half as long, as long, and the square of the length."""
    folder = tmp_path / "models" / "lengths"
    onnx_models.save(
        folder / "model.onnx",
        [helper.make_node("Conv", ["x", "w"], ["half"], strides=[2]),
         helper.make_node("Neg", ["x"], ["same"]),
         helper.make_node("Transpose", ["x"], ["t"], perm=[0, 2, 1]),
         helper.make_node("MatMul", ["t", "x"], ["p"]),
         helper.make_node("Reshape", ["p", "rows"], ["square"])],
        {"x": (TensorProto.FLOAT, ["batch", 1, "length"])},
        # As exporters write it: names that stand for nothing.
        {"half": (TensorProto.FLOAT, ["batch", 1, "dim_0"]), "same": (TensorProto.FLOAT, ["batch", 1, "?"]),
         "square": (TensorProto.FLOAT, ["batch", "dim_1"])},
        {"w": np.array([[[1, 1]]], np.float32), "rows": np.array([0, -1])},
    )
    (folder / "model.toml").write_text("batch_sizes = [1, 2]\n[buckets]\nlength = [8, 16]\n")
    return serve(tmp_path / "models")


@pytest.mark.parametrize("module", [http_client, grpc_client], ids=["http", "grpc"])
@pytest.mark.parametrize("length", [4, 7, 8, 10, 16])
def test_lengths(server, module, length):
    x = np.arange(2 * length, dtype=np.float32).reshape(2, 1, length) + 1
    value = module.InferInput("x", x.shape, "FP32")
    value.set_data_from_numpy(x)
    address = server.http if module is http_client else server.grpc
    with module.InferenceServerClient(address) as client:
        result = client.infer("lengths", [value])
    np.testing.assert_array_equal(result.as_numpy("same"), -x)
    pairs = length // 2
    np.testing.assert_allclose(result.as_numpy("half")[:, 0], x[:, 0, : 2 * pairs].reshape(2, pairs, 2).sum(axis=2))
    bucket = 8 if length <= 8 else 16
    assert result.as_numpy("square").shape == (2, bucket * bucket)

    def padded(name):
        output = result.get_output(name)
        if module is http_client:
            return output["parameters"].get("padded", False)
        return output.parameters["padded"].bool_param

    assert padded("square") == (length not in (8, 16))
    assert not padded("half") and not padded("same")
