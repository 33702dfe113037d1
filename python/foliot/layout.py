"""Where the tensors of a call lie in shared memory: tensor k + 1 begins where tensor k ends, rounded up to 64 bytes; each is
rows x shape, dense."""

import numpy as np

from foliot.description import DATATYPES

ALIGNMENT = 64


def dtype_of(tensor):
    return np.dtype(DATATYPES[tensor.datatype])


def row_bytes(tensor):
    return tensor.row_elements * dtype_of(tensor).itemsize


def offsets_of(tensors, rows):
    """([offset of each tensor], end of the last), from the beginning of the call's block."""
    offsets, end = [], 0
    for tensor in tensors:
        begin = -(-end // ALIGNMENT) * ALIGNMENT
        offsets.append(begin)
        end = begin + rows * row_bytes(tensor)
    return offsets, end


def views(tensors, memory, rows, offset, *, writeable):
    """{name: array [rows, ...] over `memory`}. The block must lie within it."""
    result = {}
    for tensor, begin in zip(tensors, offsets_of(tensors, rows)[0]):
        view = np.ndarray((rows, *tensor.shape), dtype_of(tensor), memory, offset + begin)
        view.flags.writeable = writeable
        result[tensor.name] = view
    return result
