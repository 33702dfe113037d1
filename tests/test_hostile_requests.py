"""Hostile requests: whatever one connection sends, it gets an answer, and the server goes on serving."""

import collections
import contextlib
import http.client
import itertools
import json
import os
import random
import socket
import subprocess
import threading
import time
import zlib

import numpy as np
import pytest
from onnx import TensorProto, helper
from tritonclient.grpc import InferenceServerClient, InferInput, service_pb2

from conftest import write_small_models
from foliot import personal
from foliot_tools import onnx_models
from foliot_tools.hostile import Attack
from foliot_tools.hostile_grpc import HostileCall, end_of, hostile_calls
from foliot_tools.hostile_requests import DEEP, JSON_PATHS, WIDE, answer_to, hostile_requests
from foliot_tools.hostile_texts import HELLO, call
from foliot_tools.seeds import fresh_seed
from foliot_tools.server import foliot_binary
from foliot_tools.waiting import eventually

MIB = 1 << 20
REQUESTS = 1500
GRPC_SHARE = 0.4
WIDTH = MIB  # of the wide model's output: 4 MiB a row
ANSWER = 2 * 4 * WIDTH


def serving_small_models(small_models, folder, **more):
    from conftest import serving

    (folder / "jobs").mkdir(exist_ok=True)
    options = {"cache": folder / "cache", "page_size": "256KiB", "page_cache": "16MiB", "jobs": folder / "jobs",
               "body_max": "4MiB", "bodies_max": "64MiB", **more}
    return serving(small_models, folder / "log", **options)


@pytest.fixture(scope="module")
def server(small_models, tmp_path_factory):
    with serving_small_models(small_models, tmp_path_factory.mktemp("hostile_requests")) as running:
        yield running


def ask(server, path, body, headers=None):
    """The status and the text of the answer."""
    connection = http.client.HTTPConnection(server.http, timeout=60)
    try:
        connection.request("POST", path, body, headers or {})
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


@pytest.mark.parametrize("path", JSON_PATHS)
@pytest.mark.parametrize("body", [DEEP, WIDE], ids=["deep", "wide"])
def test_json_beyond_its_bounds(server, path, body):
    """300,000 lists within each other, and 300,000 members of one object."""
    status, answer = ask(server, path, body)
    assert status in (400, 413, 404), answer
    assert "error" in json.loads(answer)
    assert server.process.poll() is None
    # Within the bytes that the path takes.
    status, answer = ask(server, path, b'{"a":' + b"[" * 2000 + b"]" * 2000 + b"}")
    assert status in (400, 404), answer
    assert "deep" in json.loads(answer)["error"] or status == 404
    assert ask(server, "/v2/models/dense/ready", b"")[0] == 405


def new_key(folder):
    made = subprocess.run([foliot_binary(), "keys", "new", "app", *itertools.chain(*(
        ("--scope", scope) for scope in ("infer", "admin", "feedback", "observe", "jobs")))],
        capture_output=True, text=True, check=True)
    (folder / "keys.toml").write_text(made.stdout)
    return made.stderr.split()[-1]


def write_everything(folder, jobs):
    """A repository with one of each that paths name, and an input for jobs."""
    write_small_models(folder)
    for name in ("right", "other"):
        onnx_models.random_dense_network(folder / name / "model.onnx", (64, 10))
    (folder / "choice").mkdir()
    (folder / "choice/application.toml").write_text('models = ["right", "other"]\npolicy = "majority"\n')
    ids = np.arange(0, 500, 10)
    rows = np.random.default_rng(7).normal(0, 0.3, (len(ids), 8))
    personal.write_items(folder / "movies/1/items.features", ids, rows)
    (folder / "movies/personal.toml").write_text('[limits]\nusers = 1000\nobservations_per_user = 100\n')
    np.save(jobs / "rows.npy", np.zeros((10, 64), np.float32))
    return folder


