"""`--targets` of a server and a controller: what should be of models, by a file that is read again when it changes."""

import numpy as np
import pytest
import tritonclient.http as triton
from onnx import TensorProto, helper
from tritonclient.utils import InferenceServerException

from foliot_tools import onnx_models
from foliot_tools.cluster import Cluster
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


def refusal(server, name):
    """Why the model does not answer; empty: it does."""
    tensor = triton.InferInput("x", [1, 4], "FP32")
    tensor.set_data_from_numpy(np.ones((1, 4), np.float32))
    with triton.InferenceServerClient(server.http) as client:
        try:
            client.infer(name, [tensor], timeout=10_000_000)
        except InferenceServerException as error:
            return str(error)
    return ""


def answers(server, name):
    """Whether the model answers; else it is not served, by its targets."""
    reason = refusal(server, name)
    assert not reason or "unloaded" in reason
    return not reason


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


def test_a_controller_holds_its_workers_to_targets(repository, tmp_path):
    targets = tmp_path / "targets.toml"
    targets.write_text('[[targets]]\nmodels = ["first", "third"]\ncopies_most = 0\n', encoding="utf-8")
    with Cluster(tmp_path, repository, workers=1, frontends=1, controller_options={"targets": targets}) as cluster:
        frontend = cluster.frontends[0]
        frontend.await_ready()
        assert answers(frontend, "second")
        assert not answers(frontend, "first")
        cluster.controller.await_line("targets of model 'third': it is not served, so far")
        # Those of a worker that comes again are other models.
        cluster.workers[0].stop()
        cluster.workers[0].start()
        eventually(lambda: not refusal(frontend, "second"), timeout=60)
        assert not answers(frontend, "first")
        targets.write_text('[[targets]]\nmodels = ["second"]\ncopies_most = 0\n', encoding="utf-8")
        eventually(lambda: answers(frontend, "first"), timeout=60)
        assert not answers(frontend, "second")
        targets.write_text('[[targets]]\nmodels = ["second"]\ncopies = 0\n', encoding="utf-8")
        cluster.controller.await_line("targets.toml:3")  # and what was set stays
        assert not answers(frontend, "second")
        targets.unlink()
        cluster.controller.stop()
        targets.write_text('[[targets]]\nmodels = ["first"]\nbatch_most = 0\n', encoding="utf-8")
        cluster.controller.start()
        cluster.controller.await_line("targets.toml:3: 'batch_most'")
        assert cluster.controller.process.wait(timeout=60) == 1


def test_a_wrong_file_ends_the_start(serve, repository, tmp_path):
    targets = tmp_path / "targets.toml"
    targets.write_text('[[targets]]\nmodels = ["first"]\nbatch_most = 0\n', encoding="utf-8")
    with pytest.raises(ServerFailed, match=r"targets.toml:3: 'batch_most'"):
        serve(repository, **OPTIONS, targets=targets)
