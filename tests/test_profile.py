"""`foliot profile`: measures the stages of a pipeline of a repository, for `foliot plan`."""

import re
import subprocess
import sys
import tomllib

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


# It takes 2 ms for each row, and 40 ms more for a batch in which one begins with 4 or more.
CODE = """
import time

import foliot


@foliot.model(inputs={"x": ("FP32", [16])}, outputs={"y": ("FP32", [16])}, batch_size_max=4)
def predict(batch):
    x = batch["x"]
    time.sleep(0.002 * len(x) + (0.04 if (x[:, 0] >= 4).any() else 0))
    return {"y": x}
"""
# `slow` sees what is 2 or more once it is doubled.
CASCADE = """[[stage]]
name = "first"
model = "doubled"
inputs = { x = "x" }
[[stage]]
name = "slow"
model = "code"
inputs = { x = "first.y" }
when = [{ output = "first.y", value = "element", element = 0, at_least = 2 }]
[[output]]
name = "y"
from = ["slow.y", "first.y"]
"""

# `each` is visited as often as the call says.
STREET = """[[stage]]
name = "tell"
model = "teller"
inputs = { number = "number" }
[[stage]]
name = "each"
model = "doubled"
for_each = { count = "tell.count", at_most = 3 }
inputs = { x = "x[]" }
[[output]]
name = "y"
from = "each.y"
"""


def save_teller(folder):
    """A number of the call becomes a count."""
    graph = helper.make_graph(
        [helper.make_node("Mul", ["number", "one"], ["count"])], "teller",
        [helper.make_tensor_value_info("number", TensorProto.FLOAT, ["batch", 1])],
        [helper.make_tensor_value_info("count", TensorProto.FLOAT, ["batch", 1])],
        [helper.make_tensor("one", TensorProto.FLOAT, [1], [1])])
    (folder / "teller" / "1").mkdir(parents=True)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
              folder / "teller" / "1/model.onnx")


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
    for name, code in (("code", CODE), ("damaged", "raise ValueError('no weights')\n")):
        (folder / name / "1").mkdir(parents=True)
        (folder / name / "1/model.py").write_text(code, encoding="utf-8")
        (folder / name / "model.toml").write_text(f'[container]\npython = "{sys.executable}"\n', encoding="utf-8")
    for name, model in (("contained", "code"), ("broken", "damaged"), ("missing", "tripled")):
        (folder / name).mkdir()
        (folder / name / "pipeline.toml").write_text(PIPELINE % model, encoding="utf-8")
    (folder / "cascade").mkdir()
    (folder / "cascade/pipeline.toml").write_text(CASCADE, encoding="utf-8")
    save_teller(folder)
    (folder / "street").mkdir()
    (folder / "street/pipeline.toml").write_text(STREET, encoding="utf-8")
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


def profiles_of(text):
    """By stage: kind, batch sizes and the durations in seconds, by key."""
    read = tomllib.loads(text)
    return read.get("visits", {}), {
        each["stage"]: {key: [float(text[:-2]) / 1e6 for text in value] if key in ("durations", "p50", "p99") else value
                        for key, value in each.items()} for each in read["profile"]}


def test_a_container_is_started_and_measured(repository):
    result = profile(repository, "contained", "--batch-sizes", "1,2,4,8")
    assert result.returncode == 0, result.stderr
    visits, stages = profiles_of(result.stdout)
    assert not visits and stages["first"]["batch_sizes"] == [1, 2, 4, 8]
    assert stages["second"]["kind"] == "container:code"
    assert stages["second"]["batch_sizes"] == [1, 2, 4]  # what it takes
    assert stages["second"]["durations"][2] >= 0.008


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_samples_show_visits_and_durations_that_depend_on_the_input(repository, tmp_path, save):
    calls = np.zeros((20, 16), np.float32)
    calls[:10, 0] = 1  # visit `slow`
    calls[:2, 0] = 2  # and take long there
    save(tmp_path / "calls.npz", x=calls)
    result = profile(repository, "cascade", "--batch-sizes", "1,2,4", "--calls", tmp_path / "calls.npz")
    assert result.returncode == 0, result.stderr
    visits, stages = profiles_of(result.stdout)
    assert visits == {"slow": 0.5}
    slow = stages["slow"]
    assert slow["kind"] == "container:code" and slow["batch_sizes"] == [1, 2, 4]
    assert slow["p50"][0] >= 0.002 and slow["p99"][0] >= 0.04
    assert slow["p50"][0] < slow["p99"][0]
    assert set(stages["first"]) == {"stage", "kind", "batch_sizes", "p50", "p99"}


