"""BERT encoder (Devlin et al. 2019), written as PyTorch's exporter writes it:
normalisation and GELU in pieces, shapes computed from the input."""

import numpy as np
from onnx import TensorProto

from network import Network


def add_arguments(parser):
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--hidden", type=int, default=768)
    parser.add_argument("--heads", type=int, default=12)
    parser.add_argument("--vocabulary", type=int, default=30522)
    parser.add_argument("--positions", type=int, default=512, help="longest sequence")
    parser.add_argument("--sequence", default="sequence", help="length of the sequence; a name makes it variable")


def build(arguments):
    network = Network("bert", 14, arguments.seed)
    batch = arguments.batch
    sequence = int(arguments.sequence) if arguments.sequence.isdigit() else arguments.sequence
    hidden = arguments.hidden
    ids = network.input("input_ids", TensorProto.INT64, [batch, sequence])
    mask = network.input("attention_mask", TensorProto.INT64, [batch, sequence])
    types = network.input("token_type_ids", TensorProto.INT64, [batch, sequence])
    x = embeddings(network, ids, types, arguments)
    bias = mask_bias(network, mask)
    for _ in range(arguments.layers):
        x = layer(network, x, bias, hidden, arguments.heads)
    network.output(x, "last_hidden_state", [batch, sequence, hidden])
    first = network.add("Gather", [x, network.constant(np.int64(0))], axis=1)
    network.output(network.add("Tanh", [network.linear(first, hidden, hidden)]), "pooler_output", [batch, hidden])
    return network.model()


def embeddings(network, ids, types, arguments):
    hidden = arguments.hidden
    length = network.add("Gather", [network.add("Shape", [ids]), network.constant(np.int64(1))], axis=0)
    length = network.add("Unsqueeze", [length, network.integers([0])])
    positions = network.integers(np.arange(arguments.positions)[None])
    positions = network.add("Slice", [positions, network.integers([0]), length, network.integers([1])])
    x = network.add("Gather", [network.weights((arguments.vocabulary, hidden), 1), ids])
    x = network.add("Add", [x, network.add("Gather", [network.weights((2, hidden), 1), types])])
    x = network.add("Add", [x, network.add("Gather", [network.weights((arguments.positions, hidden), 1), positions])])
    return layer_norm(network, x, hidden)


def mask_bias(network, mask):
    """0 where attention may look, a large negative number elsewhere."""
    wide = network.add("Unsqueeze", [network.add("Unsqueeze", [mask, network.integers([1])]), network.integers([2])])
    wide = network.add("Cast", [wide], to=TensorProto.FLOAT)
    return network.add("Mul", [network.add("Sub", [network.real(1), wide]), network.real(-10000)])


def layer(network, x, bias, hidden, heads):
    x = layer_norm(network, network.add("Add", [attention(network, x, bias, hidden, heads), x]), hidden)
    y = gelu(network, dense(network, x, hidden, 4 * hidden))
    return layer_norm(network, network.add("Add", [dense(network, y, 4 * hidden, hidden), x]), hidden)


def attention(network, x, bias, hidden, heads):
    size = hidden // heads
    query = split_heads(network, dense(network, x, hidden, hidden), heads, size, [0, 2, 1, 3])
    key = split_heads(network, dense(network, x, hidden, hidden), heads, size, [0, 2, 3, 1])
    value = split_heads(network, dense(network, x, hidden, hidden), heads, size, [0, 2, 1, 3])
    scores = network.add("Div", [network.add("MatMul", [query, key]), network.real(size**0.5)])
    weights = network.add("Softmax", [network.add("Add", [scores, bias])], axis=-1)
    context = network.add("Transpose", [network.add("MatMul", [weights, value])], perm=[0, 2, 1, 3])
    return dense(network, network.add("Reshape", [context, leading_shape(network, context, [hidden])]), hidden, hidden)


def split_heads(network, x, heads, size, permutation):
    shape = leading_shape(network, x, [heads, size])
    return network.add("Transpose", [network.add("Reshape", [x, shape])], perm=permutation)


def leading_shape(network, x, rest):
    """The first two extents of x, then `rest`."""
    parts = []
    for axis in range(2):
        extent = network.add("Gather", [network.add("Shape", [x]), network.constant(np.int64(axis))], axis=0)
        parts.append(network.add("Unsqueeze", [extent, network.integers([0])]))
    return network.add("Concat", parts + [network.integers([extent]) for extent in rest], axis=0)


def dense(network, x, size_in, size_out):
    product = network.add("MatMul", [x, network.weights((size_in, size_out), size_in)])
    return network.add("Add", [network.near(size_out, 0, 0.02), product])


def layer_norm(network, x, hidden):
    centred = network.add("Sub", [x, network.add("ReduceMean", [x], axes=[-1])])
    squares = network.add("Pow", [centred, network.real(2)])
    variance = network.add("Add", [network.add("ReduceMean", [squares], axes=[-1]), network.real(1e-12)])
    normal = network.add("Div", [centred, network.add("Sqrt", [variance])])
    scaled = network.add("Mul", [normal, network.near(hidden, 1, 0.05)])
    return network.add("Add", [scaled, network.near(hidden, 0, 0.05)])


def gelu(network, x):
    error = network.add("Erf", [network.add("Div", [x, network.real(2**0.5)])])
    product = network.add("Mul", [x, network.add("Add", [error, network.real(1)])])
    return network.add("Mul", [product, network.real(0.5)])
