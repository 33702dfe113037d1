"""Requests that are made to harm a server, for its tests: nested, wide, compressed, altered, cut, half-closed and slow.

Over HTTP; `hostile_grpc` has those over gRPC."""

import contextlib
import dataclasses
import gzip
import http.client
import json
import random
import socket
import time
import zlib

# Every path that reads JSON.
JSON_PATHS = (
    "/v2/logging",
    "/v2/trace/setting",
    "/v2/models/dense/trace/setting",
    "/v2/repository/index",
    "/v2/repository/models/dense/load",
    "/v2/repository/models/absent/unload",
    "/v2/personal/movies/predict",
    "/v2/personal/movies/topk",
    "/v2/personal/movies/observe",
    "/v2/personal/movies/forget",
    "/v2/applications/choice/feedback",
    "/v2/jobs",
    "/v2/models/dense/infer",
)

# The others, with a method that they take.
OTHER_PATHS = tuple(("GET", path) for path in (
    "/v2", "/v2/health/live", "/v2/health/ready", "/v2/models/dense", "/v2/models/dense/ready", "/v2/models/dense/config",
    "/v2/models/dense/stats", "/v2/models/dense/versions/1", "/v2/models/dense/versions/1/stats", "/v2/models/stats",
    "/v2/logging", "/v2/trace/setting", "/v2/models/dense/trace/setting", "/v2/systemsharedmemory/status",
    "/v2/systemsharedmemory/region/x/status", "/v2/cudasharedmemory/status", "/v2/jobs", "/v2/jobs/absent", "/absent")) + (
    ("DELETE", "/v2/jobs/absent"), ("POST", "/v2/systemsharedmemory/region/x/register"),
    ("POST", "/v2/systemsharedmemory/unregister"), ("POST", "/v2/cudasharedmemory/region/x/register"),
    ("POST", "/v2/models/movies/infer"), ("POST", "/v2/models/tokens/infer"), ("POST", "/v2/models/dense/versions/1/infer"))
METHODS = ("GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS", "POST", "FOLIOT")

DEEP = b'{"a":' + b"[" * 300_000 + b"]" * 300_000 + b"}"
WIDE = b"{" + b",".join(b'"k%d":1' % i for i in range(300_000)) + b"}"

# What each kind of path takes, for what is altered.
VALID = tuple(json.dumps(body).encode() for body in (
    {"inputs": [{"name": "pixels", "shape": [1, 64], "datatype": "FP32", "data": [[0.5] * 64]}]},
    {"inputs": [{"name": "tokens", "shape": [2, 3], "datatype": "INT64", "data": [1, 2, 3, 4, 5, 6]}],
     "outputs": [{"name": "embedded", "parameters": {"binary_data": True}}], "parameters": {"timeout": 100000}},
    {"user": 7, "items": [30, 40], "parameters": {"timeout": 1000}},
    {"users": [7, 8], "k": 10, "items": [10, 20, 30]},
    {"observations": [{"user": "u", "item": 10, "value": 0.5, "id": "a"}]},
    {"users": ["u", 7]},
    {"feedback_id": "0123456789abcdef0123456789abcdef", "label": [[1, 2], [3, 4]]},
    {"log_verbose_level": 1, "log_info": True},
    {"trace_level": ["TIMESTAMPS"], "trace_rate": "1"},
    {"ready": True, "parameters": {"unload_dependents": True}},
    {"kind": "offline", "model": "dense", "inputs": {"pixels": "x.npy"}, "output": "y"},
))

BOUNDS = (0, 1, 31, 32, 33, 63, 64, 65, 1000, 4096, 16384, 65535, 65536, 65537)


@dataclasses.dataclass
class Hostile:
    """What one connection sends, in pieces with a pause between them, and whether its side is closed then."""

    kind: str
    pieces: list
    half_closed: bool
    method: str = "POST"
    answers: int | None = 1  # None: it may be read as any number of requests, for which there is an answer at least
    requests: int = 1

    def __str__(self):
        whole = b"".join(self.pieces)
        return f"{self.kind} of {len(whole)} bytes, half closed: {self.half_closed}: {whole[:300]!r}"


def nested(dice):
    depth = dice.choice(BOUNDS)
    opening, closing = dice.choice([(b"[", b"]"), (b'{"a":', b"}"), (b'[1,{"a":', b"}]"), (b"[[],", b"]")])
    return b'{"inputs":' + opening * depth + b"1" + closing * dice.choice([depth, depth, depth - 1 if depth else 0, 0])


def wide(dice):
    count = dice.choice(BOUNDS)
    member = dice.choice([lambda i: b'"k%d":%d' % (i, i), lambda i: b'"a":[]', lambda i: b'"%s":{}' % (b"x" * (i % 50))])
    what = dice.choice([b"", b'"parameters":{', b'"inputs":[{"name":"pixels","parameters":{'])
    return b"{" + what + b",".join(member(i) for i in range(count)) + b"}" * (1 + (b"{" in what)) + b"]}" * (b"[" in what)


def long_values(dice):
    value = dice.choice([b"1" * 60_000, b"1e" + b"9" * 10_000, b'"' + b"\\u0000" * 10_000 + b'"', b"-" * 1000,
                         b'"' + b"\\" * 9_999, b'"\xff\xfe\x80"', b"[" + b"0," * 30_000 + b"0]", b"nul", b'"\xed\xa0\x80"'])
    member = dice.choice([b"user", b"data", b"log_file", b"trace_level", b"kind", b"feedback_id", b"id", b"parameters"])
    return b'{"' + member + b'":' + value + b"}"


