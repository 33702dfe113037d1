"""Random models: graphs of random operators with random attributes, shapes and types, or with what
exporters write. Their first dimension is a batch wherever an input has rows, and no operator here
looks across rows, so that a batch can be compared with its rows."""

import dataclasses
import random

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 21
FLOAT, DOUBLE, HALF, INT32, INT64, UINT8, INT8, BOOL = (
    TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.INT32, TensorProto.INT64,
    TensorProto.UINT8, TensorProto.INT8, TensorProto.BOOL,
)  # fmt: skip
NUMPY = {
    FLOAT: np.float32, DOUBLE: np.float64, HALF: np.float16, INT32: np.int32, INT64: np.int64,
    UINT8: np.uint8, INT8: np.int8, BOOL: np.bool_, TensorProto.BFLOAT16: ml_dtypes.bfloat16,
}  # fmt: skip
SPECIAL = [np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-40, -1e-40, 1e4, -1e4, 0.5, 1.5, 2.5, -0.5, -1.5, 88.8, -104.0]


@dataclasses.dataclass
class Value:
    name: str
    type: int
    shape: tuple  # -1: rows


class Unsuitable(Exception):
    """The operator does not fit the values that there are."""


class Graph:
    def __init__(self, rng):
        self.rng = rng
        self.nodes, self.inputs, self.initializers, self.values = [], [], [], []
        self.count = 0

    def name(self):
        self.count += 1
        return f"v{self.count}"

    def input(self, type_, shape):
        value = Value(f"x{len(self.inputs)}", type_, shape)
        self.inputs.append(value)
        self.values.append(value)
        return value

    def constant(self, array):
        name = f"c{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def weights(self, shape, type_=FLOAT, scale=1.0):
        random_state = np.random.default_rng(self.rng.getrandbits(32))
        return self.constant((random_state.normal(size=shape) * scale).astype(NUMPY[type_]))

    def add(self, operator, inputs, type_, shape, outputs=1, domain="", **attributes):
        names = [self.name() for _ in range(outputs)]
        operands = [x.name if isinstance(x, Value) else x for x in inputs]
        self.nodes.append(helper.make_node(operator, operands, names, domain=domain, **attributes))
        value = Value(names[0], type_, tuple(shape))
        self.values.append(value)
        return value

    def pick(self, types=(FLOAT,), ranks=range(0, 6), fits=lambda value: True):
        candidates = [v for v in self.values if v.type in types and len(v.shape) in ranks and fits(v)]
        if not candidates:
            raise Unsuitable
        return self.rng.choice(candidates[-3:] if self.rng.random() < 0.7 else candidates)

    def model(self):
        used = names_read(self.nodes)
        outputs = [v for v in self.values if v.name not in used and not v.name.startswith("x")]
        return make_model(self.nodes, self.inputs, outputs, self.initializers)


def dimensions(shape):
    return ["N" if extent == -1 else extent for extent in shape]


def make_model(nodes, inputs, outputs, initializers, opset=OPSET):
    graph = helper.make_graph(
        nodes, "fuzz",
        [helper.make_tensor_value_info(v.name, v.type, dimensions(v.shape)) for v in inputs],
        [helper.make_tensor_value_info(v.name, v.type, dimensions(v.shape)) for v in outputs],
        initializers,
    )  # fmt: skip
    imports = [helper.make_opsetid("", opset)]
    if any(node.domain == "com.microsoft" for node in nodes):
        imports.append(helper.make_opsetid("com.microsoft", 1))
    model = helper.make_model(graph, opset_imports=imports)
    model.ir_version = 10
    return model


# Operators. Each takes a Graph and adds to it, or raises Unsuitable.

FLOATS = (FLOAT, FLOAT, FLOAT, DOUBLE, HALF)
UNARY = """Relu Sigmoid Tanh Erf Exp Log Sqrt Neg Abs Reciprocal Floor Ceil Round Sign Softplus Softsign Sin Cos Tan
Asin Acos Atan Sinh Cosh Asinh Acosh Atanh HardSwish Mish Selu Elu Celu LeakyRelu HardSigmoid ThresholdedRelu Shrink
Gelu IsNaN IsInf Identity""".split()
WITH_ALPHA = {"Elu", "LeakyRelu", "ThresholdedRelu", "Celu"}


