"""Clients of the Open Inference Protocol as their authors ship them, against a real server.

    make test-clients
    python tests/client_matrix.py [--only kserve] [--environments FOLDER]

Each client of python/requirements-clients.txt has an environment of its own, made from PyPI when it is first
needed. Its script in tests/clients runs there. Prints a table, and ends with 1 unless every check passed.
"""

import argparse
import hashlib
import json
import pathlib
import re
import subprocess
import sys
import tempfile

from onnx import TensorProto, helper

from foliot_tools import onnx_models
from foliot_tools.server import ROOT, Server

CHECKS_TIMEOUT = 300


def clients():
    """(requirement, script) of each line."""
    for line in (ROOT / "python/requirements-clients.txt").read_text().splitlines():
        found = re.fullmatch(r"([^#\s]+)\s+# (\w+)", line)
        if found:
            yield found[1], ROOT / "tests/clients" / f"{found[2]}.py"


def environment_of(requirement, folder):
    """The interpreter of an environment with the client; made unless it is there."""
    place = folder / hashlib.sha256(requirement.encode()).hexdigest()[:16]
    python, made = place / "bin/python", place / "made"
    if not made.exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", place], check=True)
        subprocess.run([python, "-m", "pip", "--disable-pip-version-check", "--quiet", "install", requirement, "numpy"],
                       check=True)
        made.touch()
    return python


def write_models(folder):
    """'pair': a, b [batch, 4] -> sum, difference."""
    onnx_models.save(
        folder / "pair/1/model.onnx",
        [helper.make_node("Add", ["a", "b"], ["sum"], "add"), helper.make_node("Sub", ["a", "b"], ["difference"], "sub")],
        {name: (TensorProto.FLOAT, ["batch", 4]) for name in ("a", "b")},
        {name: (TensorProto.FLOAT, ["batch", 4]) for name in ("sum", "difference")},
    )
    return folder


def results_of(requirement, script, server, folder):
    """(check, failure) of each check of the client; failure is empty where it passed."""
    try:
        python = environment_of(requirement, folder)
        ended = subprocess.run(
            [python, script, "--http", server.http, "--grpc", server.grpc, "--metrics", f"127.0.0.1:{server.metrics_port}"],
            capture_output=True, text=True, timeout=CHECKS_TIMEOUT)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        return [("its environment, and an end within the time limit", str(error))]
    results = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith('{"check"')]
    if ended.returncode != 0 or not results:
        results.append({"check": "its script", "failure": ended.stderr.strip()[-500:] or f"ended with {ended.returncode}"})
    return [(result["check"], result["failure"]) for result in results]


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--only", default="", help="clients whose requirement begins so")
    options.add_argument("--environments", type=pathlib.Path, default=ROOT / "build/clients")
    chosen = options.parse_args()
    failures = 0
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        flags = {"page_size": "256KiB", "page_cache": "16MiB"}
        with Server(write_models(scratch / "models"), scratch / "log", **flags) as server:
            for requirement, script in clients():
                if not requirement.startswith(chosen.only):
                    continue
                for check, failure in results_of(requirement, script, server, chosen.environments):
                    failures += bool(failure)
                    print(f"{requirement:28} {check:56} {'works' if not failure else 'FAILED: ' + failure}", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
