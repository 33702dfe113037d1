"""ResNeSt (Zhang et al. 2020): bottlenecks whose 3x3 convolution is split in two,
attention choosing between the halves channel by channel."""

from functools import partial

from .network import Network

STAGES = {14: (1, 1, 1, 1), 26: (2, 2, 2, 2), 50: (3, 4, 6, 3), 101: (3, 4, 23, 3)}
RADIX = 2


def build(name, depth, batch="batch", seed=1, resolution=224):
    network = Network(name, seed=seed, batch=batch)
    stem = 64 if depth >= 101 else 32
    x = network.image(3, resolution, resolution)
    x = network.unit(x, stem, 3, stride=2)
    x = network.unit(network.unit(x, stem, 3), 2 * stem, 3)
    x = network.pool("Max", x, 3, 2, 1)
    for stage, blocks in enumerate(STAGES[depth]):
        for block in range(blocks):
            x = bottleneck(network, x, 64 * 2**stage, 2 if stage > 0 and block == 0 else 1)
    return network.classifier(x, 1000)


def bottleneck(network, x, inner, stride):
    y = network.unit(x, inner, 1)
    y = split_attention(network, y, inner)
    if stride != 1:
        y = network.pool("Average", y, 3, stride, 1, count_include_pad=1)
    y = network.unit(y, 4 * inner, 1, None, 0.25, gain=2**0.5)
    if stride != 1 or network.channels[x] != 4 * inner:
        if stride != 1:
            x = network.pool("Average", x, stride, stride)
        x = network.unit(x, 4 * inner, 1, None)
    return network.relu(network.plus(y, x))


def split_attention(network, x, channels):
    x = network.unit(x, RADIX * channels, 3, groups=RADIX)
    halves = network.add_several("Split", [x, network.integers([channels] * RADIX)], RADIX, channels, axis=1)
    gap = network.add("GlobalAveragePool", [network.plus(*halves)])
    attention = network.unit(gap, max(32, channels * RADIX // 4), 1, bias=True)
    attention = network.convolution(attention, RADIX * channels, 1, bias=True)
    attention = network.add("Reshape", [attention, network.integers([0, 1, RADIX, channels])])
    attention = network.add("Softmax", [network.add("Transpose", [attention], perm=[0, 2, 1, 3])], axis=1)
    attention = network.add("Reshape", [attention, network.integers([0, RADIX * channels, 1, 1])])
    weights = network.add_several("Split", [attention, network.integers([channels] * RADIX)], RADIX, channels, axis=1)
    return network.plus(*(network.times(half, weight) for half, weight in zip(halves, weights)))


MODELS = {f"resnest{depth}": partial(build, depth=depth) for depth in STAGES}
