"""Open-loop load over HTTP from a process of its own, every answer checked against what
the model should say, and kept.

Times are seconds of time.monotonic(), which all processes of a machine share. An answer
is here when the kernel has received it, however late this process gets to it.
"""

import asyncio
import ctypes
import dataclasses
import json
import multiprocessing
import os
import random
import re
import socket
import struct
import time

import numpy as np

CLONE_NEWNET = 0x40000000
SO_TIMESTAMPNS = 35
# How long after its deadline an answer is waited for, until the request counts as hanging.
PATIENCE = 10


@dataclasses.dataclass
class Asked:
    """One request, and how it ended."""

    at: float  # before it was sent
    deadline: float
    due: float = None  # when it should have been sent
    sent: float = None  # after: it left between the two
    answered: float = None  # when the last byte of the answer was here
    outcome: str = "unanswered"  # "served", "wrong" (not what the model says), a refusal's reason, or "broken"
    detail: str = ""
    answers: int = 0
    input: int = None  # which row

    @property
    def good(self):
        return self.outcome == "served" and self.answered <= self.deadline

    @property
    def good_since_due(self):
        """In time also where this process was late to send it."""
        return self.outcome == "served" and self.answered - self.due <= self.deadline - self.at

    @property
    def late_as_good(self):
        """It took longer than its deadline however soon it left."""
        return self.outcome == "served" and self.answered - self.sent > self.deadline - self.at


CATCH_UP = 0.5  # seconds


@dataclasses.dataclass
class Report:
    requests: list
    stray: int  # answers without a request

    def unanswered(self):
        return [request for request in self.requests if request.outcome == "unanswered"]

    def late_as_good(self):
        """What was served though it was late by the client's clock."""
        return [request for request in self.requests if request.late_as_good]

    def undecided(self):
        """What was served, and late only if it left before this process was held up."""
        return [request for request in self.requests
                if request.outcome == "served" and not request.good and not request.late_as_good]


class Connection:
    """Keeps one request under way at a time."""

    def __init__(self, load, connected):
        self._load = load
        self._socket = connected
        self._buffer = b""
        self._answer = None
        self._asked = False
        asyncio.get_running_loop().add_reader(connected, self._on_readable)

    @property
    def closed(self):
        return self._socket is None

    def _on_readable(self):
        try:
            data, control, _, _ = self._socket.recvmsg(1 << 16, 64)
        except BlockingIOError:
            return
        except OSError as error:
            return self._close(error)
        if not data:
            return self._close(None)
        # A server that has too many connections says so before it is asked.
        if self._answer is None and self._asked:
            self._load.stray += 1
            return
        self._received = received_at(control)
        self._buffer += data
        self._deliver()

    def _deliver(self):
        """The answer, once it is whole."""
        head, separator, body = self._buffer.partition(b"\r\n\r\n")
        if self._answer is None or not separator:
            return
        length = int(re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)[1])
        if len(body) < length:
            return
        self._load.stray += len(body) > length
        self._buffer = b""
        answer, self._answer = self._answer, None
        if not answer.done():
            answer.set_result((self._received, int(head.split(None, 2)[1]), body[:length]))

    def _close(self, error):
        asyncio.get_running_loop().remove_reader(self._socket)
        self._socket.close()
        self._socket = None
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionError(str(error or "closed")))

    async def ask(self, message, asked):
        answer = self._answer = asyncio.get_running_loop().create_future()
        self._asked = True
        if self.closed and not self._buffer:
            raise ConnectionError("closed")
        if not self.closed:
            asked.at = time.monotonic()
            asked.deadline = asked.at + self._load.options["deadline_seconds"]
            if self._socket.send(message) < len(message):
                raise ConnectionError("a request did not fit into the socket")
        asked.sent = time.monotonic()
        self._deliver()
        return await answer


def received_at(control):
    """When the kernel had it, by its stamp on the wall clock."""
    for level, kind, stamp in control:
        if (level, kind) == (socket.SOL_SOCKET, SO_TIMESTAMPNS):
            seconds, nanoseconds = struct.unpack("qq", stamp)
            return time.monotonic() - max(time.time() - seconds - nanoseconds / 1e9, 0)
    return time.monotonic()


