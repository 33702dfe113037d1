"""Wide ResNet (Zagoruyko and Komodakis 2016), as torchvision has it: bottlenecks
twice as wide inside."""

from functools import partial

from .resnet import build

MODELS = {
    "wide_resnet50_2": partial(build, depth=50, group_width=128),
    "wide_resnet101_2": partial(build, depth=101, group_width=128),
}
