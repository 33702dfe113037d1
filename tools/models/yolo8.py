"""YOLOv8 (Jocher et al. 2023) with the widths and depths of its smallest, as its exporter writes it:
blocks that keep what each part makes, a pyramid both ways, and boxes as expectations over distances;
without the selection of boxes, whose number depends on the data."""

import numpy as np

from .network import Network
from .yolo import enlarge, pyramid_pool, unit

CLASSES = 80
DISTANCES = 16
STRIDES = (8, 16, 32)


def build(name, batch="batch", seed=1, resolution=640, width=0.25):
    network = Network(name, seed=seed, batch=batch)

    def scaled(channels):
        return int(channels * width)

    x = unit(network, network.image(3, resolution, resolution), scaled(64), 3, stride=2)
    features = []
    for channels, repeats in ((128, 1), (256, 2), (512, 2), (1024, 1)):
        x = split_stage(network, unit(network, x, scaled(channels), 3, stride=2), scaled(channels), repeats)
        features.append(x)
    _, small, middle, _ = features
    large = pyramid_pool(network, x)
    up = split_stage(network, network.concat([enlarge(network, large), middle]), scaled(512), 1, False)
    fine = split_stage(network, network.concat([enlarge(network, up), small]), scaled(256), 1, False)
    medium = network.concat([unit(network, fine, scaled(256), 3, stride=2), up])
    medium = split_stage(network, medium, scaled(512), 1, False)
    coarse = network.concat([unit(network, medium, scaled(512), 3, stride=2), large])
    coarse = split_stage(network, coarse, scaled(1024), 1, False)
    return detect(network, (fine, medium, coarse), resolution)


def split_stage(network, x, channels, repeats, shortcut=True):
    """Half of the channels goes through the parts, and what each makes is kept."""
    half = channels // 2
    x = unit(network, x, channels, 1)
    kept = network.add_several("Split", [x, network.integers([half, half])], 2, half, axis=1)
    for _ in range(repeats):
        y = unit(network, unit(network, kept[-1], half, 3), half, 3)
        kept.append(network.plus(kept[-1], y) if shortcut else y)
    return unit(network, network.concat(kept), channels, 1)


def detect(network, levels, resolution):
    """[batch, 4 + CLASSES, places]: centre, width, height, classes."""
    places = [(resolution // stride)**2 for stride in STRIDES]
    fields = 4 * DISTANCES + CLASSES
    wide, classes = max(64, 4 * DISTANCES), max(network.channels[levels[0]], CLASSES)
    rows = []
    for x, count in zip(levels, places):
        parts = [branch(network, x, wide, 4 * DISTANCES), branch(network, x, classes, CLASSES)]
        rows.append(network.add("Reshape", [network.concat(parts), network.integers([0, fields, count])]))
    x = network.add("Concat", rows, axis=2)
    boxes, scores = network.add_several("Split", [x, network.integers([4 * DISTANCES, CLASSES])], 2, axis=1)
    boxes = network.add("Reshape", [boxes, network.integers([0, 4, DISTANCES, sum(places)])])
    boxes = network.add("Softmax", [network.add("Transpose", [boxes], perm=[0, 2, 1, 3])], DISTANCES, axis=1)
    expectation = network.constant(np.arange(DISTANCES, dtype=np.float32).reshape(1, DISTANCES, 1, 1))
    boxes = network.add("Conv", [boxes, expectation], 1, kernel_shape=[1, 1])
    boxes = network.add("Reshape", [boxes, network.integers([0, 4, sum(places)])])
    before, after = (network.add("Slice", [boxes, network.integers([i]), network.integers([i + 2]), network.integers([1])])
                     for i in (0, 2))
    centres, strides = grid(resolution)
    first = network.add("Sub", [network.constant(centres), before])
    last = network.plus(network.constant(centres), after)
    centre = network.add("Div", [network.plus(first, last), network.real(2)])
    boxes = network.add("Concat", [centre, network.add("Sub", [last, first])], axis=1)
    boxes = network.times(boxes, network.constant(strides))
    y = network.add("Concat", [boxes, network.add("Sigmoid", [scores])], axis=1)
    return network.output(y, "output", [4 + CLASSES, sum(places)])


def branch(network, x, channels, fields):
    x = unit(network, unit(network, x, channels, 3), channels, 3)
    return network.convolution(x, fields, 1, bias=True, gain=1.0)


def grid(resolution):
    """The centres of all places, in strides of their level, and these strides."""
    centres, strides = [], []
    for stride in STRIDES:
        rows, columns = np.mgrid[: resolution // stride, : resolution // stride].astype(np.float32) + np.float32(0.5)
        centres.append(np.stack([columns.ravel(), rows.ravel()]))
        strides.append(np.full((1, rows.size), stride, np.float32))
    return np.concatenate(centres, 1)[None], np.concatenate(strides, 1)


MODELS = {"yolo8_nano": build}
