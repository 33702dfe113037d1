"""`foliot serve --lanes`: models whose kernels differ between numbers of threads, and the priority of EXEC."""

import os
import pathlib
import re
import subprocess

import pytest

from foliot_tools import onnx_models
from foliot_tools.bench import bench
from foliot_tools.server import Server, foliot_binary
from tools import models

# GoogLeNet: with batches of 16, Winograd's algorithm needs more memory on one thread than on two.
CASES = {"googlenet": 16, "yolo8_nano": 4}


@pytest.mark.parametrize("name", CASES)
def test_kernels_suit_one_thread_and_two(name, tmp_path):
    repository = tmp_path / "models"
    models.write(models.build(name), repository / name / "model.onnx")
    (repository / name / "model.toml").write_text(f"batch_sizes = [{CASES[name]}]\n")
    with Server(repository, tmp_path / "log", threads=2, lanes=2) as server:
        report = bench(server.grpc, name, concurrency=2, duration="2s")
        assert "operator" not in server.output()
    assert report["answered_per_second"] > 0


def priorities(pid):
    """{name of a thread: its nice value}"""
    tasks = pathlib.Path(f"/proc/{pid}/task")
    return {(task / "comm").read_text().strip(): os.getpriority(os.PRIO_PROCESS, int(task.name)) for task in tasks.iterdir()}


@pytest.mark.parametrize("left", [0, 1])
def test_exec_goes_first_where_a_core_is_left(left, tmp_path):
    devices = subprocess.run([foliot_binary(), "devices"], check=True, capture_output=True, text=True).stdout
    cores = int(re.search(r"processors +(\d+)", devices)[1])
    onnx_models.random_dense_network(tmp_path / "models/small/model.onnx", (8, 4))
    # On a machine of one core none can be left.
    with Server(tmp_path / "models", tmp_path / "log", threads=max(1, cores - left)) as server:
        nice = priorities(server.process.pid)
    assert nice["exec"] == nice["load" if left and cores > 1 else "controller"]
