"""A client of a controller's request link (src/cluster/transport/message.h), as a front end is
one, for requests without inputs: open-loop load of which every answer is kept.

Times are seconds of time.monotonic(). The controller is on the same machine, where that
is its clock, too; so no times are exchanged, and its verdicts can be checked against them.
"""

import dataclasses
import random
import select
import socket
import struct
import time

MAGIC, VERSION, CLIENT = 0x544C4F46, 27, 2
GREETING = "<IHBBQ"  # magic, version, role, whether it stands by, epoch
GOODBYE, MODELS, REQUEST, COMPLETION, STATISTICS_REQUEST, STATISTICS, WORKERS = 0, 7, 8, 10, 11, 12, 15
REFUSALS = ("served", "unmeetable", "overload", "expired", "late", "worker_lost", "unloaded", "cancelled", "draining",
            "disconnected", "over_share", "model_error")
# After these the client may try again; the others say that it is no use.
RETRYABLE = {"overload", "expired", "late", "worker_lost", "draining", "disconnected", "over_share"}


def greeting(role, version=VERSION):
    return struct.pack(GREETING, MAGIC, version, role, 0, 0)


class Reader:
    """The fields of a frame, one after another."""

    def __init__(self, body):
        self.body, self.at = body, 0

    def get(self, form):
        (value,) = struct.unpack_from("<" + form, self.body, self.at)
        self.at += struct.calcsize("<" + form)
        return value

    def text(self):
        size = self.get("I")
        self.at += size
        return self.body[self.at - size : self.at].decode()

    def list(self, get):
        return [get() for _ in range(self.get("I"))]


def read_model(reader):
    """(id, name) of a model; the rest is passed over."""

    def tensor():
        reader.text(), reader.get("B"), reader.list(lambda: reader.get("q")), reader.list(reader.text)
        reader.list(reader.text)
        if reader.get("B"):  # rows that vary have a bound
            reader.list(lambda: reader.get("q")), reader.get("Q")

    def bucket():
        reader.list(lambda: (reader.text(), reader.get("q")))

    def runnable():
        reader.text(), reader.list(lambda: reader.get("I")), reader.get("I"), reader.get("q")
        reader.list(lambda: reader.list(lambda: reader.get("q"))), reader.list(lambda: reader.get("H"))

    model = reader.get("I"), reader.text()
    reader.text(), reader.text(), reader.get("B")
    reader.list(tensor), reader.list(tensor), reader.list(bucket)
    reader.list(runnable), reader.get("q"), reader.get("d"), reader.get("q"), reader.get("B")
    reader.get("B")  # from the file of a framework
    return model


@dataclasses.dataclass
class Asked:
    """One request, and how it ended."""

    at: float
    deadline: float
    answered: float = None  # when its first answer was here
    outcome: str = "unanswered"  # of REFUSALS, afterwards
    finished: float = None  # when the controller says that the answer was ready
    cold: bool = False  # it waited for a LOAD
    answers: int = 0  # one, unless a promise is broken

    @property
    def good(self):
        """Served, and by its deadline on this side's clock."""
        return self.outcome == "served" and self.answered <= self.deadline

    def end(self, outcome, finished=None, cold=False):
        self.answers += 1
        if self.answers == 1:
            self.answered, self.outcome, self.finished, self.cold = time.monotonic(), outcome, finished, cold


