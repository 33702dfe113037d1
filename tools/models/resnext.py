"""ResNeXt (Xie et al. 2017): bottlenecks of grouped convolutions."""

from functools import partial

from .resnet import build

MODELS = {
    "resnext50_32x4d": partial(build, depth=50, groups=32, group_width=4),
    "resnext101_32x4d": partial(build, depth=101, groups=32, group_width=4),
    "resnext101_64x4d": partial(build, depth=101, groups=64, group_width=4),
}
