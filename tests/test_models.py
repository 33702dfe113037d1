"""A network of each kind of tools/models, made small: compiled, run at several batch
sizes and in parts, and compared with onnxruntime. `make zoo` does all, full size."""

import pytest
from foliot_tools.model_check import check_model

SMALL = {
    "resnet18_v2": {"resolution": 64, "width": 0.25},
    "resnext50_32x4d": {"resolution": 64},
    "resnest14": {"resolution": 64},
    "densenet121": {"resolution": 64},
    "googlenet": {"resolution": 64},
    "dla34": {"resolution": 64},
    "mobilenet_v2": {"resolution": 64, "opset": 8},
    "mobilenet_v3_small": {"resolution": 64},
    "mobilenet_v3_large": {"resolution": 64},
    "efficientnet_b0": {"resolution": 64},
    "simple_pose_resnet18": {"height": 64, "width": 64},
    "unet": {"resolution": 64, "channels": 16},
    "yolo_small": {"resolution": 64, "width": 0.25},
    "yolo8_nano": {"resolution": 64},
    "text_detection": {"resolution": 64},
    "vit_b16": {"resolution": 64, "layers": 2, "hidden": 192, "heads": 3},
    "bert_base": {"layers": 2, "hidden": 128, "heads": 4, "vocabulary": 1000, "sequence": [8, 16]},
    "minilm": {"layers": 2, "hidden": 128, "heads": 4, "vocabulary": 1000, "sequence": [8, 16]},
    "lstm_classifier": {"sequence": 16, "hidden": 32},
    "gru_classifier": {"sequence": 16, "hidden": 32},
    "dlrm": {"entries": 1000},
    "m5": {"samples": 4000},
    "wavenet": {"samples": 1000},
    "quartznet": {"frames": 50},
    "whisper_tiny_encoder": {"frames": 100, "layers": 2},
    "smart_turn": {"frames": 100, "layers": 2},
    "mlp": {},
}


@pytest.mark.parametrize("name", SMALL)
def test_model(name, tmp_path):
    check = check_model(name, tmp_path / name, batch_sizes=(1, 2), **SMALL[name])
    assert not check.failure
