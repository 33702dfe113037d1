"""gRPC requests that are made to harm a server, frame by frame: nested, wide, compressed, altered, cut, half-closed and slow.

Each has a connection of its own. The end of a stream, of a call or of the connection is its answer."""

import dataclasses
import gzip
import random
import socket
import time
import zlib

from tritonclient.grpc import service_pb2

from foliot_tools.grpc_protocol import applications_protocol, jobs_protocol, personal_protocol
from foliot_tools.hostile_texts import HELLO, frame, literal

WINDOW = 65_535  # that a peer of HTTP/2 has before it is given more
FRAME = 16_384
DATA, HEADERS, RESET, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 6, 7, 8
END_STREAM, END_HEADERS, PADDED, ACKNOWLEDGED = 1, 4, 8, 1
BOUNDS = (0, 1, 50, 99, 100, 101, 1000, 10_000, 60_000)


def infer_request():
    request = service_pb2.ModelInferRequest(model_name="dense", id="1")
    request.inputs.add(name="pixels", datatype="FP32", shape=[1, 64])
    request.raw_input_contents.append(bytes(256))
    return request


def tokens_request():
    request = service_pb2.ModelInferRequest(model_name="tokens")
    tensor = request.inputs.add(name="tokens", datatype="INT64", shape=[2, 3])
    tensor.contents.int64_contents.extend(range(6))
    request.parameters["timeout"].int64_param = 100_000
    request.outputs.add(name="embedded")
    return request


def valid_messages():
    """[(path, a message that it takes)], of every method but those that unload models."""
    personal, applications, jobs = (protocol()[0] for protocol in (personal_protocol, applications_protocol, jobs_protocol))
    of = service_pb2
    settings = {"log_verbose_level": of.LogSettingsRequest.SettingValue(uint32_param=1)}
    user = {"number": 7}
    inference = {
        "ModelInfer": infer_request(), "ModelStreamInfer": tokens_request(),
        "ServerLive": of.ServerLiveRequest(), "ServerReady": of.ServerReadyRequest(),
        "ModelReady": of.ModelReadyRequest(name="dense", version="1"), "ServerMetadata": of.ServerMetadataRequest(),
        "ModelMetadata": of.ModelMetadataRequest(name="dense"), "ModelConfig": of.ModelConfigRequest(name="tokens"),
        "ModelStatistics": of.ModelStatisticsRequest(name="dense"), "RepositoryIndex": of.RepositoryIndexRequest(ready=True),
        "RepositoryModelLoad": of.RepositoryModelLoadRequest(model_name="absent"),
        "RepositoryModelUnload": of.RepositoryModelUnloadRequest(model_name="absent"),
        "SystemSharedMemoryStatus": of.SystemSharedMemoryStatusRequest(name="x"),
        "SystemSharedMemoryRegister": of.SystemSharedMemoryRegisterRequest(name="x", key="y", byte_size=1),
        "SystemSharedMemoryUnregister": of.SystemSharedMemoryUnregisterRequest(name="x"),
        "CudaSharedMemoryRegister": of.CudaSharedMemoryRegisterRequest(name="x", raw_handle=b"y", byte_size=1),
        "CudaSharedMemoryUnregister": of.CudaSharedMemoryUnregisterRequest(name="x"),
        "CudaSharedMemoryStatus": of.CudaSharedMemoryStatusRequest(), "LogSettings": of.LogSettingsRequest(settings=settings),
        "TraceSetting": of.TraceSettingRequest(model_name="dense"), "Absent": of.ServerLiveRequest()}
    rest = {
        "foliot.personal.PersonalModels/Predict": personal.PredictRequest(model="movies", pairs=[{"user": user, "item": 30}]),
        "foliot.personal.PersonalModels/TopK": personal.TopKRequest(model="movies", users=[user], k=3),
        "foliot.personal.PersonalModels/Observe": personal.ObserveRequest(
            model="movies", observations=[{"user_number": 7, "item": 20, "value": 1.5, "id_number": 1}]),
        "foliot.personal.PersonalModels/Forget": personal.ForgetRequest(model="movies", users=[user]),
        "foliot.applications.Applications/Feedback": applications.FeedbackRequest(
            application="choice", feedback_id="0123456789abcdef0123456789abcdef", label=[1, 2]),
        "foliot.jobs.Jobs/Submit": jobs.SubmitRequest(
            offline={"model": "dense", "inputs": {"pixels": "rows.npy"}, "output": "out"}),
        "foliot.jobs.Jobs/Show": jobs.ShowRequest(id="absent"), "foliot.jobs.Jobs/List": jobs.ListRequest(),
        "foliot.jobs.Jobs/Cancel": jobs.CancelRequest(id="absent"), "grpc.health.v1.Health/Check": of.ServerLiveRequest(),
        "grpc.health.v1.Health/List": of.ServerLiveRequest()}
    rest |= {f"inference.GRPCInferenceService/{name}": message for name, message in inference.items()}
    return [("/" + path, message.SerializeToString(deterministic=True)) for path, message in rest.items()]


