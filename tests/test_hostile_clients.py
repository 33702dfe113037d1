"""Hostile clients: each is refused with a reason, memory does not grow, and a
well-behaved client is answered meanwhile."""

import http.client
import json
import pathlib
import queue
import random
import time
import urllib.request

import numpy as np
import pytest
from tritonclient.grpc import InferenceServerClient as GrpcClient
from tritonclient.grpc import InferInput
from tritonclient.utils import InferenceServerException

from foliot_tools.cluster import Cluster
from foliot_tools.hostile import Attack

MIB = 1 << 20
BODY = json.dumps({"inputs": [{"name": "pixels", "shape": [1, 64], "datatype": "FP32", "data": [0.5] * 64}]})


@pytest.fixture(scope="module")
def server(small_models, tmp_path_factory):
    """Its limits are small, so that they are met at once."""
    from conftest import serving

    folder = tmp_path_factory.mktemp("hostile")
    options = {"cache": folder / "cache", "page_size": "256KiB", "page_cache": "16MiB", "connections_max": 100,
               "request_timeout": "2s", "body_max": "4MiB", "bodies_max": "64MiB"}
    with serving(small_models, folder / "log", **options) as running:
        yield running


class Client:
    """One connection, kept; every answer must be right."""

    def __init__(self, address):
        self._connection = http.client.HTTPConnection(address, timeout=30)

    def ask(self):
        self._connection.request("POST", "/v2/models/dense/infer", BODY)
        response = self._connection.getresponse()
        answer = response.read()
        assert response.status == 200, answer

    def ask_for(self, seconds):
        """Again and again, and never gone for long."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.ask()
            time.sleep(0.05)


def pixels():
    tensor = InferInput("pixels", [1, 64], "FP32")
    tensor.set_data_from_numpy(np.zeros((1, 64), np.float32))
    return tensor


def grpc_client(server):
    """With a connection of its own; others to the same server share one."""
    return GrpcClient(server.grpc, channel_args=[("grpc.use_local_subchannel_pool", 1)])


def again(ask, meanwhile=lambda: None, seconds=60):
    """Repeats `ask` until it works, as a refused client would: after waits that differ, so that they do not keep step
    with others that are refused. `meanwhile` must work each time."""
    end = time.monotonic() + seconds
    waits = random.Random(5)
    while True:
        meanwhile()
        try:
            return ask()
        except (AssertionError, OSError, InferenceServerException):
            if time.monotonic() > end:
                raise
            time.sleep(waits.uniform(0.02, 0.2))


def statuses(report):
    return {line.split()[1] for line in report["answers"]}


def test_connections_that_do_nothing_make_room(server):
    known = Client(server.http)
    known.ask()
    with Attack("idle", server.http, 300) as attack:
        known.ask_for(6)
        # It evicts a connection that has been idle for longer than the known client, which asks meanwhile.
        again(lambda: Client(server.http).ask(), meanwhile=known.ask)
        known.ask()
    assert statuses(attack.report) <= {"503"} and attack.report["closed"] > 0


@pytest.mark.parametrize("kind", ["slow_header", "slow_body", "slow_chunked"])
def test_requests_that_never_come_whole(server, kind):
    known = Client(server.http)
    known.ask()
    with Attack(kind, server.http, 50) as attack:
        known.ask_for(5)
    assert statuses(attack.report) == {"408"}, attack.report


@pytest.mark.parametrize("kind", ["large_body", "large_chunked"])
def test_bodies_of_a_gigabyte(server, kind):
    known = Client(server.http)
    known.ask()
    before = server.memory_bytes()
    with Attack(kind, server.http, 10) as attack:
        known.ask_for(3)
        assert server.memory_bytes() - before < 150 * MIB
    assert "413" in statuses(attack.report), attack.report


def test_bodies_of_a_gigabyte_whose_senders_do_not_listen(server):
    known = Client(server.http)
    known.ask()
    before = server.memory_bytes()
    with Attack("deaf_body", server.http, 4):
        known.ask_for(3)
        assert server.memory_bytes() - before < 150 * MIB


@pytest.mark.parametrize("kind", ["idle", "slow_grpc_hello", "slow_grpc_body", "large_grpc", "random_bytes"])
def test_grpc(server, kind):
    known = Client(server.http)
    known.ask()
    before = server.memory_bytes()
    with Attack(kind, server.grpc, 50):
        known.ask_for(3)
        assert server.memory_bytes() - before < 150 * MIB


@pytest.mark.parametrize("kind", ["idle", "slow_grpc_body"])
def test_grpc_connections_that_do_nothing_make_room(server, kind):
    """Or say so little that a message does not come in time."""
    descriptors = pathlib.Path(f"/proc/{server.process.pid}/fd")
    calling, answers = grpc_client(server), queue.Queue()
    again(calling.is_server_live)
    calling.start_stream(lambda result, error: answers.put(error))  # it says nothing for a while
    before = len(list(descriptors.iterdir()))
    with Attack(kind, server.grpc, 300) as attack:
        end = time.monotonic() + 6
        while time.monotonic() < end:
            assert len(list(descriptors.iterdir())) < before + 110  # those that end are still there for a moment
            time.sleep(0.1)
        again(lambda: grpc_client(server).is_server_live())  # in the place of one that has been idle for longer
        calling.async_stream_infer("dense", [pixels()])
        assert answers.get(timeout=30) is None
    calling.stop_stream()
    assert attack.report["closed"] > 200


@pytest.mark.parametrize("port", ["http", "metrics"])
def test_random_bytes(server, port):
    known = Client(server.http)
    known.ask()
    with Attack("random_bytes", f"127.0.0.1:{getattr(server, port + '_port')}", 50):
        known.ask_for(3)


def test_the_metrics_can_be_read_beside_idle_connections(server):
    with Attack("idle", f"127.0.0.1:{server.metrics_port}", 200):
        url = f"http://127.0.0.1:{server.metrics_port}/metrics"
        assert again(lambda: urllib.request.urlopen(url, timeout=10).status) == 200


@pytest.fixture(scope="module")
def cluster(small_models, tmp_path_factory):
    with Cluster(tmp_path_factory.mktemp("hostile_cluster"), small_models, workers=1, frontends=1) as running:
        yield running


@pytest.mark.parametrize("kind", ["idle", "slow_greeting", "slow_frame", "large_frame", "random_bytes"])
@pytest.mark.parametrize("part", ["controller", "worker"])
def test_links(cluster, part, kind):
    """More connections than a worker takes."""
    worker_port = cluster.workers[0].await_line(r"front ends on port (\d+)")[1]
    address = cluster.address if part == "controller" else f"127.0.0.1:{worker_port}"
    known = Client(cluster.frontends[0].http)
    known.ask()
    with Attack(kind, address, 300):
        known.ask_for(2)
