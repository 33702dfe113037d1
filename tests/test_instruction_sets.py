"""One folder of compiled models and several processors: oneDNN lays weights out for the
instruction set that it finds, so what was compiled for another is compiled anew, and
not misread. ONEDNN_MAX_CPU_ISA makes the lesser processors."""

import os
import subprocess

import numpy as np
import pytest
import tritonclient.http as triton
from foliot_tools import model_check, processor
from foliot_tools.server import foliot_binary
from foliot_tools.waiting import eventually

from tools import models
from tools.models import quantized

SETS = processor.supported()
NETWORK = {"resolution": 32, "width": 0.25}
# Of a quantised network in steps of its last scale, as in test_precisions.py.
STEPS_MAX = 8


def foliot(instruction_set, *arguments):
    environment = {**os.environ, "ONEDNN_MAX_CPU_ISA": instruction_set}
    return subprocess.run([foliot_binary(), *map(str, arguments)], env=environment, capture_output=True, text=True)


def compiled(instruction_set, model, package):
    done = foliot(instruction_set, "compile", model, "--output", package, "--batch-sizes", 2, "--threads", 1,
                  "--profile-runs", 1)
    assert done.returncode == 0, done.stderr
    return done.stderr


def run(instruction_set, package, inputs, folder):
    folder.mkdir(exist_ok=True)
    flags = []
    for name, array in inputs.items():
        np.save(folder / f"{name}.npy", array)
        flags += ["--input", f"{name}={folder / name}.npy"]
    done = foliot(instruction_set, "run", package, "--batch", 2, "--threads", 1, "--output", folder / "answers", *flags)
    if done.returncode != 0:
        return done.stderr
    (answer,) = [np.load(path) for path in (folder / "answers").iterdir()]
    return answer


@pytest.fixture(scope="module")
def network():
    return models.build("resnet50_v1b", **NETWORK)


@pytest.fixture(scope="module")
def inputs(network):
    return network.examples(2, np.random.default_rng(5), **model_check.buckets(network)[0])


@pytest.fixture(scope="module")
def quantized_model(network, tmp_path_factory):
    return quantized.quantize(network, tmp_path_factory.mktemp("quantized") / "small/model.onnx")


def steps_apart(model, inputs, answer):
    """From onnxruntime's answer, in steps of the last scale."""
    session = model_check.open_session(model, optimized=processor.has(SETS[-1], "UINT8"))
    (expected,) = session.run(None, inputs)
    return np.abs(answer - expected).max() / quantized.last_scale(model)


def test_a_float32_model_gives_the_same_with_every_instruction_set(network, inputs, tmp_path):
    model = models.write(network, tmp_path / "model.onnx")
    answers = {}
    for name in SETS:
        compiled(name, model, tmp_path / f"{name}.foliot")
        answers[name] = run(name, tmp_path / f"{name}.foliot", inputs, tmp_path / name)
    for answer in answers.values():
        assert model_check.relative_error(answer, answers[SETS[-1]]) <= model_check.RELATIVE_ERROR_MAX


def test_a_quantized_model_agrees_with_every_instruction_set(quantized_model, inputs, tmp_path):
    for name in SETS:
        said = compiled(name, quantized_model, tmp_path / f"{name}.foliot")
        assert ("AVX512_VNNI" in said) != processor.has(name, "UINT8"), said
        answer = run(name, tmp_path / f"{name}.foliot", inputs, tmp_path / name)
        assert steps_apart(quantized_model, inputs, answer) <= STEPS_MAX, name


@pytest.mark.skipif(len(SETS) < 2, reason=f"this processor has only {SETS}")
def test_a_package_of_another_instruction_set_is_refused(quantized_model, inputs, tmp_path):
    compiled(SETS[0], quantized_model, tmp_path / "model.foliot")
    said = run(SETS[-1], tmp_path / "model.foliot", inputs, tmp_path)
    assert SETS[0].lower() in said and "compile the model anew" in said, said


@pytest.mark.skipif(len(SETS) < 2, reason=f"this processor has only {SETS}")
def test_a_server_compiles_anew_for_another_instruction_set(serve, quantized_model, inputs, tmp_path, monkeypatch):
    cache = tmp_path / "cache"
    pixels = triton.InferInput("input", inputs["input"].shape, "FP32").set_data_from_numpy(inputs["input"])
    for count, name in enumerate([SETS[0], SETS[-1], SETS[0]], start=1):
        monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", name)
        server = serve(quantized_model.parent.parent, cache=cache, page_size="256KiB", page_cache="16MiB")
        with triton.InferenceServerClient(server.http) as client:
            answer = client.infer("small", [pixels]).as_numpy("output")
        assert steps_apart(quantized_model, inputs, answer) <= STEPS_MAX, name
        # The whole model is compiled behind its first batch size.
        eventually(lambda: len(list(cache.glob("*.foliot"))) == min(count, 2),
                   otherwise="there is not one package for each instruction set, kept")
        if not processor.has(name, "UINT8"):
            eventually(lambda: "AVX512_VNNI" in server.output(), otherwise=server.output)
        server.stop()
        assert ("AVX512_VNNI" in server.output()) != processor.has(name, "UINT8"), server.output()
