"""The node tests of onnx.backend.test through Foliot's whole compiler and its
CPU device, and docs/OPERATORS.md, the table of what came out.

    node_tests.py --runner build/release/bin/node_test_runner [--write] [--only NAME] [--verbose]

A case passes if every output of every data set has the expected type and shape
and is within the tolerance that the case itself states. It is refused on purpose
if the compiler says why and the reason is in refusals.py. All else fails.

A served model's shapes are known when it is compiled; many cases hand such
operands (the shape of a Reshape, the axes of a reduction) in as inputs. So an
input that a shape depends on, and without which the compiler refuses the model,
is made an initializer, with the value that the data set has for it.
"""

import argparse
import collections
import dataclasses
import pathlib
import re
import subprocess
import sys
import tempfile
import warnings

import ml_dtypes
import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases
from onnx.backend.test.runner import Runner as OnnxRunner

import refusals
import report

NUMPY_TYPES = {
    "BOOL": np.bool_, "UINT8": np.uint8, "UINT16": np.uint16, "UINT32": np.uint32, "UINT64": np.uint64,
    "INT8": np.int8, "INT16": np.int16, "INT32": np.int32, "INT64": np.int64, "FP16": np.float16,
    "BF16": ml_dtypes.bfloat16, "FP32": np.float32, "FP64": np.float64,
}  # fmt: skip
SHAPE_IS_VARIABLE = re.compile(r"\('(?P<name>[^']*)'\) depends on the values of the model's inputs")
# Operators whose result depends on the shape of their operand only.
SHAPE_OPERATORS = {"Shape", "Size"}


@dataclasses.dataclass
class Outcome:
    name: str
    operator: str
    domain: str
    opset: int
    types: tuple  # element types of inputs and outputs
    verdict: str  # "pass", "refused" or "fail"
    reason: str = ""
    bound: tuple = ()  # inputs that were made initializers


