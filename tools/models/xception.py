"""Xception (Chollet 2017): depthwise separable convolutions with residuals."""

from .network import Network


def build(name, batch="batch", seed=1, resolution=299):
    network = Network(name, seed=seed, batch=batch)
    x = network.image(3, resolution, resolution)
    x = network.unit(x, 32, 3, stride=2, pads=[0] * 4)
    x = network.unit(x, 64, 3, pads=[0] * 4)
    for position, channels in enumerate((128, 256, 728)):
        y = x if position == 0 else network.relu(x)
        y = separable(network, network.relu(separable(network, y, channels)), channels)
        x = shrink(network, x, y, channels)
    for _ in range(8):
        y = x
        for last in (False, False, True):
            y = separable(network, network.relu(y), 728, 0.3 if last else 1.0)
        x = network.plus(y, x)
    y = separable(network, network.relu(x), 728)
    x = shrink(network, x, separable(network, network.relu(y), 1024), 1024)
    for channels in (1536, 2048):
        x = network.relu(separable(network, x, channels))
    return network.classifier(x, 1000)


def separable(network, x, channels, scale=1.0):
    inner = network.channels[x]
    x = network.convolution(x, inner, 3, groups=inner, gain=1.0)
    return network.unit(x, channels, 1, None, scale, gain=2**0.5)


def shrink(network, x, y, channels):
    shortcut = network.unit(x, channels, 1, None, stride=2)
    return network.plus(network.pool("Max", y, 3, 2, 1), shortcut)


MODELS = {"xception": build}
