"""Encoders of speech over log-mel frames: that of Whisper (Radford et al. 2022), and one with a head
that weighs its states by attention and says whether a speaker has finished, as smart-turn does."""

import numpy as np

from .bert import dense, gelu
from .network import Network
from .vit import attention, layer_norm

MELS = 80


def build_whisper(name, batch="batch", seed=1, frames=3000, layers=4, hidden=384, heads=6):
    network = Network(name, 17, seed, batch)
    x = encoder(network, frames, layers, hidden, heads)
    return network.output(x, "last_hidden_state", [frames // 2, hidden])


def build_turn(name, batch="batch", seed=1, frames=800, layers=4, hidden=384, heads=6):
    network = Network(name, 17, seed, batch)
    x = encoder(network, frames, layers, hidden, heads)
    scores = dense(network, network.add("Tanh", [dense(network, x, hidden, 256)]), 256, 1)
    weights = network.add("Softmax", [scores], axis=1)
    x = network.add("ReduceSum", [network.times(x, weights), network.integers([1])], keepdims=0)
    x = gelu(network, layer_norm(network, network.linear(x, 256, hidden), 256))
    x = gelu(network, network.linear(x, 64, 256))
    return network.output(network.add("Sigmoid", [network.linear(x, 1, 64)]), "probability", [1])


def encoder(network, frames, layers, hidden, heads):
    """[batch, frames / 2, hidden]"""
    x = network.input("input_features", [MELS, frames])
    for stride in (1, 2):
        x = gelu(network, network.convolution(x, hidden, [3], stride=stride, bias=True))
    x = network.add("Transpose", [x], perm=[0, 2, 1])
    x = network.plus(x, network.constant(sinusoids(frames // 2, hidden)))
    for _ in range(layers):
        x = network.plus(x, attention(network, layer_norm(network, x, hidden), frames // 2, hidden, heads))
        y = gelu(network, dense(network, layer_norm(network, x, hidden), hidden, 4 * hidden))
        x = network.plus(x, dense(network, y, 4 * hidden, hidden))
    return layer_norm(network, x, hidden)


def sinusoids(length, hidden):
    angles = np.arange(length)[:, None] * np.exp(-np.log(10000) / (hidden // 2 - 1) * np.arange(hidden // 2))
    return np.concatenate([np.sin(angles), np.cos(angles)], 1).astype(np.float32)


MODELS = {"whisper_tiny_encoder": build_whisper, "smart_turn": build_turn}
