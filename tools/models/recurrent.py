"""Classifiers of sequences: an embedding, recurrent layers in both directions
(LSTM: Hochreiter and Schmidhuber 1997; GRU: Cho et al. 2014), a dense layer."""

from functools import partial

from .network import Network

GATES = {"LSTM": 4, "GRU": 3}


def build(name, cell, batch="batch", seed=1, sequence=64, vocabulary=10000, hidden=128, layers=2, classes=5):
    network = Network(name, 14, seed, batch)
    ids = network.input("input_ids", [sequence], below=vocabulary)
    x = network.add("Gather", [network.weights((vocabulary, hidden), 1), ids])
    x = network.add("Transpose", [x], perm=[1, 0, 2])
    size = hidden
    for _ in range(layers):
        x, last = recurrent(network, cell, x, size, hidden)
        size = 2 * hidden
    last = network.add("Reshape", [network.add("Transpose", [last], perm=[1, 0, 2]), network.integers([0, size])])
    return network.output(network.linear(last, classes, size), "output", [classes])


def recurrent(network, cell, x, size, hidden):
    """[sequence, batch, 2 * hidden], and the last states [2, batch, hidden]."""
    rows = GATES[cell] * hidden
    inputs = [x, network.weights((2, rows, size), size), network.weights((2, rows, hidden), hidden),
              network.near((2, 2 * rows), 0, 0.1)]
    # As PyTorch's GRU: the reset gate scales what has been multiplied already.
    attributes = {"linear_before_reset": 1} if cell == "GRU" else {}
    count = 3 if cell == "LSTM" else 2
    y, last, *_ = network.add_several(cell, inputs, count, direction="bidirectional", hidden_size=hidden, **attributes)
    y = network.add("Transpose", [y], perm=[0, 2, 1, 3])
    return network.add("Reshape", [y, network.integers([0, 0, 2 * hidden])]), last


MODELS = {f"{cell.lower()}_classifier": partial(build, cell=cell) for cell in GATES}
