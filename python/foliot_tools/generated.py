"""Networks that tools/models/generate.py writes."""

import subprocess
import sys

from foliot_tools.server import ROOT


def write_resnet50(path, resolution):
    """A ResNet-50 for images of resolution x resolution, with random weights."""
    path.parent.mkdir(parents=True, exist_ok=True)
    generator = ROOT / "tools/models/generate.py"
    subprocess.run([sys.executable, generator, "resnet50", path, f"--resolution={resolution}"], check=True)
    return path
