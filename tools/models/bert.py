"""Encoders of text (Devlin et al. 2019), written as PyTorch's exporter writes them:
normalisation and GELU in pieces, shapes computed from the input."""

import numpy as np
from onnx import TensorProto

from .network import Network

VOCABULARY = 30522
POSITIONS = 512
BUCKETS = [8, 16, 32, 64, 128, 256, 512]


def build_bert(name, batch="batch", seed=1, layers=12, hidden=768, heads=12, vocabulary=VOCABULARY, sequence=BUCKETS):
    """The sequence is fixed where `sequence` is a number."""
    network = Network(name, 14, seed, batch)
    x, _, sequence = encoder(network, layers, hidden, heads, vocabulary, sequence)
    network.output(x, "last_hidden_state", [sequence, hidden])
    first = network.add("Gather", [x, network.constant(np.int64(0))], axis=1)
    return network.output(network.add("Tanh", [network.linear(first, hidden, hidden)]), "pooler_output", [hidden])


def build_sentence(name, batch="batch", seed=1, layers=6, hidden=384, heads=12, vocabulary=VOCABULARY,
                   sequence=BUCKETS):
    """A sentence's vector: the mean over its tokens, of length 1."""
    network = Network(name, 14, seed, batch)
    x, mask, _ = encoder(network, layers, hidden, heads, vocabulary, sequence)
    mask = network.add("Cast", [network.add("Unsqueeze", [mask, network.integers([-1])])], to=TensorProto.FLOAT)
    total = network.add("ReduceSum", [network.times(x, mask), network.integers([1])], keepdims=0)
    count = network.add("ReduceSum", [mask, network.integers([1])], keepdims=0)
    mean = network.add("Div", [total, network.add("Clip", [count, network.real(1e-9)])])
    length = network.add("ReduceL2", [mean], axes=[1], keepdims=1)
    mean = network.add("Div", [mean, network.add("Clip", [length, network.real(1e-12)])])
    return network.output(mean, "sentence_embedding", [hidden])


def encoder(network, layers, hidden, heads, vocabulary, sequence):
    """The last layer's states, the mask and the extent of the sequence."""
    if not isinstance(sequence, int):
        network.buckets["sequence"] = list(sequence)
        sequence = "sequence"
    ids = network.input("input_ids", [sequence], below=vocabulary)
    mask = network.input("attention_mask", [sequence], below=2)
    types = network.input("token_type_ids", [sequence], below=2)
    x = embeddings(network, ids, types, hidden, vocabulary)
    bias = mask_bias(network, mask)
    for _ in range(layers):
        x = layer(network, x, bias, hidden, heads)
    return x, mask, sequence


def embeddings(network, ids, types, hidden, vocabulary):
    length = network.add("Gather", [network.add("Shape", [ids]), network.constant(np.int64(1))], axis=0)
    length = network.add("Unsqueeze", [length, network.integers([0])])
    positions = network.integers(np.arange(POSITIONS)[None])
    positions = network.add("Slice", [positions, network.integers([0]), length, network.integers([1])])
    x = network.add("Gather", [network.weights((vocabulary, hidden), 1), ids])
    x = network.plus(x, network.add("Gather", [network.weights((2, hidden), 1), types]))
    x = network.plus(x, network.add("Gather", [network.weights((POSITIONS, hidden), 1), positions]))
    return layer_norm(network, x, hidden)


def mask_bias(network, mask):
    """0 where attention may look, a large negative number elsewhere."""
    wide = network.add("Unsqueeze", [network.add("Unsqueeze", [mask, network.integers([1])]), network.integers([2])])
    wide = network.add("Cast", [wide], to=TensorProto.FLOAT)
    return network.times(network.add("Sub", [network.real(1), wide]), network.real(-10000))


def layer(network, x, bias, hidden, heads):
    x = layer_norm(network, network.plus(attention(network, x, bias, hidden, heads), x), hidden)
    y = gelu(network, dense(network, x, hidden, 4 * hidden))
    return layer_norm(network, network.plus(dense(network, y, 4 * hidden, hidden), x), hidden)


def attention(network, x, bias, hidden, heads):
    size = hidden // heads
    query = split_heads(network, dense(network, x, hidden, hidden), heads, size, [0, 2, 1, 3])
    key = split_heads(network, dense(network, x, hidden, hidden), heads, size, [0, 2, 3, 1])
    value = split_heads(network, dense(network, x, hidden, hidden), heads, size, [0, 2, 1, 3])
    scores = network.add("Div", [network.add("MatMul", [query, key]), network.real(size**0.5)])
    weights = network.add("Softmax", [network.plus(scores, bias)], axis=-1)
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
    return network.plus(network.near(size_out, 0, 0.02), product)


def layer_norm(network, x, hidden):
    centred = network.add("Sub", [x, network.add("ReduceMean", [x], axes=[-1])])
    squares = network.add("Pow", [centred, network.real(2)])
    variance = network.plus(network.add("ReduceMean", [squares], axes=[-1]), network.real(1e-12))
    normal = network.add("Div", [centred, network.add("Sqrt", [variance])])
    scaled = network.times(normal, network.near(hidden, 1, 0.05))
    return network.plus(scaled, network.near(hidden, 0, 0.05))


def gelu(network, x):
    error = network.add("Erf", [network.add("Div", [x, network.real(2**0.5)])])
    product = network.times(x, network.plus(error, network.real(1)))
    return network.times(product, network.real(0.5))


MODELS = {"bert_base": build_bert, "minilm": build_sentence}
