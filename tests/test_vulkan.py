"""Models on a GPU by Vulkan, beside onnxruntime. Where there is no GPU, lavapipe computes on the CPU."""

import subprocess

import numpy as np
import onnx
import onnxruntime
import pytest
import tritonclient.grpc as triton
from foliot_tools import onnx_models
from foliot_tools.seeds import fresh_seed
from foliot_tools.server import Server, ServerFailed, foliot_binary
from onnx import TensorProto, helper, numpy_helper


@pytest.fixture(autouse=True)
def a_driver():
    listed = subprocess.run([foliot_binary(), "devices"], capture_output=True, text=True, timeout=60).stdout
    if "gpu 0 " not in listed:
        pytest.skip(listed.splitlines()[-1])


def residual_network(path, rng):
    """As ResNet's: a stem with a pool, two blocks of which one halves the image, a mean over the image, a product."""
    nodes, constants = [], []

    def weights(*shape):
        name = f"w{len(constants)}"
        values = rng.normal(size=shape) / np.sqrt(np.prod(shape[1:]))
        constants.append(numpy_helper.from_array(values.astype(np.float32), name))
        return name

    def add(kind, inputs, **attributes):
        nodes.append(helper.make_node(kind, inputs, [f"v{len(nodes)}"], **attributes))
        return f"v{len(nodes) - 1}"

    def convolve(x, outs, ins, size, stride=1):
        w, bias = weights(outs, ins, size, size), weights(outs)
        return add("Conv", [x, w, bias], strides=[stride] * 2, pads=[size // 2] * 4)

    x = add("Relu", [convolve("x", 16, 3, 7, 2)])
    x = add("MaxPool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    for outs, ins, stride in ((16, 16, 1), (32, 16, 2)):
        inner = add("Relu", [convolve(x, outs, ins, 3, stride)])
        beside = x if stride == 1 else convolve(x, outs, ins, 1, stride)
        x = add("Relu", [add("Add", [convolve(inner, outs, outs, 3), beside])])
    x = add("Flatten", [add("GlobalAveragePool", [x])])
    nodes.append(helper.make_node("Gemm", [x, weights(10, 32), weights(10)], ["y"], transB=1))
    save(path, nodes, [3, 64, 64], [10], constants)


def save(path, nodes, x, y, constants=()):
    graph = helper.make_graph(nodes, "network", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", *x])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", *y])], constants)
    path.parent.mkdir(parents=True)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def expected(path, x):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(None, {session.get_inputs()[0].name: x})[0]


def answers(server, model, path, x):
    inputs = [triton.InferInput(onnxruntime.InferenceSession(path).get_inputs()[0].name, x.shape, "FP32")]
    inputs[0].set_data_from_numpy(x)
    client = triton.InferenceServerClient(f"127.0.0.1:{server.grpc_port}")
    result = client.infer(model, inputs)
    return result.as_numpy(result.get_response().outputs[0].name)


def test_networks_are_served_as_onnxruntime_answers(tmp_path):
    rng = np.random.default_rng(fresh_seed())
    dense, residual = tmp_path / "models/dense/1/model.onnx", tmp_path / "models/residual/1/model.onnx"
    dense.parent.mkdir(parents=True)
    onnx_models.random_dense_network(dense, [20, 64, 10])
    residual_network(residual, rng)
    for folder in ("dense", "residual"):
        (tmp_path / "models" / folder / "model.toml").write_text("batch_sizes = [1, 4]\n")
    with Server(tmp_path / "models", tmp_path / "console", devices="vulkan:0") as server:
        for model, path, shape in (("dense", dense, [20]), ("residual", residual, [3, 64, 64])):
            for rows in (1, 3, 4):
                x = rng.normal(size=[rows, *shape]).astype(np.float32)
                np.testing.assert_allclose(answers(server, model, path, x), expected(path, x), rtol=1e-4, atol=1e-4)


def test_what_has_no_shader_is_named(tmp_path):
    path = tmp_path / "local/model.onnx"
    save(path, [helper.make_node("LRN", ["x"], ["y"], name="the_norm", size=3)], [4, 8, 8], [4, 8, 8])
    with pytest.raises(ServerFailed) as failed, Server(path, tmp_path / "console", devices="vulkan:0"):
        pass
    assert "the_norm" in failed.value.output and "Vulkan" in failed.value.output


def test_a_gpu_that_is_not_there_gives_the_list(tmp_path):
    served = subprocess.run([foliot_binary(), "serve", str(tmp_path), "--devices", "vulkan:7"], capture_output=True,
                            text=True, timeout=60)
    assert served.returncode == 2
    assert "there is no '7'; there are 0 '" in served.stderr
