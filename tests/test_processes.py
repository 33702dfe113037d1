"""Controller, workers and front ends as processes of their own: right answers over
HTTP and gRPC, and what holds when one of them dies."""

import contextlib
import re
import socket
import struct
import threading
import time
import urllib.request

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http
from geventhttpclient.response import HTTPConnectionClosed
from tritonclient.utils import InferenceServerException

from foliot_tools.cluster import Cluster, Frontend, Part
from foliot_tools.link import greeting
from foliot_tools.waiting import await_output, eventually, standstills

# What a client may see and try again on; anything else is a broken promise.
RETRYABLE = re.compile(r"disconnected|worker_lost|overload|not ready|draining|shutting down|expired|late|unmeetable")


@pytest.fixture(scope="module")
def cluster(small_models, tmp_path_factory):
    """Two workers and two front ends, for tests that leave them as they are."""
    with Cluster(tmp_path_factory.mktemp("cluster"), small_models) as running:
        yield running


@pytest.fixture
def own_cluster(small_models, tmp_path):
    """Starts a cluster for one test."""
    with contextlib.ExitStack() as stack:
        yield lambda **options: stack.enter_context(Cluster(tmp_path, small_models, **options))


def tensor(triton, pixels):
    request = triton.InferInput("pixels", pixels.shape, "FP32")
    request.set_data_from_numpy(pixels)
    return request


def infer_http(frontend, pixels, **options):
    with tritonclient.http.InferenceServerClient(frontend.http, network_timeout=30) as client:
        return client.infer("dense", [tensor(tritonclient.http, pixels)], **options).as_numpy("probabilities")


def infer_grpc(frontend, pixels, **options):
    with tritonclient.grpc.InferenceServerClient(frontend.grpc) as client:
        return client.infer("dense", [tensor(tritonclient.grpc, pixels)], **options).as_numpy("probabilities")


def random_pixels(seed, rows=1):
    return np.random.default_rng(seed).random((rows, 64), np.float32)


class Load:
    """Clients that ask one thing after another, and check every answer."""

    def __init__(self, frontends, oracle, clients=4):
        self.answers = 0
        self.refusals = []
        self.wrong = []
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._oracle = oracle
        self._threads = [
            threading.Thread(target=self._ask, args=(frontends[i % len(frontends)], i)) for i in range(clients)
        ]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._stopping.set()
        for thread in self._threads:
            thread.join(60)
        assert not any(thread.is_alive() for thread in self._threads), "a request was never answered"

    def _ask(self, frontend, seed):
        pixels = random_pixels(seed)
        expected = self._oracle(pixels)
        while not self._stopping.is_set():
            try:
                with tritonclient.http.InferenceServerClient(frontend.http, network_timeout=30) as client:
                    while not self._stopping.is_set():
                        answer = client.infer("dense", [tensor(tritonclient.http, pixels)]).as_numpy("probabilities")
                        with self._lock:
                            self.answers += 1
                            if not np.allclose(answer, expected, rtol=1e-3, atol=1e-5):
                                self.wrong.append(answer)
            except InferenceServerException as error:
                with self._lock:
                    self.refusals.append(error.message())
                time.sleep(0.01)
            except (OSError, HTTPConnectionClosed) as error:  # its front end is gone
                with self._lock:
                    self.refusals.append(f"disconnected: {error}")
                time.sleep(0.01)

    def await_answers(self, count=50):
        """Returns when so many more answers have come."""
        until = self.answers + count
        eventually(lambda: self.answers >= until, otherwise=lambda: f"{until - self.answers} answers have not come")

    def check(self):
        assert self.answers and not self.wrong
        strange = [refusal for refusal in self.refusals if not RETRYABLE.search(refusal)]
        assert not strange, strange[:3]


@pytest.mark.parametrize("infer", [infer_http, infer_grpc])
@pytest.mark.parametrize("rows", [1, 3, 4000])
def test_answers_are_right(cluster, dense_oracle, infer, rows):
    for i, frontend in enumerate(cluster.frontends * 3):
        pixels = random_pixels(i, rows)
        np.testing.assert_allclose(infer(frontend, pixels), dense_oracle(pixels), rtol=1e-3, atol=1e-5)