class Link:
    """A connection to the controller at HOST:PORT; sought again when it is lost."""

    def __init__(self, address):
        host, port = address.rsplit(":", 1)
        self._address = host, int(port)
        self._socket = None
        self._received = bytearray()
        self._unsent = bytearray()
        self._next_id = 1
        self._in_flight = {}  # of this connection, by id
        self.models = []
        self.devices = 0  # that serve now
        self.requests = []
        self.goodbyes = []
        self.statistics = None

    def connected(self):
        """Connected, with models to ask for."""
        return self._socket is not None and bool(self.models)

    def connect(self):
        """One attempt; whether there is a connection now."""
        if self._socket is None:
            try:
                self._socket = socket.create_connection(self._address, timeout=2)
            except OSError:
                return False
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._socket.setblocking(False)
            self._received.clear()
            self._unsent = bytearray(greeting(CLIENT))
        return True

    def close(self):
        if self._socket is not None:
            self._lost()

    def ask(self, deadline_seconds, model, tenant=0, weight=1):
        """Sends a request of a tenant (0: none), or ends it at once as a front end without a controller does."""
        now = time.monotonic()
        request = Asked(now, now + deadline_seconds)
        self.requests.append(request)
        if not self.connected():
            return request.end("disconnected")
        # Of no pipeline and no task, without a reference to held inputs, and without consumers.
        self._send(REQUEST, struct.pack("<QIIIHQIHqqqII??", self._next_id, model, 0, 0, 0, 0, 0, 0, int(now * 1e9),
                                        int(request.deadline * 1e9), 0, tenant, weight, False, False))
        self._in_flight[self._next_id] = request
        self._next_id += 1

    def ask_statistics(self):
        self.statistics = None
        self._send(STATISTICS_REQUEST, b"")

    def turn(self, timeout):
        """Writes what waits, and reads what has come within `timeout` seconds."""
        if self._socket is None:
            time.sleep(min(timeout, 0.01))
            return
        readable, writable, _ = select.select([self._socket], [self._socket] if self._unsent else [], [], max(timeout, 0))
        try:
            if writable:
                del self._unsent[: self._socket.send(self._unsent)]
            if readable:
                data = self._socket.recv(1 << 20)
                if not data:
                    return self._lost()
                self._received += data
        except OSError:
            return self._lost()
        self._read_frames()

    def _send(self, kind, body):
        self._unsent += struct.pack("<IB", len(body) + 1, kind) + body

    def _lost(self):
        self._socket.close()
        self._socket = None
        self.models, self.devices = [], 0
        for request in self._in_flight.values():
            if request.answers == 0:
                request.end("disconnected")
        self._in_flight.clear()

    def _read_frames(self):
        if self._received[:4] == struct.pack("<I", MAGIC) and len(self._received) >= struct.calcsize(GREETING):
            del self._received[: struct.calcsize(GREETING)]
        while len(self._received) >= 4:
            (length,) = struct.unpack_from("<I", self._received)
            if len(self._received) < 4 + length:
                return
            kind, body = self._received[4], bytes(self._received[5 : 4 + length])
            del self._received[: 4 + length]
            self._on_frame(kind, Reader(body))

    def _on_frame(self, kind, reader):
        if kind == COMPLETION:
            self._on_completion(reader)
        elif kind == MODELS:
            self.models = reader.list(lambda: read_model(reader))
        elif kind == WORKERS:
            workers = reader.list(lambda: (reader.text(), reader.text(), reader.list(lambda: reader.get("I"))))
            self.devices = sum(len(devices) for _, _, devices in workers)
        elif kind == GOODBYE:
            self.goodbyes.append(reader.text())
        elif kind == STATISTICS:
            names = ("elapsed", "devices", "requests", "served", "actions")
            self.statistics = dict(zip(names, (reader.get(form) for form in "qIQQQ")))

    def _on_completion(self, reader):
        number, _, _, _, _, refusal = (reader.get(form) for form in "QIIIQB")  # model, pipeline, task, payload
        reader.text()
        _, _, finished, _ = (reader.get("q") for _ in range(4))
        _, cold = reader.get("I"), bool(reader.get("B"))
        # It stays in the table, so that a second answer is noticed.
        self._in_flight[number].end(REFUSALS[refusal], finished / 1e9, cold)


def poisson_load(link, *, rate, seconds, deadline_seconds, seed, each_turn=lambda now: None):
    """Asks for models at random for so long, then waits until all is answered, or 5 s.

    `each_turn` is called some hundred times a second. Returns the requests of this time.
    """
    draw = random.Random(seed)
    first = len(link.requests)
    begin = time.monotonic()
    due = begin + draw.expovariate(rate)
    while (now := time.monotonic()) < begin + seconds:
        link.connect()
        while due <= now:
            link.ask(deadline_seconds, draw.choice(link.models)[0] if link.models else 0)
            due += draw.expovariate(rate)
        each_turn(now)
        link.turn(min(due - now, 0.005))
    asked = link.requests[first:]
    deadline = time.monotonic() + 5
    while not all(request.answers for request in asked) and time.monotonic() < deadline:
        link.turn(0.01)
    return asked


def await_devices(link, count, timeout=180):
    """Until so many devices serve; returns how long that took."""
    begin = time.monotonic()
    while not (link.connected() and link.devices == count):
        if time.monotonic() > begin + timeout:
            raise AssertionError(f"{link.devices} devices serve after {timeout} s, not {count}")
        link.connect()
        link.turn(0.005)
    return time.monotonic() - begin