class _Load:
    def __init__(self, options):
        self.options = options
        self.requests, self.stray = [], 0
        self._idle = []
        self._draw = random.Random(options["seed"])
        self._messages = [self._message(pixels) for pixels in options["inputs"]]

    def _message(self, values):
        body = json.dumps({
            "inputs": [{"name": self.options["input_name"], "shape": [1, len(values)], "datatype": "FP32",
                        "data": [float(value) for value in values]}],
            "parameters": {"timeout": int((self.options["deadline_seconds"] - self.options["way_seconds"]) * 1e6)},
        }).encode()
        return (f"POST /v2/models/{self.options['model']}/infer HTTP/1.1\r\nHost: foliot\r\n"
                f"{self.options['header']}Content-Length: {len(body)}\r\n\r\n").encode() + body

    async def run(self, stopping):
        tasks = set()
        due = time.monotonic()
        while not stopping.is_set():
            # What fell due while this process stood still is not made up for.
            due = max(due, time.monotonic() - CATCH_UP) + self._draw.expovariate(self.options["rate"])
            await asyncio.sleep(max(due - time.monotonic(), 0))
            task = asyncio.create_task(self._ask(due))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        if tasks:
            await asyncio.wait(tasks, timeout=PATIENCE + self.options["deadline_seconds"])

    async def _ask(self, due):
        which = self._draw.randrange(len(self._messages))
        now = time.monotonic()
        asked = Asked(now, now + self.options["deadline_seconds"], due, input=which)
        self.requests.append(asked)
        try:
            connection = await self._connection()
            asked.answered, status, body = await connection.ask(self._messages[which], asked)
            asked.answers = 1
            self._idle.append(connection)
            self._judge(asked, which, status, body)
        except OSError as error:
            asked.answered, asked.outcome, asked.detail = time.monotonic(), "broken", str(error)
            asked.answers = 1

    async def _connection(self):
        while self._idle:
            connection = self._idle.pop()
            if not connection.closed:
                return connection
        host, port = self.options["address"].rsplit(":", 1)
        connecting = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        connecting.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        connecting.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            await asyncio.get_running_loop().sock_connect(connecting, (host, int(port)))
        except OSError:
            connecting.close()
            raise
        return Connection(self, connecting)

    def _judge(self, asked, which, status, body):
        answer = json.loads(body or b"{}")
        if status != 200:
            asked.outcome, asked.detail = answer.get("reason", str(status)), answer.get("error", "")
            return
        said = np.array(answer["outputs"][0]["data"], np.float32)
        right = any(np.allclose(said, expected[which], rtol=1e-3, atol=1e-5) for expected in self.options["expected"])
        asked.outcome = "served" if right else "wrong"


def _work(options, stopping, reports):
    if options["namespace"]:
        with open(f"/run/netns/{options['namespace']}") as namespace:
            if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    load = _Load(options)
    asyncio.run(load.run(stopping))
    reports.send(Report(load.requests, load.stray))


class HttpLoad:
    """Poisson arrivals at `address`, from its start until the block ends; then `report`.

    Each request is a row of `inputs`; `expected` holds one array of answers or several
    (of versions), by row. `way_seconds`: how much of the deadline is left to the way there
    and back. `namespace`: the network namespace from which it is sent. `key`: that it shows.
    """

    def __init__(self, address, *, model, inputs, expected, rate, deadline_seconds, way_seconds=0.005,
                 input_name="pixels", namespace=None, seed=1, key=None):
        options = dict(address=address, model=model, inputs=inputs, expected=expected, rate=rate, input_name=input_name,
                       deadline_seconds=deadline_seconds, way_seconds=way_seconds, namespace=namespace, seed=seed,
                       header=f"Authorization: Bearer {key}\r\n" if key else "")
        context = multiprocessing.get_context("fork")
        self._stopping = context.Event()
        self._reports, theirs = context.Pipe(duplex=False)
        self._process = context.Process(target=_work, args=(options, self._stopping, theirs), daemon=True)
        self._theirs = theirs
        self.report = None

    def __enter__(self):
        self._process.start()
        self._theirs.close()
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        self._stopping.set()
        self.report = self._reports.recv()
        self._process.join()
        return self.report
