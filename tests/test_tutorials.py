"""Every block of the tutorials and of the quick start runs, as it is, in the order of its page: in a network of its own, so
that the ports are those of the text, in a folder with model.onnx and examples/."""

import os
import pathlib
import re
import signal
import subprocess

import pytest

from conftest import write_pair
from foliot_tools.server import ROOT, foliot_binary

PAGES = [ROOT / "docs/index.md", *sorted((ROOT / "docs/tutorials").glob("*.md"))]
WORDS_MAX = 400


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_blocks_of_a_page_run(page, tmp_path):
    text = page.read_text()
    assert len(text.split()) <= WORDS_MAX
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert blocks and text.count("```") == 2 * len(blocks), "what is no sh is not tried"
    write_pair(tmp_path / "model.onnx")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/foliot").symlink_to(pathlib.Path(foliot_binary()).resolve())
    script = "set -emo pipefail\nip link set lo up\n" + "".join(blocks)
    with open(tmp_path / "printed", "wb") as printed:
        process = subprocess.Popen(
            ["unshare", "--user", "--map-root-user", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "bash", "-c", script],
            cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=printed, stderr=subprocess.STDOUT, start_new_session=True,
            env={**os.environ, "PATH": f"{tmp_path}/bin:{os.environ['PATH']}"})
        try:
            code = process.wait(timeout=120)
        finally:
            # The first process of the namespace takes all servers with it.
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    assert code == 0, (tmp_path / "printed").read_text(errors="replace")[-3000:]
