"""`foliot init` writes a model.toml that compiles as it is; errors of dimensions say what to write."""

import subprocess
import tomllib

import numpy as np
import onnx
import pytest
from foliot_tools import onnx_models
from foliot_tools.server import foliot_binary
from onnx import TensorProto, helper


def foliot(*arguments):
    return subprocess.run([foliot_binary(), *map(str, arguments)], capture_output=True, text=True, check=False)


def save(path, nodes, inputs, outputs, **initializers):
    path.parent.mkdir(parents=True, exist_ok=True)
    values = {name: np.asarray(value) for name, value in initializers.items()}
    return onnx_models.save(path, nodes, {name: (TensorProto.FLOAT, shape) for name, shape in inputs.items()},
                            {name: (TensorProto.FLOAT, shape) for name, shape in outputs.items()}, values)


def relu(path, *shape):
    return save(path, [helper.make_node("Relu", ["x"], ["y"])], {"x": shape}, {"y": shape})


def added(path, a, b, y):
    return save(path, [helper.make_node("Add", ["a", "b"], ["y"])], {"a": a, "b": b}, {"y": y})


def pairs(path):
    """Each row of a with each of b: their first dimensions are no batch."""
    return save(path, [helper.make_node("Transpose", ["b"], ["t"]), helper.make_node("MatMul", ["a", "t"], ["y"])],
                {"a": ("m", 3), "b": ("n", 3)}, {"y": ("m", "n")})


def points(path):
    """The largest of a set: its first dimension is no batch."""
    return save(path, [helper.make_node("ReduceMax", ["x"], ["y"], axes=[0])], {"x": ("n", 3)}, {"y": (1, 3)})


def temperature(path):
    """A scalar beside rows."""
    return save(path, [helper.make_node("Div", ["x", "t"], ["y"])], {"x": ("n", 3), "t": ()}, {"y": ("n", 3)})


def image(path):
    """Takes three channels only."""
    return save(path, [helper.make_node("Conv", ["x", "w"], ["y"])], {"x": ("N", "C", "?", "?")},
                {"y": ("N", 2, "?", "?")}, w=np.ones((2, 3, 3, 3), np.float32))


MODELS = {
    "fixed": lambda path: relu(path, 1, 3),
    "batch": lambda path: relu(path, "batch", 3),
    "sequence": lambda path: relu(path, "batch", "sequence", 4),
    "odd names": lambda path: relu(path, "batch", 'a "name"\\', "", "?"),
    "two names": lambda path: added(path, ("s10", 3), ("s86", 3), ("s10", 3)),
    "no batch": lambda path: added(path, (2, 3), (1, 3), (2, 3)),
    "pairs": pairs,
    "image": image,
    "set": points,
    "temperature": temperature,
}


@pytest.mark.parametrize("name", MODELS)
def test_what_it_writes_compiles(name, tmp_path):
    model = tmp_path / "m" / "model.onnx"
    MODELS[name](model)
    made = foliot("init", model)
    assert made.returncode == 0, made.stderr
    written = (tmp_path / "m" / "model.toml").read_text()
    assert made.stdout.strip().endswith("model.toml")
    settings = tomllib.loads(written)
    compiled = foliot("compile", model)
    assert compiled.returncode == 0, written + compiled.stderr
    for tensor in onnx.load(model).graph.input:
        assert f"#   {tensor.name}  FP32  [" in written
    if name == "two names":
        assert settings["batch_dimension"] == ["s10", "s86"]
    if name == "no batch":
        assert "one by one: the inputs' first dimensions differ" in written
        assert "compiled without batching" in compiled.stderr
    if name in ("set", "temperature"):
        assert "batch_sizes" not in settings and "one by one" in written and "exactly" in written
        assert name == "set" or settings["buckets"] == {"n": [1, 2, 4, 8, 16]}
    if name == "pairs":
        assert set(settings["buckets"]) == {"m", "n"} and "batch_sizes" not in settings


def test_prints_and_never_overwrites(tmp_path):
    model = tmp_path / "m" / "1" / "model.onnx"
    relu(model, "batch", "sequence")
    printed = foliot("init", model, "--print")
    settings = tmp_path / "m" / "model.toml"
    assert printed.returncode == 0 and not settings.exists()
    settings.write_text("# mine\n")
    refused = foliot("init", model)
    assert refused.returncode == 1 and "--force" in refused.stderr and str(settings) in refused.stderr
    assert settings.read_text() == "# mine\n"
    assert foliot("init", model, "--force").returncode == 0
    assert settings.read_text() == printed.stdout
    assert foliot("compile", model).returncode == 0, "a model.toml beside the version applies"


def test_says_what_cannot_be_compiled(tmp_path):
    model = tmp_path / "model.onnx"
    save(model, [helper.make_node("Reshape", ["x", "shape"], ["y"])], {"x": ("batch", "odd")}, {"y": ("batch", 11)},
         shape=np.array([-1, 11]))
    made = foliot("init", model)
    assert made.returncode == 1 and "does not compile" in made.stderr
    assert "It does not compile" in (tmp_path / "model.toml").read_text()
    assert foliot("init", tmp_path / "none.onnx").returncode == 1


def test_the_line_in_the_error_can_be_pasted(tmp_path):
    model = tmp_path / "model.onnx"
    save(model, [helper.make_node("Add", ["a", "b"], ["y"])], {"a": ("batch", "sequence length"), "b": ("batch", "?")},
         {"y": ("batch", "sequence length")})
    refused = foliot("compile", model)
    assert refused.returncode == 1
    assert "'sequence length' (dimension 1 of input 'a'), 'b_1' (dimension 1 of input 'b')" in refused.stderr
    line = refused.stderr[refused.stderr.index("buckets = "):]
    (tmp_path / "model.toml").write_text(line)
    assert foliot("compile", model).returncode == 0


def test_dimensions_that_the_model_lacks(tmp_path):
    model = tmp_path / "model.onnx"
    relu(model, "batch", "sequence")
    (tmp_path / "model.toml").write_text("[buckets]\nsequnce = [8]\n")
    refused = foliot("compile", model)
    for said in ("model.toml", "'sequnce'", "'sequence'", str(model)):
        assert said in refused.stderr, said
    (tmp_path / "model.toml").write_text("batch_dimension = 'n'\n[buckets]\nsequence = [8]\n")
    refused = foliot("compile", model)
    for said in ("model.toml", "'n'", "'batch' of 'x'"):
        assert said in refused.stderr, said