def varint(number):
    text = bytearray()
    while number > 127:
        text.append(number & 127 | 128)
        number >>= 7
    return bytes(text) + bytes([number])


def field(number, content):
    """One of variable length."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def nested(dice, message):
    """Groups within each other, closed or not, or fields of variable length."""
    depth = dice.choice(BOUNDS)
    if dice.random() < 0.5:
        return message + b"\xfb\x01" * depth + b"\xfc\x01" * dice.choice([depth, depth // 2, 0])
    inner = b""
    for _ in range(min(depth, 1000)):
        inner = field(dice.choice([1, 4, 5]), inner)
    return message + inner


def wide(dice, message):
    count = dice.choice(BOUNDS)
    element = dice.choice([field(4, field(1, b"key") + field(2, b"\x10\x01")), field(5, b""), field(7, b""), field(2, b"\x08\x01"),
                           b"\x18\x01", field(5, field(4, field(1, b"a")) * 3), field(6, field(1, b"y")), b"\xf8\x07\x01"])
    return message + element * count


def long_values(dice, message):
    value = dice.choice([b"\xff" * 60_000, b"a" * 60_000, b"\xed\xa0\x80" * 20_000, b"\0" * 60_000, b"\x80" * 60_000])
    return message + field(dice.choice(range(1, 9)), value) + dice.choice([b"", b"\xff" * 11, varint(7 << 3 | 2) + varint(2**40)])


def altered(dice, message):
    text = bytearray(message or b"\0")
    for _ in range(dice.randint(1, 4)):
        at = dice.randrange(len(text)) if text else 0
        what = dice.randrange(4)
        if what == 0 and text:
            text[at] = dice.randrange(256)
        elif what == 1:
            del text[at:at + dice.randint(1, 20)]
        elif what == 2:
            text[at:at] = text[:40]
        else:
            text[at:at] = dice.randbytes(dice.randint(1, 30))
    return bytes(text)


MESSAGES = {"nested": nested, "wide": wide, "long": long_values, "altered": altered, "valid": lambda dice, message: message}


@dataclasses.dataclass
class HostileCall:
    """Frames of a connection: what is before the message, the message in its frame of gRPC, and how it is sent."""

    kind: str
    before: bytes
    message: bytes
    after: bytes  # frames that follow the message
    slow: bool
    half_closed: bool
    is_cut: bool  # or altered, so that the server may wait for more until the connection ends
    requests: int = 1  # more on a stream

    def __str__(self):
        return (f"{self.kind}, {len(self.message)} bytes, half closed: {self.half_closed}: {self.before[-200:]!r} "
                f"{self.message[:200]!r}")


def framed(dice, message):
    """(header of the encoding, the message in its frame of gRPC), perhaps compressed, damaged or with a wrong length."""
    encoding, flag = b"", 0
    if dice.random() < 0.2:
        if dice.random() < 0.3:
            message = bytes(8 << 20)  # more than the servers of these tests take
        encoding, flag = dice.choice([(b"gzip", 1), (b"deflate", 1), (b"identity", 1), (b"x", 1), (b"", 1)])
        message = gzip.compress(message, 1) if encoding != b"deflate" else zlib.compress(message, 1)
        if dice.random() < 0.4:
            at = dice.randrange(len(message))
            message = message[:at] + dice.choice([b"", bytes([dice.randrange(256)]) + message[at + 1:], bytes(50) + message[at:]])
    if dice.random() < 0.05:
        flag = dice.randrange(256)
    length = len(message)
    if dice.random() < 0.05:
        length = dice.choice([0, max(0, length - 1), length + 1, 2**31, 2**32 - 1])
    return encoding, bytes([flag]) + length.to_bytes(4, "big") + message


def header_frame(dice, path, encoding, key):
    fields = [(b":method", b"POST"), (b":scheme", b"http"), (b":path", path.encode()), (b":authority", b"x"),
              (b"content-type", b"application/grpc"), (b"te", b"trailers")]
    if key and dice.random() < 0.8:
        fields.append((b"authorization", b"Bearer " + key.encode()))
    if encoding:
        fields.append((b"grpc-encoding", encoding))
    if dice.random() < 0.1:
        timeout = dice.choice([b"1n", b"1m", b"0S", b"99999999H", b"-1S", b"9" * 40 + b"S", b"", b"\xff"])
        fields.append((b"grpc-timeout", timeout))
    if dice.random() < 0.05:
        fields += dice.choice([[(b"x-%d" % i, b"y" * 20) for i in range(300)], [(b"grpc-encoding", b"snappy")], fields[:2],
                               [(b"content-type", b"text/html")]])
    return frame(HEADERS, 1, END_HEADERS, b"".join(literal(name, value) for name, value in fields))


def odd_frames(dice):
    """Some that a peer may send, and some that it may not."""
    return b"".join(dice.choice([
        frame(PING, 0, 0, bytes(8)), frame(4, 0, 0, b"\0\4\0\0\0\0"), frame(WINDOW_UPDATE, 0, 0, b"\0\0\0\1"),
        frame(2, 1, 0, bytes(5)), frame(0xff, 0, 0, dice.randbytes(30)), frame(RESET, 3, 0, bytes(4)),
        frame(9, 1, 4, dice.randbytes(20)), frame(WINDOW_UPDATE, 0, 0, b"\x7f\xff\xff\xff")]) for _ in range(dice.randint(1, 50)))


def hostile_calls(seed, key=None):
    """Without end; the same for the same seed."""
    dice = random.Random(seed)
    valid = valid_messages()
    while True:
        path, message = dice.choice(valid)
        kind = dice.choice(list(MESSAGES))
        encoding, message = framed(dice, MESSAGES[kind](dice, message))
        requests = dice.choice([1, 2, 10]) if "Stream" in path else 1
        message *= requests
        before = HELLO + header_frame(dice, path, encoding, key)
        is_cut, half_closed, after = False, dice.random() < 0.1, b""
        if dice.random() < 0.1:
            kind += ", odd frames"
            after = odd_frames(dice)
            is_cut = True
        if dice.random() < 0.1:
            at = dice.randrange(len(before))
            before = before[:at] + bytes([dice.randrange(256)]) + before[at + 1:]
            kind += ", its frames altered"
            is_cut = True
        if dice.random() < 0.1:
            message = message[:dice.randrange(len(message))]
            kind += ", cut"
            is_cut = True
        yield HostileCall(f"{path}: {kind}", before, message, after, dice.random() < 0.1, half_closed or is_cut, is_cut,
                          requests)


class Connection:
    """One of HTTP/2 with one call, which is sent no faster than the server gives room."""

    def __init__(self, address, timeout):
        host, port = address.rsplit(":", 1)
        self._socket = socket.create_connection((host, int(port)), timeout=timeout)
        self._received = b""
        self._room = {0: WINDOW, 1: WINDOW}
        self.ends = 0  # of the call's stream: trailers or a reset
        self.closed = False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.close()

    def send(self, text):
        try:
            self._socket.sendall(text)
        except (BrokenPipeError, ConnectionResetError):
            self.closed = True

    def send_message(self, message, pause):
        """In frames of data, the last of which ends the stream."""
        while not self.ends and not self.closed:
            room = min(FRAME, self._room[0], self._room[1])
            if room <= 0:
                self.read()
                continue
            piece, message = message[:room], message[room:]
            self.send(frame(DATA, 1, 0 if message else END_STREAM, piece))
            for stream in self._room:
                self._room[stream] -= len(piece)
            if not message:
                return
            time.sleep(pause)

    def half_close(self):
        try:
            self._socket.shutdown(socket.SHUT_WR)
        except OSError:
            self.closed = True

    def read(self):
        """What comes next, in whole frames; TimeoutError if nothing does."""
        try:
            more = self._socket.recv(1 << 16)
        except ConnectionResetError:
            more = b""
        self.closed |= not more
        self._received += more
        while len(self._received) >= 9 and len(self._received) >= 9 + (length := int.from_bytes(self._received[:3], "big")):
            kind, flags = self._received[3:5]
            stream = int.from_bytes(self._received[5:9], "big") & 0x7FFF_FFFF
            self._take(kind, flags, stream, self._received[9:9 + length])
            self._received = self._received[9 + length:]

    def _take(self, kind, flags, stream, payload):
        if kind == WINDOW_UPDATE and stream in self._room:
            self._room[stream] += int.from_bytes(payload, "big")
        elif kind == 4 and not flags & ACKNOWLEDGED:
            for at in range(0, len(payload), 6):
                if payload[at:at + 2] == b"\0\4":
                    self._room[1] += int.from_bytes(payload[at + 2:at + 6], "big") - WINDOW
            self.send(frame(4, 0, ACKNOWLEDGED, b""))
        elif kind == DATA and payload:
            self.send(frame(WINDOW_UPDATE, 0, 0, len(payload).to_bytes(4, "big")))
            self.send(frame(WINDOW_UPDATE, 1, 0, len(payload).to_bytes(4, "big")))
        if stream == 1 and (kind == RESET and not self.ends or kind in (DATA, HEADERS) and flags & END_STREAM):
            self.ends += 1
        self.closed |= kind == GOAWAY and int.from_bytes(payload[4:8], "big") != 0


def end_of(address, call, timeout=30):
    """How a call ended: "answered", or "closed" where the connection was; raises TimeoutError if neither comes, and
    AssertionError if it was answered twice, or closed though it was whole."""
    with Connection(address, timeout) as connection:
        connection.send(call.before)
        connection.send_message(call.message, 0.005 if call.slow else 0)
        if call.after:
            connection.send(call.after)
        if call.half_closed:
            connection.half_close()
        while not connection.closed and (not connection.ends or call.half_closed):
            connection.read()
        # gRPC 1.51 writes the end of a call twice to a client that has closed its side.
        assert connection.ends <= 1 or call.half_closed, f"answered {connection.ends} times"
        assert connection.ends or call.half_closed, "it was closed without an answer"
        return "answered" if connection.ends else "closed"
