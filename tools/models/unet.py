"""U-Net (Ronneberger et al. 2015), with padding and BatchNormalization."""

from .network import Network

LEVELS = 4


def build(name, batch="batch", seed=1, resolution=256, channels=32, classes=2):
    network = Network(name, seed=seed, batch=batch)
    x = pair(network, network.image(3, resolution, resolution), channels)
    passed_on = []
    for level in range(1, LEVELS + 1):
        passed_on.append(x)
        x = pair(network, network.pool("Max", x, 2, 2), channels * 2**level)
    for earlier in reversed(passed_on):
        x = pair(network, network.concat([earlier, enlarge(network, x)]), network.channels[earlier])
    x = network.add("Softmax", [network.convolution(x, classes, 1, bias=True, gain=1.0)], axis=1)
    return network.output(x, "output", [classes, resolution, resolution])


def pair(network, x, channels):
    return network.unit(network.unit(x, channels, 3), channels, 3)


def enlarge(network, x):
    """Doubles height and width, halves the channels."""
    channels = network.channels[x]
    inputs = [x, network.weights((channels, channels // 2, 2, 2), channels), network.near(channels // 2, 0, 0.1)]
    return network.add("ConvTranspose", inputs, channels // 2, kernel_shape=[2, 2], strides=[2, 2])


MODELS = {"unet": build}
