"""ResNet: v1 (He et al. 2016, "Deep Residual Learning") has its strides in the
first convolution of a bottleneck, v1b, as torchvision, in the second; v2
("Identity Mappings") normalises before each convolution."""

from functools import partial

from .network import Network

STAGES = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3)}
# The last scale of each branch: small, so that the sum of many stays finite.
BRANCH_SCALE = 0.25


def build(name, depth, variant="v1b", batch="batch", seed=1, resolution=224, width=1.0, **block_options):
    network = Network(name, seed=seed, batch=batch)
    x = network.image(3, resolution, resolution)
    if variant == "v2":
        x = network.batch_normalization(x)
        x = body_v2(network, x, depth, width)
        x = network.relu(network.batch_normalization(x))
    else:
        x = body(network, x, depth, width, stride_first=variant == "v1", **block_options)
    return network.classifier(x, 1000)


def stem(network, x, channels):
    return network.pool("Max", network.unit(x, channels, 7, stride=2), 3, 2, 1)


def scaled(channels, width):
    return max(8, int(channels * width))


def stages(depth, width):
    """(inner channels, stride) of each block."""
    for stage, blocks in enumerate(STAGES[depth]):
        for block in range(blocks):
            yield scaled(64 * 2**stage, width), 2 if stage > 0 and block == 0 else 1


def body(network, x, depth, width=1.0, **options):
    """All but the classifier."""
    x = stem(network, x, scaled(64, width))
    for inner, stride in stages(depth, width):
        x = block(network, x, inner, stride, bottleneck=depth >= 50, **options)
    return x


def block(network, x, inner, stride, bottleneck, stride_first=False, groups=1, group_width=64, squeeze=0):
    """`groups` of `group_width` channels (of 64) each stand for ResNeXt and Wide
    ResNet; `squeeze` is the reduction of squeeze-and-excitation, 0 for none."""
    outer = 4 * inner if bottleneck else inner
    if bottleneck:
        middle = inner * group_width // 64 * groups
        y = network.unit(x, middle, 1, stride=stride if stride_first else 1, bias=stride_first)
        y = network.unit(y, middle, 3, stride=1 if stride_first else stride, groups=groups)
        y = network.unit(y, outer, 1, None, BRANCH_SCALE, bias=stride_first, gain=2**0.5)
    else:
        y = network.unit(x, inner, 3, stride=stride)
        y = network.unit(y, outer, 3, None, BRANCH_SCALE, gain=2**0.5)
    if squeeze:
        y = network.squeeze_and_excite(y, outer // squeeze)
    if stride != 1 or network.channels[x] != outer:
        x = network.unit(x, outer, 1, None, stride=stride)
    return network.relu(network.plus(y, x))


def body_v2(network, x, depth, width):
    x = stem(network, x, scaled(64, width))
    for inner, stride in stages(depth, width):
        x = block_v2(network, x, inner, stride, bottleneck=depth >= 50)
    return x


def block_v2(network, x, inner, stride, bottleneck):
    outer = 4 * inner if bottleneck else inner
    y = network.relu(network.batch_normalization(x))
    if stride != 1 or network.channels[x] != outer:
        x = network.convolution(y, outer, 1, stride=stride, gain=1.0)
    if bottleneck:
        y = network.unit(y, inner, 1)
        y = network.unit(y, inner, 3, stride=stride)
        y = network.convolution(y, outer, 1, gain=BRANCH_SCALE)
    else:
        y = network.unit(y, inner, 3, stride=stride)
        y = network.convolution(y, outer, 3, gain=BRANCH_SCALE)
    return network.plus(y, x)


MODELS = {f"resnet{depth}_{variant}": partial(build, depth=depth, variant=variant)
          for variant in ("v1", "v1b", "v2") for depth in STAGES}
