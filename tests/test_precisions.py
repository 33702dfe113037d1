"""Models in less than float32: quantised ones beside onnxruntime, which runs the very
same file, and bfloat16 beside float32. What a quantised model answers is a number of
steps of its last scale, so that is what differences are counted in. Where the processor
has no kernels for a type, the same models compute in float32, with a note."""

import json

import numpy as np
import pytest
from foliot_tools import model_check, processor
from foliot_tools.model_check import foliot, open_session

from tools import models
from tools.models import quantized

NETWORKS = {
    "mlp": {},
    "resnet50_v1b": {"resolution": 64, "width": 0.25},
    "mobilenet_v2": {"resolution": 64},
    "densenet121": {"resolution": 64},
    "bert_base": {"layers": 2, "hidden": 128, "heads": 4, "vocabulary": 1000, "sequence": [16]},
}
# Rounding a tie the other way moves one step, which later layers spread. onnxruntime
# with its own optimisations and without differs from itself by up to 7 steps, 1.4 on
# average (MobileNetV2 with one scale for all weights of a layer).
STEPS_MAX = 8
STEPS_MEAN_MAX = 1.5
BFLOAT16_ERROR_MAX = 0.05


def compiled(model, *flags, batch_sizes="1,2"):
    report = model.with_suffix(".json")
    foliot("compile", model, "--batch-sizes", batch_sizes, "--threads", 1, "--profile-runs", 1, "--report-json", report,
           *flags)
    return model.with_suffix(".foliot"), json.loads(report.read_text())


def answers(package, folder, inputs, batch):
    flags = []
    for name, array in inputs.items():
        np.save(folder / f"{name}.npy", array)
        flags += ["--input", f"{name}={folder / name}.npy"]
    foliot("run", package, "--batch", batch, "--threads", 1, "--output", folder / "answers", "--check-ranges", *flags)
    return {path.stem: np.load(path) for path in (folder / "answers").iterdir()}


def products(report):
    """(type, name) of what multiplies constant weights."""
    return [(step["type"], step["name"]) for plan in report["plans"] for step in plan["operators"]
            if step["operator"] in ("Convolution", "MatMul")]


def expect_products(report, type_name):
    """In this type where the processor multiplies it, or in float32 with the reason."""
    kinds = {kind for kind, _ in products(report)}
    if processor.multiplies(type_name):
        assert type_name in kinds
        assert report["notes"] == []
        assert report["narrowing_error"] >= 0
    else:
        assert kinds == {"FP32"}
        (note,) = report["notes"]
        assert "in float32" in note and processor.FLAG[type_name] in note
        assert "narrowing_error" not in report


@pytest.mark.parametrize("per_channel", (True, False), ids=("per_channel", "per_tensor"))
@pytest.mark.parametrize("activations", quantized.TYPES)
@pytest.mark.parametrize("name", NETWORKS)
def test_quantized_model(name, activations, per_channel, tmp_path):
    network = models.build(name, **NETWORKS[name])
    model = quantized.quantize(network, tmp_path / "model.onnx", activations, per_channel)
    package, report = compiled(model)
    dimensions = model_check.buckets(network)[0]
    inputs = network.examples(2, np.random.default_rng(7), **dimensions)
    session = open_session(model, optimized=processor.multiplies("UINT8"))
    names = [output.name for output in session.get_outputs()]
    expected = dict(zip(names, session.run(names, inputs)))
    step = quantized.last_scale(model)
    for batch in (1, 2):
        for output, answer in answers(package, tmp_path, inputs, batch).items():
            steps = np.abs(answer - expected[output]) / step
            assert steps.max() <= STEPS_MAX
            assert steps.mean() <= STEPS_MEAN_MAX
    expect_products(report, "UINT8")


@pytest.mark.skipif(not processor.multiplies("UINT8"), reason=processor.reason_without("UINT8"))
def test_resnet_stays_in_integers(tmp_path):
    network = models.build("resnet50_v1b", resolution=64, width=0.25)
    model = quantized.quantize(network, tmp_path / "model.onnx")
    _, report = compiled(model)
    assert {kind for kind, _ in products(report)} == {"UINT8"}
    for plan in report["plans"]:
        kinds = [step["operator"] for step in plan["operators"]]
        assert kinds.count("Binary") == 0, "an addition of its own"
        assert not any(step["kernel"].startswith("ref") for step in plan["operators"])


@pytest.mark.parametrize("name", ("resnet50_v1b", "mobilenet_v2", "bert_base"))
def test_bfloat16(name, tmp_path):
    network = models.build(name, **NETWORKS[name])
    model = models.write(network, tmp_path / "model.onnx")
    package, report = compiled(model, "--precision", "bfloat16")
    expect_products(report, "BF16")
    # In float32 nothing is lost.
    error_max = BFLOAT16_ERROR_MAX if processor.multiplies("BF16") else model_check.RELATIVE_ERROR_MAX
    assert report.get("narrowing_error", 0) <= error_max
    assert {kind for kind, _ in products(report)} == {"BF16" if processor.multiplies("BF16") else "FP32"}
    dimensions = model_check.buckets(network)[0]
    inputs = network.examples(2, np.random.default_rng(7), **dimensions)
    session = open_session(model)
    for output, answer in answers(package, tmp_path, inputs, 2).items():
        (expected,) = session.run([output], inputs)
        assert model_check.relative_error(answer, expected) <= error_max
