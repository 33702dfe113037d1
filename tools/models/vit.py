"""Vision transformer ViT-B/16 (Dosovitskiy et al. 2021), with LayerNormalization as
an operator and one product for query, key and value."""

import numpy as np

from .bert import dense, gelu
from .network import Network

PATCH = 16


def build(name, batch="batch", seed=1, resolution=224, layers=12, hidden=768, heads=12):
    network = Network(name, 17, seed, batch)
    tokens = (resolution // PATCH)**2
    x = network.image(3, resolution, resolution)
    x = network.convolution(x, hidden, PATCH, stride=PATCH, pads=[0] * 4, bias=True, gain=1.0)
    x = network.add("Transpose", [network.add("Reshape", [x, network.integers([0, hidden, tokens])])], perm=[0, 2, 1])
    x = network.concat([class_token(network, x, hidden), x])
    x = network.plus(x, network.near((1, tokens + 1, hidden), 0, 0.2))
    for _ in range(layers):
        x = network.plus(x, attention(network, layer_norm(network, x, hidden), tokens + 1, hidden, heads))
        y = gelu(network, dense(network, layer_norm(network, x, hidden), hidden, 4 * hidden))
        x = network.plus(x, dense(network, y, 4 * hidden, hidden))
    x = network.add("Gather", [layer_norm(network, x, hidden), network.constant(np.int64(0))], axis=1)
    return network.output(network.linear(x, 1000, hidden), "output", [1000])


def class_token(network, x, hidden):
    """One token, the same for every row."""
    rows = network.add("Gather", [network.add("Shape", [x]), network.integers([0])])
    shape = network.add("Concat", [rows, network.integers([1, hidden])], 1, axis=0)
    return network.add("Expand", [network.near((1, 1, hidden), 0, 1), shape], 1)


def layer_norm(network, x, hidden):
    return network.add("LayerNormalization", [x, network.near(hidden, 1, 0.05), network.near(hidden, 0, 0.05)],
                       axis=-1, epsilon=1e-6)


def attention(network, x, tokens, hidden, heads):
    size = hidden // heads
    x = network.add("Reshape", [dense(network, x, hidden, 3 * hidden), network.integers([0, tokens, 3, heads, size])])
    x = network.add("Transpose", [x], perm=[2, 0, 3, 1, 4])
    query, key, value = (
        network.add("Squeeze", [part, network.integers([0])])
        for part in network.add_several("Split", [x, network.integers([1, 1, 1])], 3, axis=0))
    query = network.times(query, network.real(size**-0.5))
    scores = network.add("MatMul", [query, network.add("Transpose", [key], perm=[0, 1, 3, 2])])
    context = network.add("MatMul", [network.add("Softmax", [scores], axis=-1), value])
    context = network.add("Transpose", [context], perm=[0, 2, 1, 3])
    return dense(network, network.add("Reshape", [context, network.integers([0, tokens, hidden])]), hidden, hidden)


MODELS = {"vit_b16": build}
