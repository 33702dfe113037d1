"""Runs `foliot bench` and reads its report."""

import json
import pathlib
import subprocess
import tempfile

from foliot_tools.server import foliot_binary


def bench(url, model, *, log=None, **options):
    """The report of one run as a dictionary; options become flags, as in Server.
    `model`: None for all that are ready. `log`: a file for the text report."""
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.json"
        command = [foliot_binary(), "bench", "--url", url, "--json", str(report)]
        if model is not None:
            command += ["--model", model]
        for name, value in options.items():
            command += ["--" + name.replace("_", "-"), str(value)]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            raise RuntimeError(f"{' '.join(command)} ended with {result.returncode}:\n{result.stdout}{result.stderr}")
        if log:
            pathlib.Path(log).write_text(result.stdout)
        return json.loads(report.read_text())
