"""MobileNet v2 (Sandler et al. 2018) and v3 (Howard et al. 2019)."""

from functools import partial

from .network import Network

# Expansion, channels, repeats, stride.
V2 = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]

# Kernel, inner channels, channels, squeeze and excite, activation, stride.
V3_LARGE = [(3, 16, 16, 0, "Relu", 1), (3, 64, 24, 0, "Relu", 2), (3, 72, 24, 0, "Relu", 1), (5, 72, 40, 1, "Relu", 2),
            (5, 120, 40, 1, "Relu", 1), (5, 120, 40, 1, "Relu", 1), (3, 240, 80, 0, "HardSwish", 2),
            (3, 200, 80, 0, "HardSwish", 1), (3, 184, 80, 0, "HardSwish", 1), (3, 184, 80, 0, "HardSwish", 1),
            (3, 480, 112, 1, "HardSwish", 1), (3, 672, 112, 1, "HardSwish", 1), (5, 672, 160, 1, "HardSwish", 2),
            (5, 960, 160, 1, "HardSwish", 1), (5, 960, 160, 1, "HardSwish", 1)]
V3_SMALL = [(3, 16, 16, 1, "Relu", 2), (3, 72, 24, 0, "Relu", 2), (3, 88, 24, 0, "Relu", 1),
            (5, 96, 40, 1, "HardSwish", 2), (5, 240, 40, 1, "HardSwish", 1), (5, 240, 40, 1, "HardSwish", 1),
            (5, 120, 48, 1, "HardSwish", 1), (5, 144, 48, 1, "HardSwish", 1), (5, 288, 96, 1, "HardSwish", 2),
            (5, 576, 96, 1, "HardSwish", 1), (5, 576, 96, 1, "HardSwish", 1)]


def build_v2(name, batch="batch", seed=1, resolution=224, opset=13):
    """Opsets 7 to 10 write ReLU6 with attributes, later ones with inputs."""
    network = Network(name, opset, seed, batch)
    x = network.unit(network.image(3, resolution, resolution), 32, 3, "Relu6", stride=2)
    for expansion, channels, repeats, stride in V2:
        for repeat in range(repeats):
            inner = network.channels[x] * expansion
            x = inverted_residual(network, x, inner, channels, 3, stride if repeat == 0 else 1, "Relu6")
    return network.classifier(network.unit(x, 1280, 1, "Relu6"), 1000)


def build_v3(name, blocks, last, hidden, opset=13, batch="batch", seed=1, resolution=224):
    """Opset 14 has HardSwish as an operator; earlier ones write it in pieces."""
    network = Network(name, opset, seed, batch)
    x = network.unit(network.image(3, resolution, resolution), 16, 3, "HardSwish", stride=2)
    for kernel, inner, channels, squeeze, activation, stride in blocks:
        x = inverted_residual(network, x, inner, channels, kernel, stride, activation, inner // 4 if squeeze else 0)
    x = network.unit(x, last, 1, "HardSwish")
    x = network.add("Flatten", [network.add("GlobalAveragePool", [x])], axis=1)
    x = network.activate(network.linear(x, hidden, gain=2**0.5), "HardSwish")
    return network.output(network.linear(x, 1000), "output", [1000])


def inverted_residual(network, x, inner, channels, kernel, stride, activation, squeeze=0):
    y = x
    if inner != network.channels[x]:
        y = network.unit(y, inner, 1, activation)
    y = network.unit(y, inner, kernel, activation, stride=stride, groups=inner)
    if squeeze:
        y = network.squeeze_and_excite(y, squeeze, "HardSigmoid")
    y = network.unit(y, channels, 1, None, gain=1.6 if squeeze else 1.0)  # the gates halve
    return network.plus(x, y) if stride == 1 and network.channels[x] == channels else y


MODELS = {
    "mobilenet_v2": build_v2,
    "mobilenet_v3_small": partial(build_v3, blocks=V3_SMALL, last=576, hidden=1024),
    "mobilenet_v3_large": partial(build_v3, blocks=V3_LARGE, last=960, hidden=1280, opset=14),
}
