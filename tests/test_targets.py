"""`foliot serve --targets`: what should be of models, by a file that is read again when it changes."""

import numpy as np
import pytest
import tritonclient.http as triton
from onnx import TensorProto, helper
from tritonclient.utils import InferenceServerException

from foliot_tools import onnx_models
from foliot_tools.server import ServerFailed
from foliot_tools.waiting import eventually

OPTIONS = {"page_size": "256KiB", "page_cache": "16MiB"}


@pytest.fixture(name="repository")
def models(tmp_path):
    folder = tmp_path / "models"
    for name in ("first", "second"):
        onnx_models.save(folder / name / "model.onnx", [helper.make_node("MatMul", ["x", "weights"], ["y"], "product")],
                         {"x": (TensorProto.FLOAT, ["batch", 4])}, {"y": (TensorProto.FLOAT, ["batch", 4])},
                         {"weights": np.eye(4, dtype=np.float32)})
    return folder


def answers(server, name):
    """Whether the model answers; else it is not served, by its targets."""
    tensor = triton.InferInput("x", [1, 4], "FP32")
    tensor.set_data_from_numpy(np.ones((1, 4), np.float32))
    with triton.InferenceServerClient(server.http) as client:
        try:
            client.infer(name, [tensor], timeout=10_000_000)
        except InferenceServerException as error:
            assert "unloaded" in str(error)
            return False
    return True


def test_targets_hold_and_are_read_again(serve, repository, tmp_path):
    targets = tmp_path / "targets.toml"
    targets.write_text('[[targets]]\nmodels = ["first", "third"]\ncopies_most = 0\n', encoding="utf-8")
    server = serve(repository, **OPTIONS, targets=targets)
    eventually(lambda: server.get("/v2/health/ready")[0] == 200)
    assert answers(server, "second")
    assert not answers(server, "first")
    eventually(lambda: "targets of model 'third': it is not served, so far" in server.output())
    targets.write_text('[[targets]]\nmodels = ["second"]\ncopies_most = 0\n', encoding="utf-8")
    eventually(lambda: answers(server, "first"), timeout=60)
    assert not answers(server, "second")
    targets.write_text('[[targets]]\nmodels = ["second"]\ncopies = 0\n', encoding="utf-8")
    eventually(lambda: "targets.toml:3" in server.output())  # and what was set stays
    assert not answers(server, "second")


def test_a_wrong_file_ends_the_start(serve, repository, tmp_path):
    targets = tmp_path / "targets.toml"
    targets.write_text('[[targets]]\nmodels = ["first"]\nbatch_most = 0\n', encoding="utf-8")
    with pytest.raises(ServerFailed, match=r"targets.toml:3: 'batch_most'"):
        serve(repository, **OPTIONS, targets=targets)
