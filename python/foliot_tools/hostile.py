"""Hostile clients, in a process of their own: many silent connections, requests that
come a byte a second, bodies of a gigabyte, requests that cost much, answers that are not read, random bytes.

    with Attack("slow_body", "127.0.0.1:8000", 1000) as attack:
        ...
    attack.report  # {"opened": ..., "open": ..., "closed": ..., "answers": {"HTTP/1.1 408 ...": 17}}

What the server closes is opened again, a hundred times a second at most. What is sent is in `hostile_texts`.
"""

import collections
import itertools
import json
import select
import socket
import subprocess
import sys
import time

from foliot_tools.hostile_texts import GIGABYTE, text_of

TICK = 0.01
OPENED_PER_TICK = 50  # at first, then one


class Attack:
    """Begins at once; `report` is there when the block has ended.

    `key`: that it shows. `sources`: of how many addresses, 127.1.0.1 and so on, it comes; 0: of the usual one.
    `prefix` goes before the command."""

    def __init__(self, kind, address, count, key="", sources=0, prefix=()):
        self._command = [*prefix, sys.executable, "-m", "foliot_tools.hostile", kind, address, str(count), key, str(sources)]
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

    def __init__(self, kind, address, count, key, sources):
        host, port = address.rsplit(":", 1)
        self._address = host, int(port)
        self._count = count
        self._sources = itertools.cycle([("127.1.0.%d" % (i + 1), 0) for i in range(sources)] or [None])
        self._text = text_of(kind, key)
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
            if self._text.pours:
                self._pour()
            elif tick % round(1 / TICK) == 0:
                self._drip()
        print(json.dumps({"opened": self._counts["opened"], "open": len(self._sockets), "closed": self._counts["closed"],
                          "unreachable": self._counts["unreachable"], "answers": dict(self._answers.most_common(10))}))

    def _open(self):
        most = OPENED_PER_TICK if self._counts["opened"] < self._count else 1
        for _ in range(min(most, self._count - len(self._sockets))):
            try:
                each = self._connected()
                each.sendall(next(self._text.first))
                if self._text.closes == "half":
                    each.shutdown(socket.SHUT_WR)
            except OSError:
                self._counts["unreachable"] += 1
                continue
            self._counts["opened"] += 1
            if self._text.closes == "all":
                each.close()
                self._counts["closed"] += 1
                continue
            each.setblocking(False)
            self._sockets[each.fileno()] = [each, 0]
            self._poll.register(each.fileno(), select.EPOLLIN if self._text.reads else 0)

    def _connected(self):
        each = socket.socket()
        each.settimeout(5)
        if self._text.reads < 65536:
            each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 10)  # so that the rest waits in the server
        if source := next(self._sources):
            each.bind(source)
        each.connect(self._address)
        return each

    def _listen(self):
        end = time.monotonic() + TICK
        for descriptor, _ in self._poll.poll(TICK):
            each = self._sockets[descriptor][0]
            try:
                received = each.recv(self._text.reads)
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
            if self._text.closes == "each second":
                self._close(descriptor)
            elif self._text.then:
                self._say(descriptor, each, said, self._text.then[said % len(self._text.then) :][:1])

    def _pour(self):
        for descriptor, (each, said) in list(self._sockets.items()):
            if said < GIGABYTE:
                self._say(descriptor, each, said, self._text.then[said % len(self._text.then) :] * self._text.pours)

    def _say(self, descriptor, each, said, what):
        try:
            self._sockets[descriptor][1] = said + each.send(what)
        except BlockingIOError:
            pass
        except OSError:
            self._close(descriptor)


if __name__ == "__main__":
    Attacker(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4], int(sys.argv[5])).run()
