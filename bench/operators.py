#!/usr/bin/env python3
"""Every pair and triple of operators that the compiler may fuse, three sizes each, beside onnxruntime and, where the
Python package openvino is installed, OpenVINO: a fusion for which the processor has no fast kernel shows here. A cell is
one operator (convolution, transposed convolution, product, attention) followed by one or two of the functions that are fused into
it, at batch size 1. Beside these, operators that nothing is fused into, each alone. A cell above the limit is measured once
more, and the smaller ratio counts."""

import argparse
import itertools
import json
import pathlib
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from runtime import FoliotSide, OnnxruntimeSide, OpenvinoSide, check_answers, compile_model, machine, openvino

OPSET = 17
# Of a cell, the median of so many runs of each side counts, which take turns.
ROUNDS = 5
SECONDS_PER_TURN = 0.02


class Graph:
    """An ONNX model that is built operator by operator."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.nodes, self.constants, self.inputs = [], [], []
        self.positive = False  # whether examples are
        self.residual = None  # a value of the shape of the operator's result

    def add_input(self, *shape):
        name = f"input{len(self.inputs)}"
        self.inputs.append((name, ["N", *shape]))
        return name

    def tensor(self, *shape):
        return self.residual or self.add_input(*shape)

    def constant(self, *shape, scale=1.0):
        return self.keep((self.random.standard_normal(shape) * scale).astype(np.float32))

    def scalar(self, value):
        return self.keep(np.array(value, np.float32))

    def integers(self, values):
        return self.keep(np.array(values, np.int64))

    def vector(self, values):
        return self.keep(np.array(values, np.float32))

    def filled(self, count, value):
        return self.keep(np.full(count, value, np.float32))

    def keep(self, array):
        name = f"constant{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def add(self, kind, *inputs, **attributes):
        name = f"value{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], name=f"{kind}{len(self.nodes)}", **attributes))
        return name

    def write(self, result, path):
        graph = helper.make_graph(
            self.nodes, "operators",
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in self.inputs],
            [helper.make_tensor_value_info(result, TensorProto.FLOAT, None)], self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
        model.ir_version = 8
        onnx.save(onnx.shape_inference.infer_shapes(model), path)
        return path

    def examples(self):
        draw = {name: self.random.standard_normal([1, *shape[1:]]).astype(np.float32) for name, shape in self.inputs}
        return {name: np.abs(values) if self.positive else values for name, values in draw.items()}


# Of each operator: what makes it, and the shape of its result without the batch, from its
# number of channels and the extent of its images.
def convolution(kernel, group_channels=None, stride=1, dilation=1, inputs=None):
    def build(graph, channels, extent):
        source = inputs or channels
        per_group = group_channels or source
        weights = graph.constant(channels, per_group, kernel, kernel, scale=1 / np.sqrt(per_group * kernel**2))
        value = graph.add("Conv", graph.add_input(source, extent, extent), weights, graph.constant(channels),
                          kernel_shape=[kernel, kernel], strides=[stride, stride], dilations=[dilation, dilation],
                          pads=[kernel // 2 * dilation] * 4, group=source // per_group)
        return value, (channels, *[(extent - 1) // stride + 1] * 2)

    return build


def bottleneck(graph, channels, extent):
    """A convolution whose result is added to what it reads, as residual networks have it."""
    value, _ = convolution(1)(graph, channels, extent)
    graph.residual = graph.add("Relu", value)
    weights = graph.constant(channels, channels, 3, 3, scale=1 / np.sqrt(channels * 9))
    value = graph.add("Conv", graph.residual, weights, graph.constant(channels), kernel_shape=[3, 3], pads=[1] * 4)
    return value, (channels, extent, extent)


def transposed_convolution(graph, channels, extent):
    weights = graph.constant(channels, channels // 2, 2, 2, scale=1 / np.sqrt(channels))
    value = graph.add("ConvTranspose", graph.add_input(channels, extent, extent), weights, kernel_shape=[2, 2],
                      strides=[2, 2])
    return value, (channels // 2, 2 * extent, 2 * extent)


def convolution_1d(graph, channels, extent):
    weights = graph.constant(channels, channels, 3, scale=1 / np.sqrt(channels * 3))
    value = graph.add("Conv", graph.add_input(channels, extent), weights, graph.constant(channels), kernel_shape=[3],
                      pads=[1, 1])
    return value, (channels, extent)


def product(graph, channels, extent):
    weights = graph.constant(channels, channels, scale=1 / np.sqrt(channels))
    return graph.add("MatMul", graph.add_input(extent, channels), weights), (extent, channels)


def attention(masked):
    def build(graph, tokens, size, heads=6):
        query, key, value = (graph.add_input(heads, tokens, size) for _ in range(3))
        scores = graph.add("MatMul", graph.add("Mul", query, graph.scalar(size**-0.5)),
                           graph.add("Transpose", key, perm=[0, 1, 3, 2]))
        if masked:
            scores = graph.add("Add", scores, graph.add_input(1, 1, tokens))
        return graph.add("MatMul", graph.add("Softmax", scores, axis=-1), value), (heads, tokens, size)

    return build


SQUARES = ((64, 56), (128, 28), (256, 14))
OPERATORS = {
    "conv3x3": (convolution(3), SQUARES),
    "conv3x3/2": (convolution(3, stride=2), SQUARES),
    "conv3x3_dilated": (convolution(3, dilation=2), SQUARES),
    "conv3x3_odd": (convolution(3), ((20, 56), (44, 28), (100, 14))),
    "conv3x3_grouped": (convolution(3, group_channels=4), SQUARES),
    "conv1x1": (convolution(1), SQUARES),
    "bottleneck": (bottleneck, SQUARES),
    "conv7x7/2_of_3": (convolution(7, stride=2, inputs=3), ((32, 64), (64, 112), (64, 224))),
    "depthwise3x3": (convolution(3, group_channels=1), SQUARES),
    "depthwise5x5/2": (convolution(5, group_channels=1, stride=2), ((72, 56), (120, 28), (240, 14))),
    "conv_transpose2x2": (transposed_convolution, ((64, 40), (128, 20), (256, 10))),
    "conv1d": (convolution_1d, ((80, 1000), (256, 512), (384, 100))),
    "attention": (attention(False), ((197, 64), (1500, 64), (300, 32))),
    "attention_masked": (attention(True), ((128, 64), (512, 64), (49, 32))),
    "matmul": (product, ((256, 128), (384, 197), (768, 32))),
}


def alone(kind, *constants, positive=False, **attributes):
    """An operator over one tensor [*size], and constants."""
    def build(graph, *size):
        graph.positive = positive
        value = graph.add(kind, graph.add_input(*size), *[make(graph, size) for make in constants], **attributes)
        return value, size

    return build


def scalar(value):
    return lambda graph, size: graph.scalar(value)


def of_channels(*ones):
    return lambda graph, size: graph.constant(size[0], *ones)


def group_normalization(graph, channels, height, width):
    """As torch exports it: an instance normalisation of the groups, then scale and bias of the channels."""
    groups = 8
    shape = graph.integers([0, groups, -1])
    value = graph.add("Reshape", graph.add_input(channels, height, width), shape)
    value = graph.add("InstanceNormalization", value, graph.filled(groups, 1), graph.filled(groups, 0))
    value = graph.add("Reshape", value, graph.integers([0, channels, height, width]))
    value = graph.add("Mul", value, graph.constant(channels, 1, 1))
    return graph.add("Add", value, graph.constant(channels, 1, 1)), (channels, height, width)


def where(graph, *size):
    value = graph.add_input(*size)
    return graph.add("Where", graph.add("Greater", value, graph.scalar(0)), value, graph.add_input(*size)), size


def largest_channel(graph, *size):
    return graph.add("Cast", graph.add("ArgMax", graph.add_input(*size), axis=1), to=TensorProto.FLOAT), size


def resize(mode, coordinates):
    def build(graph, channels, height, width):
        scales = graph.vector([1, 1, 2, 2])
        value = graph.add("Resize", graph.add_input(channels, height, width), "", scales, mode=mode,
                          coordinate_transformation_mode=coordinates)
        return value, (channels, 2 * height, 2 * width)

    return build


IMAGES = ((64, 56, 56), (128, 28, 28), (512, 7, 7))
ROWS = ((12, 128, 128), (8400, 4), (600, 1024))
ALONE = {
    "softmax": (alone("Softmax", axis=-1), ((12, 197, 197), (1, 1000), (20000, 10), *ROWS)),
    "log_softmax": (alone("LogSoftmax", axis=-1), ROWS),
    "softmax_of_channels": (alone("Softmax", axis=1), ((2, 128, 128), (21, 65, 65), (84, 400))),
    "instance_norm": (alone("InstanceNormalization", of_channels(), of_channels()), IMAGES),
    "group_norm": (group_normalization, IMAGES),
    "layer_norm": (alone("LayerNormalization", lambda graph, size: graph.constant(size[-1]),
                         lambda graph, size: graph.constant(size[-1])), ((128, 768), (197, 384), (3136, 96))),
    "square_root_as_power": (alone("Pow", scalar(0.5), positive=True), IMAGES),
    "square": (alone("Pow", scalar(2)), IMAGES),
    "power": (alone("Pow", scalar(1.7), positive=True), IMAGES),
    "prelu": (alone("PRelu", of_channels(1, 1)), IMAGES),
    **{kind.lower(): (alone(kind, positive=True), IMAGES) for kind in ("Log", "Sqrt", "Reciprocal")},
    **{kind.lower(): (alone(kind), IMAGES) for kind in (
        "Exp", "Sin", "Floor", "Round", "Softplus", "Elu", "Selu", "HardSigmoid", "Abs", "Neg")},
    "greater_where": (where, IMAGES),
    "remainder": (alone("Mod", scalar(0.7), fmod=1), IMAGES),
    "mean_last": (alone("ReduceMean", axes=[-1]), ROWS),
    "mean_channels": (alone("ReduceMean", axes=[1]), IMAGES),
    "mean_image": (alone("ReduceMean", axes=[2, 3]), IMAGES),
    "max_last": (alone("ReduceMax", axes=[-1]), ROWS),
    "max_channels": (alone("ReduceMax", axes=[1]), IMAGES),
    "sum_of_squares": (alone("ReduceSumSquare", axes=[-1]), ROWS),
    "largest_channel": (largest_channel, IMAGES),
    "max_pool3x3/2": (alone("MaxPool", kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4), IMAGES),
    "max_pool5x5": (alone("MaxPool", kernel_shape=[5, 5], pads=[2] * 4), ((64, 20, 20), (128, 20, 20), (3, 112, 112))),
    "average_pool2x2/2": (alone("AveragePool", kernel_shape=[2, 2], strides=[2, 2]), IMAGES),
    "global_average": (alone("GlobalAveragePool"), IMAGES),
    "resize_nearest": (resize("nearest", "asymmetric"), ((64, 40, 40), (256, 20, 20), (3, 112, 112))),
    "resize_linear": (resize("linear", "half_pixel"), ((64, 40, 40), (256, 20, 20), (3, 112, 112))),
    "transpose_last": (alone("Transpose", perm=[0, 1, 3, 2]), ((12, 128, 64), (64, 56, 56), (8, 512, 512))),
    "channels_last": (alone("Transpose", perm=[0, 2, 3, 1]), IMAGES),
}


def per_channel(shape):
    return (1, shape[0], *([1] * (len(shape) - 1))) if len(shape) > 2 else (shape[-1],)


def gelu(graph, value):
    error = graph.add("Erf", graph.add("Div", value, graph.scalar(np.sqrt(2))))
    return graph.add("Mul", graph.add("Mul", value, graph.add("Add", error, graph.scalar(1))), graph.scalar(0.5))


# What may follow, each from the graph, the value before and its shape.
FUNCTIONS = {
    "add_channel": lambda graph, value, shape: graph.add("Add", value, graph.constant(*per_channel(shape))),
    "mul_channel": lambda graph, value, shape: graph.add("Mul", value, graph.constant(*per_channel(shape))),
    "add_tensor": lambda graph, value, shape: graph.add("Add", value, graph.tensor(*shape)),
    "add_tensor_first": lambda graph, value, shape: graph.add("Add", graph.tensor(*shape), value),
    "mul_tensor": lambda graph, value, shape: graph.add("Mul", value, graph.tensor(*shape)),
    "relu": lambda graph, value, shape: graph.add("Relu", value),
    "leaky_relu": lambda graph, value, shape: graph.add("LeakyRelu", value, alpha=0.1),
    "clip": lambda graph, value, shape: graph.add("Clip", value, graph.scalar(0), graph.scalar(6)),
    "sigmoid": lambda graph, value, shape: graph.add("Sigmoid", value),
    "tanh": lambda graph, value, shape: graph.add("Tanh", value),
    "silu": lambda graph, value, shape: graph.add("Mul", value, graph.add("Sigmoid", value)),
    "hard_swish": lambda graph, value, shape: graph.add("HardSwish", value),
    "gelu": lambda graph, value, shape: gelu(graph, value),
    "erf": lambda graph, value, shape: graph.add("Erf", value),
}


def cells(operators):
    """(operator, size, functions) of all pairs and triples, and of what stands alone."""
    for operator in operators:
        for size in ALONE.get(operator, (None, ()))[1]:
            yield operator, size, ()
    for operator in [each for each in operators if each in OPERATORS]:
        for size in OPERATORS[operator][1]:
            for count in (1, 2):
                for functions in itertools.permutations(FUNCTIONS, count):
                    yield operator, size, functions


def build(operator, size, functions, path):
    graph = Graph(seed=7)
    value, shape = (OPERATORS | ALONE)[operator][0](graph, *size)
    for function in functions:
        value = FUNCTIONS[function](graph, value, shape)
    return graph.write(value, path), graph.examples()


def measure(sides):
    """Milliseconds of each: the median of all runs, in turns."""
    counts = {name: max(1, int(SECONDS_PER_TURN / min(run(3)))) for name, run in sides.items()}
    durations = {name: [] for name in sides}
    for _ in range(ROUNDS):
        for name, run in sides.items():
            durations[name] += run(counts[name])
    return {name: float(np.median(times)) * 1e3 for name, times in durations.items()}


def measure_cell(operator, size, functions, folder):
    model, inputs = build(operator, size, functions, folder / "model.onnx")
    package = folder / "model.foliot"
    compile_model(model, package, [1], 1)
    reference = OnnxruntimeSide(str(model), 1)
    with FoliotSide(package, 1) as foliot:
        expected = reference.put(inputs)
        foliot.put(0, inputs.values(), folder)
        foliot.run(0, 1)
        check_answers(operator, foliot, 0, expected, folder)
        sides = {"foliot": lambda count: foliot.run(0, count), "onnxruntime": reference.run}
        if openvino is not None:
            rival = OpenvinoSide(model, 1)
            rival.put(inputs)
            sides["openvino"] = rival.run
        times = measure(sides)
    return {"operator": operator, "size": list(size), "functions": list(functions), **times,
            "ratio": times["foliot"] / min(value for name, value in times.items() if name != "foliot")}


def measure_twice_if_above(limit, *cell):
    """What one process is slowed down by does not come back in the next one; what is slow does."""
    results = []
    while len(results) < 2 and (not results or results[-1]["ratio"] > limit):
        with tempfile.TemporaryDirectory(prefix="foliot-bench-") as folder:
            results.append(measure_cell(*cell, pathlib.Path(folder)))
    return min(results, key=lambda result: result["ratio"])


def print_cell(cell):
    others = " / ".join(f"{cell[name]:.3f}" for name in ("onnxruntime", "openvino") if name in cell)
    print(f"| {cell['operator']} {'x'.join(map(str, cell['size']))} {' '.join(cell['functions'])} | {cell['foliot']:.3f} "
          f"| {others} | {cell['ratio']:.2f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operators", type=lambda text: text.split(","), default=[*ALONE, *OPERATORS],
                        metavar="NAME,...")
    parser.add_argument("--sample", type=int, help="so many cells only, drawn by --seed")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--above", type=float, default=1.5, help="print cells with a larger ratio (default 1.5)")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("out/bench-operators"))
    arguments = parser.parse_args()
    unknown = set(arguments.operators) - OPERATORS.keys() - ALONE.keys()
    if unknown:
        parser.error(f"no operator {', '.join(sorted(unknown))}; there are {', '.join([*ALONE, *OPERATORS])}")
    onnxruntime.set_default_logger_severity(3)
    chosen = list(cells(arguments.operators))
    if arguments.sample:
        drawn = np.random.default_rng(arguments.seed).choice(len(chosen), arguments.sample, replace=False)
        chosen = [chosen[i] for i in sorted(drawn)]
    print(f"{len(chosen)} cells; those above {arguments.above} times the faster rival:")
    print("| cell | Foliot, ms | " + ("onnxruntime / OpenVINO" if openvino else "onnxruntime") + " | ratio |")
    print("|---|---|---|---|")
    measured = []
    for number, (operator, size, functions) in enumerate(chosen):
        measured.append(measure_twice_if_above(arguments.above, operator, size, functions))
        if measured[-1]["ratio"] > arguments.above:
            print_cell(measured[-1])
        if sys.stderr.isatty():
            print(f"\r{number + 1}/{len(chosen)}", end="", file=sys.stderr)
    ratios = [cell["ratio"] for cell in measured]
    print(f"\nratio: geometric mean {np.exp(np.mean(np.log(ratios))):.3f}, largest {max(ratios):.2f}, "
          f"above {arguments.above}: {sum(ratio > arguments.above for ratio in ratios)} of {len(ratios)}")
    arguments.output.mkdir(parents=True, exist_ok=True)
    (arguments.output / "operators.json").write_text(json.dumps({"machine": machine(), "cells": measured}, indent=1))
    print(f"{machine()}; written to {arguments.output}")


if __name__ == "__main__":
    main()
