"""Networks as onnxruntime's quantizer writes them, calibrated on seeded random examples: int8
between QuantizeLinear and DequantizeLinear (QDQ), or operators on codes (QOperator)."""

import logging
import pathlib
import tempfile

import numpy as np
import onnx
import onnx.numpy_helper

from .network import Network

TYPES = ("uint8", "int8")


class Examples:
    """What the quantizer calibrates on."""

    def __init__(self, network, count, seed=11):
        random = np.random.default_rng(seed)
        dimensions = {name: values[0] for name, values in network.buckets.items()}
        self.rest = iter([network.examples(1, random, **dimensions) for _ in range(count)])

    def get_next(self):
        return next(self.rest, None)


def quantize(network: Network, path: pathlib.Path, activations="uint8", per_channel=True, examples=4,
             form="QDQ"):
    """Writes the network, quantised, to path. Weights are int8."""
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    if activations not in TYPES:
        raise ValueError(f"activations are one of {', '.join(TYPES)}, not '{activations}'")

    class Reader(Examples, CalibrationDataReader):
        pass

    path.parent.mkdir(parents=True, exist_ok=True)
    logging.getLogger().setLevel(logging.ERROR)  # the quantizer's advice is not for these
    with tempfile.TemporaryDirectory(prefix="foliot-quantize-") as folder:
        real, folded = pathlib.Path(folder) / "real.onnx", pathlib.Path(folder) / "folded.onnx"
        onnx.save(network.model(), real)
        # Folds BatchNormalization, which the quantizer leaves as it is.
        quant_pre_process(real, folded, skip_symbolic_shape=True)
        quantize_static(folded, path, Reader(network, examples), quant_format=QuantFormat[form], per_channel=per_channel,
                        activation_type=QuantType.QUInt8 if activations == "uint8" else QuantType.QInt8,
                        weight_type=QuantType.QInt8)
    if network.settings():
        (path.parent / "model.toml").write_text(network.settings())
    return path


def last_scale(path):
    """Of the DequantizeLinear that makes the answer of a quantised network."""
    graph = onnx.load(path).graph
    constants = {constant.name: constant for constant in graph.initializer}
    makers = {output: node for node in graph.node for output in node.output}
    node = makers[graph.output[0].name]
    while node.op_type != "DequantizeLinear":
        node = makers[node.input[0]]
    return float(onnx.numpy_helper.to_array(constants[node.input[1]]))
