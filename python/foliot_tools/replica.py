"""The server's side of a replica's protocol (docs/CONTAINERS.md), to drive `python -m foliot.runtime` without a server."""

import fcntl
import json
import mmap
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys

import numpy as np

PACKAGES = pathlib.Path(__file__).resolve().parents[1]
ALIGNMENT = 64
SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
DTYPES = {"BOOL": "bool", "FP16": "float16", "FP32": "float32", "FP64": "float64"}


class ReplicaError(Exception):
    """The replica's message 'E', or 'F' with the reasons of the rows that failed, by their positions."""

    def __init__(self, message, reasons=None):
        super().__init__(message)
        self.reasons = reasons
        self.rows = None if reasons is None else list(reasons)


def is_bounded(tensor):
    return tensor["datatype"] == "BYTES" or -1 in tensor["shape"]


def pack(tensor, array):
    """A row of a tensor that varies in size, of which `array` has the elements."""
    extents = [extent for extent, declared in zip(array.shape, tensor["shape"]) if declared < 0]
    row = struct.pack(f"<{len(extents)}Q", *extents)
    if tensor["datatype"] == "BYTES":
        return row + b"".join(struct.pack("<I", len(text)) + text for text in array.reshape(-1).tolist())
    return row + array.astype(dtype_of(tensor)).tobytes()


def unpack(tensor, row):
    """What pack() was given."""
    shape, at = list(tensor["shape"]), 0
    for axis, extent in enumerate(shape):
        if extent < 0:
            shape[axis], at = struct.unpack_from("<Q", row, at)[0], at + 8
    if tensor["datatype"] != "BYTES":
        return np.frombuffer(row, dtype_of(tensor), int(np.prod(shape)), at).reshape(shape)
    array = np.empty(shape, object)
    texts = array.reshape(-1)
    for element in range(texts.size):
        length = struct.unpack_from("<I", row, at)[0]
        texts[element], at = row[at + 4:at + 4 + length], at + 4 + length
    return array


def row_bytes(tensor):
    """Of the memory of a row of a tensor that varies in size."""
    element = 4 if tensor["datatype"] == "BYTES" else dtype_of(tensor).itemsize
    most = int(np.prod(tensor.get("shape_max", tensor["shape"]), dtype=np.int64))
    used = 8 * tensor["shape"].count(-1) + most * element + tensor.get("string_bytes_max", 0)
    return -(-used // 8) * 8


def dtype_of(tensor):
    return np.dtype(DTYPES.get(tensor["datatype"], tensor["datatype"].lower()))


class Replica:
    """One process that serves `folder`, ended when the block ends. Raises ReplicaError if it cannot be served."""

    def __init__(self, folder, *, python=sys.executable, environment=None, stderr=None):
        self.connection, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.connection.settimeout(120)
        settings = {"PATH": os.environ["PATH"], "PYTHONPATH": str(PACKAGES), "PYTHONUNBUFFERED": "1",
                    "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", **(environment or {})}

        def prepare():
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # ignored where tests run in the background
            os.dup2(theirs.fileno(), 3)

        with theirs:
            self.process = subprocess.Popen(
                [python, "-m", "foliot.runtime", str(folder)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=stderr or subprocess.PIPE, env=settings, close_fds=False, preexec_fn=prepare)
        self.description = None
        self._memory = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def start(self):
        """Returns its description, once the model is loaded."""
        self.description = json.loads(self.receive(b"D"))
        return self.description

    def receive(self, expected):
        """The content of the next message. Raises ReplicaError, also where it is another, or none."""
        message = self.connection.recv(1 << 17)
        if message[:1] == b"E":
            raise ReplicaError(message[1:].decode())
        if message[:1] != expected:
            raise ReplicaError(f"{message[:40]!r} in place of {expected!r}")
        return message[1:]

    def share_memory(self, size):
        descriptor = os.memfd_create("replica", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.ftruncate(descriptor, size)
            fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, SEALS)
            self._memory = mmap.mmap(descriptor, size)
            socket.send_fds(self.connection, [struct.pack("<cQ", b"M", size)], [descriptor])
        finally:
            os.close(descriptor)
        self.receive(b"R")

    def views(self, what, rows, offset):
        """{name: array} over the tensors of a call; `what`: "inputs" or "outputs". Of rows that vary in size the bytes of
        their memory, [rows, bytes]."""
        result = {}
        for tensor in self.description[what]:
            offset = -(-offset // ALIGNMENT) * ALIGNMENT
            if is_bounded(tensor):
                view = np.ndarray((rows, row_bytes(tensor)), np.uint8, self._memory, offset)
            else:
                view = np.ndarray((rows, *tensor["shape"]), dtype_of(tensor), self._memory, offset)
            result[tensor["name"]] = view
            offset += view.nbytes
        return result

    def call(self, inputs, *, input_offset=0, output_offset=None):
        """Copies of the outputs of {name: array [rows, ...], or list of a row each}; lists of those that vary in size."""
        rows = len(next(iter(inputs.values())))
        output_offset = len(self._memory) // 2 if output_offset is None else output_offset
        for tensor, view in zip(self.description["inputs"], self.views("inputs", rows, input_offset).values()):
            if not is_bounded(tensor):
                view[...] = inputs[tensor["name"]]
                continue
            for place, row in zip(view, inputs[tensor["name"]]):
                packed = pack(tensor, np.asarray(row))
                place[:len(packed)] = np.frombuffer(packed, np.uint8)
        self.send_call(rows, input_offset, output_offset)
        return {tensor["name"]: [unpack(tensor, row.tobytes()) for row in view] if is_bounded(tensor) else view.copy()
                for tensor, view in zip(self.description["outputs"], self.views("outputs", rows, output_offset).values())}

    def send_call(self, rows, input_offset, output_offset):
        """Returns once the outputs are written. Raises ReplicaError."""
        self.connection.send(struct.pack("<cIQQ", b"C", rows, input_offset, output_offset))
        message = self.connection.recv(1 << 17)
        if message[:1] == b"E":
            raise ReplicaError(message[1:].decode())
        if message[:1] == b"F":
            reasons, at = {}, 1 + (rows + 7) // 8
            for row in range(rows):
                if message[1 + row // 8] >> row % 8 & 1:
                    length = struct.unpack_from("<H", message, at)[0]
                    reasons[row], at = message[at + 2:at + 2 + length].decode(), at + 2 + length
            assert at == len(message)
            raise ReplicaError(next(iter(reasons.values())), reasons)
        if message != b"R":
            raise ReplicaError(f"{message[:40]!r} in place of b'R'")

    def close(self):
        """Closes the server's end; returns (exit status, standard output, standard error) of the process."""
        self.connection.close()
        out, error = self.process.communicate(timeout=120)
        return self.process.returncode, out.decode(), (error or b"").decode()
