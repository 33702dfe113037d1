"""More of what exporters write than generator.py has: networks with a state, indices that are inputs, subgraphs, integers
of all widths and sizes, shapes that are computed, and blocks of whole networks. As there, no operator looks across rows."""

import numpy as np
from onnx import TensorProto, helper

from generator import (BOOL, DOUBLE, FLOAT, INT8, INT32, INT64, NUMPY, UINT8, Unsuitable, Value, activation, axes_but_rows)
import generator

UINT16, INT16, UINT32, UINT64 = TensorProto.UINT16, TensorProto.INT16, TensorProto.UINT32, TensorProto.UINT64
NUMPY.update({UINT16: np.uint16, INT16: np.int16, UINT32: np.uint32, UINT64: np.uint64})


def integers(g, *values):
    return g.constant(np.array(values, np.int64))


def scalar(g, value, type_):
    return g.constant(np.array(value, NUMPY[type_]))


def inner(g, *arguments, **attributes):
    """A value that no other operator picks."""
    value = g.add(*arguments, **attributes)
    g.values.remove(value)
    return value


def add_several(g, operator, inputs, outputs, **attributes):
    """`outputs`: (type, shape) of each, None for one that is left out."""
    names = [g.name() if output else "" for output in outputs]
    operands = [x.name if isinstance(x, Value) else x for x in inputs]
    g.nodes.append(helper.make_node(operator, operands, names, **attributes))
    made = [Value(name, output[0], tuple(output[1])) for name, output in zip(names, outputs) if output]
    g.values += made
    return made


def rows_of(types, ranks, fits=lambda value: True):
    return {"types": types, "ranks": ranks, "fits": lambda value: value.shape[0] == -1 and -1 not in value.shape[1:] and fits(value)}


def signed(g, axis, rank):
    return axis - rank if g.rng.random() < 0.4 else axis


def without(values):
    """The list without the "" at its end."""
    while values and values[-1] in ("", None):
        values = values[:-1]
    return values


# Networks with a state. Theirs is [directions, rows, hidden]: so they stand between transpositions.

GATES = {"RNN": (1, 1), "GRU": (3, 2), "LSTM": (4, 3)}  # gates, and functions of them
PARAMETERS = {"Sigmoid": 0, "Tanh": 0, "Relu": 0, "Softplus": 0, "LeakyRelu": 1, "Elu": 1, "HardSigmoid": 2, "Affine": 2}


def gate_functions(g, count):
    names = [g.rng.choice(list(PARAMETERS)) for _ in range(count)]
    attributes = {"activations": names}
    for number, name in ((1, "activation_alpha"), (2, "activation_beta")):
        values = [g.rng.choice([0.1, 0.3, 0.7]) for each in names if PARAMETERS[each] >= number]
        if values and g.rng.random() < 0.6:
            attributes[name] = values
    return attributes


def first_state(g, directions, hidden):
    if g.rng.random() < 0.6:
        return ""
    return inner(g, "Transpose", [g.input(FLOAT, (-1, directions, hidden))], FLOAT, (directions, -1, hidden), perm=[1, 0, 2])


def sequence_lengths(g, length):
    if g.rng.random() < 0.5:
        return ""
    within = inner(g, "Mod", [g.input(INT32, (-1,)), scalar(g, length, INT32)], INT32, (-1,))
    return inner(g, "Add", [within, scalar(g, 1, INT32)], INT32, (-1,))


def recurrent(g):
    x = g.pick(**rows_of((FLOAT,), (3,)))
    length, width = x.shape[1:]
    kind, hidden = g.rng.choice(list(GATES)), g.rng.randint(1, 6)
    gates, functions = GATES[kind]
    direction = g.rng.choice(["forward", "reverse", "bidirectional"])
    directions = 2 if direction == "bidirectional" else 1
    attributes = {"hidden_size": hidden, "direction": direction}
    if g.rng.random() < 0.3:
        attributes |= gate_functions(g, functions * directions)
    if g.rng.random() < 0.25:
        attributes["clip"] = g.rng.choice([0.5, 1.0, 2.0])
    if kind == "GRU":
        attributes["linear_before_reset"] = g.rng.randint(0, 1)
    if kind == "LSTM" and g.rng.random() < 0.2:
        attributes["input_forget"] = 1
    steps = inner(g, "Transpose", [x], FLOAT, (length, -1, width), perm=[1, 0, 2])
    inputs = [steps, g.weights((directions, gates * hidden, width), FLOAT, width**-0.5),
              g.weights((directions, gates * hidden, hidden), FLOAT, hidden**-0.5),
              g.weights((directions, 2 * gates * hidden), FLOAT, 0.5) if g.rng.random() < 0.7 else "",
              sequence_lengths(g, length), first_state(g, directions, hidden)]  # fmt: skip
    if kind == "LSTM":
        inputs += [first_state(g, directions, hidden), g.weights((directions, 3 * hidden), FLOAT, 0.5) if g.rng.random() < 0.3 else ""]
    last = (FLOAT, (directions, -1, hidden))
    outputs = [(FLOAT, (length, directions, -1, hidden)), last] + [last] * (kind == "LSTM")
    wanted = without([output if g.rng.random() < 0.7 else None for output in outputs]) or outputs[:1]
    for value in add_several(g, kind, without(inputs), wanted, **attributes):
        g.values.remove(value)
        perm = [2, 0, 1, 3] if len(value.shape) == 4 else [1, 0, 2]
        g.add("Transpose", [value], FLOAT, [value.shape[d] for d in perm], perm=perm)