def test_padded_rows_and_several_tensors(cluster):
    tokens = np.array([[1, 2, 3]], np.int64)
    a, b = np.ones((2, 4), np.float32), np.full((2, 4), 3, np.float32)
    with tritonclient.http.InferenceServerClient(cluster.frontends[0].http) as client:
        request = tritonclient.http.InferInput("tokens", [1, 3], "INT64")
        request.set_data_from_numpy(tokens)
        embedded = client.infer("tokens", [request]).as_numpy("embedded")
        inputs = [tritonclient.http.InferInput(name, [2, 4], "FP32") for name in ("a", "b")]
        for each, values in zip(inputs, (a, b)):
            each.set_data_from_numpy(values)
        pair = client.infer("pair", inputs)
    table = np.arange(30, dtype=np.float32).reshape(10, 3)
    np.testing.assert_array_equal(embedded, table[tokens])
    np.testing.assert_array_equal(pair.as_numpy("sum"), a + b)
    np.testing.assert_array_equal(pair.as_numpy("difference"), a - b)


def test_both_workers_and_front_ends_take_part(cluster, dense_oracle):
    with Load(cluster.frontends, dense_oracle, clients=8) as load:
        load.await_answers(200)
    load.check()
    assert not load.refusals


def test_a_front_end_has_no_repository(cluster):
    with tritonclient.http.InferenceServerClient(cluster.frontends[0].http) as client:
        with pytest.raises(InferenceServerException, match="a front end has no repository"):
            client.load_model("dense")


@pytest.mark.parametrize(
    ("speech", "complaint"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "not Foliot's protocol"),
        (greeting(0), "it is a controller, not a client"),
        (greeting(1) + struct.pack("<IBHQ", 11, 16, 1, 0), "unexpected ATTACH message"),
        (greeting(2, version=999), "it speaks version 999"),
        (greeting(2) + struct.pack("<IB", 2**31, 18), "a frame of 2147483648 bytes"),
        (greeting(2) + struct.pack("<IB", 1, 200), "a frame of unknown type 200"),
        (greeting(2) + struct.pack("<IBB", 2, 16, 1), "malformed ATTACH"),
        (greeting(2) + struct.pack("<IBQQII", 25, 18, 1, 1, 0, 0), "INPUTS without a FETCH"),
        (greeting(2) + struct.pack("<IBQQQ", 25, 17, 1, 1, 1), "unexpected FETCH message"),
    ],
)
def test_other_peers_at_a_worker_are_refused(cluster, dense_oracle, speech, complaint):
    worker = cluster.workers[0]
    port = int(worker.await_line(r"front ends on port (\d+)")[1])
    before = len(worker.output())
    with socket.create_connection(("127.0.0.1", port)) as peer:
        peer.sendall(speech)
        peer.settimeout(10)
        with contextlib.suppress(ConnectionResetError):
            while peer.recv(4096):  # until the worker closes
                pass
    eventually(lambda: complaint in worker.output()[before:], otherwise=worker.output)
    pixels = random_pixels(1)
    np.testing.assert_allclose(infer_http(cluster.frontends[0], pixels), dense_oracle(pixels), rtol=1e-3, atol=1e-5)


def test_a_killed_worker_takes_no_request_with_it(own_cluster, dense_oracle):
    cluster = own_cluster()
    with Load(cluster.frontends, dense_oracle) as load:
        load.await_answers()
        cluster.workers[0].kill()
        load.await_answers(200)  # of the other worker
    load.check()


def test_a_worker_that_is_stopped_takes_no_request_with_it(own_cluster, dense_oracle):
    cluster = own_cluster()
    with Load(cluster.frontends, dense_oracle) as load:
        load.await_answers()
        assert cluster.workers[0].stop() == 0, cluster.workers[0].output()
        load.await_answers(200)  # of the other worker
    load.check()
    assert not load.refusals, load.refusals[:3]