def unary(g):
    operator = g.rng.choice(UNARY)
    x = g.pick((FLOAT, FLOAT, FLOAT, DOUBLE, HALF))
    attributes = {}
    if operator in WITH_ALPHA and g.rng.random() < 0.6:
        attributes["alpha"] = g.rng.choice([0.1, 0.5, 1.0, 2.0])
    if operator == "HardSigmoid" and g.rng.random() < 0.6:
        attributes.update(alpha=g.rng.choice([0.2, 0.5, -0.5]), beta=g.rng.choice([0.0, 0.5, 1.0]))
    if operator == "Shrink":
        attributes.update(lambd=g.rng.choice([0.5, 1.0]), bias=g.rng.choice([0.0, 0.5]))
    if operator == "Gelu":
        attributes["approximate"] = g.rng.choice(["none", "tanh"])
    if operator == "IsInf" and g.rng.random() < 0.5:
        attributes.update(detect_positive=g.rng.randint(0, 1), detect_negative=g.rng.randint(0, 1))
    g.add(operator, [x], BOOL if operator in ("IsNaN", "IsInf") else x.type, x.shape, **attributes)


def integer_unary(g):
    x = g.pick((INT32, INT64, INT8))
    g.add(g.rng.choice(["Neg", "Abs", "Sign", "Relu"] if x.type == INT32 else ["Neg", "Abs", "Sign"]), [x], x.type, x.shape)


def broadcast_operand(g, x):
    """A value or a constant that broadcasts to x."""
    same = [v for v in g.values if v.type == x.type and v.shape == x.shape and v is not x]
    if same and g.rng.random() < 0.5:
        return g.rng.choice(same)
    shape = [1 if extent == -1 or g.rng.random() < 0.4 else extent for extent in x.shape]
    shape = shape[g.rng.randint(0, len(shape)):]
    return g.constant(draw(g.rng, x.type, shape, special=g.rng.random() < 0.15))


BINARY = ["Add", "Sub", "Mul", "Div", "Min", "Max", "Pow", "PRelu", "Mod"]
COMPARISONS = ["Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"]


def binary(g):
    operator = g.rng.choice(BINARY + COMPARISONS)
    types = FLOATS if operator != "Mod" else (FLOAT, DOUBLE)
    if operator in ("Add", "Sub", "Mul", "Min", "Max", "Equal", "Less", "Greater") and g.rng.random() < 0.2:
        types = (INT32, INT64)
    x = g.pick(types)
    other = broadcast_operand(g, x)
    operands = [x, other]
    if operator not in ("PRelu", "Pow", "Mod") and g.rng.random() < 0.4:
        operands.reverse()
    attributes = {"fmod": 1} if operator == "Mod" else {}
    g.add(operator, operands, BOOL if operator in COMPARISONS else x.type, x.shape, **attributes)


def power(g):
    x = g.pick((FLOAT, INT32, INT64, DOUBLE))
    exponent = g.rng.choice([0.5, -0.5, 2, 3, -1, 1.5, 0, 1, 0.25])
    if exponent % 1 and x.type in (FLOAT, DOUBLE):
        x = g.add("Mul", [x, x], x.type, x.shape)
    type_ = g.rng.choice([np.float32, np.float64] if exponent % 1 else [np.float32, np.int64, np.int32])
    if x.type in (INT32, INT64):  # a root of a negative number, as an integer, is open, and what is beyond the type
        one, nine = (g.constant(np.array(c, NUMPY[x.type])) for c in (1, 9))
        x = g.add("Mod", [x, nine], x.type, x.shape)
        x = g.add("Add", [x, one], x.type, x.shape)
    g.add("Pow", [x, g.constant(type_(exponent))], x.type, x.shape)


def variadic(g):
    x = g.pick((FLOAT, FLOAT, DOUBLE))
    operands = [x] + [broadcast_operand(g, x) for _ in range(g.rng.randint(0, 2))]
    g.rng.shuffle(operands)
    g.add(g.rng.choice(["Sum", "Mean", "Min", "Max"]), operands, x.type, x.shape)


def clip(g):
    x = g.pick((FLOAT, FLOAT, DOUBLE, INT32, INT64, UINT8))
    low, high = sorted(g.rng.choice([0.0, 6.0, -1.0, 1.0, 2.0, 0.5]) for _ in range(2))
    if x.type not in (FLOAT, DOUBLE):
        low, high = abs(int(low)), abs(int(high))
    bounds = [g.constant(np.array(b, NUMPY[x.type])) for b in (low, high)]
    if x.type != DOUBLE and g.rng.random() < 0.3:
        bounds[g.rng.randint(0, 1)] = ""
    g.add("Clip", [x, *bounds], x.type, x.shape)


def logic(g):
    x = g.pick((BOOL,))
    if g.rng.random() < 0.3:
        g.add("Not", [x], BOOL, x.shape)
    else:
        g.add(g.rng.choice(["And", "Or", "Xor"]), [x, broadcast_operand(g, x)], BOOL, x.shape)


def where(g):
    condition = g.pick((BOOL,))
    type_ = g.rng.choice([FLOAT, INT64])
    options = [v for v in g.values if v.type == type_ and v.shape == condition.shape]
    sides = [
        g.rng.choice(options) if options and g.rng.random() < 0.7 else g.constant(draw(g.rng, type_, [], True))
        for _ in range(2)
    ]
    shape = condition.shape
    g.add("Where", [condition, *sides], type_, shape)


