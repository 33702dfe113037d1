"""Rows that vary in size: strings, or dimensions without an extent of their own (docs/CONTAINERS.md, The protocol).

A row lies in memory of one size: the extent of each variable dimension as u64, then its elements: numbers dense, strings
each as u32 length and bytes. The rest is not in use.
"""

import struct

import numpy as np

from foliot.description import DATATYPES, STRINGS

LENGTH = struct.Struct("<I")


class RowError(Exception):
    """A value that cannot be written, in one sentence that begins with what is wrong with it."""


def dtype_of(tensor):
    if tensor.datatype == STRINGS:
        return np.dtype(object)
    return np.dtype(DATATYPES[tensor.datatype])


class Rows:
    """The rows of one bounded tensor of a call, over shared memory."""

    def __init__(self, tensor, memory, rows, offset, *, first=0):
        self.tensor = tensor
        self._memory = memory
        self._begin = offset + first * tensor.row_bytes
        self._rows = rows
        self._variable = [axis for axis, extent in enumerate(tensor.shape) if extent < 0]
        self._extents = struct.Struct(f"<{len(self._variable)}Q")

    def __len__(self):
        return self._rows

    def __getitem__(self, part):
        start, stop, _ = part.indices(self._rows)
        return Rows(self.tensor, self._memory, stop - start, self._begin, first=start)

    def read(self):
        """What predict gets: a list of arrays, one for each row; of strings whose shape is fixed one array [rows, ...]."""
        strings = self.tensor.datatype == STRINGS
        rows = [self._read_strings(place) if strings else self._read_numbers(place) for place in self._places()]
        if not strings or self._variable:
            return rows
        array = np.empty((self._rows, *self.tensor.shape), object)
        for row, value in enumerate(rows):
            array[row] = value if self.tensor.shape else value.item()
        array.flags.writeable = False
        return array

    def write(self, value):
        """Of what predict returned for all rows. Raises RowError."""
        if self.tensor.datatype == STRINGS and not self._variable:
            rows = self._fixed_strings(value)
        else:
            rows = rows_of(value)
            if len(rows) != self._rows:
                raise RowError(f"has {len(rows)} rows: there are {self._rows}")
        write = self._write_strings if self.tensor.datatype == STRINGS else self._write_numbers
        for row, (place, row_value) in enumerate(zip(self._places(), rows)):
            write(place, row, row_value)

    def write_zeros(self):
        """Zeros and empty strings, of the largest extents."""
        for place in self._places():
            self._memory[place:place + self.tensor.row_bytes] = bytes(self.tensor.row_bytes)
            self._extents.pack_into(self._memory, place, *(self.tensor.shape_max[axis] for axis in self._variable))

    def _places(self):
        return range(self._begin, self._begin + self._rows * self.tensor.row_bytes, self.tensor.row_bytes)

    def _shape_at(self, place):
        shape = list(self.tensor.shape)
        for axis, extent in zip(self._variable, self._extents.unpack_from(self._memory, place)):
            shape[axis] = extent
        return shape

    def _read_numbers(self, place):
        array = np.ndarray(self._shape_at(place), dtype_of(self.tensor), self._memory, place + self._extents.size)
        array.flags.writeable = False
        return array

    def _read_strings(self, place):
        array = np.empty(self._shape_at(place), object)
        at, flat = place + self._extents.size, array.reshape(-1)
        for element in range(flat.size):
            begin = at + LENGTH.size
            at = begin + LENGTH.unpack_from(self._memory, at)[0]
            flat[element] = bytes(self._memory[begin:at])
        return array

    def _fixed_strings(self, value):
        array = value if isinstance(value, np.ndarray) else objects(value, 1 + len(self.tensor.shape))
        wanted = (self._rows, *self.tensor.shape)
        if array.shape != wanted:
            raise RowError(f"has the shape {list(array.shape)}: for {self._rows} rows it must be {list(wanted)}")
        return list(array) if self.tensor.shape else [one(element) for element in array.tolist()]

    def _check_shape(self, row, shape):
        wanted, most = self.tensor.shape, self.tensor.shape_max
        fits = len(shape) == len(wanted) and all(
            extent == fixed if fixed >= 0 else extent <= largest for extent, fixed, largest in zip(shape, wanted, most))
        if not fits:
            limits = ", ".join(str(fixed) if fixed >= 0 else f"0 to {largest}" for fixed, largest in zip(wanted, most))
            raise RowError(f"has the shape {list(shape)} in row {row}: it must be [{limits}]")

    def _write_extents(self, place, shape):
        self._extents.pack_into(self._memory, place, *(shape[axis] for axis in self._variable))

    def _write_numbers(self, place, row, value):
        try:
            value = np.asarray(value)
        except Exception as error:  # noqa: BLE001: of any library that has arrays
            raise RowError(f"has a value of type {type(value).__name__} in row {row}, not an array: "
                           f"{type(error).__name__}: {error}") from None
        self._check_shape(row, value.shape)
        target = np.ndarray(value.shape, dtype_of(self.tensor), self._memory, place + self._extents.size)
        try:
            np.copyto(target, value, "same_kind")
        except TypeError:
            raise RowError(f"has the data type {value.dtype} in row {row}, which is not cast to {target.dtype} by itself: "
                           f"declare another, or return it .astype(numpy.{target.dtype.name})") from None
        self._write_extents(place, value.shape)

    def _write_strings(self, place, row, value):
        array = value if isinstance(value, np.ndarray) else objects(value, len(self.tensor.shape))
        self._check_shape(row, array.shape)
        encoded = [encode(text, row) for text in array.reshape(-1).tolist()]
        size = sum(map(len, encoded))
        if size > self.tensor.string_bytes:
            raise RowError(f"has strings of {size} bytes in row {row}: declared are at most {self.tensor.string_bytes}")
        packed = b"".join(part for text in encoded for part in (LENGTH.pack(len(text)), text))
        self._write_extents(place, array.shape)
        begin = place + self._extents.size
        self._memory[begin:begin + len(packed)] = packed


def rows_of(value):
    try:
        if isinstance(value, str | bytes):
            raise TypeError
        return list(value)
    except TypeError:
        raise RowError(f"is a value of type {type(value).__name__}: it must be a list of arrays, one for each row") from None


def one(text):
    """An array without dimensions."""
    array = np.empty((), object)
    array[()] = text
    return array


def objects(value, rank):
    """Nested lists of strings, or one string, as an array of `rank` dimensions: strings are not taken apart."""
    if rank == 0:
        return one(value)
    parts = [objects(part, rank - 1) for part in rows_of(value)]
    if not parts:
        return np.empty((0,) * rank, object)
    if len({part.shape for part in parts}) != 1:
        raise RowError("has lists of different lengths")
    return np.stack(parts)


def encode(text, row):
    if isinstance(text, bytes):
        return text
    if not isinstance(text, str):
        raise RowError(f"has a value of type {type(text).__name__} in row {row}: strings are str or bytes")
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise RowError(f"has text in row {row} that is not valid Unicode: {error}; return bytes") from None
