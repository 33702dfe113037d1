"""What the connections of an attack send (`hostile`): a text at first, and one that is repeated."""

import dataclasses
import gzip
import itertools
import json
import random
import struct
from collections.abc import Iterator

from foliot_tools.hostile_requests import DEEP, WIDE
from foliot_tools.link import CLIENT, MAGIC, VERSION

GIGABYTE = 10**9
PIECE = bytes(256 << 10)
# A model of 8 bytes whose answers are 8 MiB.
WIDE_ANSWER = json.dumps({"inputs": [{"name": "x", "shape": [2, 1], "datatype": "FP32", "data": [1, 2]}],
                          "outputs": [{"name": "y", "parameters": {"binary_data": True}}]}).encode()
SMALL = json.dumps({"inputs": [{"name": "pixels", "shape": [1, 64], "datatype": "FP32", "data": [0.5] * 64}]}).encode()


@dataclasses.dataclass
class Text:
    """`then` is said over and over: a byte a second, or as fast as it is taken, `pours` times in each turn."""

    first: Iterator[bytes]
    then: bytes = b""
    pours: int = 0
    reads: int = 65536  # bytes at a time of the answer, a hundred times a second; 0: none
    closes: str = ""  # "half", "all": after the first text; "each second"


def frame(kind, stream, flags, payload):
    """One of HTTP/2."""
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def literal(name, value):
    """A header, as HPACK writes it without its tables."""
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b"")
# Says that it takes as much as can be said, for each stream and in all.
GREEDY_HELLO = HELLO[:24] + frame(4, 0, 0, struct.pack(">HI", 4, 2**31 - 1)) + frame(8, 0, 0, struct.pack(">I", 2**31 - 65536))
GREETING = struct.pack("<IHBB", MAGIC, VERSION, CLIENT, 0)


def post(key, path="/v2/models/dense/infer"):
    authorization = f"Authorization: Bearer {key}\r\n" if key else ""
    return f"POST {path} HTTP/1.1\r\nHost: x\r\n{authorization}".encode()


def request(key, body, path="/v2/models/dense/infer", headers=b""):
    return post(key, path) + headers + b"Content-Length: %d\r\n\r\n" % len(body) + body


def call(key, stream=1, method=b"ModelInfer", more=()):
    """The frame that begins a call."""
    authorization = [(b"authorization", b"Bearer " + key.encode())] if key else []
    return frame(1, stream, 4, b"".join(literal(name, value) for name, value in (
        (b":method", b"POST"), (b":scheme", b"http"), (b":path", b"/inference.GRPCInferenceService/" + method),
        (b":authority", b"x"), (b"content-type", b"application/grpc"), (b"te", b"trailers"), *more, *authorization)))


def data(stream, message, flags=1, compressed=0):
    """A message in frames, the last of which ends the stream."""
    text = bytes([compressed]) + struct.pack(">I", len(message)) + message
    pieces = [text[at:at + 16384] for at in range(0, len(text), 16384)]
    return b"".join(frame(0, stream, flags if piece is pieces[-1] else 0, piece) for piece in pieces)


def slow(key):
    """What is said at once, and then byte by byte."""
    begun_call = HELLO + call(key)
    return {
        "idle": (b"", b""),
        "slow_header": (post(key) + b"X-Slow: ", b"a"),
        "slow_body": (post(key) + b"Content-Length: 1000000\r\n\r\n", b" "),
        "slow_chunked": (post(key) + b"Transfer-Encoding: chunked\r\n\r\n10000\r\n", b" "),
        "slow_grpc_hello": (HELLO[:1], HELLO[1:]),
        "slow_grpc_body": (begun_call + frame(0, 1, 0, bytes(16000))[:9] + b"\0" + struct.pack(">I", 1_000_000), b"\0"),
        "slow_greeting": (GREETING[:1], GREETING[1:]),
        "slow_frame": (GREETING + struct.pack("<IB", 1 << 20, 8), b"\0"),
    }


def large(key):
    """The first bytes, and the pieces of the gigabyte that follows; a deaf client ignores the answer."""
    begun = frame(0, 1, 0, b"\0" + struct.pack(">I", GIGABYTE) + bytes(16000)) + frame(0, 1, 0, bytes(16384)) * 15
    return {
        "large_body": (post(key) + b"Content-Length: %d\r\n\r\n" % GIGABYTE, PIECE),
        "deaf_body": (post(key) + b"Content-Length: %d\r\n\r\n" % GIGABYTE, PIECE),
        "large_chunked": (post(key) + b"Transfer-Encoding: chunked\r\n\r\n", b"40000\r\n" + PIECE + b"\r\n"),
        "large_grpc": (HELLO + call(key), begun),
        "large_frame": (GREETING + struct.pack("<IB", GIGABYTE, 8), PIECE),
    }


