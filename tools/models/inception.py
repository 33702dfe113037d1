"""Inception v3 (Szegedy et al. 2016), with the modules of torchvision."""

from .network import Network

ROW, COLUMN = (1, 7), (7, 1)


def build(name, batch="batch", seed=1, resolution=299):
    network = Network(name, seed=seed, batch=batch)
    x = network.image(3, resolution, resolution)
    x = chain(network, x, (32, 3, {"stride": 2, "pads": [0] * 4}), (32, 3, {"pads": [0] * 4}), (64, 3, {}))
    x = network.pool("Max", x, 3, 2)
    x = network.pool("Max", chain(network, x, (80, 1, {}), (192, 3, {"pads": [0] * 4})), 3, 2)
    for pooled in (32, 64, 64):
        x = squares(network, x, pooled)
    x = shrink_first(network, x)
    for inner in (128, 160, 160, 192):
        x = factorised(network, x, inner)
    x = shrink_second(network, x)
    for _ in range(2):
        x = expanded(network, x)
    return network.classifier(x, 1000)


def chain(network, x, *layers):
    for channels, kernel, options in layers:
        x = unit(network, x, channels, kernel, **options)
    return x


def unit(network, x, channels, kernel, **options):
    if not isinstance(kernel, int):
        options["pads"] = [extent // 2 for extent in kernel] * 2
    return network.unit(x, channels, kernel, **options)


def pooled_branch(network, x, channels):
    return unit(network, network.pool("Average", x, 3, 1, 1, count_include_pad=1), channels, 1)


def squares(network, x, pooled):
    return network.concat([
        unit(network, x, 64, 1),
        chain(network, x, (48, 1, {}), (64, 5, {})),
        chain(network, x, (64, 1, {}), (96, 3, {}), (96, 3, {})),
        pooled_branch(network, x, pooled),
    ])


def shrink_first(network, x):
    shrink = {"stride": 2, "pads": [0] * 4}
    return network.concat([
        unit(network, x, 384, 3, **shrink),
        chain(network, x, (64, 1, {}), (96, 3, {}), (96, 3, shrink)),
        network.pool("Max", x, 3, 2),
    ])


def factorised(network, x, inner):
    return network.concat([
        unit(network, x, 192, 1),
        chain(network, x, (inner, 1, {}), (inner, ROW, {}), (192, COLUMN, {})),
        chain(network, x, (inner, 1, {}), (inner, COLUMN, {}), (inner, ROW, {}), (inner, COLUMN, {}), (192, ROW, {})),
        pooled_branch(network, x, 192),
    ])


def shrink_second(network, x):
    shrink = {"stride": 2, "pads": [0] * 4}
    return network.concat([
        chain(network, x, (192, 1, {}), (320, 3, shrink)),
        chain(network, x, (192, 1, {}), (192, ROW, {}), (192, COLUMN, {}), (192, 3, shrink)),
        network.pool("Max", x, 3, 2),
    ])


def expanded(network, x):
    y = unit(network, x, 384, 1)
    z = chain(network, x, (448, 1, {}), (384, 3, {}))
    return network.concat([
        unit(network, x, 320, 1),
        *(unit(network, y, 384, kernel) for kernel in ((1, 3), (3, 1))),
        *(unit(network, z, 384, kernel) for kernel in ((1, 3), (3, 1))),
        pooled_branch(network, x, 192),
    ])


MODELS = {"inception_v3": build}
