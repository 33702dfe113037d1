"""Networks that tools/models/generate.py writes."""

import subprocess
import sys

from foliot_tools.server import ROOT


def write_resnet50(path, resolution, width=1.0):
    """A ResNet-50 with random weights for images of resolution x resolution;
    `width` scales its channels."""
    path.parent.mkdir(parents=True, exist_ok=True)
    generator = ROOT / "tools/models/generate.py"
    options = [f"--resolution={resolution}", f"--width={width}"]
    subprocess.run([sys.executable, generator, "resnet50", path, *options], check=True)
    return path