def test_visits_for_each_element_are_counted_and_planned_for(repository, tmp_path):
    counts = np.array([0, 1, 3, 3, 2, 3, 0, 3], np.float32)
    np.savez(tmp_path / "calls.npz", number=counts[:, None], x=np.ones((8, 3, 16), np.float32))
    measured = tmp_path / "profiles.toml"
    arguments = ("--batch-sizes", "1,2,4", "--calls", tmp_path / "calls.npz")
    result = profile(repository, "street", *arguments, "--output", measured)
    assert result.returncode == 0, result.stderr
    assert tomllib.loads(measured.read_text())["visits"] == {"each": [2, 1, 1, 4]}
    (tmp_path / "trace.csv").write_text("".join(f"{i / 100}\n" for i in range(100)), encoding="utf-8")
    (tmp_path / "prices.toml").write_text("cpu = 1\n", encoding="utf-8")
    planned = subprocess.run(
        [foliot_binary(), "plan", repository / "street/pipeline.toml", "--trace", tmp_path / "trace.csv", "--prices",
         tmp_path / "prices.toml", "--profiles", measured, "--slo", "100ms"], capture_output=True, text=True,
        timeout=120, check=False)
    assert planned.returncode == 0, planned.stderr
    assert "100.00 % within 100 ms" in planned.stdout
    assert re.search(r"^ *each .*187", planned.stdout, re.MULTILINE), "visits of a query: 1.875"
    counts[4] = 4
    np.savez(tmp_path / "calls.npz", number=counts[:, None], x=np.ones((8, 3, 16), np.float32))
    result = profile(repository, "street", *arguments)
    assert result.returncode == 1
    assert "stage 'tell': on call 4 its output 'count' is 4, and must be a whole number from 0 to 3" in result.stderr


@pytest.mark.parametrize("calls, complaint", [
    ({"x": np.zeros((20, 16), np.float32)}, "none of its 20 calls visits stage 'slow'"),
    ({"x": np.zeros((20, 16))}, "'x' has FP64 [20,16], and must have FP32 and, after the calls, [16]"),
    ({"x": np.zeros(16, np.float32)}, "'x' has FP32 [16], and must have FP32 and, after the calls, [16]"),
    ({"x": np.zeros((0, 16), np.float32)}, "'x' has 0 calls, and must have at least one"),
    ({"x": np.zeros((20, 17), np.float32)}, "its calls are larger than the pipeline takes: 'x' of at most [16]"),
    ({"x": np.zeros((20, 16), np.float32), "z": np.zeros(20)}, "the pipeline has no input 'z'"),
    ({}, "has no array 'x', which is an input of the pipeline"),
])
def test_what_is_wrong_with_samples_is_named(repository, tmp_path, calls, complaint):
    np.savez(tmp_path / "calls.npz", **calls)
    result = profile(repository, "cascade", "--batch-sizes", "1", "--calls", tmp_path / "calls.npz")
    assert result.returncode == 1
    assert f"calls.npz: {complaint}" in result.stderr


@pytest.mark.parametrize("damage", [
    lambda content: b"", lambda content: content[:-30], lambda content: b"no archive at all, but of some length.....",
    lambda content: content[:200] + bytes([content[200] ^ 1]) + content[201:],
])
def test_damaged_samples_are_named(repository, tmp_path, damage):
    file = tmp_path / "calls.npz"
    np.savez(file, x=np.ones((20, 16), np.float32))
    file.write_bytes(damage(file.read_bytes()))
    result = profile(repository, "cascade", "--calls", file)
    assert result.returncode == 1
    assert "calls.npz: " in result.stderr and "cascade" not in result.stderr


@pytest.mark.parametrize("pipeline, arguments, complaint", [
    ("broken", (), "pipeline.toml:5: stage 'second': "),
    ("missing", (), "pipeline.toml:5: stage 'second': there is no model 'tripled'"),
    ("twice", ("--batch-sizes", "2,4"), "--batch-sizes: must contain 1"),
    ("twice", ("--batch-sizes", "1,65"), "65"),
    ("nowhere", (), "nowhere/pipeline.toml"),
])
def test_what_is_wrong_is_named(repository, pipeline, arguments, complaint):
    result = profile(repository, pipeline, *arguments)
    assert result.returncode != 0
    assert complaint in result.stdout + result.stderr
