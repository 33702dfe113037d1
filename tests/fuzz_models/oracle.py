"""What a model gives by onnxruntime, by onnx's reference and by Foliot's runner, and whether they agree."""

import dataclasses
import pathlib
import sys

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "node_tests"))

import node_tests

import onnxruntime_process

ONNXRUNTIME = onnxruntime_process.OnnxruntimeProcess()

# Operators whose result is exact: where a model has only these, and at most one other, nothing is forgiven
# beyond the rounding of that one.
JUMPS = {"Floor", "Ceil", "Round", "Sign", "Cast", "Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Mod",
         "ArgMax", "ArgMin", "TopK", "Hardmax", "QuantizeLinear", "Resize", "GridSample", "ThresholdedRelu", "Shrink",
         "IsInf", "IsNaN", "Where"}  # fmt: skip
EXACT = JUMPS - {"Resize", "GridSample"} | {"Relu", "Neg", "Abs", "Clip", "Max", "Min", "Identity", "Reshape", "Flatten", "Transpose", "Slice",
                 "Concat", "Split", "Pad", "Gather", "Not", "And", "Or", "Xor", "DequantizeLinear", "Trilu", "Expand",
                 "Unsqueeze", "MaxPool", "GlobalMaxPool", "ReduceMax", "ReduceMin", "DepthToSpace", "Squeeze", "Tile", "Shape",
                 "GatherElements", "GatherND", "ReverseSequence", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitShift", "OneHot"}  # fmt: skip
# What these make of NaN and infinity is open (docs/OPERATORS.md), and onnxruntime's own kernels differ.
OPEN = {"TopK", "ArgMax", "ArgMin", "Hardmax", "MaxPool", "GlobalMaxPool", "Resize", "GridSample", "ReduceMax",
        "ReduceMin", "ScatterElements", "Pow", "LRN", "Conv", "ConvTranspose"}  # fmt: skip
# Which of two zeros is the larger one is open, too.
CHOICES = {"Max", "Min", "MaxPool", "GlobalMaxPool", "ReduceMax", "ReduceMin", "Clip", "Relu", "TopK"}
# Where what is summed up may cancel, before a function that is steep there.
STEEP = {"ReduceLogSum"}
PRECISION = {np.dtype(np.float16): 1e-2, np.dtype(np.float32): 1e-4, np.dtype(np.float64): 1e-4}


class Refused(Exception):
    """The model is not computed, for a reason."""


@dataclasses.dataclass
class Disagreement:
    what: str  # in words, without values
    detail: str


def by_onnxruntime(model, inputs):
    try:
        return ONNXRUNTIME.run(model, inputs)
    except onnxruntime_process.Refused as error:
        raise Refused(f"onnxruntime: {error}") from error


class GlobalMaxPool(OpRun):
    """onnx 1.23's own takes two dimensions, whatever the rank."""

    def _run(self, x):
        return (x.max(axis=tuple(range(2, x.ndim)), keepdims=True),)


def by_reference(model, inputs):
    try:
        with np.errstate(all="ignore"):
            return ReferenceEvaluator(model, new_ops=[GlobalMaxPool]).run(None, inputs)
    except Exception as error:  # whatever numpy raises
        raise Refused(f"reference: {error}") from error


class Foliot:
    """Models through the whole compiler, on the CPU device."""

    def __init__(self, runner, folder):
        self.process = node_tests.RunnerProcess(runner)
        self.folder = pathlib.Path(folder)

    def run(self, model, inputs, rows):
        onnx.save(model, self.folder / "model.onnx")
        for i, value in enumerate(model.graph.input):
            (self.folder / f"input_{i}.bin").write_bytes(np.ascontiguousarray(inputs[value.name]).tobytes())
        status, *rest = self.process.run(self.folder, rows)
        if status != "ok":
            raise Refused(f"rows {rest[0]} are refused" if status == "refused" else rest[0])
        outputs = []
        for i, summary in enumerate(rest):
            type_name, *extents = summary.split()
            data = (self.folder / f"output_{i}.bin").read_bytes()
            outputs.append(np.frombuffer(data, node_tests.NUMPY_TYPES[type_name]).reshape([int(e) for e in extents]))
        return outputs


def wrong_places(got, expected, slack):
    """Where two results differ by more than rounding and `slack`, an array of what is forgiven."""
    if got.dtype.kind not in "fV" and got.dtype.name != "bfloat16":
        difference = np.abs(got.astype(np.float64) - expected.astype(np.float64))
        return difference > slack
    precision = PRECISION.get(got.dtype, 2e-2)
    with np.errstate(all="ignore"):
        got, expected = got.astype(np.float64), expected.astype(np.float64)
        finite = np.abs(expected[np.isfinite(expected)])
        # Sums cancel: what is forgiven grows with the largest value of a result.
        allowed = precision * np.abs(expected) + precision * min(finite.max(initial=0), 1e4) * 0.2 + 1e-7 + slack
        finite = np.isfinite(got) & np.isfinite(expected)
        # Beside a pole or an edge, the oracle's own result says little.
        slack = np.broadcast_to(slack, got.shape)
        unsteady = np.isinf(slack) | (slack > 0.05 * (np.abs(expected) + 1))
        close = (finite & (np.abs(got - expected) <= allowed)) | (got == expected) | unsteady
        nan = np.isnan(got) & np.isnan(expected)
        # Beyond what the type holds, one rounding decides between the largest number and infinity.
        huge = 3e38 if precision == 1e-4 else 6e4
        overflow = (np.abs(got) > huge) & (np.abs(expected) > huge) & (np.sign(got) == np.sign(expected))
    return ~(close | nan | overflow)


def moved(array, state):
    """An array whose numbers are a rounding off."""
    if array.dtype.kind != "f":
        return array
    rounding = 2000 if array.dtype == np.float16 else 1
    return (array * (1 + rounding * state.choice([-3e-7, 3e-7, 1e-6, -1e-6], array.shape))).astype(array.dtype)


def with_moved_constants(model, state):
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for initializer in copy.graph.initializer:
        array = onnx.numpy_helper.to_array(initializer)
        if array.dtype.kind == "f" and array.size > 1:
            initializer.CopyFrom(onnx.numpy_helper.from_array(np.asarray(moved(array, state)), initializer.name))
    return copy


def with_moved_values(model, inputs, state):
    """Multiplies what operators with a rounding of their own hand on to others."""
    values = evaluated(model, inputs)
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    del copy.graph.node[:]
    renamed = {}
    for node in model.graph.node:
        added = copy.graph.node.add()
        added.CopyFrom(node)
        added.input[:] = [renamed.get(name, name) for name in node.input]
        for name in node.output:
            if node.op_type in EXACT | {"Constant"} or getattr(values.get(name), "dtype", None) != np.float32:
                continue
            factors = moved(np.ones(values[name].shape, np.float32), state)
            copy.graph.initializer.append(onnx.numpy_helper.from_array(factors, f"{name} factors"))
            copy.graph.node.append(onnx.helper.make_node("Mul", [name, f"{name} factors"], [f"{name} moved"]))
            renamed[name] = f"{name} moved"
    return copy


def widened(slack, expected, results):
    """What is forgiven, if these results are as right as those."""
    wider = []
    for s, e, result in zip(slack, expected, results):
        if result.shape != e.shape:
            wider.append(s)
            continue
        result, e = result.astype(np.float64), e.astype(np.float64)
        with np.errstate(all="ignore"):
            change = np.abs(result - e)
        same = (result == e) | (np.isnan(result) & np.isnan(e))
        wider.append(np.maximum(s, 50 * np.where(same, 0, np.where(np.isnan(change), np.inf, change))))
    return wider


def sensitivity(model, inputs, expected):
    """How far the oracle's own results move if inputs and weights move by a rounding; 0 where the model is
    exact, so that ties are judged."""
    slack = [np.zeros(e.shape) for e in expected]
    inexact = [node.op_type for node in model.graph.node if node.op_type not in EXACT]
    if not inexact or (len(inexact) == 1 and model.graph.node[-1].op_type not in JUMPS and inexact[0] not in STEEP):
        return slack
    state = np.random.default_rng(1)
    for _ in range(4):
        try:
            results = by_onnxruntime(with_moved_constants(model, state), {n: moved(a, state) for n, a in inputs.items()})
        except Refused:
            continue
        slack = widened(slack, expected, results)
    return slack


def sensitivity_inside(model, inputs, expected, slack):
    """The same where values between operators move, which is looked at only where results differ."""
    state = np.random.default_rng(2)
    for _ in range(6):
        try:
            slack = widened(slack, expected, by_onnxruntime(with_moved_values(model, inputs, state), inputs))
        except Refused:
            continue
    return slack


def compare(got, expected, slack):
    """What differs, or None."""
    for i, (ours, theirs) in enumerate(zip(got, expected)):
        if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
            return Disagreement("type or shape", f"output {i}: {ours.dtype}{ours.shape}, not {theirs.dtype}{theirs.shape}")
        if not ours.size:
            continue
        wrong = wrong_places(ours, theirs, slack[i])
        if wrong.any():
            at = tuple(int(n) for n in np.argwhere(wrong)[0])
            return Disagreement(
                "values", f"output {i} at {at} of {ours.shape}: {ours[at]}, not {theirs[at]} ({wrong.sum()} of {wrong.size})"
            )
    return None


def evaluated(model, inputs):
    """Every value of the model, by onnxruntime."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    names = [name for node in model.graph.node for name in node.output if name]
    del copy.graph.output[:]
    copy.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    return dict(zip(names, by_onnxruntime(copy, inputs)))


def is_open(model, inputs):
    """Whether a number that is none meets an operator for which that is open, or -0 a root."""
    values = {**inputs, **evaluated(model, inputs)}
    bases = [values[n.input[0]] for n in model.graph.node if n.op_type == "Pow" and n.input[0] in values]
    if any(((base == 0) & np.signbit(base)).any() for base in bases if base.dtype.kind == "f"):
        return True
    return any(
        name in values and values[name].dtype.kind == "f" and not np.isfinite(values[name].astype(np.float64)).all()
        for node in model.graph.node if node.op_type in OPEN for name in node.input
    )  # fmt: skip


def of_outputs(model, names):
    """What is needed of a model for some of its outputs."""
    kept, needed = [], set(names)
    for node in reversed(model.graph.node):
        if needed & set(node.output):
            kept.insert(0, node)
            needed |= set(node.input)
    part = onnx.ModelProto()
    part.CopyFrom(model)
    for field, values in (("node", kept), ("output", [o for o in model.graph.output if o.name in names]),
                          ("input", [i for i in model.graph.input if i.name in needed])):  # fmt: skip
        del getattr(part.graph, field)[:]
        getattr(part.graph, field).extend(values)
    return part


def in_float64(model, inputs):
    """By onnx's reference, with float64 in place of float32."""
    wide = onnx.ModelProto()
    wide.CopyFrom(model)
    single, double = onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE

    def widen(tensor):
        if tensor.data_type == single:
            tensor.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(tensor).astype(np.float64), tensor.name))

    for initializer in wide.graph.initializer:
        widen(initializer)
    for value in (*wide.graph.input, *wide.graph.output, *wide.graph.value_info):
        if value.type.tensor_type.elem_type == single:
            value.type.tensor_type.elem_type = double
    for node in wide.graph.node:
        for attribute in node.attribute:
            if attribute.name == "to" and attribute.i == single:
                attribute.i = double
            if attribute.name == "value" and attribute.HasField("t"):
                widen(attribute.t)
    given = {n: a.astype(np.float64) if a.dtype == np.float32 else a for n, a in inputs.items()}
    return by_reference(wide, given)


