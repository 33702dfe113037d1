"""foliot devices: what models can run on here, or why not."""

import subprocess

from foliot_tools.server import foliot_binary


def test_says_what_there_is_and_what_is_not():
    listed = subprocess.run([foliot_binary(), "devices"], capture_output=True, text=True, timeout=30)
    assert listed.returncode == 0, listed.stderr
    cpu, *rest = listed.stdout.splitlines()
    assert cpu.startswith("cpu ")
    assert any(line.split()[:1] == ["kernels"] and "oneDNN" in line for line in rest)
    # A GPU with its limits, or the reason why none is used.
    gpus = [line for line in rest if line.startswith("gpu ")]
    assert gpus
    assert all("none: " not in line or len(gpus) == 1 for line in gpus)
