"""Open-loop load over HTTP from a process of its own, every answer checked against what
the model should say, and kept.

Times are seconds of time.monotonic(), which all processes of a machine share.
"""

import asyncio
import ctypes
import dataclasses
import json
import multiprocessing
import os
import random
import re
import time

import numpy as np

CLONE_NEWNET = 0x40000000
# How long after its deadline an answer is waited for, until the request counts as hanging.
PATIENCE = 10


@dataclasses.dataclass
class Asked:
    """One request, and how it ended."""

    at: float
    deadline: float
    answered: float = None  # when the last byte of the answer was here
    outcome: str = "unanswered"  # "served", "wrong" (not what the model says), a refusal's reason, or "broken"
    detail: str = ""
    answers: int = 0

    @property
    def good(self):
        return self.outcome == "served" and self.answered <= self.deadline


CATCH_UP = 0.5  # seconds
# From the server's verdict until the client has the answer, where both are busy.
TRANSFER = 0.025


@dataclasses.dataclass
class Report:
    requests: list
    stray: int  # answers that nobody had asked for
    stalls: list  # (begin, seconds) when this process, or the front end, did not get to run

    def unanswered(self):
        return [request for request in self.requests if request.outcome == "unanswered"]

    def late_as_good(self):
        """What was served though it was late on the client's clock, by more than its own stalls explain."""
        late = [request for request in self.requests if request.outcome == "served" and not request.good]
        return [request for request in late if request.answered - request.deadline > TRANSFER + self._stalled(request)]

    def _stalled(self, request):
        return sum(min(begin + seconds, request.answered) - max(begin, request.at) for begin, seconds in self.stalls
                   if begin < request.answered and begin + seconds > request.at)


class Connection(asyncio.Protocol):
    """Keeps one request under way at a time."""

    def __init__(self, load):
        self._load = load
        self._buffer = b""
        self._answer = None
        self._asked = False
        self.transport = None

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        # A server that has too many connections says so before it is asked.
        if self._answer is None and self._asked:
            self._load.stray += 1
            return
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
            answer.set_result((time.monotonic(), int(head.split(None, 2)[1]), body[:length]))

    def connection_lost(self, error):
        self.transport = None
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionError(str(error or "closed")))

    async def ask(self, message):
        answer = self._answer = asyncio.get_running_loop().create_future()
        self._asked = True
        if self.transport is None and not self._buffer:
            raise ConnectionError("closed")
        if self.transport is not None:
            self.transport.write(message)
        self._deliver()
        return await answer


class _Load:
    def __init__(self, options):
        self.options = options
        self.requests, self.stalls, self.stray = [], [], 0
        self._idle = []
        self._draw = random.Random(options["seed"])
        self._messages = [self._message(pixels) for pixels in options["inputs"]]

    def _message(self, values):
        body = json.dumps({
            "inputs": [{"name": self.options["input_name"], "shape": [1, len(values)], "datatype": "FP32",
                        "data": [float(value) for value in values]}],
            "parameters": {"timeout": int(self.options["deadline_seconds"] * 1e6)},
        }).encode()
        return (f"POST /v2/models/{self.options['model']}/infer HTTP/1.1\r\nHost: foliot\r\n"
                f"Content-Length: {len(body)}\r\n\r\n").encode() + body

    async def run(self, stopping):
        tasks = set()
        stall_meter = asyncio.create_task(self._watch_stalls())
        due = time.monotonic()
        while not stopping.is_set():
            # What fell due while this process stood still is not made up for.
            due = max(due, time.monotonic() - CATCH_UP) + self._draw.expovariate(self.options["rate"])
            await asyncio.sleep(max(due - time.monotonic(), 0))
            task = asyncio.create_task(self._ask())
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        if tasks:
            await asyncio.wait(tasks, timeout=PATIENCE + self.options["deadline_seconds"])
        stall_meter.cancel()

    async def _watch_stalls(self):
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.001)
            if (late := time.monotonic() - before - 0.001) > 0.003:
                self.stalls.append((before, late))

    async def _ask(self):
        which = self._draw.randrange(len(self._messages))
        now = time.monotonic()
        asked = Asked(now, now + self.options["deadline_seconds"])
        self.requests.append(asked)
        try:
            connection = await self._connection()
            asked.answered, status, body = await connection.ask(self._messages[which])
            asked.answers = 1
            self._idle.append(connection)
            self._judge(asked, which, status, body)
        except OSError as error:
            asked.answered, asked.outcome, asked.detail = time.monotonic(), "broken", str(error)
            asked.answers = 1

    async def _connection(self):
        while self._idle:
            connection = self._idle.pop()
            if connection.transport is not None and not connection.transport.is_closing():
                return connection
        host, port = self.options["address"].rsplit(":", 1)
        _, connection = await asyncio.get_running_loop().create_connection(lambda: Connection(self), host, int(port))
        return connection

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
    reports.send(Report(load.requests, load.stray, load.stalls))


class HttpLoad:
    """Poisson arrivals at `address`, from its start until the block ends; then `report`.

    Each request is a row of `inputs`; `expected` holds one array of answers or several
    (of versions), by row. `namespace`: the network namespace from which it is sent.
    """

    def __init__(self, address, *, model, inputs, expected, rate, deadline_seconds, input_name="pixels", namespace=None,
                 seed=1):
        options = dict(address=address, model=model, inputs=inputs, expected=expected, rate=rate, input_name=input_name,
                       deadline_seconds=deadline_seconds, namespace=namespace, seed=seed)
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