class Watched:
    """A server of which each request may take so much of the processor, and no memory that stays."""

    SECONDS_MAX = 0.1  # of a processor, for one request
    # The heap keeps what was freed (docs/OPERATIONS.md): the most that each thread had of bodies of 4 MiB.
    GROWTH_MAX = 64 * MIB

    def __init__(self, server, seed):
        self._server = server
        self._seed = seed
        self.memory = 0
        self.most = 0.0

    def ask(self, number, send, request):
        """Sends it, and again if it took long: what is the request's doing comes back, and what is the server's own does
        not."""
        for _ in range(3):
            before = self._server.processor_seconds()
            try:
                end = send(request)
            except (OSError, http.client.HTTPException, AssertionError) as error:
                pytest.fail(f"FOLIOT_TEST_SEED={self._seed}, request {number}: {error!r}: {request}\n{self._server.output()[-2000:]}")
            assert self._server.alive(), f"FOLIOT_TEST_SEED={self._seed}, request {number} ended it: {request}"
            took = (self._server.processor_seconds() - before) / request.requests
            if took <= self.SECONDS_MAX:
                self.most = max(self.most, took)
                return end
        pytest.fail(f"FOLIOT_TEST_SEED={self._seed}, request {number} took {took:.2f} s of a processor: {request}")

    def begin(self):
        self.memory = self._server.memory_bytes()

    def end(self):
        """It may be given back with a delay."""
        most = self.memory * 1.05 + self.GROWTH_MAX
        eventually(lambda: self._server.memory_bytes() < most, timeout=10,
                   otherwise=lambda: f"FOLIOT_TEST_SEED={self._seed}: {self.memory} bytes became {self._server.memory_bytes()}")