def cast(g):
    x = g.pick((FLOAT, DOUBLE, HALF, INT32, INT64, UINT8, INT8, BOOL))
    # What a float beyond an integer's range becomes is open.
    targets = [FLOAT, DOUBLE, HALF] if x.type in (FLOAT, DOUBLE, HALF) else [FLOAT, DOUBLE, INT64, INT32, BOOL]
    type_ = g.rng.choice(targets)
    g.add("Cast", [x], type_, x.shape, to=type_)


def axes_but_rows(g, x, least=1):
    axes = [d for d in range(len(x.shape)) if x.shape[d] != -1]
    if len(axes) < least:
        raise Unsuitable
    return sorted(g.rng.sample(axes, g.rng.randint(least, len(axes))))


def reduce(g):
    x = g.pick((FLOAT, FLOAT, FLOAT, DOUBLE, INT32, INT64), range(1, 6))
    operator = g.rng.choice(["Mean", "Sum", "Max", "Min", "Prod", "L1", "L2", "SumSquare", "LogSumExp", "LogSum"])
    if x.type in (INT32, INT64):
        operator = g.rng.choice(["Sum", "Max", "Min", "Prod"])
    axes, keep = axes_but_rows(g, x), g.rng.randint(0, 1)
    shape = [1 if d in axes else e for d, e in enumerate(x.shape) if keep or d not in axes]
    signed = [d - len(x.shape) if g.rng.random() < 0.3 else d for d in axes]
    g.add("Reduce" + operator, [x, g.constant(np.array(signed, np.int64))], x.type, shape, keepdims=keep)


def arg_reduce(g):
    x = g.pick((FLOAT, FLOAT, INT32), range(2, 6))
    axis = axes_but_rows(g, x)[0]
    keep = g.rng.randint(0, 1)
    shape = [1 if d == axis else e for d, e in enumerate(x.shape) if keep or d != axis]
    operator = g.rng.choice(["ArgMax", "ArgMin"])
    g.add(operator, [x], INT64, shape, axis=axis, keepdims=keep, select_last_index=g.rng.randint(0, 1))


def softmax(g):
    x = g.pick((FLOAT, FLOAT, HALF), range(2, 6))  # float64 is computed in float32
    axis = axes_but_rows(g, x)[0]
    g.add(g.rng.choice(["Softmax", "LogSoftmax", "Hardmax"]), [x], x.type, x.shape, axis=axis)


def cumulative(g):
    x = g.pick((FLOAT, INT64, INT32), range(2, 5))
    axis = axes_but_rows(g, x)[0]
    g.add("CumSum", [x, g.constant(np.array(axis, np.int64))], x.type, x.shape,
          exclusive=g.rng.randint(0, 1), reverse=g.rng.randint(0, 1))  # fmt: skip


def top_k(g):
    x = g.pick((FLOAT, INT64), range(2, 5))
    axis = axes_but_rows(g, x)[0]
    count = g.rng.randint(1, x.shape[axis])
    shape = [count if d == axis else e for d, e in enumerate(x.shape)]
    values, places = g.name(), g.name()
    g.nodes.append(helper.make_node("TopK", [x.name, g.constant(np.array([count], np.int64))], [values, places],
                                    axis=axis, largest=g.rng.randint(0, 1)))  # fmt: skip
    g.values += [Value(values, x.type, tuple(shape)), Value(places, INT64, tuple(shape))]


def transpose(g):
    x = g.pick((FLOAT, INT64, BOOL, DOUBLE, HALF), range(3, 6))
    rest = list(range(1, len(x.shape)))
    g.rng.shuffle(rest)
    if x.shape[0] != -1:
        raise Unsuitable
    g.add("Transpose", [x], x.type, [x.shape[d] for d in [0, *rest]], perm=[0, *rest])