def loop(g):
    """A Loop whose number of runs is known: a value that it carries on, and one of each run."""
    x = g.pick(**rows_of((FLOAT,), range(1, 4)))
    runs, factor = g.rng.randint(1, 4), scalar(g, g.rng.choice([0.5, 1.0, -0.5]), FLOAT)
    number, goes_on, before, stays, after, part, wide, scaled = (g.name() for _ in range(8))
    nodes = [helper.make_node("Cast", [number], [wide], to=FLOAT), helper.make_node("Identity", [goes_on], [stays]),
             helper.make_node("Mul", [before, factor], [scaled]), helper.make_node("Add", [scaled, wide], [after]),
             helper.make_node("Sub", [after, x.name], [part])]  # fmt: skip
    typed = helper.make_tensor_value_info
    body = helper.make_graph(
        nodes, "body", [typed(number, INT64, []), typed(goes_on, BOOL, []), typed(before, FLOAT, None)],
        [typed(stays, BOOL, []), typed(after, FLOAT, None), typed(part, FLOAT, None)],
    )  # fmt: skip
    condition = g.constant(np.array(True)) if g.rng.random() < 0.5 else ""
    outputs = [(FLOAT, x.shape), (FLOAT, (runs, *x.shape))]
    _, parts = add_several(g, "Loop", [scalar(g, runs, INT64), condition, x], outputs, body=body)
    g.values.remove(parts)
    g.add("Transpose", [parts], FLOAT, (-1, runs, *x.shape[1:]), perm=[1, 0, *range(2, len(x.shape) + 1)])


def scan(g):
    x = g.pick(**rows_of((FLOAT,), (3,)))
    length, width = x.shape[1:]
    first = g.add("ReduceMax", [x, integers(g, 1)], FLOAT, (-1, width), keepdims=0)
    state, step, both, after, part = (g.name() for _ in range(5))
    nodes = [helper.make_node("Mul", [state, step], [both]), helper.make_node("Tanh", [both], [after]),
             helper.make_node("Add", [after, step], [part])]  # fmt: skip
    typed = [helper.make_tensor_value_info(name, FLOAT, None) for name in (state, step, after, part)]
    axis = g.rng.choice([1, -1, 2])
    outputs = [(FLOAT, (-1, width)), (FLOAT, (-1, length, width) if axis == 1 else (-1, width, length))]
    add_several(g, "Scan", [first, x], outputs, body=helper.make_graph(nodes, "body", typed[:2], typed[2:]), num_scan_inputs=1,
                scan_input_axes=[g.rng.choice([1, -2])], scan_input_directions=[g.rng.randint(0, 1)],
                scan_output_axes=[axis], scan_output_directions=[g.rng.randint(0, 1)])  # fmt: skip


def branches(g, x, nodes):
    """The attributes of an If with a node in each branch: (operator, further inputs)."""
    graphs = []
    for operator, more in nodes:
        name = g.name()
        graphs.append(helper.make_graph([helper.make_node(operator, [x.name, *more], [name])], "branch", [],
                                        [helper.make_tensor_value_info(name, x.type, None)]))  # fmt: skip
    return {"then_branch": graphs[0], "else_branch": graphs[1]}


def branch(g):
    """An If whose condition is a constant, or follows from the shape as in torch's squeeze."""
    x = g.pick(**rows_of((FLOAT,), range(1, 5)))
    if len(x.shape) == 1 or g.rng.random() < 0.5:
        g.add("If", [g.constant(np.array(g.rng.random() < 0.5))], FLOAT, x.shape, **branches(g, x, [("Sigmoid", []), ("Abs", [])]))
        return
    axis = g.rng.randint(1, len(x.shape) - 1)
    shape = inner(g, "Shape", [x], INT64, (len(x.shape),))
    extent = inner(g, "Gather", [shape, scalar(g, axis, INT64)], INT64, ())
    condition = inner(g, "Equal", [extent, scalar(g, 1, INT64)], BOOL, ())
    kept = [e for d, e in enumerate(x.shape) if d != axis or e != 1]
    g.add("If", [condition], FLOAT, kept, **branches(g, x, [("Squeeze", [integers(g, axis)]), ("Identity", [])]))


# Indices that are inputs.


def ids_within(g, extent, shape):
    type_ = g.rng.choice([INT64, INT32])
    ids = inner(g, "Mod", [g.input(type_, (-1, *shape)), scalar(g, extent, type_)], type_, (-1, *shape))
    if g.rng.random() < 0.4:
        ids = inner(g, "Sub", [ids, scalar(g, extent, type_)], type_, ids.shape)
    return ids if type_ == INT64 else inner(g, "Cast", [ids], INT64, ids.shape, to=INT64)


def gather_elements(g):
    x = g.pick(**rows_of((FLOAT, INT64, DOUBLE, BOOL), (2, 3, 4)))
    axis = g.rng.randint(1, len(x.shape) - 1)
    shape = [g.rng.randint(1, 5) if d == axis else e if g.rng.random() < 0.7 else g.rng.randint(1, e) for d, e in enumerate(x.shape) if d]
    g.add("GatherElements", [x, ids_within(g, x.shape[axis], shape)], x.type, (-1, *shape), axis=signed(g, axis, len(x.shape)))


def gather_nd(g):
    x = g.pick(**rows_of((FLOAT, INT64), (2, 3, 4)))
    size, count = g.rng.randint(1, len(x.shape) - 1), g.rng.randint(1, 4)
    columns = [ids_within(g, x.shape[1 + i], (count, 1)) for i in range(size)]
    ids = columns[0] if size == 1 else inner(g, "Concat", columns, INT64, (-1, count, size), axis=-1)
    g.add("GatherND", [x, ids], x.type, (-1, count, *x.shape[1 + size:]), batch_dims=1)


