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
    """The replica's message 'E', or 'F' with the positions of the `rows` that failed."""

    def __init__(self, message, rows=None):
        super().__init__(message)
        self.rows = rows


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
        """{name: array} over the tensors of a call; `what`: "inputs" or "outputs"."""
        result = {}
        for tensor in self.description[what]:
            offset = -(-offset // ALIGNMENT) * ALIGNMENT
            view = np.ndarray((rows, *tensor["shape"]), dtype_of(tensor), self._memory, offset)
            result[tensor["name"]] = view
            offset += view.nbytes
        return result

    def call(self, inputs, *, input_offset=0, output_offset=None):
        """Copies of the outputs of {name: array [rows, ...]}."""
        rows = len(next(iter(inputs.values())))
        output_offset = len(self._memory) // 2 if output_offset is None else output_offset
        for name, view in self.views("inputs", rows, input_offset).items():
            view[...] = inputs[name]
        self.send_call(rows, input_offset, output_offset)
        return {name: view.copy() for name, view in self.views("outputs", rows, output_offset).items()}

    def send_call(self, rows, input_offset, output_offset):
        """Returns once the outputs are written. Raises ReplicaError."""
        self.connection.send(struct.pack("<cIQQ", b"C", rows, input_offset, output_offset))
        message = self.connection.recv(1 << 17)
        if message[:1] == b"E":
            raise ReplicaError(message[1:].decode())
        if message[:1] == b"F":
            text = 1 + (rows + 7) // 8
            raise ReplicaError(message[text:].decode(), [row for row in range(rows) if message[1 + row // 8] >> row % 8 & 1])
        if message != b"R":
            raise ReplicaError(f"{message[:40]!r} in place of b'R'")

    def close(self):
        """Closes the server's end; returns (exit status, standard output, standard error) of the process."""
        self.connection.close()
        out, error = self.process.communicate(timeout=120)
        return self.process.returncode, out.decode(), (error or b"").decode()
