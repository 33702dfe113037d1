"""The body of a YOLO-like detector: cross-stage blocks, a pyramid that Resize and
Concat build, and boxes decoded by Sigmoid; without the selection of boxes, whose
number depends on the data."""

import numpy as np

from .network import Network

ANCHORS = 3
CLASSES = 80
FIELDS = 5 + CLASSES  # x, y, width, height, objectness, classes


def build(name, batch="batch", seed=1, resolution=320, width=0.5):
    network = Network(name, seed=seed, batch=batch)

    def scaled(channels):
        return int(channels * width)

    x = unit(network, network.image(3, resolution, resolution), scaled(64), 6, stride=2, pads=[2] * 4)
    features = []
    for channels, repeats in ((128, 1), (256, 2), (512, 3), (1024, 1)):
        x = cross_stage(network, unit(network, x, scaled(channels), 3, stride=2), scaled(channels), repeats)
        features.append(x)
    _, small, middle, _ = features
    large = pyramid_pool(network, x)
    large = unit(network, large, scaled(512), 1)
    up = cross_stage(network, network.concat([enlarge(network, large), middle]), scaled(512), 1, False)
    up = unit(network, up, scaled(256), 1)
    fine = cross_stage(network, network.concat([enlarge(network, up), small]), scaled(256), 1, False)
    medium = network.concat([unit(network, fine, scaled(256), 3, stride=2), up])
    medium = cross_stage(network, medium, scaled(512), 1, False)
    coarse = network.concat([unit(network, medium, scaled(512), 3, stride=2), large])
    coarse = cross_stage(network, coarse, scaled(1024), 1, False)
    boxes = [head(network, level, stride, resolution // stride)
             for level, stride in ((fine, 8), (medium, 16), (coarse, 32))]
    count = ANCHORS * sum((resolution // stride)**2 for stride in (8, 16, 32))
    return network.output(network.concat(boxes), "output", [count, FIELDS])


def unit(network, x, channels, kernel, **options):
    return network.unit(x, channels, kernel, "Silu", **options)


def cross_stage(network, x, channels, repeats, shortcut=True):
    y = unit(network, x, channels // 2, 1)
    for _ in range(repeats):
        z = unit(network, unit(network, y, channels // 2, 1), channels // 2, 3)
        y = network.plus(y, z) if shortcut else z
    return unit(network, network.concat([y, unit(network, x, channels // 2, 1)]), channels, 1)


def pyramid_pool(network, x):
    channels = network.channels[x]
    values = [unit(network, x, channels // 2, 1)]
    for _ in range(3):
        values.append(network.pool("Max", values[-1], 5, 1, 2))
    return unit(network, network.concat(values), channels, 1)


def enlarge(network, x):
    scales = network.constant(np.array([1, 1, 2, 2], np.float32))
    return network.add("Resize", [x, "", scales], mode="nearest", coordinate_transformation_mode="asymmetric",
                       nearest_mode="floor")


def head(network, x, stride, extent):
    """Boxes [batch, ANCHORS * extent^2, FIELDS] of one level."""
    x = network.convolution(x, ANCHORS * FIELDS, 1, bias=True, gain=1.0)
    x = network.add("Reshape", [x, network.integers([0, ANCHORS, FIELDS, extent, extent])])
    x = network.add("Sigmoid", [network.add("Transpose", [x], perm=[0, 1, 3, 4, 2])])
    parts = network.integers([2, 2, FIELDS - 4])
    centre, size, rest = network.add_several("Split", [x, parts], 3, axis=4)
    rows, columns = np.mgrid[:extent, :extent].astype(np.float32)
    grid = network.constant(np.stack([columns, rows], -1)[None, None] - np.float32(0.5))
    centre = network.times(network.plus(network.times(centre, network.real(2)), grid), network.real(stride))
    size = network.add("Pow", [network.times(size, network.real(2)), network.real(2)])
    anchors = network.random.uniform(1, 4, (1, ANCHORS, 1, 1, 2)).astype(np.float32) * np.float32(stride)
    size = network.times(size, network.constant(anchors))
    boxes = network.concat([centre, size, rest], axis=4)
    count = ANCHORS * extent * extent
    return network.add("Reshape", [boxes, network.integers([0, count, FIELDS])], count)


MODELS = {"yolo_small": build}
