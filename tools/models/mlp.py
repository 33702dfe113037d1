"""A multi-layer perceptron that classifies."""

from .network import Network


def build(name, batch="batch", seed=1, sizes=(784, 256, 128, 10)):
    network = Network(name, seed=seed, batch=batch)
    x = network.input("input", [sizes[0]])
    for size in sizes[1:-1]:
        x = network.relu(network.linear(x, size, gain=2**0.5))
    x = network.linear(x, sizes[-1])
    return network.output(network.add("Softmax", [x], axis=-1), "output", [sizes[-1]])


MODELS = {"mlp": build}