def quadratic():
    """60,000 members of an inference's parameters, each of which is asked for by its name."""
    body = json.loads(SMALL)
    body["parameters"] = {f"k{i}": i for i in range(60_000)}
    return json.dumps(body).encode()


def many_inputs():
    """A message of gRPC with 20,000 inputs."""
    return b"\x0a\x05dense" + b"\x2a\x03\x0a\x01x" * 20_000


def floods(key):
    """What is said over and over, as fast as it is taken."""
    wide_call = b"\x0a\x04wide" + b"\x2a\x0d\x0a\x01x\x12\x04FP32\x1a\x02\x02\x01" + b"\x3a\x08" + bytes(8)
    return {
        "deep": (b"", request(key, DEEP)),
        "wide": (b"", request(key, WIDE)),
        "quadratic": (b"", request(key, quadratic())),
        "bomb": (b"", request(key, gzip.compress(b'{"inputs":[' + b"[1]," * (7 << 20), 9), headers=b"Content-Encoding: gzip\r\n")),
        "index": (b"", request(key, b"[" + b"{}," * (4 << 20), "/v2/repository/index")),
        "pipelined": (b"", request(key, SMALL) * 1000),
        "pings": (HELLO, frame(6, 0, 0, bytes(8)) * 4000),
        "settings": (HELLO, frame(4, 0, 0, b"\0\4\0\0\xff\xff") * 4000),
        "empty_frames": (HELLO + call(key), frame(0, 1, 0, b"") * 8000),
        "unread_stream": (GREEDY_HELLO + call(key, method=b"ModelStreamInfer"), data(1, wide_call, flags=0) * 20),
    }


def once(key):
    """What a connection says at first, and nothing more."""
    zipped = gzip.compress(bytes(32 << 20), 9)
    streams = range(1, 2001, 2)
    return {
        "unread": request(key, WIDE_ANSWER, "/v2/models/wide/infer"),
        "slow_reader": request(key, WIDE_ANSWER, "/v2/models/wide/infer"),
        "half_closed": request(key, SMALL),
        "gone": request(key, SMALL),
        "opened": b"",
        "resets": HELLO + b"".join(call(key, i) + frame(3, i, 0, struct.pack(">I", 8)) for i in streams),
        "many_inputs": HELLO + b"".join(call(key, i) + data(i, many_inputs()) for i in range(1, 21, 2)),
        "bomb_grpc": HELLO + b"".join(call(key, i, more=[(b"grpc-encoding", b"gzip")]) + data(i, zipped, compressed=1)
                                      for i in range(1, 201, 2)),
        "headers_grpc": HELLO + frame(1, 1, 0, literal(b"x", b"y" * 100) * 150) + frame(9, 1, 0, literal(b"x", b"y" * 100) * 150) * 100,
    }


CLOSES = {"half_closed": "half", "gone": "all", "opened": "all", "resets": "each second", "many_inputs": "each second",
          "bomb_grpc": "each second", "headers_grpc": "each second"}


def random_bytes(key):
    """Pieces of all that the ports speak, cut, mixed and made up."""
    source = random.Random(7)
    whole = [request(key, b"{}"), HELLO + call(key), GREETING + struct.pack("<IB", 17, 8) + bytes(16), b"\x16\x03\x01\x02\x00"]
    yield from (b"\0" * 64, b"\xff" * 64, b"GET\r\n\r\n", post(key) + b"Content-Length: x\r\n\r\n", post(key) + b"X: y\r\n" * 20000,
                b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n", GREETING + struct.pack("<IB", 2**31, 8),
                GREETING + struct.pack("<IB", 1, 200), HELLO + b"\xff" * 4096)
    while True:
        text = bytearray(source.choice(whole))
        for _ in range(source.randrange(1, 8)):
            text[source.randrange(len(text))] = source.randrange(256)
        yield bytes(text[: source.randrange(len(text)) + 1])


def text_of(kind, key):
    if kind == "random_bytes":
        return Text(random_bytes(key), closes="each second")
    if kind in slow(key):
        first, then = slow(key)[kind]
        return Text(itertools.repeat(first), then)
    if kind in large(key):
        first, then = large(key)[kind]
        deaf = kind == "deaf_body"
        return Text(itertools.repeat(first), then, pours=64 if deaf else 1, reads=0 if deaf else 65536)
    if kind in (texts := floods(key)):
        first, then = texts[kind]
        return Text(itertools.repeat(first), then, pours=1, reads=0 if kind == "unread_stream" else 65536)
    reads = {"unread": 0, "slow_reader": 100}.get(kind, 65536)
    return Text(itertools.repeat(once(key)[kind]), reads=reads, closes=CLOSES.get(kind, ""))
