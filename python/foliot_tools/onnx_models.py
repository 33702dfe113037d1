"""Small ONNX models, written by hand, and repositories of them."""

import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

# What foliot reads is decided by these, not by the installed onnx package.
OPSET = 17
IR_VERSION = 8


def save(path, nodes, inputs, outputs, initializers=()):
    """Writes one model. `inputs` and `outputs`: {name: (type, shape)}, a string
    in a shape being a symbolic dimension. `initializers`: {name: array}."""
    graph = helper.make_graph(
        nodes,
        "model",
        [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in inputs.items()],
        [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in outputs.items()],
        [numpy_helper.from_array(np.ascontiguousarray(value), name) for name, value in dict(initializers).items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, path)
    return path


def dense_network(path, weights, biases, activation="Relu", output="probabilities"):
    """A multi-layer perceptron: weights[i] is [in, out]. One input "pixels"
    [batch, in]; one output, softmax over the last layer."""
    nodes, initializers = [], {}
    value = "pixels"
    last = len(weights) - 1
    for i, (weight, bias) in enumerate(zip(weights, biases)):
        initializers[f"weight_{i}"] = np.asarray(weight, np.float32)
        initializers[f"bias_{i}"] = np.asarray(bias, np.float32)
        nodes.append(helper.make_node("Gemm", [value, f"weight_{i}", f"bias_{i}"], [f"layer_{i}"], f"layer_{i}"))
        value = f"layer_{i}"
        if i < last:
            nodes.append(helper.make_node(activation, [value], [f"hidden_{i}"], f"activation_{i}"))
            value = f"hidden_{i}"
    nodes.append(helper.make_node("Softmax", [value], [output], "softmax", axis=1))
    return save(
        path,
        nodes,
        {"pixels": (TensorProto.FLOAT, ["batch", weights[0].shape[0]])},
        {output: (TensorProto.FLOAT, ["batch", weights[-1].shape[1]])},
        initializers,
    )


def random_dense_network(path, sizes, seed=0):
    """A dense network with seeded random weights; sizes: [in, hidden.., out]."""
    random = np.random.default_rng(seed)
    weights = [random.normal(0, (2 / a) ** 0.5, (a, b)) for a, b in zip(sizes, sizes[1:])]
    biases = [random.normal(0, 0.1, b) for b in sizes[1:]]
    return dense_network(path, weights, biases)


def constant(path, value):
    """x [batch, 1] -> x * 0 + value: an answer that says which version gave it."""
    return save(
        path,
        [helper.make_node("Mul", ["x", "zero"], ["nothing"], "multiply"),
         helper.make_node("Add", ["nothing", "value"], ["y"], "add")],
        {"x": (TensorProto.FLOAT, ["batch", 1])},
        {"y": (TensorProto.FLOAT, ["batch", 1])},
        {"zero": np.zeros(1, np.float32), "value": np.full(1, value, np.float32)},
    )
