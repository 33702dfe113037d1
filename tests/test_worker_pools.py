"""A controller that starts and stops workers: child processes, and pods of a server that speaks
Kubernetes' scale subresource."""

import http.server
import json
import os
import re
import signal
import subprocess
import threading

import pytest

from foliot_tools.cluster import Part
from foliot_tools.server import foliot_binary
from foliot_tools.waiting import await_output, eventually

# One takes some 380 requests a second, one row at a time within 20 ms more.
EMULATE = ["worker", "--emulate", "resnet50:3"]
ENOUGH_FOR_TWO = "1500"


def write_pools(tmp_path, text):
    file = tmp_path / "pools.toml"
    file.write_text(text)
    return file


def quoted(words):
    return json.dumps(list(words))


@pytest.fixture(name="start")
def started_controller(tmp_path):
    """Starts a controller with a pool file, which ends with the test."""
    parts = []

    def run(text, **options):
        part = Part(tmp_path / f"controller{len(parts)}.log", "controller", listen="127.0.0.1:0",
                    worker_pools=write_pools(tmp_path, text), **options)
        parts.append(part)
        return part

    yield run
    for part in parts:
        if part.process.poll() is None:
            part.kill()


def port_of(controller):
    return int(controller.await_line(r"ready: port (\d+)")[1])


def devices_of(port, rate="50", duration="300ms"):
    """How many serve, as a load sees it."""
    result = subprocess.run([foliot_binary(), "bench-controller", f"127.0.0.1:{port}", "--rate", rate, "--deadline",
                             "2s", "--duration", duration], capture_output=True, text=True, timeout=60)
    found = re.search(r"controller   (\d+) device", result.stdout)
    return int(found[1]) if found else 0


def load_until(port, devices):
    eventually(lambda: devices_of(port, rate=ENOUGH_FOR_TWO, duration="2s") >= devices, timeout=90)


def children_of(process):
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True, text=True)
    return [int(pid) for pid in listed.stdout.split()]


def is_alive(pid):
    try:
        os.kill(pid, 0)
        return True
    except ProcessLookupError:
        return False


PROCESSES = f"""
start_up = "1s"
[[kind]]
name = "cpu"
workers_most = 2
command = {quoted(["foliot", *EMULATE])}
"""


def test_child_processes_come_with_the_load_and_leave_after_it(start):
    controller = start(PROCESSES)
    port = port_of(controller)
    controller.await_line("kind 'cpu' is to have 1 worker$|kind 'cpu' is to have 1 worker\n")
    controller.await_line("cpu-0: ready: 1 workers")
    load_until(port, 2)
    await_output(controller, "cpu-1: started")
    controller.await_line(r"cpu-1: has left \(exit code 0\)")
    eventually(lambda: devices_of(port) == 1)
    assert controller.stop() == 0
    await_output(controller, "cpu-0: has left (exit code 0)")


def test_a_worker_that_is_killed_comes_again(start):
    controller = start(PROCESSES)
    port = port_of(controller)
    controller.await_line("cpu-0: ready: 1 workers")
    (worker,) = children_of(controller.process)
    os.kill(worker, signal.SIGKILL)
    controller.await_line(r"cpu-0: ended by itself \(signal 9 \(Killed\)\); it is started again in 1 s")
    controller.await_line("cpu-0: ready: 1 workers", count=2)
    eventually(lambda: devices_of(port) == 1)


def test_workers_end_with_a_controller_that_is_killed(start):
    controller = start(PROCESSES)
    controller.await_line("cpu-0: ready: 1 workers")
    (worker,) = children_of(controller.process)
    controller.kill()
    eventually(lambda: not is_alive(worker))


def test_a_command_that_fails_is_shown(start):
    controller = start(PROCESSES.replace("resnet50:3", "resnet51"))
    controller.await_line("cpu-0: foliot worker: .*there is no profile 'resnet51'")
    controller.await_line(r"cpu-0: ended by itself \(exit code 1\); it is started again in 2 s")
    assert controller.stop() == 0


def test_the_most_is_named_once_where_more_are_needed(start):
    controller = start(PROCESSES.replace("workers_most = 2", "workers_most = 1"))
    port = port_of(controller)
    controller.await_line("cpu-0: ready")
    line = "kind 'cpu' needs another worker, and has its maximum of 1; raise it"
    eventually(lambda: devices_of(port, rate=ENOUGH_FOR_TWO, duration="2s") and line in controller.output(), timeout=90)
    devices_of(port, rate=ENOUGH_FOR_TWO, duration="5s")
    assert controller.output().count(line) <= 3, "once each time that it begins"


