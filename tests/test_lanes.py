"""`foliot serve --lanes`: models whose kernels differ between numbers of threads."""

import pytest

from foliot_tools.bench import bench
from foliot_tools.server import Server
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
