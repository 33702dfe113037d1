"""The bugs that tools/planted_bugs plants are changes of lines that are there."""

import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent


def test_each_line_to_be_changed_is_there_once():
    subprocess.run([ROOT / "tools/planted_bugs", "--check"], check=True)
