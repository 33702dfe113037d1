"""Networks that tools/models writes."""

import sys

from foliot_tools.server import ROOT

sys.path.insert(0, str(ROOT))
from tools import models  # noqa: E402


def write_resnet50(path, resolution, width=1.0):
    """A ResNet-50 with random weights for images of resolution x resolution;
    `width` scales its channels."""
    return models.write(models.build("resnet50_v1b", resolution=resolution, width=width), path)
