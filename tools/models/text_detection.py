"""Where text is in an image: a small MobileNetV3, a pyramid of features weighted by channel, and
the map of differentiable binarisation (Liao et al. 2020), as PP-OCRv3 has them."""

import numpy as np

from .mobilenet import inverted_residual
from .network import Network

# kernel, inner channels, channels, activation, stride; a level ends before each stride but the first
BLOCKS = (
    (3, 8, 8, "Relu", 1), (3, 32, 16, "Relu", 2), (3, 40, 16, "Relu", 1),
    (5, 40, 24, "Relu", 2), (5, 64, 24, "Relu", 1), (5, 64, 24, "Relu", 1),
    (3, 120, 40, "HardSwish", 2), (3, 104, 40, "HardSwish", 1), (3, 96, 40, "HardSwish", 1),
    (3, 96, 40, "HardSwish", 1), (3, 240, 56, "HardSwish", 1), (3, 336, 56, "HardSwish", 1),
    (5, 336, 80, "HardSwish", 2), (5, 480, 80, "HardSwish", 1), (5, 480, 80, "HardSwish", 1),
)  # fmt: skip


def build(name, batch="batch", seed=1, resolution=640, channels=96):
    network = Network(name, 14, seed=seed, batch=batch)
    x = network.unit(network.image(3, resolution, resolution), 8, 3, "HardSwish", stride=2)
    levels = []
    for i, (kernel, inner, width, activation, stride) in enumerate(BLOCKS):
        if stride == 2 and i > 1:
            levels.append(x)
        x = inverted_residual(network, x, inner, width, kernel, stride, activation)
    levels.append(network.unit(x, 480, 1, "HardSwish"))
    x = pyramid(network, levels, channels)
    x = network.unit(x, channels // 4, 3, "Relu")
    x = network.relu(network.batch_normalization(enlarged(network, x, channels // 4)))
    x = network.add("Sigmoid", [enlarged(network, x, 1, gain=0.1)])
    return network.output(x, "maps", [1, resolution, resolution])


def pyramid(network, levels, channels):
    levels = [weighted(network, network.convolution(x, channels, 1, gain=0.5)) for x in levels]
    for i in reversed(range(len(levels) - 1)):
        levels[i] = network.plus(levels[i], resized(network, levels[i + 1], 2))
    levels = [weighted(network, network.convolution(x, channels // 4, 3, gain=0.5)) for x in levels]
    return network.concat([resized(network, x, 2**i) if i else x for i, x in reversed(list(enumerate(levels)))])


def weighted(network, x):
    """With what squeezing and exciting makes of it."""
    return network.plus(x, network.squeeze_and_excite(x, network.channels[x] // 4, "HardSigmoid"))


def resized(network, x, factor):
    scales = network.constant(np.array([1, 1, factor, factor], np.float32))
    return network.add("Resize", [x, "", scales], mode="nearest", coordinate_transformation_mode="asymmetric",
                       nearest_mode="floor")


def enlarged(network, x, channels, gain=1.0):
    before = network.channels[x]
    inputs = [x, network.weights((before, channels, 2, 2), before, gain), network.near(channels, 0, 0.1)]
    return network.add("ConvTranspose", inputs, channels, kernel_shape=[2, 2], strides=[2, 2])


MODELS = {"text_detection": build}
