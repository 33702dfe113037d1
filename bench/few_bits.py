#!/usr/bin/env python3
"""The products of a transformer's block (queries, keys, values, output, and two of four times the width) with weights of
4 or 8 bits, beside onnxruntime's MatMulNBits on the same model, on one thread, in turns. Each round gives a ratio; printed are
the medians of all rounds and between which values nine of ten medians of as many rounds drawn with replacement lie."""

import argparse
import pathlib
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from runtime import FoliotSide, OnnxruntimeSide, compile_model, machine

ERROR_MAX = 0.02  # of the largest value, where the input is rounded to int8 on the way
DRAWS = 1000


def block(width, rows, bits, block_size, accuracy_level, random):
    """[1, rows, width] in and out."""
    nodes, constants, value = [], [], "x"
    for number, (depth, columns) in enumerate([(width, 3 * width), (width, width), (width, 4 * width), (4 * width, width)]):
        blocks = -(-depth // block_size)
        constants += [
            numpy_helper.from_array(random.integers(0, 256, (columns, blocks, block_size * bits // 8)).astype(np.uint8), f"w{number}"),
            numpy_helper.from_array((random.uniform(0.5, 1, columns * blocks) / depth).astype(np.float32), f"s{number}"),
        ]
        nodes.append(helper.make_node("MatMulNBits", [value, f"w{number}", f"s{number}"], [f"y{number}"], domain="com.microsoft",
                                      K=depth, N=columns, bits=bits, block_size=block_size, accuracy_level=accuracy_level))
        value = f"y{number}"
        if number == 0:  # in place of attention: what has its width
            bounds = {"first": [0], "end": [width], "axis": [2]}
            constants += [numpy_helper.from_array(np.array(bound, np.int64), name) for name, bound in bounds.items()]
            nodes.append(helper.make_node("Slice", [value, *bounds], ["values"]))
            value = "values"
    shape = ["N", rows, width]
    graph = helper.make_graph(nodes, "block", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info(value, TensorProto.FLOAT, shape)], constants)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, ir_version=10, opset_imports=opsets)


def measure(width, rows, bits, block_size, accuracy_level, arguments):
    """Milliseconds of each side in each round."""
    random = np.random.default_rng(arguments.seed)
    with tempfile.TemporaryDirectory(prefix="foliot-bench-") as name:
        folder = pathlib.Path(name)
        model, package = folder / "model.onnx", folder / "model.foliot"
        onnx.save(block(width, rows, bits, block_size, accuracy_level, random), model)
        compile_model(model, package, [1], 1)
        inputs = {"x": random.standard_normal((1, rows, width)).astype(np.float32)}
        rival = OnnxruntimeSide(str(model), 1)
        with FoliotSide(package, 1) as foliot:
            expected = rival.put(inputs)
            foliot.put(0, inputs.values(), folder)
            foliot.run(0, 1)
            error = max(np.max(np.abs(a - b)) / np.max(np.abs(b)) for a, b in zip(foliot.get(0, expected, folder), expected))
            if not error <= ERROR_MAX:
                raise RuntimeError(f"the two differ by {error:.1e}, so their times mean nothing")
            sides = [lambda count: foliot.run(0, count), rival.run]
            counts = [max(1, int(arguments.seconds / min(run(3)))) for run in sides]
            return np.array([[np.median(run(count)) * 1e3 for run, count in zip(sides, counts)] for _ in range(arguments.rounds)])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    numbers = lambda text: [int(number) for number in text.split(",")]  # noqa: E731
    parser.add_argument("--widths", type=numbers, default=[768, 1024, 2048], metavar="N,...")
    parser.add_argument("--rows", type=numbers, default=[1, 4, 16, 64], metavar="N,...")
    parser.add_argument("--blocks", type=numbers, default=[32, 128], metavar="N,...")
    parser.add_argument("--bits", type=numbers, default=[4], metavar="N,...")
    parser.add_argument("--accuracy-levels", type=numbers, default=[0, 4], metavar="N,...")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.1, help="of each side in each round (default 0.1)")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    onnxruntime.set_default_logger_severity(3)
    random = np.random.default_rng(arguments.seed)
    print(f"{machine()}; onnxruntime {onnxruntime.__version__}; {arguments.rounds} rounds")
    print("| width | bits | block | accuracy_level | rows | Foliot, ms | onnxruntime, ms | ratio | 90 % |\n|" + "---|" * 9)
    for level in arguments.accuracy_levels:
        for width, bits, block_size, rows in [(w, b, s, r) for w in arguments.widths for b in arguments.bits
                                              for s in arguments.blocks for r in arguments.rows]:
            times = measure(width, rows, bits, block_size, level, arguments)
            ratios = times[:, 0] / times[:, 1]
            drawn = np.median(random.choice(ratios, (DRAWS, len(ratios))), axis=1)
            own, other = np.median(times, axis=0)
            print(f"| {width} | {bits} | {block_size} | {level} | {rows} | {own:.3f} | {other:.3f} | {np.median(ratios):.2f} "
                  f"| {np.quantile(drawn, 0.05):.2f} to {np.quantile(drawn, 0.95):.2f} |", flush=True)


if __name__ == "__main__":
    main()