def scatter_elements(g):
    """With a reduction, so that it does not matter which of two updates of an element comes last."""
    x = g.pick(**rows_of((FLOAT, INT64, INT32), (2, 3, 4)))
    axis = g.rng.randint(1, len(x.shape) - 1)
    shape = [g.rng.randint(1, 5) if d == axis else e for d, e in enumerate(x.shape)][1:]
    inputs = [x, ids_within(g, x.shape[axis], shape), g.input(x.type, (-1, *shape))]
    g.add("ScatterElements", inputs, x.type, x.shape, axis=signed(g, axis, len(x.shape)), reduction=g.rng.choice(["add", "mul", "min", "max"]))


def scatter_nd(g):
    """Rows stand last, so that positions are constants."""
    x = g.pick(**rows_of((FLOAT, INT64), (2, 3)))
    rank, reduction = len(x.shape), g.rng.choice(["none", "add", "mul", "min", "max"])
    size = g.rng.randint(1, rank - 1)
    places = list(np.ndindex(*x.shape[1:1 + size]))
    count = g.rng.randint(1, min(4, len(places)))
    chosen = g.rng.sample(places, count) if reduction == "none" else g.rng.choices(places, k=count)
    ids = np.array(chosen, np.int64) - (np.array(x.shape[1:1 + size]) if g.rng.random() < 0.3 else 0)
    turned = inner(g, "Transpose", [x], x.type, (*x.shape[1:], -1), perm=[*range(1, rank), 0])
    updates = g.input(x.type, (-1, count, *x.shape[1 + size:]))
    perm = [*range(1, len(updates.shape)), 0]
    updates = inner(g, "Transpose", [updates], x.type, [updates.shape[d] for d in perm], perm=perm)
    done = inner(g, "ScatterND", [turned, g.constant(ids.astype(np.int64)), updates], x.type, turned.shape, reduction=reduction)
    g.add("Transpose", [done], x.type, x.shape, perm=[rank - 1, *range(rank - 1)])


def top_of_ties(g):
    x = g.pick((FLOAT, INT64, INT32), range(2, 5))
    axis = axes_but_rows(g, x)[0]
    x = g.add("Round", [x], FLOAT, x.shape) if x.type == FLOAT else g.add("Mod", [x, scalar(g, 3, x.type)], x.type, x.shape)
    count = g.rng.randint(1, x.shape[axis])
    shape = [count if d == axis else e for d, e in enumerate(x.shape)]
    outputs = [(x.type, shape) if g.rng.random() < 0.7 else None, (INT64, shape)]
    add_several(g, "TopK", [x, integers(g, count)], outputs, axis=signed(g, axis, len(x.shape)), largest=g.rng.randint(0, 1))


def reverse_sequence(g):
    x = g.pick(**rows_of((FLOAT, INT64), range(2, 5)))
    lengths = inner(g, "Mod", [g.input(INT64, (-1,)), scalar(g, x.shape[1], INT64)], INT64, (-1,))
    lengths = inner(g, "Add", [lengths, scalar(g, 1, INT64)], INT64, (-1,))
    g.add("ReverseSequence", [x, lengths], x.type, x.shape, batch_axis=0, time_axis=1)


# Integers as large as ids and hashes are, and small ones at their ends.

LARGE = [2**31, 2**31 - 1, -(2**31), 2**53 + 1, -(2**53) - 1, 2**62, 2**63 - 1, -(2**63), -(2**63) + 1, 2**40 + 7, 12345678901234567, 1, 0, -1, 7]
WIDTHS = {INT8: 8, UINT8: 8, INT16: 16, UINT16: 16, INT32: 32, UINT32: 32, INT64: 64, UINT64: 64}


