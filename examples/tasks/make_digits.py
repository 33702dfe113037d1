#!/usr/bin/env python3
"""Writes a small classifier and its validation set, for the first five minutes of docs/TASKS.md: digits.onnx, digits.npz."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

CLASSES, FEATURES, ROWS, NOISE = 10, 64, 500, 2.2


def main():
    random = np.random.default_rng(1)
    patterns = random.normal(size=(CLASSES, FEATURES)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "patterns"], ["scores"])], "digits",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", FEATURES])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", CLASSES])],
        [numpy_helper.from_array(np.ascontiguousarray(patterns.T), "patterns")])
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), "digits.onnx")
    labels = random.integers(CLASSES, size=ROWS)
    inputs = patterns[labels] + NOISE * random.normal(size=(ROWS, FEATURES))
    np.savez("digits.npz", x=inputs.astype(np.float32), labels=labels)


if __name__ == "__main__":
    main()
