"""Starts and stops a real `foliot serve`."""

import contextlib
import json
import math
import os
import pathlib
import random
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request

from foliot_tools.waiting import eventually

ROOT = pathlib.Path(__file__).resolve().parents[2]


def foliot_binary():
    """The program under test: $FOLIOT, or what `make build` made."""
    return os.environ.get("FOLIOT", str(ROOT / "build/release/bin/foliot"))


def free_ports(count):
    """`count` free loopback ports, of those that no outgoing connection is given before they are used."""
    outgoing = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    ports = set()
    while len(ports) < count:
        port = random.SystemRandom().randrange(10_000, max(outgoing, 20_000))
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            ports.add(port)
    return list(ports)


def metrics_of(port):
    """The Prometheus page as {'name{label="value"}': number}."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as response:
        lines = response.read().decode().splitlines()
    samples = (line.rsplit(" ", 1) for line in lines if line and not line.startswith("#"))
    return {name: float(value) for name, value in samples}


class ServerFailed(Exception):
    """The server ended instead of becoming ready; the message is what it said."""

    def __init__(self, exit_code, output):
        super().__init__(f"foliot serve ended with {exit_code}:\n{output}")
        self.exit_code = exit_code
        self.output = output


@contextlib.contextmanager
def frozen(process):
    """All threads of a server, or of a part of a cluster, stand still within the block; what is sent waits in sockets."""
    os.kill(process.pid, signal.SIGSTOP)
    try:
        for task in pathlib.Path(f"/proc/{process.pid}/task").iterdir():
            eventually(lambda task=task: (task / "stat").read_text().rpartition(")")[2].split()[0] == "T")
        yield
    finally:
        os.kill(process.pid, signal.SIGCONT)


class Server:
    """One `foliot serve` on free loopback ports, stopped when the block ends.

    `options` become flags: page_cache="64MiB" is --page-cache 64MiB, and True is none behind it. All that
    the server prints goes to the file `console`. `prefix` goes before the command; it must
    end by exec'ing the rest.
    """

    def __init__(self, repository, console, *, ready_timeout=300, foliot=None, prefix=(), preexec=None, **options):
        self.http_port, self.grpc_port, self.metrics_port = free_ports(3)
        options = {
            "http_port": self.http_port,
            "grpc_port": self.grpc_port,
            "metrics_port": self.metrics_port,
            **options,
        }
        self.console = pathlib.Path(console)
        self.command = [*prefix, str(foliot or foliot_binary()), "serve", str(repository)]
        for name, value in options.items():
            self.command += ["--" + name.replace("_", "-"), *([] if value is True else [str(value)])]
        self._ready_timeout = ready_timeout
        self._preexec = preexec
        self.process = None
        self.stopped = False
        self.seconds_to_ready = None

    @property
    def http(self):
        return f"127.0.0.1:{self.http_port}"

    @property
    def grpc(self):
        return f"127.0.0.1:{self.grpc_port}"

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()

    def start(self):
        """Returns once the server says that it is ready. Raises ServerFailed."""
        begin = time.monotonic()
        with open(self.console, "wb") as console:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=console, stderr=subprocess.STDOUT, preexec_fn=self._preexec
            )
        try:
            eventually(self._ready, self._ready_timeout, lambda: f"not ready:\n{self.output()}", interval_seconds=0.005)
        except AssertionError as error:
            self.process.kill()
            self.process.wait()
            raise ServerFailed(None, str(error)) from error
        self.seconds_to_ready = time.monotonic() - begin
        return self

    def _ready(self):
        exit_code = self.process.poll()
        if any(line.startswith("ready:") for line in self.output().splitlines()):
            return True
        if exit_code is not None:
            raise ServerFailed(exit_code, self.output())
        return False

    def stop(self, by=signal.SIGTERM, timeout=30):
        """Lets the server drain and end; returns its exit code."""
        self.stopped = True
        if self.process.poll() is None:
            self.process.send_signal(by)
            try:
                self.process.wait(timeout)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                raise
        return self.process.returncode

    def output(self):
        """All that the server has printed; progress bars count as lines."""
        return self.console.read_text(errors="replace").replace("\r", "\n") if self.console.exists() else ""

    def alive(self):
        return self.process.poll() is None

    def memory_bytes(self):
        """Resident memory of the server now."""
        pages = int(pathlib.Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def processor_seconds(self):
        """Used by the server so far, without its children."""
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def wait_until_idle(self, timeout=180):
        """Returns once the server hardly uses the processor: what a client left behind is over."""
        seconds = [-math.inf]

        def idle():
            seconds.append(self.processor_seconds())
            return seconds[-1] - seconds[-2] < 0.015

        eventually(idle, timeout, lambda: "the server is still busy", interval_seconds=0.1)

    def get(self, path):
        """(status, decoded JSON or None) of an HTTP GET."""
        return self.request("GET", path)

    def post(self, path, body=b"", headers=None):
        """(status, decoded JSON or None) of an HTTP POST of bytes, or of a value as JSON."""
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
        return self.request("POST", path, body, headers)

    def request(self, method, path, body=None, headers=None):
        request = urllib.request.Request(f"http://{self.http}{path}", body, headers or {}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                status, content = response.status, response.read()
        except urllib.error.HTTPError as error:
            status, content = error.code, error.read()
        try:
            return status, json.loads(content)
        except ValueError:
            return status, None

    def metrics(self):
        return metrics_of(self.metrics_port)