def ends_of(type_):
    info = np.iinfo(NUMPY[type_])
    return [info.min, info.max, info.max - 1, info.max // 2, info.max // 2 + 1, 0, 1, 3, 7]


def numbers_of(type_):
    return LARGE if type_ == INT64 else ends_of(type_)


def integer_binary(g):
    x = g.pick(tuple(WIDTHS), range(1, 5))
    operator = g.rng.choice(["Add", "Sub", "Mul", "Min", "Max", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Mod", "Equal", "Less", "Greater"])
    numbers = numbers_of(x.type)
    if operator in ("Div", "Mod"):
        numbers = [n for n in numbers if n not in (0, -1)]  # by which the least number has no quotient
    operands = [x, scalar(g, g.rng.choice(numbers), x.type)]
    if operator not in ("Div", "Mod") and g.rng.random() < 0.4:
        operands.reverse()
    attributes = {"fmod": g.rng.randint(0, 1)} if operator == "Mod" else {}
    g.add(operator, operands, BOOL if operator in ("Equal", "Less", "Greater") else x.type, x.shape, **attributes)


def integer_clip(g):
    x = g.pick(tuple(WIDTHS), range(1, 5))
    bounds = [scalar(g, b, x.type) for b in sorted(g.rng.choice(numbers_of(x.type)) for _ in range(2))]
    if g.rng.random() < 0.5:
        bounds[g.rng.randint(0, 1)] = ""
    g.add("Clip", without([x, *bounds]), x.type, x.shape)


def wide_clip(g):
    """What is beyond float32, with one bound."""
    x = g.pick((DOUBLE,), range(1, 5))
    wide = g.add("Mul", [x, scalar(g, 1e300, DOUBLE)], DOUBLE, x.shape)
    bounds = [scalar(g, 0, DOUBLE), ""] if g.rng.random() < 0.5 else ["", scalar(g, 0, DOUBLE)]
    g.add("Clip", without([wide, *bounds]), DOUBLE, x.shape)


def integer_cast(g):
    x = g.pick(tuple(WIDTHS), range(1, 5))
    type_ = g.rng.choice([*WIDTHS, FLOAT, DOUBLE, BOOL])
    g.add("Cast", [x], type_, x.shape, to=type_)


def bit_shift(g):
    x = g.pick((UINT8, UINT16, UINT32, UINT64), range(1, 5))
    places = scalar(g, g.rng.randint(0, WIDTHS[x.type] - 1), x.type)
    g.add("BitShift", [x, places], x.type, x.shape, direction=g.rng.choice(["LEFT", "RIGHT"]))


def integer_reduction(g):
    x = g.pick((INT64, INT32), range(2, 5))
    operator, axes = g.rng.choice(["Max", "Min", "Sum", "Prod"]), axes_but_rows(g, x)
    g.add("Reduce" + operator, [x, integers(g, *axes)], x.type, [1 if d in axes else e for d, e in enumerate(x.shape)])


def one_hot(g):
    x = g.pick((INT64, INT32), range(1, 4))
    ids, axis = inner(g, "Mod", [x, scalar(g, 5, x.type)], x.type, x.shape), g.rng.randint(1, len(x.shape))
    type_ = g.rng.choice([FLOAT, INT64])
    values = g.constant(np.array([0, 1] if type_ == FLOAT else [2**53 + 1, -7], NUMPY[type_]))
    shape = [*x.shape[:axis], 5, *x.shape[axis:]]
    g.add("OneHot", [ids, scalar(g, 5, INT64), values], type_, shape, axis=signed(g, axis, len(shape)))


# Shapes that are computed.


def reshape_by_rows(g):
    """What torch writes for view(len(x), ...)."""
    x = g.pick(**rows_of((FLOAT, INT64), range(2, 5)))
    shape = inner(g, "Shape", [x], INT64, (len(x.shape),))
    size = int(np.prod(x.shape[1:]))
    if g.rng.random() < 0.5:
        rows = inner(g, "Unsqueeze", [inner(g, "Gather", [shape, scalar(g, 0, INT64)], INT64, ()), integers(g, 0)], INT64, (1,))
    else:
        rows = inner(g, "Slice", [shape, integers(g, 0), integers(g, 1), integers(g, 0)], INT64, (1,))
    first = divisor(g, size)
    rest = [size] if g.rng.random() < 0.3 else [first, size // first]
    target = inner(g, "Concat", [rows, integers(g, *rest[:-1], g.rng.choice([-1, rest[-1]]))], INT64, (1 + len(rest),), axis=0)
    g.add("Reshape", [x, target], x.type, (-1, *rest))


def joined_rows(g):
    """Rows of rows, each with a softmax of its own, and back."""
    x = g.pick(**rows_of((FLOAT,), (3, 4)))
    shape = inner(g, "Shape", [x], INT64, (len(x.shape),))
    apart = inner(g, "Reshape", [x, integers(g, -1, *x.shape[2:])], FLOAT, x.shape[1:])
    g.add("Reshape", [inner(g, "Softmax", [apart], FLOAT, x.shape[1:], axis=-1), shape], FLOAT, x.shape)


def token(g):
    """A constant before each row."""
    x = g.pick(**rows_of((FLOAT,), (3,)))
    rows = inner(g, "Slice", [inner(g, "Shape", [x], INT64, (3,)), integers(g, 0), integers(g, 1), integers(g, 0)], INT64, (1,))
    target = inner(g, "Concat", [rows, integers(g, 1, x.shape[2])], INT64, (3,), axis=0)
    first = inner(g, "Expand", [g.weights((1, 1, x.shape[2])), target], FLOAT, (-1, 1, x.shape[2]))
    g.add("Concat", [first, x], FLOAT, (-1, x.shape[1] + 1, x.shape[2]), axis=1)


def numbered(g):
    """Plus 0, 1, ... along a dimension, as long as that is."""
    x = g.pick(**rows_of((FLOAT, INT64), (2, 3)))
    extent = inner(g, "Gather", [inner(g, "Shape", [x], INT64, (len(x.shape),)), scalar(g, -1, INT64)], INT64, ())
    places = inner(g, "Range", [scalar(g, 0, INT64), extent, scalar(g, 1, INT64)], INT64, x.shape[-1:])
    g.add("Add", [x, inner(g, "Cast", [places], x.type, x.shape[-1:], to=x.type)], x.type, x.shape)


def range_of_floats(g):
    """Bounds whose distance is a multiple of the step but for a rounding."""
    x = g.pick(**rows_of((FLOAT, DOUBLE), (2,)))
    step, count = g.rng.choice([0.1, 0.3, 0.7]), x.shape[1]
    start = round(g.rng.uniform(-1, 1), 1)
    kind = NUMPY[x.type]
    bounds = [kind(start), kind(start + (count - 0.5) * step), kind(step)]
    values = inner(g, "Range", [g.constant(b) for b in bounds], x.type, x.shape[1:])
    g.add("Mul", [x, values], x.type, x.shape)


def one_more_dimension(g):
    x = g.pick(**rows_of((FLOAT, INT64, BOOL), range(2, 5)))
    ones = [d for d, e in enumerate(x.shape) if e == 1]
    if ones and g.rng.random() < 0.7:
        axis = g.rng.choice(ones)
        g.add("Squeeze", [x, integers(g, signed(g, axis, len(x.shape)))], x.type, [e for d, e in enumerate(x.shape) if d != axis])
    else:
        axis = g.rng.randint(1, len(x.shape))
        g.add("Unsqueeze", [x, integers(g, signed(g, axis, len(x.shape) + 1))], x.type, [*x.shape[:axis], 1, *x.shape[axis:]])


def split_unevenly(g):
    x = g.pick((FLOAT, INT64), range(2, 5))
    axis = axes_but_rows(g, x)[0]
    count = g.rng.randint(1, min(x.shape[axis], 4))
    size = -(-x.shape[axis] // count)
    sizes = [size] * (count - 1) + [x.shape[axis] - size * (count - 1)]
    if sizes[-1] < 1:
        raise Unsuitable
    shapes = [[s if d == axis else e for d, e in enumerate(x.shape)] for s in sizes]
    add_several(g, "Split", [x], [(x.type, shape) for shape in shapes], axis=signed(g, axis, len(x.shape)), num_outputs=count)


def tile(g):
    x = g.pick(**rows_of((FLOAT, INT64, BOOL), range(2, 5)))
    repeats = [1, *(g.rng.randint(1, 3) for _ in x.shape[1:])]
    g.add("Tile", [x, integers(g, *repeats)], x.type, [e * n for e, n in zip(x.shape, repeats)])


def pad_some(g):
    x = g.pick(**rows_of((FLOAT, INT64), range(2, 5)))
    axis, mode = g.rng.randint(1, len(x.shape) - 1), g.rng.choice(["constant", "wrap", "edge"])
    begin, end = (g.rng.randint(0, min(2, x.shape[axis])) for _ in range(2))
    if mode == "constant" and x.shape[axis] > 1:
        begin = g.rng.randint(-1, 2)
    value = scalar(g, g.rng.choice([0, 3, -1]), x.type) if mode == "constant" and g.rng.random() < 0.5 else ""
    shape = [e + begin + end if d == axis else e for d, e in enumerate(x.shape)]
    g.add("Pad", [x, integers(g, begin, end), value, integers(g, signed(g, axis, len(x.shape)))], x.type, shape, mode=mode)


# Products and windows.


def einsum(g):
    x = g.pick(**rows_of((FLOAT, FLOAT, DOUBLE), (2, 3, 4)))
    letters, extents = g.rng.sample("abcdefgXYZ", 10), {}

    def letter(extent):
        known = [name for name, e in extents.items() if e == extent]
        if known and g.rng.random() < 0.3:  # a diagonal
            return g.rng.choice(known)
        extents[letters[-1]] = extent
        return letters.pop()

    terms, operands = ["n" + "".join(letter(e) for e in x.shape[1:])], [x]
    for _ in range(g.rng.randint(0, 2)):
        term = "".join(g.rng.choice(list(extents)) if g.rng.random() < 0.65 else letter(g.rng.randint(1, 4)) for _ in range(g.rng.randint(1, 3)))
        alike = [v for v in g.values if v.type == x.type and v.shape == (-1, *(extents[c] for c in term))]
        by_rows = alike and g.rng.random() < 0.5
        terms.append("n" * bool(by_rows) + term)
        operands.append(g.rng.choice(alike) if by_rows else g.weights([extents[c] for c in term], x.type, 0.6))
    kept = [name for name in extents if g.rng.random() < 0.6][:4]
    g.rng.shuffle(kept)
    equation = g.rng.choice([",", ", "]).join(terms) + g.rng.choice(["->", " -> "]) + "n" + "".join(kept)
    g.add("Einsum", operands, x.type, [-1, *(extents[c] for c in kept)], equation=equation)


def product_of_two(g):
    x = g.pick(**rows_of((FLOAT, FLOAT, DOUBLE), (3, 4)))
    rank = len(x.shape)
    turned = g.add("Transpose", [x], x.type, (*x.shape[:-2], x.shape[-1], x.shape[-2]), perm=[*range(rank - 2), rank - 1, rank - 2])
    first, second = (x, turned) if g.rng.random() < 0.5 else (turned, x)
    y = g.add("MatMul", [first, second], x.type, (*x.shape[:-2], first.shape[-2], first.shape[-2]))
    if g.rng.random() < 0.5:
        y = g.add("Mul", [y, scalar(g, 0.37, x.type)], x.type, y.shape)
    activation(g, y)


def product_from_the_left(g):
    x = g.pick(**rows_of((FLOAT, DOUBLE), (3, 4)))
    if g.rng.random() < 0.4:
        g.add("MatMul", [x, g.weights((x.shape[-1],), x.type)], x.type, x.shape[:-1])
        return
    height = g.rng.randint(1, 5)
    g.add("MatMul", [g.weights((height, x.shape[-2]), x.type, 0.4), x], x.type, (*x.shape[:-2], height, x.shape[-1]))


def image(g):
    return g.pick(**rows_of((FLOAT,), (3, 4, 5), lambda value: min(value.shape[2:]) >= 1))


def divisor(g, number):
    return g.rng.choice([d for d in range(1, number + 1) if number % d == 0])


def window_that_pads_itself(g):
    x = image(g)
    kernel = [g.rng.randint(1, min(3, e)) for e in x.shape[2:]]
    strides = [g.rng.randint(1, 3) for _ in kernel]
    dilations = [g.rng.randint(1, 2) if k > 1 and s == 1 else 1 for k, s in zip(kernel, strides)]
    attributes = {"auto_pad": g.rng.choice(["SAME_UPPER", "SAME_LOWER", "VALID"]), "strides": strides, "dilations": dilations}
    if attributes["auto_pad"] == "VALID":
        extents = [(e - (k - 1) * d - 1) // s + 1 for e, k, d, s in zip(x.shape[2:], kernel, dilations, strides)]
    else:
        extents = [-(-e // s) for e, s in zip(x.shape[2:], strides)]
    if min(extents) < 1:
        raise Unsuitable
    operator, channels = g.rng.choice(["Conv", "Conv", "MaxPool", "AveragePool", "LpPool"]), x.shape[1]
    if operator != "Conv":
        more = {"p": g.rng.choice([1, 2, 3])} if operator == "LpPool" else {}
        more |= {"count_include_pad": g.rng.randint(0, 1)} if operator == "AveragePool" else {}
        g.add(operator, [x], FLOAT, (-1, channels, *extents), kernel_shape=kernel, **attributes, **more)
        return
    groups = divisor(g, channels)
    outputs = groups * g.rng.randint(1, 9)
    bias = [g.weights((outputs,))] if g.rng.random() < 0.5 else []
    inputs = [x, g.weights((outputs, channels // groups, *kernel), FLOAT, 0.4), *bias]
    activation(g, g.add("Conv", inputs, FLOAT, (-1, outputs, *extents), group=groups, **attributes))


def transposed_convolution(g):
    """With groups, and longer at the end."""
    x = image(g)
    rank, channels = len(x.shape) - 2, x.shape[1]
    kernel, strides, dilations = ([g.rng.randint(1, most) for _ in range(rank)] for most in (4, 3, 2))
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    pads = [g.rng.randint(0, r - 1) for r in reach * 2]
    longer = [g.rng.randint(0, max(s, d) - 1) for s, d in zip(strides, dilations)]
    extents = [(e - 1) * s + r + more - pads[i] - pads[i + rank]
               for i, (e, s, r, more) in enumerate(zip(x.shape[2:], strides, reach, longer))]  # fmt: skip
    if min(extents) < 1:
        raise Unsuitable
    groups, outputs = divisor(g, channels), g.rng.randint(1, 4)
    bias = [g.weights((outputs * groups,))] if g.rng.random() < 0.5 else []
    inputs = [x, g.weights((channels, outputs, *kernel), FLOAT, 0.4), *bias]
    y = g.add("ConvTranspose", inputs, FLOAT, (-1, outputs * groups, *extents), strides=strides, dilations=dilations, group=groups,
              pads=pads, output_padding=longer)  # fmt: skip
    activation(g, y)


def resize_to_sizes(g):
    x = image(g)
    rank = len(x.shape) - 2
    mode = g.rng.choice(["nearest", "linear"] + ["cubic"] * (rank == 2))
    attributes = {"mode": mode, "coordinate_transformation_mode": g.rng.choice(
        ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric"])}  # fmt: skip
    if mode == "nearest":
        attributes["nearest_mode"] = g.rng.choice(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
    if mode == "cubic":
        attributes |= {"cubic_coeff_a": g.rng.choice([-0.5, -0.75]), "exclude_outside": g.rng.randint(0, 1)}
    if mode != "nearest" and g.rng.random() < 0.3:
        attributes["antialias"] = 1
    sizes = [g.rng.randint(1, 3 * e) for e in x.shape[2:]]
    inputs = [x, "", "", integers(g, *sizes)]
    policy = g.rng.choice(["stretch", "stretch", "not_larger", "not_smaller"])
    if policy != "stretch":
        scale = (min if policy == "not_larger" else max)(s / e for s, e in zip(sizes, x.shape[2:]))
        sizes = [int(np.floor(e * scale + 0.5)) for e in x.shape[2:]]
    if min(sizes) < 1:
        raise Unsuitable
    axes = [signed(g, axis, len(x.shape)) for axis in range(2, len(x.shape))]
    g.add("Resize", inputs, FLOAT, (*x.shape[:2], *sizes), axes=axes, keep_aspect_ratio_policy=policy, **attributes)


def quantised(g):
    """To codes and back, with scales as a calibration finds them, of all or of each channel."""
    x = g.pick(**rows_of((FLOAT,), range(2, 5)))
    type_ = g.rng.choice([UINT8, INT8, UINT16, INT16])
    state = np.random.default_rng(g.rng.getrandbits(32))
    info, shape = np.iinfo(NUMPY[type_]), g.rng.choice([(), (x.shape[1],)])
    scale = g.constant(np.asarray(state.random(shape) * 0.2 + 0.01, np.float32))
    zero = g.constant(np.asarray(state.integers(info.min, info.max + 1, shape), NUMPY[type_]))
    codes = g.add("QuantizeLinear", [x, scale, zero], type_, x.shape, axis=1)
    g.add("DequantizeLinear", [codes, scale, zero], FLOAT, x.shape, axis=1)


# Blocks of networks.


def attention_heads(g):
    x = g.pick(**rows_of((FLOAT,), (3,)))
    length, width = x.shape[1:]
    heads, size = g.rng.randint(1, 3), g.rng.randint(1, 4)
    by_head = (-1, heads, length, size)

    def projected():
        y = g.add("MatMul", [x, g.weights((width, heads * size), FLOAT, width**-0.5)], FLOAT, (-1, length, heads * size))
        if g.rng.random() < 0.6:
            y = g.add("Add", [g.weights((heads * size,)), y], FLOAT, y.shape)
        return inner(g, "Reshape", [y, integers(g, g.rng.choice([0, -1]), length, heads, size)], FLOAT, (-1, length, heads, size))

    query = g.add("Transpose", [projected()], FLOAT, by_head, perm=[0, 2, 1, 3])
    key = g.add("Transpose", [projected()], FLOAT, (-1, heads, size, length), perm=[0, 2, 3, 1])
    value = g.add("Transpose", [projected()], FLOAT, by_head, perm=[0, 2, 1, 3])
    how = g.rng.choice(["query", "divided", "multiplied", "not"])
    if how == "query":
        query = g.add("Div", [query, scalar(g, size**0.5, FLOAT)], FLOAT, query.shape)
    scores = g.add("MatMul", [query, key], FLOAT, (-1, heads, length, length))
    if how == "divided":
        scores = g.add("Div", [scores, scalar(g, size**0.5, FLOAT)], FLOAT, scores.shape)
    if how == "multiplied":
        scores = g.add("Mul", [scalar(g, size**-0.5, FLOAT), scores], FLOAT, scores.shape)
    shares = g.add("Softmax", [masked(g, scores)], FLOAT, scores.shape, axis=-1)
    mixed = g.add("Transpose", [g.add("MatMul", [shares, value], FLOAT, by_head)], FLOAT, (-1, length, heads, size), perm=[0, 2, 1, 3])
    joined = g.add("Reshape", [mixed, integers(g, 0, 0, heads * size)], FLOAT, (-1, length, heads * size))
    out = g.add("MatMul", [joined, g.weights((heads * size, width), FLOAT, (heads * size) ** -0.5)], FLOAT, x.shape)
    g.add("Add", [x, out], FLOAT, x.shape)


def masked(g, scores):
    heads, length = scores.shape[1], scores.shape[-1]
    kind = g.rng.choice(["none", "chosen", "added", "bias"])
    if kind == "chosen":
        least = scalar(g, g.rng.choice([-1e9, -3.4028235e38, -np.inf]), FLOAT)
        return g.add("Where", [g.input(BOOL, (-1, 1, 1, length)), scores, least], FLOAT, scores.shape)
    if kind == "added":
        hidden = g.add("Equal", [g.input(INT64, (-1, length)), scalar(g, 0, INT64)], BOOL, (-1, length))
        hidden = g.add("Mul", [g.add("Cast", [hidden], FLOAT, (-1, length), to=FLOAT), scalar(g, -1e4, FLOAT)], FLOAT, (-1, length))
        return g.add("Add", [scores, g.add("Unsqueeze", [hidden, integers(g, 1, 2)], FLOAT, (-1, 1, 1, length))], FLOAT, scores.shape)
    return g.add("Add", [scores, g.weights((heads, length, length))], FLOAT, scores.shape) if kind == "bias" else scores


def group_norm(g):
    """As torch writes it."""
    x = g.pick(**rows_of((FLOAT,), (3, 4)))
    channels = x.shape[1]
    groups = divisor(g, channels)
    apart = (-1, groups, int(np.prod(x.shape[1:])) // groups)
    grouped = inner(g, "Reshape", [x, integers(g, 0, groups, -1)], FLOAT, apart)
    ones, zeros = (g.constant(np.full(groups, value, np.float32)) for value in (1, 0))
    normal = inner(g, "InstanceNormalization", [grouped, ones, zeros], FLOAT, apart, epsilon=1e-3)
    y = g.add("Reshape", [normal, inner(g, "Shape", [x], INT64, (len(x.shape),))], FLOAT, x.shape)
    for operator in ("Mul", "Add"):
        y = g.add(operator, [y, g.weights((channels, *[1] * (len(x.shape) - 2)))], FLOAT, x.shape)
    activation(g, y)


def convolved(g, x, outputs, size=1, groups=1, stride=1):
    pad = size // 2
    extents = [(e + 2 * pad - size) // stride + 1 for e in x.shape[2:]]
    fan = x.shape[1] // groups * size * size
    bias = [g.weights((outputs,))] if g.rng.random() < 0.6 else []
    y = g.add("Conv", [x, g.weights((outputs, x.shape[1] // groups, size, size), FLOAT, fan**-0.5), *bias], FLOAT, (-1, outputs, *extents),
              pads=[pad] * 4, group=groups, strides=[stride] * 2, kernel_shape=[size, size])  # fmt: skip
    if g.rng.random() < 0.4:
        spread = np.random.default_rng(g.rng.getrandbits(32)).random(outputs).astype(np.float32) + 0.1
        y = g.add("BatchNormalization", [y, *(g.weights((outputs,)) for _ in range(3)), g.constant(spread)], FLOAT, y.shape)
    return y


def activated(g, x):
    before = len(g.values)
    activation(g, x)
    return g.values[-1] if len(g.values) > before else x


def picture(g):
    return g.pick(**rows_of((FLOAT,), (4,), lambda value: min(value.shape[2:]) >= 2 and value.shape[1] <= 40))


def residual(g):
    x = picture(g)
    y = convolved(g, activated(g, convolved(g, x, x.shape[1], 3)), x.shape[1], 3)
    sides = [y, x if g.rng.random() < 0.6 else convolved(g, x, x.shape[1])]
    g.rng.shuffle(sides)
    activation(g, g.add("Add", sides, FLOAT, y.shape))


def inverted_residual(g):
    x = picture(g)
    wide = x.shape[1] * g.rng.randint(1, 3)
    y = activated(g, convolved(g, activated(g, convolved(g, x, wide)), wide, 3, wide, g.rng.randint(1, 2)))
    if g.rng.random() < 0.6:
        pooled = (-1, wide, 1, 1)
        if g.rng.random() < 0.5:
            share = g.add("GlobalAveragePool", [y], FLOAT, pooled)
        else:
            share = g.add("ReduceMean", [y, integers(g, 2, 3)], FLOAT, pooled)
        share = convolved(g, g.add("Relu", [convolved(g, share, max(1, wide // 4))], FLOAT, (-1, max(1, wide // 4), 1, 1)), wide)
        y = g.add("Mul", [y, g.add(g.rng.choice(["Sigmoid", "HardSigmoid"]), [share], FLOAT, pooled)], FLOAT, y.shape)
    y = convolved(g, y, x.shape[1])
    if y.shape == x.shape:
        g.add("Add", [x, y], FLOAT, x.shape)


def shuffled(g):
    x = picture(g)
    channels, height, width = x.shape[1:]
    if channels % 2:
        raise Unsuitable
    half = (-1, channels // 2, height, width)
    left, right = add_several(g, "Split", [x, integers(g, channels // 2, channels // 2)], [(FLOAT, half)] * 2, axis=1)
    right = activated(g, convolved(g, right, channels // 2, 3, g.rng.choice([1, channels // 2])))
    y = g.add("Concat", [left, right], FLOAT, x.shape, axis=1)
    y = g.add("Reshape", [y, integers(g, -1, 2, channels // 2, height, width)], FLOAT, (-1, 2, *half[1:]))
    y = g.add("Transpose", [y], FLOAT, (-1, channels // 2, 2, height, width), perm=[0, 2, 1, 3, 4])
    y = g.add("Reshape", [y, integers(g, -1, channels, height, width)], FLOAT, x.shape)
    activation(g, convolved(g, y, g.rng.randint(1, 9)))


def dense_block(g):
    x = picture(g)
    for _ in range(2):
        y = activated(g, convolved(g, x, g.rng.randint(1, 9), 3))
        x = g.add("Concat", [x, y], FLOAT, (-1, x.shape[1] + y.shape[1], *x.shape[2:]), axis=1)


def inception(g):
    x = picture(g)
    parts = [activated(g, convolved(g, x, g.rng.randint(1, 9), size)) for size in (1, 3)]
    pooled = g.add(g.rng.choice(["MaxPool", "AveragePool"]), [x], FLOAT, x.shape, kernel_shape=[3, 3], pads=[1] * 4)
    parts.append(activated(g, convolved(g, pooled, g.rng.randint(1, 9))))
    g.rng.shuffle(parts)
    channels = sum(part.shape[1] for part in parts)
    y = g.add("Concat", parts, FLOAT, (-1, channels, *x.shape[2:]), axis=1)
    if g.rng.random() < 0.5:
        flat = g.add("Flatten", [g.add("GlobalAveragePool", [y], FLOAT, (-1, channels, 1, 1))], FLOAT, (-1, channels))
        g.add("Gemm", [flat, g.weights((5, channels), FLOAT, 0.3), g.weights((5,))], FLOAT, (-1, 5), transB=1)


def up_and_down(g):
    """A U-Net of one step."""
    x = picture(g)
    channels, height, width = x.shape[1:]
    y = g.add("MaxPool", [x], FLOAT, (-1, channels, height // 2, width // 2), kernel_shape=[2, 2], strides=[2, 2])
    y = activated(g, convolved(g, y, g.rng.choice([1, 3, 8, 16]), 3))
    even = (height // 2 * 2, width // 2 * 2)
    if g.rng.random() < 0.5:
        scales = g.constant(np.array([1, 1, 2, 2], np.float32))
        y = g.add("Resize", [y, "", scales], FLOAT, (-1, y.shape[1], *even), mode=g.rng.choice(["nearest", "linear"]),
                  coordinate_transformation_mode="asymmetric")  # fmt: skip
    else:
        y = g.add("ConvTranspose", [y, g.weights((y.shape[1], 4, 2, 2), FLOAT, 0.4)], FLOAT, (-1, 4, *even), strides=[2, 2])
    if even != (height, width):
        y = g.add("Pad", [y, integers(g, *[0] * 6, height % 2, width % 2)], FLOAT, (-1, y.shape[1], height, width))
    y = g.add("Concat", [x, y], FLOAT, (-1, channels + y.shape[1], height, width), axis=1)
    activation(g, convolved(g, y, g.rng.randint(1, 9), 3))


OPERATORS = {
    recurrent: 4, loop: 1, scan: 1, branch: 1, gather_elements: 1, gather_nd: 1, scatter_elements: 1, scatter_nd: 2, top_of_ties: 1,
    reverse_sequence: 1, integer_binary: 4, integer_clip: 2, wide_clip: 1, integer_cast: 2, bit_shift: 1, integer_reduction: 1, one_hot: 1,
    reshape_by_rows: 2, joined_rows: 1, token: 1, numbered: 1, range_of_floats: 1, one_more_dimension: 1, split_unevenly: 1, tile: 1,
    pad_some: 1, einsum: 3, product_of_two: 1, product_from_the_left: 1, window_that_pads_itself: 3, transposed_convolution: 3,
    resize_to_sizes: 3, quantised: 2, attention_heads: 3, group_norm: 1, residual: 1, inverted_residual: 2, shuffled: 1, dense_block: 1,
    inception: 1, up_and_down: 1, generator.unary: 1, generator.binary: 1, generator.reduce: 1, generator.softmax: 1,
    generator.pooling: 1, generator.layer_norm: 1, generator.transpose: 1,
}  # fmt: skip
INPUTS = {
    (FLOAT, 1): 2, (FLOAT, 2): 5, (FLOAT, 3): 7, (FLOAT, 4): 1, (DOUBLE, 1): 1, (DOUBLE, 2): 1, (INT64, 1): 3, (INT64, 2): 1,
    (INT32, 2): 1, (UINT8, 2): 1, (INT8, 1): 1, (INT16, 1): 1, (UINT16, 1): 1, (UINT32, 1): 1, (UINT64, 1): 1, (BOOL, 1): 1,
}  # fmt: skip


def make_case(seed):
    """(model, inputs, rows), as generator.make_case."""
    return generator.make_case(seed, OPERATORS, INPUTS, numbers_of)
