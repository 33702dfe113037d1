"""What a container's model takes and gives. Shapes are those of one row; all data types have one size.

Imports no numpy, so that a missing numpy can be reported as an error like any other.
"""

import dataclasses
import json
import math

PROTOCOL = 1
DESCRIPTION_BYTES_MAX = 64 * 1024
ERROR_BYTES_MAX = 4096
TENSORS_MAX = 64
NAME_BYTES_MAX = 255

# Foliot's name -> numpy's. There is no BF16: numpy has none.
DATATYPES = {
    "BOOL": "bool",
    "UINT8": "uint8", "UINT16": "uint16", "UINT32": "uint32", "UINT64": "uint64",
    "INT8": "int8", "INT16": "int16", "INT32": "int32", "INT64": "int64",
    "FP16": "float16", "FP32": "float32", "FP64": "float64",
}
NUMPY_NAMES = {numpy_name: name for name, numpy_name in DATATYPES.items()}


class ModelError(Exception):
    """Why a container cannot be served, in one clear sentence."""


@dataclasses.dataclass(frozen=True)
class Tensor:
    """An input or output: `shape` is that of one row."""

    name: str
    datatype: str
    shape: tuple

    @property
    def row_elements(self):
        return math.prod(self.shape)


@dataclasses.dataclass(frozen=True)
class Description:
    inputs: tuple
    outputs: tuple
    batch_size_max: int | None = None

    def to_json(self):
        """The content of message 'D'."""
        content = {"protocol": PROTOCOL, "inputs": tensors_to_json(self.inputs), "outputs": tensors_to_json(self.outputs)}
        if self.batch_size_max is not None:
            content["batch_size_max"] = self.batch_size_max
        message = json.dumps(content).encode()
        if len(message) > DESCRIPTION_BYTES_MAX:
            raise ModelError(f"the description of inputs and outputs has {len(message)} bytes, limit {DESCRIPTION_BYTES_MAX}: "
                             "declare fewer, or shorter names")
        return message


def tensors_to_json(tensors):
    return [{"name": tensor.name, "datatype": tensor.datatype, "shape": list(tensor.shape)} for tensor in tensors]


def make_description(inputs, outputs, batch_size_max=None):
    """Of what model.py declares: {name: (data type, shape of one row)}. Raises ModelError."""
    if batch_size_max is not None and (not is_integer(batch_size_max) or batch_size_max < 1):
        raise ModelError(f"batch_size_max is {batch_size_max!r}: it must be a whole number, at least 1")
    return Description(make_tensors("inputs", inputs), make_tensors("outputs", outputs),
                       None if batch_size_max is None else int(batch_size_max))


def make_tensors(what, declared):
    if not isinstance(declared, dict):
        raise ModelError(f'{what} are {declared!r}: they must be a dict such as {{"x": ("FP32", [784])}}')
    if not 1 <= len(declared) <= TENSORS_MAX:
        raise ModelError(f"there are {len(declared)} {what}: 1 to {TENSORS_MAX} can be declared")
    return tuple(make_tensor(what[:-1], name, declaration) for name, declaration in declared.items())


def make_tensor(what, name, declaration):
    if not isinstance(name, str) or not 1 <= len(name.encode("utf-8", "replace")) <= NAME_BYTES_MAX:
        raise ModelError(f"an {what} has the name {name!r}: it must be text of 1 to {NAME_BYTES_MAX} bytes")
    if not isinstance(declaration, tuple | list) or len(declaration) != 2:
        raise ModelError(f'{what} {name!r} is {declaration!r}: it must be (data type, shape of one row), such as ("FP32", [784])')
    datatype, shape = declaration
    if not isinstance(datatype, str) or datatype not in DATATYPES:
        raise ModelError(f"{what} {name!r} has the data type {datatype!r}: containers have {', '.join(DATATYPES)}")
    if not isinstance(shape, tuple | list):
        raise ModelError(f"{what} {name!r} has the shape {shape!r}: it must be a list, such as [784], or [] for one number")
    for extent in shape:
        if not is_integer(extent) or extent < 0:
            raise ModelError(f"{what} {name!r} has the shape {list(shape)!r}: it must be that of one row, "
                             "in whole numbers from 0 on, without the batch dimension")
    return Tensor(name, datatype, tuple(int(extent) for extent in shape))


def is_integer(value):
    return hasattr(value, "__index__") and not isinstance(value, bool)


def error_message(text):
    """Message 'E', cut between characters."""
    return b"E" + text.encode("utf-8", "replace")[:ERROR_BYTES_MAX - 1].decode("utf-8", "ignore").encode()


def failed_rows_message(text, failed, rows):
    """Message 'F': a bit for each row of the call, set if it failed, the first of a byte the lowest; then text as in 'E'."""
    bits = bytearray((rows + 7) // 8)
    for row in failed:
        bits[row // 8] |= 1 << row % 8
    return b"F" + bits + error_message(text)[1:]
