"""`foliot run`: answers in files, and complaints that name what is wrong."""

import subprocess

import numpy as np
import onnxruntime
import pytest
from foliot_tools import onnx_models
from foliot_tools.server import foliot_binary


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return onnx_models.random_dense_network(tmp_path_factory.mktemp("run") / "model.onnx", (4, 8, 3))


def run(model, *arguments):
    return subprocess.run([foliot_binary(), "run", model, *map(str, arguments)], capture_output=True, text=True,
                          check=False)


def test_runs_rows_in_batches(model, tmp_path):
    pixels = np.random.default_rng(1).standard_normal((6, 4), np.float32)
    np.save(tmp_path / "pixels.npy", pixels)
    result = run(model, "--input", f"pixels={tmp_path}/pixels.npy", "--output", tmp_path / "out", "--check-ranges")
    assert result.returncode == 0, result.stderr
    assert "in batches of 2" in result.stdout
    (expected,) = onnxruntime.InferenceSession(model).run(None, {"pixels": pixels})
    np.testing.assert_allclose(np.load(tmp_path / "out/probabilities.npy"), expected, rtol=1e-5)


def header(text):
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


@pytest.mark.parametrize("content, complaint", [
    (b"", "is no .npy file"),
    (b"\x93NUMPY\x01\x00\xff\xff{", "ends within its header"),
    (header("{}"), "element type"),
    (header("{'descr': '<f4', 'shape': (99999999999, 99999999999), }"), "shape"),
    (header("{'descr': '<f4', 'fortran_order': True, 'shape': (1, 4), }"), "Fortran"),
    (header("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 4), }"), "holds 0 bytes"),
    (header("{'descr': '<f8', 'fortran_order': False, 'shape': (0, 4), }"), "must be FP32"),
])
def test_names_a_damaged_array(model, tmp_path, content, complaint):
    array = tmp_path / "broken.npy"
    array.write_bytes(content)
    result = run(model, "--input", f"pixels={array}")
    assert result.returncode == 1
    assert complaint in result.stderr


@pytest.mark.parametrize("shape, arguments, complaint", [
    ((3, 5), [], "no compiled shape fits"),
    ((0, 4), [], "no rows"),
    ((3, 4), ["--batch", "2"], "3 rows cannot run in batches of 2"),
    ((3, 4), ["--input", "other={}"], "no input 'other'"),
])
def test_names_what_does_not_fit(model, tmp_path, shape, arguments, complaint):
    np.save(tmp_path / "array.npy", np.zeros(shape, np.float32))
    result = run(model, "--input", f"pixels={tmp_path}/array.npy",
                 *(argument.format(tmp_path / "array.npy") for argument in arguments))
    assert result.returncode == 1
    assert complaint in result.stderr


def test_says_which_input_is_missing(model):
    assert "--input pixels=FILE.npy is missing" in run(model).stderr