def test_a_killed_controller_is_found_again(own_cluster, dense_oracle):
    cluster = own_cluster()
    with Load(cluster.frontends, dense_oracle) as load:
        load.await_answers()
        cluster.controller.kill()
        for frontend in cluster.frontends:
            frontend.await_ready(False, timeout=30)
        with pytest.raises(InferenceServerException, match="the controller cannot be reached"):
            infer_http(cluster.frontends[0], random_pixels(0))
        with pytest.raises(InferenceServerException, match="the controller cannot be reached") as raised:
            infer_grpc(cluster.frontends[0], random_pixels(0))
        assert "UNAVAILABLE" in str(raised.value.status())
        cluster.controller.start()
        with standstills() as machine:
            begin = time.monotonic()
            for frontend in cluster.frontends:
                frontend.await_ready(timeout=30)
                infer_http(frontend, random_pixels(0))
            took = time.monotonic() - begin
        assert took - machine.seconds < 3
        load.await_answers()
    load.check()
    for worker in cluster.workers:
        worker.await_line("ready:", count=2)


def test_a_killed_front_end_disturbs_no_other(own_cluster, dense_oracle):
    cluster = own_cluster()
    with Load(cluster.frontends[:1], dense_oracle, clients=4) as others, Load(cluster.frontends[1:], dense_oracle) as cut_off:
        cut_off.await_answers()
        cluster.frontends[1].kill()
        others.await_answers(200)
    others.check()
    assert not others.refusals


def devices_up(controller):
    """The gauge of each device."""
    with urllib.request.urlopen(f"http://127.0.0.1:{controller.metrics_port}/metrics", timeout=10) as page:
        return re.findall(r"^foliot_device_up\{.*\} (\d)$", page.read().decode(), re.MULTILINE)


def test_everything_drains(own_cluster, dense_oracle):
    cluster = own_cluster(workers=1, frontends=1, metrics=True)
    with Load(cluster.frontends, dense_oracle) as load:
        load.await_answers()
        assert cluster.frontends[0].stop() == 0, cluster.frontends[0].output()
    load.check()
    assert devices_up(cluster.controller) == ["1"]
    assert cluster.workers[0].stop() == 0, cluster.workers[0].output()
    eventually(lambda: not devices_up(cluster.controller))  # or an alert would fire for good
    assert cluster.controller.stop() == 0, cluster.controller.output()


def test_a_front_end_without_a_controller_is_not_ready(own_cluster):
    cluster = own_cluster(workers=0, frontends=0)
    cluster.controller.kill()
    frontend = Frontend(cluster.folder / "frontend.log", cluster.address)
    try:
        frontend.await_line("cannot connect")
        assert not frontend.ready()
        for infer in (infer_http, infer_grpc):
            with pytest.raises(InferenceServerException, match="not known yet: the server is not ready; try again"):
                infer(frontend, random_pixels(0))
        cluster.controller.start()
        cluster.controller.await_line("ready:", count=2)
        cluster.frontends.append(frontend)
        cluster.add_worker()
        frontend.await_ready()
    finally:
        frontend.kill()


def test_workers_that_were_written_wrong_say_so(tmp_path):
    for arguments, complaint in (
        ((), "name a REPOSITORY of models"),
        (("no/such/folder",), "no/such/folder"),
        (("x", "--emulate", "resnet50"), "name a REPOSITORY of models"),
    ):
        part = Part(tmp_path / "log", "worker", *arguments)
        assert part.process.wait(30) == 1
        await_output(part, complaint)


def test_a_worker_serves_as_many_models_as_it_may(own_cluster, dense_oracle):
    cluster = own_cluster(workers=1, frontends=1, models_max=2)
    (worker,) = cluster.workers
    complaint = r"model '(\w+)' cannot be served: there are 2 models already; raise --models-max"
    refused = set(re.findall(complaint, worker.output()))
    assert len(refused) == 2
    worker.await_line("ready: 2 models")
    with tritonclient.http.InferenceServerClient(cluster.frontends[0].http) as client:
        ready = {name for name in ("dense", "fixed", "pair", "tokens") if client.is_model_ready(name)}
    assert ready == {"dense", "fixed", "pair", "tokens"} - refused, "whichever was compiled last is one too many"
    if "dense" in ready:
        pixels = random_pixels(1)
        np.testing.assert_allclose(infer_http(cluster.frontends[0], pixels), dense_oracle(pixels), rtol=1e-3, atol=1e-5)
