"""DenseNet (Huang et al. 2017): every layer sees all before it."""

from functools import partial

from .network import Network

# Growth, channels of the stem, layers of each block.
SIZES = {121: (32, 64, (6, 12, 24, 16)), 161: (48, 96, (6, 12, 36, 24)), 169: (32, 64, (6, 12, 32, 32)),
         201: (32, 64, (6, 12, 48, 32))}


def build(name, depth, batch="batch", seed=1, resolution=224):
    network = Network(name, seed=seed, batch=batch)
    growth, channels, blocks = SIZES[depth]
    x = network.image(3, resolution, resolution)
    x = network.pool("Max", network.unit(x, channels, 7, stride=2), 3, 2, 1)
    for position, layers in enumerate(blocks):
        if position > 0:
            x = before(network, x)
            x = network.pool("Average", network.convolution(x, network.channels[x] // 2, 1), 2, 2)
        for _ in range(layers):
            y = network.unit(before(network, x), 4 * growth, 1)
            x = network.concat([x, network.convolution(y, growth, 3)])
    return network.classifier(before(network, x), 1000)


def before(network, x):
    return network.relu(network.batch_normalization(x))


MODELS = {f"densenet{depth}": partial(build, depth=depth) for depth in SIZES}
