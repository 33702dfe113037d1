"""What a container's model takes and gives. Shapes are those of one row. Rows of numbers without variable dimensions have
one size; others have a bound (foliot.rows).

Imports no numpy, so that a missing numpy can be reported as an error like any other.
"""

import dataclasses
import json
import math

PROTOCOL = 1
DESCRIPTION_BYTES_MAX = 64 * 1024
ERROR_BYTES_MAX = 4096
ROW_ERROR_BYTES_MAX = 512
TENSORS_MAX = 64
NAME_BYTES_MAX = 255

# Foliot's name -> numpy's. There is no BF16: numpy has none.
DATATYPES = {
    "BOOL": "bool",
    "UINT8": "uint8", "UINT16": "uint16", "UINT32": "uint32", "UINT64": "uint64",
    "INT8": "int8", "INT16": "int16", "INT32": "int32", "INT64": "int64",
    "FP16": "float16", "FP32": "float32", "FP64": "float64",
}
SIZES = {"BOOL": 1, "UINT8": 1, "UINT16": 2, "UINT32": 4, "UINT64": 8, "INT8": 1, "INT16": 2, "INT32": 4, "INT64": 8,
         "FP16": 2, "FP32": 4, "FP64": 8}
STRINGS = "BYTES"
STRING_BYTES = 4096  # of all strings of a row together, where model.py does not say
ROW_BYTES_MAX = 64 << 20
EXTENT_BYTES = 8  # of a variable dimension, in a row's memory
LENGTH_BYTES = 4  # of a string, likewise
NUMPY_NAMES = {numpy_name: name for name, numpy_name in DATATYPES.items()}


class ModelError(Exception):
    """Why a container cannot be served, in one clear sentence."""


@dataclasses.dataclass(frozen=True)
class UpTo:
    extent: int


def up_to(extent):
    """A dimension of a declared shape that varies from row to row: 0 to `extent`."""
    if not is_integer(extent) or extent < 0:
        raise ModelError(f"up_to({extent!r}): it must be a whole number, from 0 on")
    return UpTo(int(extent))


@dataclasses.dataclass(frozen=True)
class Tensor:
    """An input or output: `shape` is that of one row, with -1 for a dimension that varies."""

    name: str
    datatype: str
    shape: tuple
    shape_max: tuple = ()  # `shape` with the largest extents, of a tensor that varies
    string_bytes: int = 0  # of all strings of a row together, at most
    columns: tuple = ()  # of an input of one dimension: the names of its numbers
    example: tuple = ()  # of an input: the elements of a row that the model can compute; empty: zeros and empty strings

    @property
    def bounded(self):
        """Whether its rows vary in size."""
        return self.datatype == STRINGS or -1 in self.shape

    @property
    def row_elements(self):
        return math.prod(self.shape_max if self.bounded else self.shape)

    @property
    def row_bytes(self):
        """Of the memory of one row."""
        if not self.bounded:
            return self.row_elements * SIZES[self.datatype]
        element = LENGTH_BYTES if self.datatype == STRINGS else SIZES[self.datatype]
        used = EXTENT_BYTES * self.shape.count(-1) + self.row_elements * element + self.string_bytes
        return -(-used // EXTENT_BYTES) * EXTENT_BYTES

    def __str__(self):
        """Data type and shape, as model.py declares them."""
        extents = [str(extent) if extent >= 0 else f"up to {most}"
                   for extent, most in zip(self.shape, self.shape_max if self.bounded else self.shape)]
        limit = f", up to {self.string_bytes} bytes" if self.datatype == STRINGS else ""
        return f"{self.datatype} [{', '.join(extents)}]{limit}"


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
    return [tensor_to_json(tensor) for tensor in tensors]


def tensor_to_json(tensor):
    content = {"name": tensor.name, "datatype": tensor.datatype, "shape": list(tensor.shape)}
    if -1 in tensor.shape:
        content["shape_max"] = list(tensor.shape_max)
    if tensor.datatype == STRINGS:
        content["string_bytes_max"] = tensor.string_bytes
    for key in ("columns", "example"):
        if getattr(tensor, key):
            content[key] = getattr(tensor, key)
    return content


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
    strings = isinstance(declaration, tuple | list) and declaration[:1] in ((STRINGS,), [STRINGS])
    if not isinstance(declaration, tuple | list) or len(declaration) not in ((2, 3) if strings else (2,)):
        form = ('("BYTES", shape of one row), or ("BYTES", shape, bytes of all strings in a row at most)' if strings else
                '(data type, shape of one row), such as ("FP32", [784])')
        raise ModelError(f"{what} {name!r} is {declaration!r}: it must be {form}")
    datatype, shape = declaration[:2]
    if not isinstance(datatype, str) or datatype not in (*DATATYPES, STRINGS):
        raise ModelError(f"{what} {name!r} has the data type {datatype!r}: containers have {', '.join(DATATYPES)}, {STRINGS}")
    if not isinstance(shape, tuple | list):
        raise ModelError(f"{what} {name!r} has the shape {shape!r}: it must be a list, such as [784], or [] for one number")
    for extent in shape:
        if not isinstance(extent, UpTo) and (not is_integer(extent) or extent < 0):
            raise ModelError(f"{what} {name!r} has the shape {list(shape)!r}: it must be that of one row, in whole numbers "
                             "from 0 on, or foliot.up_to(N) for one that varies, without the batch dimension")
    extents = tuple(-1 if isinstance(extent, UpTo) else int(extent) for extent in shape)
    if not strings and -1 not in extents:
        return Tensor(name, datatype, extents)
    tensor = Tensor(name, datatype, extents,
                    tuple(extent.extent if isinstance(extent, UpTo) else int(extent) for extent in shape),
                    string_bytes_of(what, name, declaration) if strings else 0)
    if tensor.row_bytes > ROW_BYTES_MAX:
        raise ModelError(f"{what} {name!r} takes {tensor.row_bytes} bytes in a row, limit {ROW_BYTES_MAX}: declare less")
    return tensor


def string_bytes_of(what, name, declaration):
    most = declaration[2] if len(declaration) == 3 else STRING_BYTES
    if is_integer(most) and 0 <= most <= ROW_BYTES_MAX:
        return int(most)
    raise ModelError(f"{what} {name!r} has strings of up to {most!r} bytes in a row: it must be a whole number from 0 to "
                     f"{ROW_BYTES_MAX}")


def is_integer(value):
    return hasattr(value, "__index__") and not isinstance(value, bool)


def error_message(text):
    """Message 'E', cut between characters."""
    return b"E" + text.encode("utf-8", "replace")[:ERROR_BYTES_MAX - 1].decode("utf-8", "ignore").encode()


def failed_rows_message(failed, rows):
    """Message 'F' of {row: why}: a bit for each row of the call, set if it failed, the first of a byte the lowest; then of
    each that failed, in their order, the length of its text as u16, and the text."""
    bits, texts = bytearray((rows + 7) // 8), b""
    for row, why in sorted(failed.items()):
        bits[row // 8] |= 1 << row % 8
        text = error_message(why)[1:1 + ROW_ERROR_BYTES_MAX].decode("utf-8", "ignore").encode()
        texts += len(text).to_bytes(2, "little") + text
    return b"F" + bits + texts