def altered(dice):
    body = bytearray(dice.choice(VALID))
    for _ in range(dice.randint(1, 4)):
        at, other = dice.randrange(len(body)), dice.randrange(len(body))
        what = dice.randrange(4)
        if what == 0:
            body[at] = dice.randrange(256)
        elif what == 1:
            del body[at:at + dice.randint(1, 20)]
        elif what == 2:
            body[at:at] = body[other:other + 40]
        else:
            body[at:at] = dice.choice([b"[", b"]", b"{", b"}", b'"', b"\\", b",", b":", b"NaN", b"\0", b"9" * 30])
        if not body:
            body = bytearray(b"{")
    return bytes(body)


BODIES = {"nested": nested, "wide": wide, "long": long_values, "altered": altered,
          "valid": lambda dice: dice.choice(VALID)}


def compressed(dice, body):
    """The header that says so, and the body, perhaps damaged."""
    if dice.random() < 0.2:
        body = b"[" * (8 << 20)  # more than the servers of these tests take
    kind, data = dice.choice([("gzip", gzip.compress(body, 1)), ("deflate", zlib.compress(body, 1))])
    damage = dice.randrange(6)
    if damage == 0:
        data = data[:dice.randrange(len(data))]
    elif damage == 1:
        data += bytes(dice.randrange(1, 100))
    elif damage == 2:
        data += gzip.compress(body[:1000])
    elif damage == 3:
        at = dice.randrange(len(data))
        data = data[:at] + bytes([dice.randrange(256)]) + data[at + 1:]
    return f"Content-Encoding: {kind}\r\n".encode(), data


def headers_and_body(dice, kind, body, key):
    """(kind, lines of the header, body as it is sent)"""
    headers = b"Host: x\r\n"
    if key and dice.random() < 0.8:
        headers += f"Authorization: Bearer {key}\r\n".encode()
    if dice.random() < 0.05:
        headers += dice.choice([b"Expect: 100-continue\r\n", b"Connection: close\r\n", b"X: " + b"y" * 70_000 + b"\r\n",
                                b"X: y\r\n" * 2000, b"Accept-Encoding: gzip, deflate\r\n", b"Upgrade: h2c\r\n"])
    if dice.random() < 0.2:
        header, body = compressed(dice, body)
        headers += header
        kind += ", compressed"
    if dice.random() < 0.1:
        size = dice.choice([0, 1, len(body) // 2, len(body), len(body) + 1, 2**63, -1])
        headers += f"Inference-Header-Content-Length: {size}\r\n".encode()
    if dice.random() < 0.1:
        headers += b"Transfer-Encoding: chunked\r\n"
        body = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in (body[:100], body[100:]) if piece)
        body += b"0\r\n\r\n"
    else:
        headers += b"Content-Length: %d\r\n" % len(body)
    return kind, headers, body


def method_and_path(dice):
    if dice.random() < 0.7:
        return "POST", dice.choice(JSON_PATHS)
    method, path = dice.choice(OTHER_PATHS)
    if dice.random() < 0.3:
        method = dice.choice(METHODS)
    if dice.random() < 0.3:
        at = dice.randrange(len(path))
        path = path[:at] + dice.choice(["%2f", "%", "%zz", "%00", "/..", "//", "?", "%ff", "/" * 1000, "a" * 3000]) + path[at:]
    return method, path


def hostile_requests(seed, key=None):
    """Without end; the same for the same seed."""
    dice = random.Random(seed)
    while True:
        kind = dice.choice(list(BODIES))
        method, path = method_and_path(dice)
        kind, headers, body = headers_and_body(dice, kind, BODIES[kind](dice), key)
        head = f"{method} {path} HTTP/1.1\r\n".encode() + headers + b"\r\n"
        answers = 1 if len(head) < 60_000 else None  # of a header beyond its limit the method is not read, HEAD or not
        if dice.random() < 0.1:
            at = dice.randrange(len(head))
            head = head[:at] + bytes([dice.randrange(256)]) + head[at + 1:]
            kind += ", its header altered"
            answers = None
        whole = head + body
        # A header that is altered may announce more than there is; a cut one does.
        half_closed = "altered" in kind or dice.random() < 0.3
        if dice.random() < 0.15:
            whole = whole[:dice.randrange(1, len(whole))]
            half_closed, answers = True, None  # a method that is cut may have been HEAD
            kind += ", cut"
        pieces = [whole]
        if dice.random() < 0.1:
            ends = sorted(dice.randrange(len(whole) + 1) for _ in range(3))
            pieces = [whole[begin:end] for begin, end in zip([0, *ends], [*ends, len(whole)])]
            kind += ", slow"
        yield Hostile(kind, pieces, half_closed, method, answers)


def answer_to(address, request, timeout=30):
    """The status of the first final answer; raises OSError or HTTPException if there is none, and AssertionError if
    more follows it than may."""
    host, port = address.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=timeout) as connection:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it was answered before it was sent whole
            for piece in request.pieces:
                connection.sendall(piece)
                if len(request.pieces) > 1:
                    time.sleep(0.005)  # so that they come one by one
            if request.half_closed:
                connection.shutdown(socket.SHUT_WR)
        response = http.client.HTTPResponse(connection, method=request.method)
        response.begin()
        status = response.status
        response.fp = keeping = KeptOpen(response.fp)
        response.read()
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_WR)
        rest = b""
        with contextlib.suppress(ConnectionResetError):
            rest = keeping.file.read()
        assert request.answers is None or not rest, f"more than one answer: {rest[:300]!r}"
        return status


class KeptOpen:
    """A file that a response does not close when it has been read, so that what follows is seen."""

    def __init__(self, file):
        self.file = file

    def __getattr__(self, name):
        return getattr(self.file, name)

    def close(self):
        pass
