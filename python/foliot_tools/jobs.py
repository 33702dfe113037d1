"""What tests of jobs have in common: keys, a receiver of webhooks, and a task of two variants."""

import contextlib
import http.server
import json
import queue
import subprocess
import threading

import pytest

import foliot.jobs
from foliot_tools.server import foliot_binary

# Of the models `small` and `large`.
TASK = """
default_slo = "5s"

[[variant]]
model = "small"
accuracy = 0.8

[[variant]]
model = "large"
accuracy = 0.95
"""


def refused(call, *arguments, **keywords):
    """(status, message)"""
    with pytest.raises(foliot.jobs.JobError) as caught:
        call(*arguments, **keywords)
    return caught.value.status, str(caught.value)


def make_key(name, *scopes):
    """(entry for the file of keys, key)"""
    made = subprocess.run([foliot_binary(), "keys", "new", name, *(part for scope in scopes for part in ("--scope", scope))],
                          capture_output=True, text=True, check=True)
    return made.stdout, next(word for word in made.stderr.split() if word.startswith("foliot-"))


class Receiver(http.server.BaseHTTPRequestHandler):
    """Refuses the first notifications."""

    def do_POST(self):  # noqa: N802
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.received.put((self.path, json.loads(body)))
        self.server.count += 1
        self.send_response(500 if self.server.count <= self.server.refused else 204)
        self.end_headers()

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def receiver(refused=0):
    """A server that keeps what it is notified of in `received`, as (path, body)."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    server.received, server.count, server.refused = queue.Queue(), 0, refused
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
