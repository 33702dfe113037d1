"""`foliot demo`: what a newcomer sees first. Its figures are those of the machine, so only their form is looked at."""

import os
import re
import signal
import subprocess

from foliot_tools.server import foliot_binary


def start(tmp_path, *flags):
    """The demo, with a folder of its own for what is temporary."""
    (tmp_path / "tmp").mkdir()
    return subprocess.Popen([foliot_binary(), "demo", *flags], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            env={**os.environ, "TMPDIR": str(tmp_path / "tmp")})


def test_the_demo_shows_both_servers_and_leaves_nothing(tmp_path):
    demo = start(tmp_path, "--seconds", "3")
    output, errors = demo.communicate(timeout=120)
    assert demo.returncode == 0, errors
    assert re.search(r"^Look at it meanwhile: http://127\.0\.0\.1:\d+/$", output, re.MULTILINE)
    row = r"{} +([\d.]+) % +([\d.]+) % +([\d.]+) %$"
    for name in ("Foliot", r"first come, first served \*"):
        rows = re.findall(row.format(name), output, re.MULTILINE)
        assert len(rows) == 2, output
        for shares in rows:
            assert sum(map(float, shares)) <= 100.2
    assert "In virtual time" in output
    assert not list((tmp_path / "tmp").iterdir())


def test_the_demo_keeps_what_it_made(tmp_path):
    demo = start(tmp_path, "--seconds", "2", "--keep", tmp_path / "kept")
    output, errors = demo.communicate(timeout=120)
    assert demo.returncode == 0, errors
    command = re.search(r"^  foliot (explain .*)$", output, re.MULTILINE)[1].split()
    assert subprocess.run([foliot_binary(), *command], capture_output=True, timeout=60, check=False).returncode == 0
    assert (tmp_path / "kept/demo.onnx").stat().st_size < 300_000


def test_an_interrupt_ends_the_demo(tmp_path):
    demo = start(tmp_path, "--seconds", "600")
    for line in demo.stdout:
        if line.startswith("Look at it"):
            break
    demo.send_signal(signal.SIGINT)
    output, errors = demo.communicate(timeout=60)
    assert demo.returncode == 0 and output.endswith("stopped before the end\n"), (output, errors)
    assert not list((tmp_path / "tmp").iterdir())


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    demo = start(tmp_path, "--keep", tmp_path / "file")
    _, errors = demo.communicate(timeout=60)
    assert demo.returncode == 1 and errors.count("\n") == 1
    assert f"{tmp_path}/file" in errors and "--keep FOLDER" in errors
