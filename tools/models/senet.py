"""Networks with squeeze-and-excitation (Hu et al. 2018)."""

from functools import partial

from .resnet import build

MODELS = {
    "se_resnet18": partial(build, depth=18, squeeze=16),
    "se_resnet50": partial(build, depth=50, squeeze=16),
    "se_resnext50_32x4d": partial(build, depth=50, groups=32, group_width=4, squeeze=16),
}