def rounds_no_worse(got, expected, exact):
    """Whether `got` is as near to what is right as onnxruntime's result, but for a factor."""
    for ours, theirs, right in zip(got, expected, exact):
        if ours.dtype.kind != "f" or ours.shape != right.shape:
            if not np.array_equal(ours, theirs):
                return False
            continue
        with np.errstate(all="ignore"):
            far = np.abs(ours.astype(np.float64) - right)
            allowed = 4 * np.abs(theirs.astype(np.float64) - right) + 1e-6 * np.abs(right) + 1e-9
            same = (ours == right) | (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
        if not (same | (far <= allowed)).all():
            return False
    return True


def is_open_zero(model, inputs, expected):
    """Whether the sign of a zero that an operator chooses matters."""
    if not any(node.op_type in CHOICES for node in model.graph.node):
        return False
    turned = {n: np.where(a == 0, -a, a) if a.dtype.kind == "f" else a for n, a in inputs.items()}
    return any(not np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in zip(by_onnxruntime(model, turned), expected))


def is_coarse(model):
    """Whether something steep may follow what is documented to be rounded (docs/OPERATORS.md): float16, between whose
    operators nothing is rounded, or Softplus behind a convolution."""
    kinds = {node.op_type for node in model.graph.node}
    if "Softplus" in kinds and kinds & {"Conv", "ConvTranspose"}:
        return True
    half = any(v.type.tensor_type.elem_type == onnx.TensorProto.FLOAT16 for v in model.graph.input)
    return half and bool(kinds & JUMPS) and bool(kinds - EXACT)


def cuts_a_length(model, inputs):
    """Whether a Resize with aligned corners has a scale that gives no whole length."""
    resizes = [n for n in model.graph.node if n.op_type == "Resize" and any(a.s == b"align_corners" for a in n.attribute)]
    values = {**inputs, **evaluated(model, inputs)} if resizes else {}
    constants = {i.name: onnx.numpy_helper.to_array(i) for i in model.graph.initializer}
    lengths = [np.array(values[n.input[0]].shape) * constants[n.input[2]] for n in resizes
               if len(n.input) > 2 and n.input[2] in constants and n.input[0] in values]  # fmt: skip
    return any((np.abs(length - np.round(length)) > 1e-4).any() for length in lengths)


def is_as_right(model, inputs, got, expected, slack):
    """Whether onnx's reference decides for Foliot: for each output that onnxruntime makes otherwise."""
    for i, output in enumerate(model.graph.output):
        if compare([got[i]], [expected[i]], [slack[i]]) is None:
            continue
        part = of_outputs(model, [output.name])
        if cuts_a_length(part, inputs):
            return False  # where onnxruntime and torch decide
        given = {value.name: inputs[value.name] for value in part.graph.input}
        try:
            (right,) = by_reference(part, given)
            wrong = wrong_places(got[i], expected[i], slack[i])
            if right.shape == got[i].shape and not (wrong & wrong_places(got[i], right, slack[i])).any():
                continue
            if rounds_no_worse([got[i]], [expected[i]], in_float64(part, given)):
                continue
        except Refused:
            pass
        return False
    return True


def judge(foliot, model, inputs, rows):
    """The disagreement of Foliot with onnxruntime in one batch or with rows alone, or None. What onnx's reference
    computes as Foliot does is none. Refused: a side does not compute the model."""
    expected = by_onnxruntime(model, inputs)
    slack = sensitivity(model, inputs, expected)
    if onnx.TensorProto.FLOAT16 in {v.type.tensor_type.elem_type for v in model.graph.input} | {
        a.i for node in model.graph.node for a in node.attribute if a.name == "to"
    }:  # which is not rounded to between operators
        slack = [s + 1e-2 * (1 + np.abs(np.nan_to_num(e.astype(np.float64), posinf=0, neginf=0))) for s, e in zip(slack, expected)]
    if any(node.op_type == "Gelu" for node in model.graph.node):  # oneDNN's, of numbers far below zero
        slack = [s + 1e-6 for s in slack]
    if any(v.type.tensor_type.elem_type == onnx.TensorProto.UINT8 for v in model.graph.input):  # between fixed points
        slack = [s + sum(node.op_type == "Resize" for node in model.graph.node) for s in slack]
    found = compare(foliot.run(model, inputs, rows), expected, slack)
    whole = inputs, expected, slack
    if found is None and rows > 1:
        row = int(np.random.default_rng(rows).integers(rows))
        whole = tuple(
            {n: a[row : row + 1] for n, a in part.items()} if isinstance(part, dict) else
            [a[row : row + 1] if a.ndim and a.shape[0] == rows else a for a in part] for part in whole
        )  # fmt: skip
        found = compare(foliot.run(model, whole[0], 1), whole[1], whole[2])
        if found is not None:
            found.what += " alone"
    if found is None:
        return None
    got = foliot.run(model, whole[0], 1 if found.what.endswith("alone") else rows)
    same_shapes = [a.shape for a in got] == [a.shape for a in whole[1]]
    if same_shapes and compare(got, whole[1], sensitivity_inside(model, *whole)) is None:
        return None
    if same_shapes and is_as_right(model, *whole[:1], got, *whole[1:]):
        return None
    return None if is_open(model, whole[0]) or is_open_zero(model, *whole[:2]) or is_coarse(model) else found
