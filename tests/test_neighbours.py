"""The same input at the same place of a batch of the same size gives the same bits,
whatever its neighbours are and whatever ran before: other rows, NaN, infinities,
numbers that overflow. So an answer reveals nothing of other requests,
and rows of a batch that is not full may hold anything."""

import re

import numpy as np
import pytest
from foliot_tools.model_check import Failed, compile_model, foliot, models

BATCH_SIZES = (1, 2, 4, 8, 16)
SMALL = {
    "resnet18_v1b": {"resolution": 64},
    "resnext50_32x4d": {"resolution": 64},
    "se_resnet18": {"resolution": 64},
    "densenet121": {"resolution": 64},
    "mobilenet_v2": {"resolution": 64},
    "efficientnet_b0": {"resolution": 64},
    "unet": {"resolution": 64, "channels": 16},
    "yolo_small": {"resolution": 64, "width": 0.25},
    "vit_b16": {"resolution": 64, "layers": 2, "hidden": 192, "heads": 3},
    "bert_base": {"layers": 2, "hidden": 128, "heads": 4, "vocabulary": 1000, "sequence": [8, 16]},
    "lstm_classifier": {"sequence": 16, "hidden": 32},
    "dlrm": {"entries": 1000},
    "m5": {"samples": 4000},
}
GARBAGE = (np.nan, np.inf, -np.inf, 3e38)


def spoilt(rows, first):
    """Every other row, from `first` on, replaced: reals by garbage, the rest by other rows."""
    result = rows.copy()
    for i in range(first, len(rows), 2):
        result[i] = GARBAGE[i // 2 % len(GARBAGE)] if rows.dtype.kind == "f" else rows[(i + 1) % len(rows)]
    return result


@pytest.mark.parametrize("name", SMALL)
def test_neighbours_change_nothing(name, tmp_path):
    network = models.build(name, **SMALL[name])
    package = tmp_path / "model.foliot"
    compile_model(models.write(network, tmp_path / "model.onnx"), package, BATCH_SIZES, threads=1)
    dimensions = {dimension: values[-1] for dimension, values in network.buckets.items()}
    for size in BATCH_SIZES:
        flags = []
        for input_name, rows in network.examples(size, np.random.default_rng(size), **dimensions).items():
            # Four batches: as it is, odd rows spoilt, even rows spoilt, as it is.
            np.save(tmp_path / f"{input_name}.npy", np.concatenate([rows, spoilt(rows, 1), spoilt(rows, 0), rows]))
            flags += ["--input", f"{input_name}={tmp_path / input_name}.npy"]
        try:
            foliot("run", package, "--batch", size, *flags, "--output", tmp_path / "answers")
        except Failed as refusal:  # of spoilt rows
            refused = [int(row) for row in re.search(r"are zeros: ([\d, ]+)\.", str(refusal))[1].split(", ")]
            assert all((row // size, row % size % 2) in ((1, 1), (2, 0)) for row in refused), refusal
        for path in (tmp_path / "answers").iterdir():
            answers = np.load(path)
            bits = answers.reshape(4, size, -1).view(np.uint8)
            assert np.isfinite(answers[:size].astype(np.float64)).all(), f"{path.stem}, batch size {size}"
            assert np.array_equal(bits[0], bits[3]), f"{path.stem} depends on what ran before, batch size {size}"
            assert np.array_equal(bits[0, 0::2], bits[1, 0::2]), f"{path.stem} depends on neighbours, batch size {size}"
            assert np.array_equal(bits[0, 1::2], bits[2, 1::2]), f"{path.stem} depends on neighbours, batch size {size}"
