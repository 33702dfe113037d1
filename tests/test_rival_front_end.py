"""bench/rival_front_end.py: the load generator drives it as it does Foliot, and what is past its deadline does not run."""

import sys

import numpy as np
import pytest
import tritonclient.grpc as triton
from tritonclient.utils import InferenceServerException

from foliot_tools import onnx_models
from foliot_tools.bench import bench
from foliot_tools.server import ROOT, Server


class RivalServer(Server):
    def __init__(self, repository, console, *flags):
        super().__init__(repository, console)
        self.command = [sys.executable, str(ROOT / "bench/rival_front_end.py"), str(repository), "--engine=onnxruntime",
                        f"--port={self.grpc_port}", *flags]


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rival")
    for name in ("first", "second"):
        onnx_models.random_dense_network(folder / f"models/{name}/model.onnx", (64, 32, 10))
    onnx_models.random_dense_network(folder / "models/slow/model.onnx", (1024, 2048, 2048, 10))
    return folder / "models"


@pytest.fixture(scope="module")
def rival(repository):
    with RivalServer(repository, repository.parent / "console", "--sessions=2") as server:
        yield server


def test_all_models_answer(rival):
    report = bench(rival.grpc, None, concurrency=4, duration="1s", deadline="10s")
    assert report["good"] == report["offered"] > 0
    assert {model["name"] for model in report["models"]} == {"first", "second", "slow"}


def test_what_is_past_its_deadline_is_refused(rival):
    with triton.InferenceServerClient(rival.grpc) as client:
        request = triton.InferInput("pixels", [1, 64], "FP32")
        request.set_data_from_numpy(np.zeros((1, 64), np.float32))
        assert client.infer("first", [request], timeout=10_000_000).as_numpy("output_0").shape == (1, 10)
        with pytest.raises(InferenceServerException, match="expired"):
            client.infer("first", [request], timeout=1)


def test_more_than_the_queue_holds_is_refused(repository, tmp_path):
    with RivalServer(repository, tmp_path / "console", "--queue=1") as rival:
        report = bench(rival.grpc, "slow", concurrency=16, duration="1s", deadline="10s")
    assert report["refused"] > 0
    assert report["good"] + report["refused"] == report["offered"]