class Scales(http.server.BaseHTTPRequestHandler):
    """The scale subresource of one StatefulSet, whose pods are emulated workers."""

    def do_GET(self):
        self.answer(self.server.pods.replicas)

    def do_PATCH(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.pods.patched(self.headers, body)
        self.answer(body["spec"]["replicas"])

    def answer(self, replicas):
        pods = self.server.pods
        allowed = self.headers["Authorization"] == "Bearer token-of-a-test"
        ours = self.path == "/apis/apps/v1/namespaces/ml/statefulsets/foliot-worker/scale"
        code = 403 if not allowed or pods.forbidden else 200 if ours else 404
        body = {"kind": "Scale", "spec": {"replicas": replicas}} if code == 200 else {
            "kind": "Status", "message": "statefulsets.apps \"foliot-worker\" is forbidden"}
        text = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


class Pods:
    """A StatefulSet: as many workers as there are replicas, the last of which leaves first."""

    def __init__(self, folder):
        self.folder = folder
        self.replicas = 0
        self.forbidden = False
        self.controller = None
        self.workers = []
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Scales)
        self.server.pods = self
        self.lock = threading.Lock()
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def patched(self, headers, body):
        assert headers["Content-Type"] == "application/merge-patch+json"
        if self.forbidden:
            return
        with self.lock:
            self.replicas = body["spec"]["replicas"]
            while len(self.workers) < self.replicas:
                name = f"foliot-worker-{len(self.workers)}"
                self.workers.append(Part(self.folder / f"{name}.log", *EMULATE, controller=self.controller, name=name,
                                         kind="fast"))
            while len(self.workers) > self.replicas:
                assert self.workers.pop().stop() == 0

    def close(self):
        self.server.shutdown()
        for worker in self.workers:
            worker.kill()


@pytest.fixture(name="pods")
def stateful_set(tmp_path):
    pods = Pods(tmp_path)
    yield pods
    pods.close()


def pools_of(pods, tmp_path):
    token = tmp_path / "token"
    token.write_text("token-of-a-test\n")
    return f"""
start_up = "1s"
[kubernetes]
server = "{pods.url}"
token_file = "{token}"
[[kind]]
name = "fast"
workers_most = 2
stateful_set = "ml/foliot-worker"
"""


def test_pods_come_with_the_load_and_leave_after_it(start, pods, tmp_path):
    pods.forbidden = True
    controller = start(pools_of(pods, tmp_path))
    pods.controller = f"127.0.0.1:{port_of(controller)}"
    controller.await_line("kind 'fast'.*answers 403: statefulsets.apps \"foliot-worker\" is forbidden; "
                          "the service account needs `get` and `patch` on statefulsets/scale")
    pods.forbidden = False
    eventually(lambda: devices_of(port_of(controller)) == 1)
    load_until(port_of(controller), 2)
    assert pods.replicas == 2
    eventually(lambda: pods.replicas == 1)
    eventually(lambda: devices_of(port_of(controller)) == 1)
    assert controller.stop() == 0
    assert pods.replicas == 1, "pods stay"


@pytest.mark.parametrize("text, error", [
    ("", "needs a [[kind]] of workers"),
    ("[[kind]]\nname = 'cpu'", "pools.toml:1: needs either 'command', a list of texts, or 'stateful_set'"),
    ("[[kind]]\nname = 'c u'\ncommand = ['foliot']", "'name' is 'c u', and must be 1 to 64 letters"),
    ("[[kind]]\nname = 'cpu'\nstateful_set = 'a/b/c'", "'stateful_set' is 'a/b/c', and must be NAMESPACE/NAME"),
    ("[[kind]]\nname = 'cpu'\ncommand = ['foliot']\nworkers_least = 3\nworkers_most = 2",
     "'workers_least' is 3, and must not be above workers_most, which is 2"),
    ("[[kind]]\nname = 'cpu'\ncommand = ['foliot']\nworkers_least = 0", "workers_least"),
    ("[[kind]]\nname = 'cpu'\ncommand = ['foliot']\n[[kind]]\nname = 'cpu'\ncommand = ['foliot']", "'cpu' is there already"),
    ("hourly_budget = 0\n[[kind]]\nname = 'cpu'\ncommand = ['foliot']", "hourly_budget"),
    ("[[kind]]\nname = 'cpu'\ncommand = 'foliot worker models'",
     "'command' is the text 'foliot worker models', and must be a list with a text for each word"),
    ("[kubernetes]\nserver = 'kube'\n[[kind]]\nname = 'cpu'\nstateful_set = 'b'", "'server' is 'kube', and must begin with"),
    ("[[kind]]\nname = 'cpu'\ncommand = ['foliot']\ncopies = 3", "copies"),
])
def test_a_pool_file_that_is_wrong_is_named(tmp_path, text, error):
    result = subprocess.run([foliot_binary(), "controller", "--listen", "127.0.0.1:0", "--worker-pools",
                             write_pools(tmp_path, text)], capture_output=True, text=True, timeout=30)
    assert result.returncode == 1
    assert error in result.stderr


def test_a_pool_file_that_is_not_there_is_named(tmp_path):
    result = subprocess.run([foliot_binary(), "controller", "--worker-pools", tmp_path / "none.toml"],
                            capture_output=True, text=True, timeout=30)
    assert result.returncode == 1
    assert "none.toml" in result.stderr
