"""EfficientNet-B0 (Tan and Le 2019)."""

from .network import Network

# Expansion, kernel, channels, repeats, stride.
BLOCKS = [(1, 3, 16, 1, 1), (6, 3, 24, 2, 2), (6, 5, 40, 2, 2), (6, 3, 80, 3, 2), (6, 5, 112, 3, 1), (6, 5, 192, 4, 2),
          (6, 3, 320, 1, 1)]


def build(name, batch="batch", seed=1, resolution=224):
    network = Network(name, seed=seed, batch=batch)
    x = network.unit(network.image(3, resolution, resolution), 32, 3, "Silu", stride=2)
    for expansion, kernel, channels, repeats, stride in BLOCKS:
        for repeat in range(repeats):
            x = block(network, x, expansion, kernel, channels, stride if repeat == 0 else 1)
    return network.classifier(network.unit(x, 1280, 1, "Silu"), 1000)


def block(network, x, expansion, kernel, channels, stride):
    outer = network.channels[x]
    y = x if expansion == 1 else network.unit(x, outer * expansion, 1, "Silu")
    y = network.unit(y, network.channels[y], kernel, "Silu", stride=stride, groups=network.channels[y])
    y = network.squeeze_and_excite(y, max(1, outer // 4), activation="Silu")
    y = network.unit(y, channels, 1, None, gain=1.6)  # the gates halve
    return network.plus(y, x) if stride == 1 and outer == channels else y


MODELS = {"efficientnet_b0": build}
