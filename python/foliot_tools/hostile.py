"""Hostile clients, in a process of their own: many silent connections, requests that
come a byte a second, bodies of a gigabyte, random bytes.

    with Attack("slow_body", "127.0.0.1:8000", 1000) as attack:
        ...
    attack.report  # {"opened": ..., "open": ..., "closed": ..., "answers": {"HTTP/1.1 408 ...": 17}}

What the server closes is opened again, a hundred times a second at most.
"""

import collections
import itertools
import json
import random
import select
import socket
import struct
import subprocess
import sys
import time

from foliot_tools.link import CLIENT, MAGIC, VERSION

GIGABYTE = 10**9
TICK = 0.01
OPENED_PER_TICK = 50  # at first, then one
PIECE = bytes(256 << 10)

POST = b"POST /v2/models/dense/infer HTTP/1.1\r\nHost: x\r\n"


def frame(kind, stream, flags, payload):
    """One of HTTP/2."""
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def literal(name, value):
    """A header, as HPACK writes it without its tables."""
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b"")
CALL = HELLO + frame(1, 1, 4, b"".join(literal(name, value) for name, value in (
    (b":method", b"POST"), (b":scheme", b"http"), (b":path", b"/inference.GRPCInferenceService/ModelInfer"),
    (b":authority", b"x"), (b"content-type", b"application/grpc"), (b"te", b"trailers"))))
GREETING = struct.pack("<IHBB", MAGIC, VERSION, CLIENT, 0)

# What is said at once, and then byte by byte, one a second.
SLOW = {
    "idle": (b"", b""),
    "slow_header": (POST + b"X-Slow: ", b"a"),
    "slow_body": (POST + b"Content-Length: 1000000\r\n\r\n", b" "),
    "slow_chunked": (POST + b"Transfer-Encoding: chunked\r\n\r\n10000\r\n", b" "),
    "slow_grpc_hello": (HELLO[:1], HELLO[1:]),
    "slow_grpc_body": (CALL + frame(0, 1, 0, bytes(16000))[:9] + b"\0" + struct.pack(">I", 1_000_000), b"\0"),
    "slow_greeting": (GREETING[:1], GREETING[1:]),
    "slow_frame": (GREETING + struct.pack("<IB", 1 << 20, 8), b"\0"),
}
# The first bytes, and the pieces of the gigabyte that follows; a deaf client ignores the answer.
LARGE = {
    "large_body": (POST + b"Content-Length: %d\r\n\r\n" % GIGABYTE, PIECE),
    "deaf_body": (POST + b"Content-Length: %d\r\n\r\n" % GIGABYTE, PIECE),
    "large_chunked": (POST + b"Transfer-Encoding: chunked\r\n\r\n", b"40000\r\n" + PIECE + b"\r\n"),
    "large_grpc": (CALL, frame(0, 1, 0, b"\0" + struct.pack(">I", GIGABYTE) + bytes(16000)) + frame(0, 1, 0, bytes(16384)) * 15),
    "large_frame": (GREETING + struct.pack("<IB", GIGABYTE, 8), PIECE),
}


def random_bytes():
    """Pieces of all that the ports speak, cut, mixed and made up."""
    source = random.Random(7)
    whole = [POST + b"Content-Length: 2\r\n\r\n{}", CALL, GREETING + struct.pack("<IB", 17, 8) + bytes(16), b"\x16\x03\x01\x02\x00"]
    yield from (b"\0" * 64, b"\xff" * 64, b"GET\r\n\r\n", POST + b"Content-Length: x\r\n\r\n", POST + b"X: y\r\n" * 20000,
                b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n", GREETING + struct.pack("<IB", 2**31, 8),
                GREETING + struct.pack("<IB", 1, 200), HELLO + b"\xff" * 4096)
    while True:
        text = bytearray(source.choice(whole))
        for _ in range(source.randrange(1, 8)):
            text[source.randrange(len(text))] = source.randrange(256)
        yield bytes(text[: source.randrange(len(text)) + 1])


class Attack:
    """Begins at once; `report` is there when the block has ended."""

    def __init__(self, kind, address, count):
        self._command = [sys.executable, "-m", "foliot_tools.hostile", kind, address, str(count)]
        self._process = None
        self.report = None

    def __enter__(self):
        self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout.readline() == "all opened\n"
        return self

    def __exit__(self, *_):
        self.report = json.loads(self._process.communicate(timeout=60)[0])


class Attacker:
    """The loop of the process."""

    def __init__(self, kind, address, count):
        host, port = address.rsplit(":", 1)
        self._address = host, int(port)
        self._count = count
        self._first, self._then = (SLOW | LARGE).get(kind, (b"", b""))
        self._large = kind in LARGE
        self._deaf = kind == "deaf_body"
        self._random_bytes = random_bytes() if kind == "random_bytes" else None
        self._poll = select.epoll()
        self._sockets = {}  # by descriptor: socket, bytes said since the first
        self._counts = collections.Counter()
        self._answers = collections.Counter()

    def run(self):
        said = False
        for tick in itertools.count():
            self._open()
            if not said and (self._counts["opened"] >= self._count or tick * TICK > 20):
                said = print("all opened", flush=True) is None
            if select.select([sys.stdin], [], [], 0)[0]:
                break  # its end
            self._listen()
            if self._large:
                self._pour()
            elif tick % round(1 / TICK) == 0:
                self._drip()
        print(json.dumps({"opened": self._counts["opened"], "open": len(self._sockets), "closed": self._counts["closed"],
                          "unreachable": self._counts["unreachable"], "answers": dict(self._answers.most_common(10))}))

    def _open(self):
        most = OPENED_PER_TICK if self._counts["opened"] < self._count else 1
        for _ in range(min(most, self._count - len(self._sockets))):
            try:
                each = socket.create_connection(self._address, timeout=5)
                each.sendall(next(self._random_bytes) if self._random_bytes else self._first)
            except OSError:
                self._counts["unreachable"] += 1
                continue
            each.setblocking(False)
            self._sockets[each.fileno()] = [each, 0]
            self._poll.register(each.fileno(), 0 if self._deaf else select.EPOLLIN)
            self._counts["opened"] += 1

    def _listen(self):
        end = time.monotonic() + TICK
        for descriptor, _ in self._poll.poll(TICK):
            each = self._sockets[descriptor][0]
            try:
                received = each.recv(65536)
            except OSError:
                received = b""
            if received.startswith(b"HTTP/"):
                self._answers[received.split(b"\r\n")[0].decode(errors="replace")] += 1
            if not received:
                self._close(descriptor)
        time.sleep(max(0, end - time.monotonic()))

    def _close(self, descriptor):
        self._poll.unregister(descriptor)
        self._sockets.pop(descriptor)[0].close()
        self._counts["closed"] += 1

    def _drip(self):
        for descriptor, (each, said) in list(self._sockets.items()):
            if self._random_bytes:
                self._close(descriptor)  # it has had its second
            elif self._then:
                self._say(descriptor, each, said, self._then[said % len(self._then) :][:1])

    def _pour(self):
        for descriptor, (each, said) in list(self._sockets.items()):
            if said < GIGABYTE:
                self._say(descriptor, each, said, self._then[said % len(self._then) :] * (64 if self._deaf else 1))

    def _say(self, descriptor, each, said, what):
        try:
            self._sockets[descriptor][1] = said + each.send(what)
        except BlockingIOError:
            pass
        except OSError:
            self._close(descriptor)


if __name__ == "__main__":
    Attacker(sys.argv[1], sys.argv[2], int(sys.argv[3])).run()
