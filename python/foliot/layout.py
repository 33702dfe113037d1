"""Where the tensors of a call lie in shared memory: tensor k + 1 begins where tensor k ends, rounded up to 64 bytes; each is
rows x shape, dense, or one row of foliot.rows after another."""

import numpy as np

from foliot.description import STRINGS
from foliot.rows import Rows, dtype_of

ALIGNMENT = 64


def offsets_of(tensors, rows):
    """([offset of each tensor], end of the last), from the beginning of the call's block."""
    offsets, end = [], 0
    for tensor in tensors:
        begin = -(-end // ALIGNMENT) * ALIGNMENT
        offsets.append(begin)
        end = begin + rows * tensor.row_bytes
    return offsets, end


def views(tensors, memory, rows, offset, *, writeable):
    """{name: array [rows, ...], or Rows, over `memory`}. The block must lie within it."""
    result = {}
    for tensor, begin in zip(tensors, offsets_of(tensors, rows)[0]):
        if tensor.bounded:
            result[tensor.name] = Rows(tensor, memory, rows, offset + begin)
            continue
        view = np.ndarray((rows, *tensor.shape), dtype_of(tensor), memory, offset + begin)
        view.flags.writeable = writeable
        result[tensor.name] = view
    return result


def examples(tensor, rows):
    """What predict gets of the tensor's example, or else of zeros and empty strings, of the largest extents."""
    if tensor.example:
        elements = [each.encode() for each in tensor.example] if tensor.datatype == STRINGS else tensor.example
        return np.array([elements] * rows, dtype_of(tensor)).reshape(rows, *tensor.shape)
    if not tensor.bounded:
        return np.zeros((rows, *tensor.shape), dtype_of(tensor))
    view = Rows(tensor, bytearray(rows * tensor.row_bytes), rows, 0)
    view.write_zeros()
    return view.read()
