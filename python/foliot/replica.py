"""The protocol of a replica's process, on its side of a SOCK_SEQPACKET socket (docs/CONTAINERS.md).

No message has a tensor: they lie in shared memory, and a call is 21 bytes there and 1 back.
"""

import mmap
import os
import socket
import struct

from foliot import layout
from foliot.call import CallFailed, Caller
from foliot.description import error_message, failed_rows_message

MESSAGE_BYTES_MAX = 64  # more than any that the server sends
MEMORY = struct.Struct("<cQ")  # 'M', bytes
CALL = struct.Struct("<cIQQ")  # 'C', rows, offset of the inputs, offset of the outputs
READY = b"R"
CACHED_CALLS_MAX = 1024  # a server has few places in memory, and as many batch sizes as rows


class ProtocolError(Exception):
    """The server sent what this version of the protocol does not have."""


class Replica:
    """Answers the messages of the server with a loaded model."""

    def __init__(self, connection, model, folder):
        self._connection = connection
        self._description = model.description
        self._caller = Caller(model, folder)
        self._memory = None
        # Message 'C' -> its views of the memory: making them costs as much as a small model.
        self._calls = {}

    def run(self):
        """Returns once the server has closed its end. Raises ProtocolError."""
        connection, ancillary_bytes = self._connection, socket.CMSG_SPACE(4)
        bad_flags = socket.MSG_TRUNC | socket.MSG_CTRUNC
        while True:
            message, ancillary, flags, _ = connection.recvmsg(MESSAGE_BYTES_MAX, ancillary_bytes, socket.MSG_CMSG_CLOEXEC)
            if not message:
                return
            views = self._calls.get(message)
            if views is None or ancillary:
                if flags & bad_flags:
                    raise ProtocolError(f"a message of more than {MESSAGE_BYTES_MAX} bytes, or with several descriptors")
                views = self._prepare(message, ancillary)
            connection.send(READY if views is None else self._answer(views))

    def _answer(self, views):
        try:
            self._caller.call(*views)
        except CallFailed as failure:
            if failure.rows is None:
                return error_message(str(failure))
            return failed_rows_message(failure.rows, len(next(iter(views[0].values()))))
        return READY

    def _prepare(self, message, ancillary):
        """The views of a new call, or None if the message was that about the memory."""
        if message[:1] == b"M" and len(message) == MEMORY.size:
            self._map(MEMORY.unpack(message)[1], ancillary)
            return None
        if message[:1] == b"C" and len(message) == CALL.size and not ancillary:
            return self._views(message, *CALL.unpack(message)[1:])
        raise ProtocolError(f"message {message!r}")

    def _map(self, size, ancillary):
        descriptors = [number for level, kind, data in ancillary
                       if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS) for number in struct.unpack("i", data[:4])]
        if len(descriptors) != 1:
            raise ProtocolError(f"the message about memory came with {len(descriptors)} descriptors, not 1")
        try:
            self._memory = mmap.mmap(descriptors[0], size)
        except (OSError, ValueError, OverflowError) as error:
            raise ProtocolError(f"{size} bytes of memory cannot be mapped: {error}") from error
        finally:
            os.close(descriptors[0])
        self._calls.clear()

    def _views(self, message, rows, input_offset, output_offset):
        if self._memory is None:
            raise ProtocolError("a call came before the memory")
        limit = self._description.batch_size_max
        if rows < 1 or limit is not None and rows > limit:
            raise ProtocolError(f"a call of {rows} rows: 1 to {limit or 'any number'} can be called")
        views = []
        for tensors, offset, writeable in ((self._description.inputs, input_offset, False),
                                           (self._description.outputs, output_offset, True)):
            end = offset + layout.offsets_of(tensors, rows)[1]
            if offset % layout.ALIGNMENT or end > len(self._memory):
                raise ProtocolError(f"tensors of {rows} rows at offset {offset} end at {end}, in memory of {len(self._memory)} "
                                    f"bytes; offsets are multiples of {layout.ALIGNMENT}")
            views.append(layout.views(tensors, self._memory, rows, offset, writeable=writeable))
        if len(self._calls) >= CACHED_CALLS_MAX:
            self._calls.clear()
        self._calls[message] = views
        return views