class RunnerProcess:
    """The C++ program; started anew if a model ends it."""

    def __init__(self, path):
        self.path = path
        self.process = None

    def run(self, folder, batch):
        if self.process is None:
            self.process = subprocess.Popen([self.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.process.stdin.write(f"{folder} {batch}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().rstrip("\n").split("\t")
        if answer == [""]:
            self.process.wait()
            answer = ["error", f"the runner ended with {self.process.returncode}"]
            self.process = None
        return answer


def bodies(node):
    return [attribute.g for attribute in node.attribute if attribute.HasField("g")]


def all_nodes(graph):
    """The graph's nodes and those of the bodies of If, Loop and Scan in it."""
    for node in graph.node:
        yield node
        for body in bodies(node):
            yield from all_nodes(body)


def ancestors(graph, name):
    """The graph's inputs that the value of `name` depends on."""
    inputs = {value.name for value in graph.input}
    producers = {output: node for node in all_nodes(graph) for output in node.output}
    found, todo, seen = [], [name], set()
    while todo:
        current = todo.pop()
        if current in seen or not current:
            continue
        seen.add(current)
        if current in inputs:
            found.append(current)
        node = producers.get(current)
        if node is not None and node.op_type not in SHAPE_OPERATORS:
            todo.extend(node.input)
            todo.extend(output.name for body in bodies(node) for output in body.output)
    return found


def bind(model, values, names):
    """A copy of the model in which these inputs are initializers."""
    bound = onnx.ModelProto()
    bound.CopyFrom(model)
    del bound.graph.input[:]
    for value in model.graph.input:
        if value.name in names:
            bound.graph.initializer.append(numpy_helper.from_array(np.asarray(values[value.name]), value.name))
            continue
        kept = bound.graph.input.add()
        kept.CopyFrom(value)
        tensor = kept.type.tensor_type
        if values[value.name] is not None:
            del tensor.shape.dim[:]
            tensor.shape.SetInParent()
            for extent in np.shape(values[value.name]):
                tensor.shape.dim.add().dim_value = extent
    return bound


def attempt(process, folder, model, values):
    """(outputs, message): one of them is None."""
    arrays = [values[value.name] for value in model.graph.input]
    onnx.save(model, folder / "model.onnx")
    for i, array in enumerate(arrays):
        (folder / f"input_{i}.bin").write_bytes(b"" if array is None else array.tobytes())
    batch = arrays[0].shape[0] if arrays and arrays[0] is not None and arrays[0].ndim > 0 else 1
    # Rows beyond 4096 are compiled as one.
    status, *rest = process.run(folder, batch if 1 <= batch <= 4096 else 1)
    if status != "ok":
        return None, f"rows {rest[0]} are refused" if status == "refused" else rest[0]
    outputs = []
    for i, summary in enumerate(rest):
        type_name, *extents = summary.split()
        data = (folder / f"output_{i}.bin").read_bytes()
        outputs.append(np.frombuffer(data, NUMPY_TYPES[type_name]).reshape([int(e) for e in extents]))
    return outputs, None


def compile_and_run(process, folder, model, values):
    """(outputs, message, bound): binds what shapes depend on until it compiles."""
    # What has no elements has no data.
    bound = {name for name, array in values.items() if array is not None and array.size == 0}
    while True:
        outputs, message = attempt(process, folder, bind(model, values, bound), values)
        variable = SHAPE_IS_VARIABLE.search(message or "")
        wanted = set(ancestors(model.graph, variable["name"])) - bound if variable else set()
        if not wanted:
            return outputs, message, tuple(sorted(bound))
        bound |= wanted


def as_array(value):
    """A value of a data set as numpy has it; None if it is no tensor of numbers."""
    if isinstance(value, onnx.TensorProto):
        value = numpy_helper.to_array(value)
    if isinstance(value, (np.ndarray, np.generic, int, float, bool)):
        array = np.asarray(value)
        return None if array.dtype.kind in "OUS" else array
    return None


def run_case(process, folder, case):
    """(verdict, reason, bound)"""
    bound = ()
    for inputs, expected in case.data_sets:
        values = {value.name: as_array(given) for value, given in zip(case.model.graph.input, inputs)}
        expected = [as_array(value) for value in expected]
        outputs, message, bound = compile_and_run(process, folder, case.model, values)
        if message is not None:
            reason = refusals.of_message(message)
            return ("refused", reason, bound) if reason else ("fail", message, bound)
        if any(value is None for value in expected):
            return "fail", "a result that is no tensor of numbers was not refused", bound
        try:
            OnnxRunner.assert_similar_outputs(expected, outputs, case.rtol, case.atol)
        except AssertionError as error:
            return "fail", "wrong result: " + " ".join(str(error).split())[:200], bound
    return "pass", "", bound


def element_types(model):
    found = []
    for value in [*model.graph.input, *model.graph.output]:
        number = value.type.tensor_type.elem_type
        if number:
            found.append(onnx.TensorProto.DataType.Name(number).lower())
    return tuple(dict.fromkeys(found))


def operator_of(case, operators):
    """What the case is about: cases of function bodies are named after their operator's."""
    base = re.sub(r"_expanded(_ver\d+)?$", "", case.name)
    if base in operators:
        return operators[base]
    node = case.model.graph.node[0]
    return node.op_type, node.domain


def run_all(runner, only=""):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = sorted(collect_testcases(None), key=lambda case: case.name)
    operators = {
        case.name: (case.model.graph.node[0].op_type, case.model.graph.node[0].domain)
        for case in cases
        if "_expanded" not in case.name
    }
    process = RunnerProcess(runner)
    outcomes = []
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        for case in cases:
            if only not in case.name:
                continue
            operator, domain = operator_of(case, operators)
            opset = {entry.domain: entry.version for entry in case.model.opset_import}.get(domain, 0)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                verdict, reason, bound = run_case(process, pathlib.Path(folder), case)
            outcomes.append(
                Outcome(case.name, operator, domain, opset, element_types(case.model), verdict, reason, bound)
            )
    return outcomes


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runner", required=True, help="the program node_test_runner")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--write", type=pathlib.Path, help="where to write the table")
    parser.add_argument("--verbose", action="store_true", help="say which cases fail, and why")
    arguments = parser.parse_args()
    outcomes = run_all(arguments.runner, arguments.only)
    if arguments.verbose:
        for outcome in outcomes:
            if outcome.verdict == "fail":
                print(f"{outcome.name}: {outcome.reason}")
    counts = collections.Counter(outcome.verdict for outcome in outcomes)
    print(report.summary(counts))
    if arguments.write:
        arguments.write.write_text(report.document(outcomes))
    return 0


if __name__ == "__main__":
    sys.exit(main())
