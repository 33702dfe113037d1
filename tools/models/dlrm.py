"""A recommender like DLRM (Naumov et al. 2019): bags of embeddings, dense layers
below and above, and products between all pairs of vectors."""

import numpy as np

from .network import Network


def build(name, batch="batch", seed=1, tables=8, entries=20000, bag=4, size=64, bottom=(512, 256), top=(512, 256)):
    network = Network(name, 13, seed, batch)
    x = network.input("dense", [13])
    for width in (*bottom, size):
        x = network.relu(network.linear(x, width, gain=2**0.5))
    vectors = [network.add("Unsqueeze", [x, network.integers([1])])]
    for table in range(tables):
        ids = network.input(f"categories_{table}", [bag], below=entries)
        rows = network.add("Gather", [network.weights((entries, size), bag), ids], axis=0)
        vectors.append(network.add("ReduceSum", [rows, network.integers([1])], keepdims=1))
    x = network.concat([x, interactions(network, vectors, size)])
    x = with_layers(network, x, size + pairs(len(vectors)), top)
    return network.output(network.add("Sigmoid", [network.linear(x, 1)]), "output", [1])


def pairs(count):
    return count * (count - 1) // 2


def interactions(network, vectors, size):
    """The product of each pair, once."""
    count = len(vectors)
    stacked = network.add("Concat", vectors, axis=1)
    products = network.add("MatMul", [stacked, network.add("Transpose", [stacked], perm=[0, 2, 1])])
    products = network.times(products, network.real(size**-0.5))
    flat = network.add("Reshape", [products, network.integers([0, count * count])])
    rows, columns = np.tril_indices(count, -1)
    return network.add("Gather", [flat, network.integers(rows * count + columns)], pairs(count), axis=1)


def with_layers(network, x, size_in, sizes):
    for size in sizes:
        x = network.relu(network.linear(x, size, size_in, gain=2**0.5))
        size_in = size
    return x


MODELS = {"dlrm": build}
