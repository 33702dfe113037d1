"""Random models for test_independent_rows.py: some of which every row is computed by itself, and others that couple
their rows, or whose first dimension is a set or a sequence."""

import dataclasses

import numpy as np
from onnx import TensorProto, helper, numpy_helper

# Trials of so many rows each, of which a program takes the first ones.
TRIALS, ROWS = 3, 6


@dataclasses.dataclass
class Case:
    name: str
    model: object
    trials: list  # of {input: array}
    independent: bool
    shared: frozenset = frozenset()  # inputs without rows
    share: float = 2e-4  # of an output's largest value, that it may differ by


class Builder:
    def __init__(self, random, width):
        self.random = random
        self.width = width
        self.nodes = []
        self.weights = {}
        self.inputs = {"x": (TensorProto.FLOAT, ["N", width])}
        self.outputs = []
        self.makers = {}
        self.shared = set()

    def name(self, kind):
        return f"{kind}_{len(self.nodes) + len(self.weights)}"

    def constant(self, value, kind=np.float32):
        name = self.name("w")
        self.weights[name] = np.asarray(value, kind)
        return name

    def integers(self, *values):
        return self.constant(values, np.int64)

    def node(self, kind, *inputs, outputs=1, **attributes):
        names = [f"{self.name(kind)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, names[0], **attributes))
        return names[0] if outputs == 1 else names

    def input(self, name, kind, shape, make):
        self.inputs[name] = (kind, shape)
        self.makers[name] = make
        if "N" not in shape:
            self.shared.add(name)
        return name

    def dense(self, x, width=None):
        width = width or self.width
        return self.node("Gemm", x, self.constant(self.random.normal(0, self.width**-0.5, (self.width, width))),
                         self.constant(self.random.normal(0, 0.1, width)))

    def activation(self, x):
        kind = self.random.choice(["Relu", "Tanh", "Sigmoid", "Softplus", "Abs", "Neg"])
        return self.node(kind, x)

    def rows(self, x):
        """How many there are, [1]."""
        return self.node("Slice", self.node("Shape", x), self.integers(0), self.integers(1))

    def shape(self, x, *rest):
        """Of x's rows and the rest, [1 + rest]."""
        return self.node("Concat", self.rows(x), self.integers(*rest), axis=0)


# Row by row: each keeps [N, width].

def dense(b, x):
    return b.activation(b.dense(x))


def layer_norm(b, x):
    return b.node("LayerNormalization", x, b.constant(np.ones(b.width)), b.constant(np.zeros(b.width)), axis=-1,
                  epsilon=0.1)


def softmax(b, x):
    return b.node("Softmax", x, axis=int(b.random.choice([-1, 1])))


def normed(b, x):
    return b.node("Div", x, b.node("Add", b.node("ReduceL2", x, axes=[1], keepdims=1), b.constant(1)))


def by_heads(b, x):
    heads = b.node("Reshape", x, b.shape(x, 2, b.width // 2))
    scores = b.node("MatMul", heads, b.node("Transpose", heads, perm=[0, 2, 1]))
    mixed = b.node("MatMul", b.node("Softmax", scores, axis=-1), heads)
    return b.node("Reshape", mixed, b.integers(-1, b.width) if b.random.random() < 0.5 else b.shape(x, b.width))


def joined_heads(b, x):
    """The two halves as rows of their own, and back."""
    halves = b.node("Reshape", x, b.integers(-1, b.width // 2))
    return b.node("Reshape", b.node("Softmax", halves, axis=-1), b.integers(-1, b.width))


def convolved(b, x):
    image = b.node("Reshape", x, b.integers(-1, 1, b.width))
    kernel = b.constant(b.random.normal(0, 0.5, (1, 1, 3)))
    return b.node("Flatten", b.node("Conv", image, kernel, pads=[1, 1]), axis=1)


def recurrent(b, x):
    hidden = b.width // 2
    steps = b.node("Transpose", b.node("Reshape", x, b.integers(0, 2, hidden)), perm=[1, 0, 2])
    y, _ = b.node("GRU", steps, b.constant(b.random.normal(0, 0.5, (1, 3 * hidden, hidden))),
                  b.constant(b.random.normal(0, 0.5, (1, 3 * hidden, hidden))), outputs=2, hidden_size=hidden)
    back = b.node("Transpose", b.node("Squeeze", y, b.integers(1)), perm=[1, 0, 2])
    return b.node("Reshape", back, b.integers(0, -1))


def with_token(b, x):
    token = b.node("Expand", b.constant(b.random.normal(0, 1, (1, 1))), b.shape(x, 1))
    return b.node("Slice", b.node("Concat", token, x, axis=1), b.integers(0), b.integers(b.width), b.integers(1))


def sorted_within(b, x):
    values, _ = b.node("TopK", x, b.integers(b.width), outputs=2, axis=1)
    return values


def summed_within(b, x):
    return b.node("CumSum", x, b.constant(1, np.int64))


def doubled(b, x):
    both = b.node("Exp", b.node("Tanh", b.node("Concat", x, b.node("Neg", x), axis=0)))
    first, second = b.node("Split", both, outputs=2, axis=0)
    return b.node("Sub", first, second)


def embedded(b, x):
    best = b.node("ArgMax", x, axis=1, keepdims=0)
    return b.node("Add", x, b.node("Gather", b.constant(b.random.normal(0, 1, (b.width, b.width))), best))


def masked(b, x):
    mask = b.input("mask", TensorProto.INT64, ["N", b.width],
                   lambda random, rows: random.integers(0, 2, (rows, b.width)))
    return b.node("Where", b.node("Cast", mask, to=TensorProto.BOOL), x, b.constant(-1))


def chosen(b, x):
    best = b.node("ArgMax", x, axis=1, keepdims=1)
    return b.node("Sub", x, b.node("Unsqueeze", b.node("GatherND", x, best, batch_dims=1), b.integers(1)))


def chosen_by_number(b, x):
    """torch's x[arange(n), best]."""
    count = b.node("Squeeze", b.rows(x), b.integers(0))
    place = b.node("Range", b.constant(0, np.int64), count, b.constant(1, np.int64))
    best = b.node("ArgMin", x, axis=1, keepdims=1)
    both = b.node("Concat", b.node("Unsqueeze", place, b.integers(1)), best, axis=1)
    return b.node("Mul", x, b.node("Unsqueeze", b.node("GatherND", x, both), b.integers(1)))


INDEPENDENT = [dense, layer_norm, softmax, normed, by_heads, joined_heads, convolved, recurrent, with_token,
               sorted_within, summed_within, doubled, embedded, masked, chosen, chosen_by_number]


# Rows together.

def scaled_by_the_largest(b, x):
    largest = b.node("ReduceMax", b.node("Abs", x), keepdims=0)
    return b.node("Div", x, b.node("Max", largest, b.constant(float(b.random.choice([1, 30, 100])))))


def attention(b, x):
    scores = b.node("MatMul", x, b.node("Transpose", b.dense(x), perm=[1, 0]))
    return b.node("MatMul", b.node("Softmax", scores, axis=-1), x)


def attention_over_a_set(b, x):
    points = b.node("Reshape", x, b.integers(1, -1, b.width))
    scores = b.node("MatMul", points, b.node("Transpose", points, perm=[0, 2, 1]))
    mixed = b.node("MatMul", b.node("Softmax", scores, axis=-1), points)
    return b.node("Reshape", mixed, b.integers(-1, b.width))


def convolved_over_a_sequence(b, x):
    steps = b.node("Reshape", b.node("Transpose", x, perm=[1, 0]), b.integers(1, b.width, -1))
    kernel = b.constant(b.random.normal(0, 0.3, (b.width, b.width, 3)))
    convolved = b.node("Conv", steps, kernel, pads=[1, 1])
    return b.node("Transpose", b.node("Reshape", convolved, b.integers(b.width, -1)), perm=[1, 0])


def relative(reduction):
    def couple(b, x):
        return b.node("Sub", x, b.node(reduction, x, axes=[0], keepdims=1))
    couple.__name__ = f"relative_to_{reduction}"
    return couple


def sum_subtracted(b, x):
    return b.node("Sub", x, b.node("ReduceSum", x, b.integers(0), keepdims=1))


def set_features(b, x):
    """Of all points one vector, and no row of its own."""
    return b.node("ReduceMax", b.activation(b.dense(x)), axes=[0], keepdims=int(b.random.choice([0, 1])))


def standardised(b, x):
    mean = b.node("ReduceMean", x, axes=[0], keepdims=1)
    apart = b.node("Sub", x, mean)
    square = b.node("ReduceMean", b.node("Mul", apart, apart), axes=[0], keepdims=1)
    return b.node("Div", apart, b.node("Sqrt", b.node("Add", square, b.constant(1e-1))))


def quantised(b, x):
    codes, scale, zero = b.node("DynamicQuantizeLinear", b.node("Clip", x, b.constant(0), b.constant(6)), outputs=3)
    return b.node("DequantizeLinear", codes, scale, zero)


def softmax_over_rows(b, x):
    return b.node("Softmax", x, axis=0)


def summed_over_rows(b, x):
    return b.node("CumSum", x, b.constant(0, np.int64))


def best_of_rows(b, x):
    values, _ = b.node("TopK", x, b.integers(1), outputs=2, axis=0)
    return b.node("Sub", x, values)


def relative_to_the_first(b, x):
    return b.node("Sub", x, b.node("Gather", x, b.integers(0)))


def reversed_rows(b, x):
    return b.node("Add", x, b.node("Slice", x, b.integers(-1), b.integers(-1000), b.integers(0), b.integers(-1)))


def turned_rows(b, x):
    rest = b.node("Slice", x, b.integers(1), b.integers(1000), b.integers(0))
    first = b.node("Slice", x, b.integers(0), b.integers(1), b.integers(0))
    return b.node("Sub", x, b.node("Concat", rest, first, axis=0))


def divided_by_the_count(b, x):
    return b.node("Div", x, b.node("Cast", b.rows(x), to=TensorProto.FLOAT))


def numbered(b, x):
    count = b.node("Squeeze", b.rows(x), b.integers(0))
    place = b.node("Range", b.constant(0, np.int64), count, b.constant(1, np.int64))
    return b.node("Add", x, b.node("Unsqueeze", b.node("Cast", place, to=TensorProto.FLOAT), b.integers(1)))


def a_masks_shortcut(b, x):
    mask = b.input("mask", TensorProto.INT64, ["N", b.width],
                   lambda random, rows: (random.random((rows, b.width)) > 0.05).astype(np.int64))
    full = b.node("Equal", b.node("ReduceMin", mask, keepdims=0), b.constant(1, np.int64))
    half = b.node("Div", b.node("Mul", x, b.node("Cast", mask, to=TensorProto.FLOAT)), b.constant(2))
    return b.node("Where", full, x, half)


def recurrent_over_rows(b, x):
    steps = b.node("Unsqueeze", x, b.integers(1))
    y, _, _ = b.node("LSTM", steps, b.constant(b.random.normal(0, 0.5, (1, 4 * b.width, b.width))),
                     b.constant(b.random.normal(0, 0.5, (1, 4 * b.width, b.width))), outputs=3, hidden_size=b.width)
    return b.node("Squeeze", y, b.integers(1, 2))


def normalised_over_all(b, x):
    points = b.node("Reshape", b.node("Transpose", x, perm=[1, 0]), b.integers(1, b.width, -1))
    normal = b.node("InstanceNormalization", points, b.constant(np.ones(b.width)), b.constant(np.zeros(b.width)),
                    epsilon=0.1)
    return b.node("Transpose", b.node("Squeeze", normal, b.integers(0)), perm=[1, 0])


def outer_product(b, x):
    return b.node("MatMul", b.node("Einsum", x, x, equation="ij,kj->ik"), x)


def norm_of_all(b, x):
    return b.node("Div", x, b.node("Max", b.node("ReduceL2", x, keepdims=0), b.constant(3)))


def columns_as_rows(b, x):
    turned = b.node("Reshape", x, b.integers(b.width, -1))
    return b.node("Reshape", b.node("Softmax", turned, axis=-1), b.integers(-1, b.width))


def averaged_over_neighbours(b, x):
    steps = b.node("Reshape", b.node("Transpose", x, perm=[1, 0]), b.integers(1, b.width, -1))
    averaged = b.node("AveragePool", steps, kernel_shape=[3], pads=[1, 1], count_include_pad=0)
    return b.node("Transpose", b.node("Squeeze", averaged, b.integers(0)), perm=[1, 0])


def with_a_total(b, x):
    return b.node("Concat", x, b.node("ReduceSum", x, b.integers(0), keepdims=1), axis=0)


def with_a_loss(b, x):
    b.outputs.append(b.node("ReduceMean", b.node("Mul", x, x), keepdims=0))
    return x


def with_a_temperature(b, x):
    shape = [] if b.random.random() < 0.5 else [1]
    value = b.input("temperature", TensorProto.FLOAT, shape,
                    lambda random, rows: np.full(shape, random.uniform(0.5, 2), np.float32))
    return b.node("Div", x, value)


def looked_up_in_rows(b, x):
    best = b.node("ArgMax", x, axis=0, keepdims=1)
    return b.node("Sub", x, b.node("GatherElements", x, best, axis=0))


def triangle(b, x):
    return b.node("MatMul", b.node("Trilu", b.node("MatMul", x, b.node("Transpose", x, perm=[1, 0])), upper=0), x)


COUPLED = [scaled_by_the_largest, attention, attention_over_a_set, convolved_over_a_sequence, relative("ReduceMean"),
           relative("ReduceMax"), relative("ReduceMin"), relative("ReduceLogSumExp"), sum_subtracted, set_features,
           standardised, quantised, softmax_over_rows, summed_over_rows, best_of_rows, relative_to_the_first,
           reversed_rows, turned_rows, divided_by_the_count, numbered, a_masks_shortcut, recurrent_over_rows,
           normalised_over_all, outer_product, norm_of_all, columns_as_rows, averaged_over_neighbours, with_a_total,
           with_a_loss, with_a_temperature, looked_up_in_rows, triangle]
# After these no further layer: what they give is not [N, width], or is rounded.
LAST = {set_features, with_a_total, quantised}


def contrary_rows(random, width):
    """Ordinary rows beside constant and sparse ones, and ones larger by decades."""
    x = random.normal(0, 1, (ROWS, width))
    for row in x:
        kind = random.integers(5)
        if kind == 1:
            row *= 10.0 ** random.integers(1, 3)
        elif kind == 2:
            row[:] = row[0]
        elif kind == 3:
            row *= random.random(width) < 0.2
        elif kind == 4:
            row /= 100
    return x.astype(np.float32)


def make_case(random, couple=None):
    """With layers that work row by row around `couple`."""
    b = Builder(random, int(random.choice([4, 6, 8])))
    x = "x"
    layers = [layer for layer in INDEPENDENT if layer is not masked or couple is not a_masks_shortcut]
    before = [layers[i] for i in random.permutation(len(layers))[: random.integers(0, 3)]]
    after = [] if couple in LAST else [layers[i] for i in random.permutation(len(layers))[: random.integers(0, 2)]]
    parts = before + ([couple] if couple else []) + [layer for layer in after if layer not in before]
    for part in parts or [dense]:
        x = part(b, x)
    b.outputs.insert(0, x)
    graph = helper.make_graph(
        b.nodes, "model", [helper.make_tensor_value_info(name, *value) for name, value in b.inputs.items()],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in b.outputs],
        [numpy_helper.from_array(np.ascontiguousarray(value), name) for name, value in b.weights.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    trials = []
    for _ in range(TRIALS):
        values = {"x": contrary_rows(random, b.width)}
        values |= {name: make(random, ROWS) for name, make in b.makers.items()}
        trials.append(values)
    name = "-".join(part.__name__ for part in parts) or "dense"
    return Case(name, model, trials, couple is None, frozenset(b.shared), 1 / 100 if couple is quantised else 2e-4)
