"""DLA-34 (Yu et al. 2018): blocks aggregated in trees."""

from .network import Network

# Depth of the tree and channels of each stage.
STAGES = [(1, 64), (2, 128), (2, 256), (1, 512)]


def build(name, batch="batch", seed=1, resolution=224):
    network = Network(name, seed=seed, batch=batch)
    x = network.unit(network.image(3, resolution, resolution), 16, 7)
    x = network.unit(network.unit(x, 16, 3), 32, 3, stride=2)
    for stage, (depth, channels) in enumerate(STAGES):
        x = tree(network, x, depth, channels, stride=2, with_input=stage > 0)
    return network.classifier(x, 1000)


def tree(network, x, depth, channels, stride, with_input=False, earlier=()):
    """Aggregates 2^depth blocks and, with `with_input`, what came in."""
    bottom = network.pool("Max", x, stride, stride) if stride > 1 else x
    earlier = [*earlier, bottom] if with_input else list(earlier)
    if depth > 1:
        left = tree(network, x, depth - 1, channels, stride)
        return tree(network, left, depth - 1, channels, 1, earlier=[*earlier, left])
    shortcut = bottom
    if network.channels[bottom] != channels:
        shortcut = network.unit(bottom, channels, 1, None)
    left = block(network, x, channels, stride, shortcut)
    right = block(network, left, channels, 1, left)
    return network.unit(network.concat([right, left, *earlier]), channels, 1)


def block(network, x, channels, stride, shortcut):
    y = network.unit(network.unit(x, channels, 3, stride=stride), channels, 3, None, 0.5, gain=2**0.5)
    return network.relu(network.plus(y, shortcut))


MODELS = {"dla34": build}
