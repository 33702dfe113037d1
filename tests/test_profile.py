"""`foliot profile`: measures the stages of a pipeline of a repository, for `foliot plan`."""

import subprocess

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from foliot_tools.server import foliot_binary

PIPELINE = """[[stage]]
name = "first"
model = "doubled"
inputs = { x = "x" }
[[stage]]
name = "second"
model = "%s"
inputs = { x = "first.y" }
[[output]]
name = "y"
from = ["second.y"]
"""


def save_model(folder, name):
    """y = x w, in a folder of its own."""
    weights = np.eye(16, dtype=np.float32) * 2
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])], name,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 16])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 16])],
        [helper.make_tensor("w", TensorProto.FLOAT, weights.shape, weights.tobytes(), raw=True)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (folder / name / "1").mkdir(parents=True)
    onnx.save(model, folder / name / "1/model.onnx")


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    folder = tmp_path_factory.mktemp("profiled")
    save_model(folder, "doubled")
    (folder / "twice").mkdir()
    (folder / "twice/pipeline.toml").write_text(PIPELINE % "doubled", encoding="utf-8")
    (folder / "code/1").mkdir(parents=True)
    (folder / "code/1/model.py").write_text("def predict(x):\n    return x\n", encoding="utf-8")
    for name, model in (("contained", "code"), ("missing", "tripled")):
        (folder / name).mkdir()
        (folder / name / "pipeline.toml").write_text(PIPELINE % model, encoding="utf-8")
    return folder


def profile(repository, pipeline, *arguments):
    return subprocess.run([foliot_binary(), "profile", repository / pipeline / "pipeline.toml", *map(str, arguments)],
                          capture_output=True, text=True, timeout=300, check=False)


def test_a_plan_takes_what_was_measured(repository, tmp_path):
    measured = tmp_path / "profiles.toml"
    result = profile(repository, "twice", "--batch-sizes", "1,4,2", "--output", measured)
    assert result.returncode == 0, result.stderr
    text = measured.read_text(encoding="utf-8")
    assert text.count('stage = "') == 2 and text.count("batch_sizes = [1, 2, 4]") == 2
    (tmp_path / "trace.csv").write_text("".join(f"{i / 100}\n" for i in range(100)), encoding="utf-8")
    (tmp_path / "prices.toml").write_text("cpu = 1\n", encoding="utf-8")
    planned = subprocess.run(
        [foliot_binary(), "plan", repository / "twice/pipeline.toml", "--trace", tmp_path / "trace.csv", "--prices",
         tmp_path / "prices.toml", "--profiles", measured, "--slo", "100ms"], capture_output=True, text=True,
        timeout=120, check=False)
    assert planned.returncode == 0, planned.stderr
    assert "100.00 % within 100 ms" in planned.stdout


@pytest.mark.parametrize("pipeline, arguments, complaint", [
    ("contained", (), "pipeline.toml:5: stage 'second': 'code' is a container"),
    ("missing", (), "pipeline.toml:5: stage 'second': there is no model 'tripled'"),
    ("twice", ("--batch-sizes", "2,4"), "--batch-sizes: must contain 1"),
    ("twice", ("--batch-sizes", "1,65"), "65"),
    ("nowhere", (), "nowhere/pipeline.toml"),
])
def test_what_is_wrong_is_named(repository, pipeline, arguments, complaint):
    result = profile(repository, pipeline, *arguments)
    assert result.returncode != 0
    assert complaint in result.stdout + result.stderr
