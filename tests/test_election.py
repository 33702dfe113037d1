"""Two controllers, of which one leads: what clients see of it when that one is killed, stands still, or leaves, with
each store of the record of the leader."""

import contextlib
import http.server
import json
import os
import re
import signal
import statistics
import subprocess
import threading
import time

import numpy as np
import pytest
import tritonclient.http as triton

from foliot_tools.cluster import Cluster, Part
from foliot_tools.etcd import Etcd
from foliot_tools.redis import Redis
from foliot_tools.server import foliot_binary, free_ports
from foliot_tools.waiting import await_output, eventually

# How often the leader is killed, and stopped; the gaps in the answers are printed.
TRIALS = int(os.environ.get("FOLIOT_FAILOVERS", "2"))
LEADS = r"this controller leads with epoch (\d+)"


class Lease:
    """A stand-in for the API server of Kubernetes: one Lease, changed by its resourceVersion. It checks what it is sent
    against the fields that the published schema has."""

    FIELDS = {"apiVersion", "kind", "metadata", "spec"}
    METADATA = {"name", "namespace", "annotations", "resourceVersion"}
    SPEC = {"holderIdentity", "leaseDurationSeconds", "leaseTransitions"}
    PATH = "/apis/coordination.k8s.io/v1/namespaces/ml/leases"

    def __init__(self):
        self.lease, self.version, self.lock = None, 100, threading.Lock()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def answer(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                with outer.lock:
                    code, answer = outer.on_call(self.command, self.path, body)
                text = json.dumps(answer).encode()
                self.send_response(code)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            do_GET = do_PUT = do_POST = answer

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = "kubernetes://ml/foliot"

    def on_call(self, method, path, body):
        if (method, path) == ("GET", f"{self.PATH}/foliot"):
            return (200, self.lease) if self.lease else (404, {"message": "not found"})
        given = json.loads(body)
        known = set(given) <= self.FIELDS and set(given["metadata"]) <= self.METADATA and set(given["spec"]) <= self.SPEC
        if not known or given["spec"]["leaseDurationSeconds"] < 1:
            return 422, {"message": "no valid Lease"}
        made = (method, path) == ("POST", self.PATH) and self.lease is None
        changed = ((method, path) == ("PUT", f"{self.PATH}/foliot") and self.lease is not None and
                   given["metadata"]["resourceVersion"] == self.lease["metadata"]["resourceVersion"])
        if not made and not changed:
            return 409, {"message": "it has been modified"}
        self.version += 1
        self.lease = {**given, "metadata": {**given["metadata"], "resourceVersion": str(self.version)}}
        return (201 if made else 200), self.lease

    def __enter__(self):
        os.environ["FOLIOT_KUBERNETES_SERVER"] = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        del os.environ["FOLIOT_KUBERNETES_SERVER"]
        self.server.shutdown()


class ElectedCluster(Cluster):
    """As Cluster, with two controllers that agree on one by `store`."""

    def __init__(self, folder, repository, store, **options):
        super().__init__(folder, repository, **options)
        self.store = store
        self.controllers = []

    def __enter__(self):
        addresses = [f"127.0.0.1:{port}" for port in free_ports(2)]
        self.address = ",".join(addresses)
        for i, address in enumerate(addresses):
            self.controllers.append(Part(self.folder / f"controller{i}.log", "controller", listen=address,
                                         advertise=address, election=self.store.address))
            self.controllers[-1].await_line("ready:")
        self.controller = self.controllers[0]
        for _ in range(self.counts[0]):
            self.add_worker()
        for _ in range(self.counts[1]):
            self.add_frontend()
        return self

    def __exit__(self, *_):
        for controller in self.controllers:
            controller.process.send_signal(signal.SIGCONT)
            controller.kill()
        super().__exit__()

    def epochs(self, controller):
        """With which it has led."""
        return [int(epoch) for epoch in re.findall(LEADS, controller.output())]

    def leader(self):
        return max(self.controllers, key=lambda controller: max(self.epochs(controller), default=0))

    def standby(self):
        return min(self.controllers, key=lambda controller: max(self.epochs(controller), default=0))


class Load:
    """Threads that ask a front end for `dense`, call after call with a deadline of 5 s, and check the answers."""

    def __init__(self, cluster, threads=4):
        self.http = cluster.frontends[0].http
        self.ends = []  # when each call ended, and what is wrong with it: empty for nothing
        self.over = threading.Event()
        self.threads = [threading.Thread(target=self.call_on) for _ in range(threads)]

    def call_on(self):
        pixels = np.full((1, 64), 0.5, np.float32)
        request = triton.InferInput("pixels", [1, 64], "FP32")
        request.set_data_from_numpy(pixels)
        expected = None
        with triton.InferenceServerClient(self.http, network_timeout=60, connection_timeout=60) as client:
            while not self.over.is_set():
                wrong = ""
                try:
                    answer = client.infer("dense", [request], timeout=5_000_000).as_numpy("probabilities")
                    expected = answer if expected is None else expected
                    # Each worker has compiled its own kernels, chosen by measuring: the last bits may differ.
                    wrong = "" if np.allclose(answer, expected, rtol=1e-5) else "another answer"
                except Exception as error:  # noqa: BLE001: whatever the client raises is an answer that failed
                    wrong = str(error)
                self.ends.append((time.monotonic(), wrong))
                time.sleep(0.005)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        eventually(lambda: self.served() > 50)
        return self

    def __exit__(self, *_):
        self.over.set()
        for thread in self.threads:
            thread.join()

    def served(self):
        return sum(not wrong for _, wrong in self.ends)

    def await_more(self, count=50, timeout=60):
        before = self.served()
        eventually(lambda: self.served() >= before + count, timeout)

    def failures(self):
        return [wrong for _, wrong in self.ends if wrong]

    def gap_after(self, instant):
        """The longest time without an answer from then on."""
        times = [instant, *sorted(at for at, wrong in list(self.ends) if at >= instant and not wrong)]
        return max(later - earlier for earlier, later in zip(times, times[1:]))


STORES = {"redis": Redis, "etcd": Etcd, "lease": lambda _: Lease()}


@pytest.fixture(name="store", params=STORES)
def running_store(request, tmp_path):
    with STORES[request.param](tmp_path / "store") as store:
        yield store


@pytest.fixture(name="redis")
def running_redis(tmp_path):
    with Redis(tmp_path / "store") as redis:
        yield redis


def test_a_killed_leader_is_replaced_and_every_call_is_answered(tmp_path, small_models, store):
    gaps = []
    with ElectedCluster(tmp_path, small_models, store, workers=2, frontends=1) as cluster, Load(cluster) as load:
        for _ in range(TRIALS):
            killed, next_one = cluster.leader(), cluster.standby()
            led = len(cluster.epochs(next_one))
            at = time.monotonic()
            killed.kill()
            next_one.await_line(LEADS, led + 1, timeout=30)
            load.await_more()
            gaps.append(load.gap_after(at))
            before = killed.output().count("this one stands by")
            killed.start()
            killed.await_line("this one stands by", before + 1)
            load.await_more(500)  # meanwhile the others have found it
        assert load.failures() == []
    print(f"gaps after a kill: median {statistics.median(gaps):.2f} s, longest {max(gaps):.2f} s of {len(gaps)}")


def test_a_leader_that_stood_still_is_obeyed_no_more(tmp_path, small_models, redis):
    gaps = []
    with ElectedCluster(tmp_path, small_models, redis, workers=2, frontends=1) as cluster, Load(cluster) as load:
        for _ in range(TRIALS):
            stopped, next_one = cluster.leader(), cluster.standby()
            led = len(cluster.epochs(next_one))
            replaced = stopped.output().count("leads no longer")
            at = time.monotonic()
            stopped.process.send_signal(signal.SIGSTOP)
            next_one.await_line(LEADS, led + 1, timeout=30)
            load.await_more()
            gaps.append(load.gap_after(at))
            stopped.process.send_signal(signal.SIGCONT)
            eventually(lambda: stopped.output().count("leads no longer") == replaced + 1)
            load.await_more()
        assert load.failures() == []
        # Nothing of an epoch that is over was ever heeded: each of them led when its turn came.
        epochs = sorted(epoch for controller in cluster.controllers for epoch in cluster.epochs(controller))
        assert epochs == list(range(1, TRIALS + 2))
    print(f"gaps after a stop: median {statistics.median(gaps):.2f} s, longest {max(gaps):.2f} s of {len(gaps)}")


def test_a_leader_that_is_told_to_stop_hands_over(tmp_path, small_models, redis):
    with ElectedCluster(tmp_path, small_models, redis, workers=2, frontends=1) as cluster, Load(cluster) as load:
        leader, next_one = cluster.leader(), cluster.standby()
        assert leader.stop() == 0
        next_one.await_line(LEADS, timeout=30)
        load.await_more()
        assert load.failures() == []


def test_a_leader_serves_on_without_its_store(tmp_path, small_models, redis):
    with ElectedCluster(tmp_path, small_models, redis, workers=1, frontends=1) as cluster, Load(cluster) as load:
        leader = cluster.leader()
        redis.stop()
        await_output(leader, "this controller leads on, and no other can take over meanwhile")
        await_output(cluster.standby(), "this controller cannot lead meanwhile")
        load.await_more(200)
        redis.start()
        await_output(leader, "answers again")
        load.await_more(200)
        assert load.failures() == []
        assert len(cluster.epochs(leader)) == 1 and cluster.epochs(cluster.standby()) == []


@pytest.mark.parametrize(("flags", "complaint"), [
    (["--advertise", "a:8100"], "--election"),
    (["--election", "unix:/nowhere"], "--election needs --advertise HOST:PORT"),
    (["--election", "zookeeper://a", "--advertise", "a:8100"], "'zookeeper://a' is no store"),
    (["--election", "unix:/nowhere", "--advertise", "a:8100", "--leader-timeout", "100ms"], "the least is 600 ms"),
])
def test_wrong_flags_are_named(flags, complaint):
    ended = subprocess.run([foliot_binary(), "controller", "--listen", "127.0.0.1:0", *flags], capture_output=True,
                           text=True, timeout=30)
    assert ended.returncode != 0
    assert complaint in ended.stderr


def test_a_foreign_record_is_named(tmp_path, redis):
    subprocess.run(["redis-cli", "-s", redis.socket, "set", "foliot:leader", "mine"], check=True, capture_output=True)
    controller = Part(tmp_path / "controller.log", "controller", listen="127.0.0.1:0", advertise="a:8100",
                      election=redis.address)
    with contextlib.ExitStack() as stack:
        stack.callback(controller.kill)
        await_output(controller, "'mine' is no record of a leader; name a key that nothing else uses")


def test_one_that_stands_by_starts_no_workers(tmp_path, small_models, redis):
    addresses = [f"127.0.0.1:{port}" for port in free_ports(2)]
    pools = tmp_path / "pools.toml"
    command = ["foliot", "worker", str(small_models), "--cache", str(tmp_path / "cache"), "--controller", ",".join(addresses)]
    pools.write_text(f'[[kind]]\nname = "cpu"\ncommand = {json.dumps(command)}\n')
    with contextlib.ExitStack() as stack:
        controllers = []
        for i, address in enumerate(addresses):
            controllers.append(Part(tmp_path / f"controller{i}.log", "controller", listen=address, advertise=address,
                                    election=redis.address, worker_pools=pools))
            stack.callback(controllers[-1].kill)
            controllers[-1].await_line("ready:")
        killed, other = controllers
        killed.await_line("cpu-0: ready: ")
        killed.kill()
        other.await_line(LEADS)
        other.await_line("cpu-0: ready: ")
        for output in (killed.output(), other.output()):  # a machine without time may have changed the leader before
            assert re.search(LEADS, output).start() < output.index("cpu-0: started"), output


def test_a_store_asks_for_its_password(tmp_path, monkeypatch):
    with Redis(tmp_path / "store", "a secret") as redis, contextlib.ExitStack() as stack:
        for name, password, line in (("without", "", "FOLIOT_REDIS_PASSWORD"), ("with", "a secret", LEADS)):
            monkeypatch.setenv("FOLIOT_REDIS_PASSWORD", password)
            controller = Part(tmp_path / f"{name}.log", "controller", listen="127.0.0.1:0", advertise="a:8100",
                              election=redis.address)
            stack.callback(controller.kill)
            controller.await_line(line, timeout=30)
            assert "a secret" not in controller.output()