@pytest.mark.parametrize("with_keys", [False, True], ids=["open", "keys"])
def test_each_hostile_request_is_answered(tmp_path, with_keys):
    """Once, within 100 ms of a processor; and memory stays where it is. HOSTILE_REQUESTS: how many; FOLIOT_TEST_SEED: which."""
    seed = fresh_seed()
    count = int(os.environ.get("HOSTILE_REQUESTS") or REQUESTS)
    key = new_key(tmp_path) if with_keys else None
    keys = {"keys": tmp_path / "keys.toml"} if with_keys else {}
    (tmp_path / "jobs").mkdir()
    with serving_small_models(write_everything(tmp_path / "models", tmp_path / "jobs"), tmp_path, **keys) as server:
        eventually(lambda: server.get("/v2/health/ready")[0] == 200, otherwise=server.output)
        server.wait_until_idle()
        requests, calls, dice = hostile_requests(seed, key), hostile_calls(seed, key), random.Random(seed)
        watched, ends, course = Watched(server, seed), collections.Counter(), []
        for number in range(-count // 10, count):
            if number == 0:  # all that is kept for requests has been made
                watched.begin()
            if dice.random() < GRPC_SHARE:
                ends[watched.ask(number, lambda each: end_of(server.grpc, each), next(calls))] += 1
            else:
                status = watched.ask(number, lambda request: answer_to(server.http, request), next(requests))
                assert 200 <= status < 600
                ends[status] += 1
            if number % max(count // 10, 1) == 0:
                course.append(server.memory_bytes() // MIB)
        watched.end()
        for library in ("libprotobuf", "hpack"):
            assert library not in server.output(), "what a library prints has no limit and is not escaped"
        print(f"{count} requests: at most {watched.most:.2f} s of a processor; {watched.memory / MIB:.0f} MiB became "
              f"{server.memory_bytes() / MIB:.0f} by way of {course}; ends: {dict(ends)}")


def test_a_grpc_message_is_inflated_up_to_a_limit(server):
    """512 MiB of zeros in half a megabyte: they take no memory, and the call ends."""
    pack = zlib.compressobj(9, wbits=31)
    message = b"".join(pack.compress(bytes(MIB)) for _ in range(512)) + pack.flush()
    begun = HELLO + call("", more=[(b"grpc-encoding", b"gzip")])
    before, processor = server.memory_bytes(), server.processor_seconds()
    answered = HostileCall("bomb", begun, b"\1" + len(message).to_bytes(4, "big") + message, b"", False, False, False)
    assert end_of(server.grpc, answered) == "answered"
    assert server.memory_bytes() - before < 64 * MIB
    assert server.processor_seconds() - processor < 0.5


def test_without_descriptors_a_new_client_is_answered(small_models, tmp_path):
    """Beside idle connections that have them all, for an hour: with 503 at once, and then in the place of one of them."""
    with serving_small_models(small_models, tmp_path, prefix=("prlimit", "--nofile=64:64"), idle_timeout="1h") as server, \
            contextlib.ExitStack() as stack:
        idle = [stack.enter_context(socket.create_connection(("127.0.0.1", server.http_port))) for _ in range(64)]
        for client in idle:
            client.setblocking(False)

        def is_refused(client):
            with contextlib.suppress(OSError):
                return client.recv(12, socket.MSG_PEEK) == b"HTTP/1.1 503"
            return False

        eventually(lambda: any(is_refused(client) for client in idle), otherwise="none is refused")

        def is_served():
            with contextlib.suppress(OSError, http.client.HTTPException):
                return ask(server, "/v2/logging", b"{}")[0] == 200
            return False

        eventually(is_served, otherwise="no place becomes free")


# ---- Answers that are not read


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    """A server of a model whose answers are 8 MiB for 8 bytes."""
    from conftest import serving

    folder = tmp_path_factory.mktemp("wide")
    onnx_models.save(folder / "models/wide/1/model.onnx", [helper.make_node("MatMul", ["x", "weights"], ["y"], "widen")],
                     {"x": (TensorProto.FLOAT, ["batch", 1])}, {"y": (TensorProto.FLOAT, ["batch", WIDTH])},
                     {"weights": np.ones((1, WIDTH), np.float32)})
    (folder / "models/wide/model.toml").write_text("batch_sizes = [1]\n")
    options = {"cache": folder / "cache", "bodies_max": "256MiB", "idle_timeout": "2s", "page_cache": "64MiB"}
    with serving(folder / "models", folder / "log", **options) as running:
        yield running


BODY = json.dumps({"inputs": [{"name": "x", "shape": [2, 1], "datatype": "FP32", "data": [1, 2]}],
                   "outputs": [{"name": "y", "parameters": {"binary_data": True}}]}).encode()
ASK = b"POST /v2/models/wide/infer HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%b" % (len(BODY), BODY)


def connected(server, receive_bytes=64 << 10):
    """With so little room for what it receives that the rest waits in the server."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    client.settimeout(30)
    client.connect(("127.0.0.1", server.http_port))
    return client


def read_answer(client):
    response = http.client.HTTPResponse(client, method="POST")
    response.begin()
    return response.status, response.read()


def test_answers_that_are_not_read_have_a_budget(wide):
    """A source has a quarter of --bodies-max, and then errors, for which nothing is computed; small answers go on."""
    with connected(wide) as client:
        client.sendall(ASK)
        assert len(read_answer(client)[1]) > ANSWER
    before, counted = wide.memory_bytes(), inferences_of(wide)
    with contextlib.ExitStack() as stack:
        clients = []
        for _ in range(100):
            client = stack.enter_context(connected(wide))
            clients.append(client)
            client.sendall(ASK)
            assert client.recv(9, socket.MSG_PEEK) == b"HTTP/1.1 "
        statuses = [client.recv(12)[9:] for client in clients]
        assert statuses.count(b"503") > 50 and statuses.count(b"200") >= 5, statuses
        assert inferences_of(wide) - counted == statuses.count(b"200")
        assert wide.memory_bytes() - before < 256 * MIB  # of 800 that were asked for
        assert ask(wide, "/v2/logging", b"{}")[0] == 200
    eventually(lambda: ask(wide, "/v2/models/wide/infer", BODY)[0] == 200, timeout=30,
               otherwise="the room is not given back")


def http2_frame(kind, flags, stream, payload):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def grpc_call(stream, path, message):
    """Frames of a call, with headers that refer to no others."""
    fields = {":method": "POST", ":scheme": "http", ":path": path, ":authority": "localhost",
              "content-type": "application/grpc", "te": "trailers"}
    headers = b"".join(b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()
                       for name, value in fields.items())
    body = b"\0" + len(message).to_bytes(4, "big") + message
    return http2_frame(1, 4, stream, headers) + http2_frame(0, 1, stream, body)


def inferences_of(server):
    stats = server.get("/v2/models/wide/stats")[1]["model_stats"][0]["inference_stats"]
    return sum(stats[outcome]["count"] for outcome in ("success", "fail"))


def test_single_grpc_answers_that_are_not_read_have_a_budget(wide):
    """Of calls on one connection, which reads nothing: a quarter of --bodies-max is computed and kept, and not 480 MiB."""
    request = service_pb2.ModelInferRequest(model_name="wide")
    request.inputs.add(name="x", datatype="FP32", shape=[2, 1])
    request.raw_input_contents.append(np.ones((2, 1), np.float32).tobytes())
    value = InferInput("x", [2, 1], "FP32").set_data_from_numpy(np.ones((2, 1), np.float32))
    grpc = InferenceServerClient(wide.grpc)
    assert grpc.infer("wide", [value]).as_numpy("y").nbytes == ANSWER

    before, counted = wide.memory_bytes(), inferences_of(wide)
    with socket.create_connection(("127.0.0.1", wide.grpc_port)) as client:
        client.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + http2_frame(4, 0, 0, b""))
        path = "/inference.GRPCInferenceService/ModelInfer"
        for i in range(60):
            client.sendall(grpc_call(2 * i + 1, path, request.SerializeToString()))
        eventually(lambda: inferences_of(wide) - counted >= 5, timeout=60, otherwise=lambda: str(inferences_of(wide) - counted))
        assert grpc.is_model_ready("wide")
        assert inferences_of(wide) - counted <= 8
        assert wide.memory_bytes() - before < 256 * MIB
    # An answer that has no room is an error; it has, once the connection is gone.
    def is_answered():
        with contextlib.suppress(Exception):
            return grpc.infer("wide", [value]).as_numpy("y").nbytes == ANSWER
        return False

    eventually(is_answered, timeout=30, otherwise="the room is not given back")


def test_streams_whose_answers_are_not_read_have_a_budget(wide):
    """Ten that say they take everything: they are answered, up to a quarter of --bodies-max."""
    value = InferInput("x", [2, 1], "FP32").set_data_from_numpy(np.ones((2, 1), np.float32))
    grpc = InferenceServerClient(wide.grpc)
    eventually(lambda: grpc.infer("wide", [value]).as_numpy("y").nbytes == ANSWER, otherwise="it is not served")
    before, counted = wide.memory_bytes(), inferences_of(wide)
    with Attack("unread_stream", wide.grpc, 10):
        eventually(lambda: inferences_of(wide) - counted > 4, timeout=60, otherwise="no stream is answered")
        assert ask(wide, "/v2/logging", b"{}")[0] == 200
        assert wide.memory_bytes() - before < 256 * MIB
    eventually(lambda: ask(wide, "/v2/models/wide/infer", BODY)[0] == 200, timeout=30, otherwise="the room is not given back")


def test_a_slow_reader_is_not_cut_while_it_reads(wide):
    """Three times as long as the idle timeout; one that takes nothing is cut."""
    with connected(wide) as reader, connected(wide) as sleeper:
        sleeper.sendall(ASK)
        reader.sendall(ASK)
        got, end = 0, time.monotonic() + 6
        while time.monotonic() < end:
            got += len(reader.recv(16 << 10))
            time.sleep(0.05)  # the slowness that is tested
        while piece := reader.recv(MIB):
            got += len(piece)
            if got > ANSWER + 1000:
                break
        assert got > ANSWER
        with pytest.raises((OSError, http.client.HTTPException)):
            read_answer(sleeper)


@pytest.mark.parametrize("rounds", [50])
def test_half_closed_requests_get_their_answers(wide, rounds):
    answers = []

    def one():
        with socket.create_connection(("127.0.0.1", wide.http_port), timeout=60) as client:
            client.sendall(ASK)
            client.shutdown(socket.SHUT_WR)
            answers.append(read_answer(client)[0])

    for _ in range(rounds // 2):
        pair = [threading.Thread(target=one) for _ in range(2)]
        for thread in pair:
            thread.start()
        for thread in pair:
            thread.join()
    assert answers == [200] * rounds