def reshape(g):
    x = g.pick((FLOAT, INT64, DOUBLE), range(2, 6))
    if x.shape[0] != -1:
        raise Unsuitable
    size = int(np.prod(x.shape[1:]))
    divisors = [d for d in range(1, size + 1) if size % d == 0]
    first = g.rng.choice(divisors)
    tail = g.rng.choice([[size], [first, size // first]])
    g.add("Reshape", [x, g.constant(np.array([g.rng.choice([-1, 0]), *tail], np.int64))], x.type, [-1, *tail])


def flatten(g):
    x = g.pick((FLOAT,), range(2, 6))
    if x.shape[0] != -1:
        raise Unsuitable
    g.add("Flatten", [x], FLOAT, [-1, int(np.prod(x.shape[1:]))], axis=1)


def slice_(g):
    x = g.pick((FLOAT, INT64, DOUBLE), range(2, 6))
    axis = axes_but_rows(g, x)[0]
    extent = x.shape[axis]
    step = g.rng.choice([1, 1, 2, -1, -2])
    start, end = sorted([g.rng.randint(0, extent), g.rng.randint(0, extent)])
    if step < 0:
        start, end = min(end, extent - 1), start - 1 if start > 0 else -extent - 1
    count = len(range(extent)[slice(start, end if end >= -extent else None, step)])
    if count == 0:
        raise Unsuitable
    numbers = [g.constant(np.array([n], np.int64)) for n in (start, end, axis, step)]
    g.add("Slice", [x, *numbers], x.type, [count if d == axis else e for d, e in enumerate(x.shape)])


def concat(g):
    x = g.pick((FLOAT, INT64, DOUBLE), range(2, 6))
    axis = axes_but_rows(g, x)[0]
    others = [v for v in g.values if v.type == x.type and len(v.shape) == len(x.shape)
              and all(a == b for d, (a, b) in enumerate(zip(v.shape, x.shape)) if d != axis)]  # fmt: skip
    chosen = [g.rng.choice(others) for _ in range(g.rng.randint(1, 3))]
    extent = sum(v.shape[axis] for v in chosen)
    g.add("Concat", chosen, x.type, [extent if d == axis else e for d, e in enumerate(x.shape)], axis=axis)


def split(g):
    x = g.pick((FLOAT,), range(2, 5))
    axis = axes_but_rows(g, x)[0]
    if x.shape[axis] < 2:
        raise Unsuitable
    first = g.rng.randint(1, x.shape[axis] - 1)
    sizes = [first, x.shape[axis] - first]
    names = [g.name(), g.name()]
    g.nodes.append(helper.make_node("Split", [x.name, g.constant(np.array(sizes, np.int64))], names, axis=axis))
    for name, size in zip(names, sizes):
        g.values.append(Value(name, x.type, tuple(size if d == axis else e for d, e in enumerate(x.shape))))


def pad(g):
    x = g.pick((FLOAT, FLOAT, DOUBLE, INT64), range(2, 6))
    mode = g.rng.choice(["constant", "edge", "reflect"])
    begins = [0 if e == -1 else g.rng.randint(0, min(2, e - 1)) for e in x.shape]
    ends = [0 if e == -1 else g.rng.randint(0, min(2, e - 1)) for e in x.shape]
    inputs = [x, g.constant(np.array(begins + ends, np.int64))]
    if mode == "constant" and g.rng.random() < 0.6:
        inputs.append(g.constant(np.array(g.rng.choice([0, 1, -3]), NUMPY[x.type])))
    g.add("Pad", inputs, x.type, [e if e == -1 else e + b + c for e, b, c in zip(x.shape, begins, ends)], mode=mode)


def gather(g):
    """Ids within range: those beyond are refused."""
    ids = g.pick((INT64, INT32), range(1, 3), lambda v: v.name.startswith("x"))
    width = g.rng.randint(1, 5)
    rows = g.add("Mod", [ids, g.constant(np.array(7, NUMPY[ids.type]))], ids.type, ids.shape)
    g.add("Gather", [g.weights((7, width)), rows], FLOAT, [*ids.shape, width], axis=0)


def matmul(g):
    x = g.pick((FLOAT, FLOAT, FLOAT, DOUBLE), range(2, 5))
    depth, width = x.shape[-1], g.rng.randint(1, 9)
    if depth == -1:
        raise Unsuitable
    y = g.add("MatMul", [x, g.weights((depth, width), x.type, depth**-0.5)], x.type, [*x.shape[:-1], width])
    if g.rng.random() < 0.5:
        y = g.add("Add", [y, g.weights((width,), x.type)], x.type, y.shape)
    activation(g, y)


def gemm(g):
    x = g.pick((FLOAT, FLOAT, FLOAT, DOUBLE), (2,), lambda v: v.shape[1] != -1)
    width, turned = g.rng.randint(1, 20), g.rng.randint(0, 1)
    shape = (width, x.shape[1]) if turned else (x.shape[1], width)
    inputs = [x, g.weights(shape, x.type, x.shape[1] ** -0.5)]
    if g.rng.random() < 0.8:
        inputs.append(g.weights(g.rng.choice([(width,), (1, width), (1,), ()]), x.type))
    attributes = {"alpha": g.rng.choice([0.5, 2.0])} if g.rng.random() < 0.3 else {}
    y = g.add("Gemm", inputs, x.type, [x.shape[0], width], transB=turned, **attributes)
    activation(g, y)


def few_bits(g):
    """A product with weights of 4 or 8 bits, in either of the forms in which weight-only quantizers write it."""
    x = g.pick((FLOAT,), range(2, 5), lambda value: value.shape[-1] != -1)
    state = np.random.default_rng(g.rng.getrandbits(32))
    depth, width, bits, block = x.shape[-1], g.rng.randint(1, 40), g.rng.choice([4, 8]), g.rng.choice([16, 32, 64, 128])
    blocks = -(-depth // block)
    codes = lambda *shape: state.integers(0, 256, shape).astype(np.uint8)  # noqa: E731
    scales = (state.normal(size=(width, blocks)) / 2**bits).astype(np.float32)
    has_zero_points = g.rng.random() < 0.5
    if g.rng.random() < 0.5:
        inputs = [x, g.constant(codes(width, blocks, block * bits // 8)), g.constant(scales.reshape(-1))]
        if has_zero_points:
            inputs.append(g.constant(codes(width * -(-blocks * bits // 8))))
        y = g.add("MatMulNBits", inputs, FLOAT, [*x.shape[:-1], width], domain="com.microsoft", K=depth, N=width, bits=bits,
                  block_size=block)
    else:
        kind = {4: ml_dtypes.int4, 8: np.int8}[bits]
        signed = lambda *shape: g.constant((codes(*shape).view(np.int8) >> (8 - bits)).astype(kind))  # noqa: E731
        inputs = [signed(depth, width), g.constant(np.ascontiguousarray(scales.T))]
        if has_zero_points:
            inputs.append(signed(blocks, width))
        weights = g.add("DequantizeLinear", inputs, FLOAT, [depth, width], axis=0, block_size=block)
        g.values.remove(weights)
        y = g.add("MatMul", [x, weights], FLOAT, [*x.shape[:-1], width])
    activation(g, y)


def activation(g, x):
    """What exporters write after a product."""
    choice = g.rng.choice(["", "Relu", "Relu", "Clip", "Sigmoid", "Tanh", "HardSwish", "LeakyRelu", "Silu", "Gelu",
                           "HardSigmoid", "Elu", "Max", "Softplus"])  # fmt: skip
    if choice == "Clip":
        bounds = [g.constant(np.array(b, NUMPY[x.type])) for b in (0, 6)]
        g.add("Clip", [x, *bounds], x.type, x.shape)
    elif choice == "Silu":
        g.add("Mul", [x, g.add("Sigmoid", [x], x.type, x.shape)], x.type, x.shape)
    elif choice == "Gelu":
        root = g.constant(np.array(2**0.5, NUMPY[x.type]))
        erf = g.add("Erf", [g.add("Div", [x, root], x.type, x.shape)], x.type, x.shape)
        one, half = (g.constant(np.array(c, NUMPY[x.type])) for c in (1, 0.5))
        product = g.add("Mul", [x, g.add("Add", [erf, one], x.type, x.shape)], x.type, x.shape)
        g.add("Mul", [product, half], x.type, x.shape)
    elif choice == "Max":
        g.add("Max", [x, g.constant(np.array(0, NUMPY[x.type]))], x.type, x.shape)
    elif choice:
        g.add(choice, [x], x.type, x.shape)


def image(g):
    return g.pick((FLOAT,), (3, 4, 5), lambda v: v.shape[0] == -1 and min(v.shape[2:]) >= 1)


def window(g, x):
    spatial = len(x.shape) - 2
    kernel = [g.rng.randint(1, min(3, e)) for e in x.shape[2:]]
    strides = [g.rng.randint(1, 2) for _ in range(spatial)]
    dilations = [g.rng.randint(1, 2) if k > 1 else 1 for k in kernel]
    pads = [g.rng.randint(0, k - 1) for k in kernel] + [g.rng.randint(0, k - 1) for k in kernel]
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    return kernel, strides, dilations, pads, reach


def convolution(g):
    x = image(g)
    kernel, strides, dilations, pads, reach = window(g, x)
    spatial = len(kernel)
    channels = x.shape[1]
    groups = g.rng.choice([d for d in range(1, channels + 1) if channels % d == 0])
    outputs = groups * g.rng.randint(1, 4)
    extents = [(e + pads[i] + pads[i + spatial] - reach[i]) // strides[i] + 1 for i, e in enumerate(x.shape[2:])]
    if min(extents) < 1:
        raise Unsuitable
    weights = g.weights((outputs, channels // groups, *kernel), FLOAT, 0.4)
    inputs = [x, weights] + ([g.weights((outputs,))] if g.rng.random() < 0.7 else [])
    y = g.add("Conv", inputs, FLOAT, [-1, outputs, *extents], group=groups, strides=strides, dilations=dilations,
              pads=pads, kernel_shape=kernel)  # fmt: skip
    if g.rng.random() < 0.3:
        scale, bias, mean = g.weights((outputs,)), g.weights((outputs,)), g.weights((outputs,))
        variance = g.constant(np.abs(np.random.default_rng(g.rng.getrandbits(32)).normal(size=outputs)).astype(np.float32) + 0.1)
        y = g.add("BatchNormalization", [y, scale, bias, mean, variance], FLOAT, y.shape)
    activation(g, y)


def convolution_transpose(g):
    x = image(g)
    kernel, strides, dilations, pads, reach = window(g, x)
    spatial, channels, outputs = len(kernel), x.shape[1], g.rng.randint(1, 4)
    full = [(e - 1) * strides[i] + reach[i] for i, e in enumerate(x.shape[2:])]
    attributes = {}
    if g.rng.random() < 0.5:
        wanted = [max(1, f - g.rng.randint(0, 2)) for f in full]
        attributes = {"output_shape": wanted}
        if g.rng.random() < 0.3:
            attributes["auto_pad"] = g.rng.choice(["SAME_UPPER", "SAME_LOWER"])
        if any(w > f for w, f in zip(wanted, full)):
            raise Unsuitable
    else:
        wanted = [f - pads[i] - pads[i + spatial] for i, f in enumerate(full)]
        attributes = {"pads": pads}
    if min(wanted) < 1:
        raise Unsuitable
    weights = g.weights((channels, outputs, *kernel), FLOAT, 0.4)
    y = g.add("ConvTranspose", [x, weights], FLOAT, [-1, outputs, *wanted], strides=strides, dilations=dilations,
              kernel_shape=kernel, **attributes)  # fmt: skip
    activation(g, y)


def pooling(g):
    x = image(g)
    kernel, strides, dilations, pads, reach = window(g, x)
    spatial = len(kernel)
    operator = g.rng.choice(["MaxPool", "AveragePool", "LpPool"])
    ceil = g.rng.randint(0, 1) if operator != "LpPool" else 0
    pads = [min(p, (k - 1) // 2 + (k > 1) * 0) for p, k in zip(pads, kernel * 2)]
    extents = []
    for i, e in enumerate(x.shape[2:]):
        span = e + pads[i] + pads[i + spatial] - reach[i]
        steps = -(-span // strides[i]) if ceil else span // strides[i]
        if ceil and steps * strides[i] >= e + pads[i]:
            steps -= 1
        extents.append(steps + 1)
    if min(extents) < 1:
        raise Unsuitable
    attributes = {"count_include_pad": g.rng.randint(0, 1)} if operator == "AveragePool" else {}
    if operator == "LpPool":
        attributes["p"] = g.rng.choice([1, 2])
    else:
        attributes["ceil_mode"] = ceil
    g.add(operator, [x], FLOAT, [*x.shape[:2], *extents], kernel_shape=kernel, strides=strides, dilations=dilations,
          pads=pads, **attributes)  # fmt: skip


def global_pooling(g):
    x = image(g)
    operator = g.rng.choice(["GlobalAveragePool", "GlobalMaxPool"])
    g.add(operator, [x], FLOAT, [*x.shape[:2], *[1] * (len(x.shape) - 2)])


def resize(g):
    x = g.pick((FLOAT, FLOAT, FLOAT, UINT8), (3, 4))
    if x.shape[0] != -1:
        raise Unsuitable
    mode = g.rng.choice(["nearest", "linear"] + (["cubic"] if len(x.shape) == 4 and x.type == FLOAT else []))
    coordinates = g.rng.choice(["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"])
    factors = [g.rng.choice([0.5, 1.0, 2.0, 1.5, 3.0, 0.6, 0.7, 1.3]) for _ in x.shape[2:]]
    extents = [int(np.floor(np.float32(e) * np.float32(f))) for e, f in zip(x.shape[2:], factors)]
    if min(extents) < 1:
        raise Unsuitable
    if any(e * f % 1 for e, f in zip(x.shape[2:], factors)):
        coordinates = "asymmetric"  # where the others are from is open if a part of a pixel is cut
    scales = g.constant(np.array([1, 1, *factors], np.float32))
    nearest = g.rng.choice(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
    g.add("Resize", [x, "", scales], x.type, [*x.shape[:2], *extents], mode=mode,
          coordinate_transformation_mode=coordinates, nearest_mode=nearest)  # fmt: skip


def grid_sample(g):
    x = g.pick((FLOAT,), (4,))
    if x.shape[0] != -1:
        raise Unsuitable
    grid = g.input(FLOAT, (-1, 2, 3, 2))
    bounded = g.add("Tanh", [grid], FLOAT, grid.shape)
    wide = g.add("Mul", [bounded, g.constant(np.float32(1.7))], FLOAT, grid.shape)
    g.add("GridSample", [x, wide], FLOAT, [-1, x.shape[1], 2, 3], mode=g.rng.choice(["linear", "nearest", "cubic"]),
          padding_mode=g.rng.choice(["zeros", "border", "reflection"]), align_corners=g.rng.randint(0, 1))  # fmt: skip


def layer_norm(g):
    x = g.pick((FLOAT, FLOAT, HALF), range(2, 5))
    axis = g.rng.randint(1, len(x.shape) - 1)
    if -1 in x.shape[1:]:
        raise Unsuitable
    tail = x.shape[axis:]
    inputs = [x, g.weights(tail, x.type)] + ([g.weights(tail, x.type)] if g.rng.random() < 0.7 else [])
    g.add("LayerNormalization", inputs, x.type, x.shape, axis=axis)


def instance_norm(g):
    x = image(g)
    channels = x.shape[1]
    g.add("InstanceNormalization", [x, g.weights((channels,)), g.weights((channels,))], FLOAT, x.shape)


def decomposed_norm(g):
    """What exporters write for a layer norm."""
    x = g.pick((FLOAT,), range(2, 5), lambda v: v.shape[-1] not in (-1, 1))
    axes = g.constant(np.array([-1], np.int64))
    kept = [*x.shape[:-1], 1]
    centred = g.add("Sub", [x, g.add("ReduceMean", [x, axes], FLOAT, kept)], FLOAT, x.shape)
    squares = g.add("Pow", [centred, g.constant(np.float32(2))], FLOAT, x.shape)
    variance = g.add("ReduceMean", [squares, axes], FLOAT, kept)
    deviation = g.add("Sqrt", [g.add("Add", [variance, g.constant(np.float32(1e-5))], FLOAT, kept)], FLOAT, kept)
    normal = g.add("Div", [centred, deviation], FLOAT, x.shape)
    scaled = g.add("Mul", [normal, g.weights((x.shape[-1],))], FLOAT, x.shape)
    g.add("Add", [scaled, g.weights((x.shape[-1],))], FLOAT, x.shape)


def attention(g):
    """What exporters write for attention of one head."""
    x = g.pick((FLOAT,), (3,), lambda v: v.shape[0] == -1)
    length, width = x.shape[1:]
    query, key, value = (
        g.add("MatMul", [x, g.weights((width, width), FLOAT, width**-0.5)], FLOAT, x.shape) for _ in range(3)
    )
    turned = g.add("Transpose", [key], FLOAT, [-1, width, length], perm=[0, 2, 1])
    scores = g.add("MatMul", [query, turned], FLOAT, [-1, length, length])
    scaled = g.add("Mul", [scores, g.constant(np.float32(width**-0.5))], FLOAT, scores.shape)
    if g.rng.random() < 0.5:
        mask = g.constant(np.triu(np.full((length, length), g.rng.choice([-np.inf, -1e9]), np.float32), 1))
        scaled = g.add("Add", [scaled, mask], FLOAT, scores.shape)
    g.add("MatMul", [g.add("Softmax", [scaled], FLOAT, scores.shape, axis=-1), value], FLOAT, x.shape)


def quantize(g):
    """To codes and back. Scales are powers of two, so that ties are met exactly."""
    x = g.pick((FLOAT,), range(1, 5))
    type_ = g.rng.choice([UINT8, INT8])
    scale = g.constant(np.float32(g.rng.choice([1, 0.5, 0.25])))
    zero = g.constant(NUMPY[type_](g.rng.randint(0, 127)))
    codes = g.add("QuantizeLinear", [x, scale, zero], type_, x.shape)
    g.add("DequantizeLinear", [codes, scale, zero], FLOAT, x.shape)


def trilu(g):
    x = g.pick((FLOAT, INT64), range(3, 5))
    g.add("Trilu", [x], x.type, x.shape, upper=g.rng.randint(0, 1))


def expand(g):
    x = g.pick((FLOAT,), range(2, 4))
    if x.shape[0] != -1:
        raise Unsuitable
    extent = g.rng.randint(1, 3)
    wide = g.add("Unsqueeze", [x, g.constant(np.array([1], np.int64))], x.type, [x.shape[0], 1, *x.shape[1:]])
    g.add("Expand", [wide, g.constant(np.array([1, extent, *[1] * (len(x.shape) - 1)], np.int64))], x.type,
          [-1, extent, *x.shape[1:]])  # fmt: skip


def depth_to_space(g):
    x = g.pick((FLOAT,), (4,), lambda v: v.shape[1] != -1 and v.shape[1] % 4 == 0)
    shape = [x.shape[0], x.shape[1] // 4, x.shape[2] * 2, x.shape[3] * 2]
    g.add("DepthToSpace", [x], FLOAT, shape, blocksize=2, mode=g.rng.choice(["DCR", "CRD"]))


def lrn(g):
    x = image(g)
    g.add("LRN", [x], FLOAT, x.shape, size=g.rng.randint(1, 5))


def gather_elements(g):
    x = g.pick((FLOAT,), range(2, 5))
    axis = axes_but_rows(g, x)[0]
    state = np.random.default_rng(g.rng.getrandbits(32))
    count = g.rng.randint(1, x.shape[axis])
    order = state.integers(-x.shape[axis], x.shape[axis], count).astype(np.int64)
    shape = [count if d == axis else e for d, e in enumerate(x.shape)]
    g.add("Gather", [x, g.constant(order)], x.type, shape, axis=axis)


OPERATORS = {
    unary: 6, binary: 5, clip: 3, matmul: 3, gemm: 3, few_bits: 2, convolution: 5, pooling: 3, reduce: 3, integer_unary: 1, power: 2,
    variadic: 2, logic: 1, where: 1, cast: 2, arg_reduce: 2, softmax: 2, cumulative: 1, top_k: 1, transpose: 1,
    reshape: 1, flatten: 1, slice_: 1, concat: 1, split: 1, pad: 2, gather: 1, convolution_transpose: 2,
    global_pooling: 1, resize: 2, grid_sample: 1, layer_norm: 2, instance_norm: 1, decomposed_norm: 1, attention: 1,
    quantize: 2, trilu: 1, expand: 1, depth_to_space: 1, lrn: 1, gather_elements: 1,
}  # fmt: skip
INPUTS = {
    (FLOAT, 1): 3, (FLOAT, 2): 3, (FLOAT, 3): 4, (FLOAT, 4): 1, (DOUBLE, 1): 1, (DOUBLE, 2): 1, (HALF, 2): 1,
    (INT64, 1): 1, (INT32, 2): 1, (UINT8, 3): 1, (INT8, 1): 1, (BOOL, 1): 1,
}  # fmt: skip


def draw(rng, type_, shape, special, ends=None):
    """Numbers; with `special` some of those that kernels stumble over: of integers what `ends` gives of their type."""
    state = np.random.default_rng(rng.getrandbits(32))
    if type_ == BOOL:
        return state.random(shape) < 0.5
    if ends is not None and special and np.dtype(NUMPY[type_]).kind in "iu":
        numbers = np.array(ends(type_), NUMPY[type_])
        return numbers[state.integers(len(numbers), size=shape)]
    if type_ in (INT32, INT64, INT8, TensorProto.INT16):
        return state.integers(-9, 10, shape).astype(NUMPY[type_])
    if np.dtype(NUMPY[type_]).kind == "u":
        return state.integers(0, 256, shape).astype(NUMPY[type_])
    values = state.normal(size=shape) * rng.choice([1, 1, 4])
    if type_ == HALF:  # not rounded to between operators: what overflows on the way is open
        return np.clip(values, -3, 3).astype(np.float16)
    if rng.random() < 0.4:
        values = np.round(values * 2) / 2  # ties
    if special:
        chosen = state.random(shape) < 0.15
        values = np.where(chosen, state.choice(SPECIAL, shape), values)
    with np.errstate(over="ignore"):
        return values.astype(NUMPY[type_])


def names_read(nodes):
    """By these nodes, and by those of their subgraphs."""
    bodies = [attribute.g.node for node in nodes for attribute in node.attribute if attribute.HasField("g")]
    return {name for node in nodes for name in node.input}.union(*(names_read(body) for body in bodies))


def random_graph(rng, operators, inputs):
    g = Graph(rng)
    for _ in range(rng.choice([1, 1, 2])):
        type_, rank = rng.choices(list(inputs), inputs.values())[0]
        g.input(type_, (-1, *[rng.choice([1, 2, 3, 4, 5, 7, 16, 17]) if rank < 3 else rng.randint(1, 9) for _ in range(rank)]))
    wanted = rng.choice([1, 1, 2, 3, 5, 8])
    for _ in range(wanted * 3):
        if len(g.nodes) >= wanted:
            break
        before = [list(part) for part in (g.nodes, g.inputs, g.initializers, g.values)]
        try:
            rng.choices(list(operators), operators.values())[0](g)
        except Unsuitable:
            g.nodes, g.inputs, g.initializers, g.values = before
    used = names_read(g.nodes)
    g.inputs = [value for value in g.inputs if value.name in used]
    return g


def make_case(seed, operators=None, inputs=None, ends=None):
    """(model, inputs, rows): a random model and a batch of rows for it."""
    rng = random.Random(seed)
    while True:
        g = random_graph(rng, operators or OPERATORS, inputs or INPUTS)
        if not g.nodes or not g.inputs or all(-1 not in value.shape for value in g.inputs):
            continue
        model = g.model()
        if model.ByteSize() <= 1 << 20:
            break
    rows = rng.choice([1, 2, 3, 4])
    special = rng.random() < 0.4
    values = {
        value.name: draw(rng, value.type, [rows if e == -1 else e for e in value.shape], special, ends)
        for value in g.inputs
    }
    return model, values, rows
