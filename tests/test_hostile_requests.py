"""Hostile requests: whatever one connection sends, it gets an answer, and the server goes on serving."""

import contextlib
import http.client
import itertools
import json
import os
import socket
import subprocess
import threading
import time

import numpy as np
import pytest
from onnx import TensorProto, helper

from foliot_tools import onnx_models
from foliot_tools.hostile_requests import DEEP, JSON_PATHS, WIDE, answer_to, hostile_requests
from foliot_tools.server import foliot_binary
from foliot_tools.waiting import eventually

MIB = 1 << 20
REQUESTS = 1500
# Of processor time, for the mean of all: each is far from the 100 ms that one may take.
MEAN_SECONDS_MAX = 0.02
WIDTH = MIB  # of the wide model's output: 4 MiB a row
ANSWER = 2 * 4 * WIDTH


def serving_small_models(small_models, folder, **more):
    from conftest import serving

    (folder / "jobs").mkdir()
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


@pytest.mark.parametrize("with_keys", [False, True], ids=["open", "keys"])
def test_each_hostile_request_is_answered(small_models, tmp_path, with_keys):
    """And memory and processor time stay where they are."""
    seed = int(os.environ.get("HOSTILE_SEED") or time.time())
    print(f"HOSTILE_SEED={seed}")
    key = new_key(tmp_path) if with_keys else None
    keys = {"keys": tmp_path / "keys.toml"} if with_keys else {}
    with serving_small_models(small_models, tmp_path, **keys) as server:
        requests = hostile_requests(seed, key)
        for request in itertools.islice(requests, 200):  # until all that is kept for requests has been made
            answer_to(server.http, request)
        memory, processor = server.memory_bytes(), server.processor_seconds()
        for number, request in enumerate(itertools.islice(requests, REQUESTS)):
            try:
                status = answer_to(server.http, request)
            except (OSError, http.client.HTTPException) as error:
                pytest.fail(f"HOSTILE_SEED={seed}, request {number}: {error!r}: {request}")
            assert 200 <= status < 600, request
            assert server.process.poll() is None, f"HOSTILE_SEED={seed}, request {number} ended it: {request}"
        assert server.processor_seconds() - processor < REQUESTS * MEAN_SECONDS_MAX
        assert server.memory_bytes() < memory * 1.05 + 16 * MIB


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
    """A source has a quarter of --bodies-max, and then errors; small answers go on."""
    with connected(wide) as client:
        client.sendall(ASK)
        assert len(read_answer(client)[1]) > ANSWER
    before = wide.memory_bytes()
    with contextlib.ExitStack() as stack:
        clients = []
        for _ in range(100):
            client = stack.enter_context(connected(wide))
            clients.append(client)
            client.sendall(ASK)
            assert client.recv(9, socket.MSG_PEEK) == b"HTTP/1.1 "
        statuses = [client.recv(12)[9:] for client in clients]
        assert statuses.count(b"503") > 50 and statuses.count(b"200") >= 5, statuses
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


def test_single_grpc_answers_that_are_not_read_have_a_budget(wide):
    """Of calls on one connection, which reads nothing: a quarter of --bodies-max is kept, and not 480 MiB."""
    from tritonclient.grpc import InferenceServerClient, InferInput, service_pb2

    request = service_pb2.ModelInferRequest(model_name="wide")
    request.inputs.add(name="x", datatype="FP32", shape=[2, 1])
    request.raw_input_contents.append(np.ones((2, 1), np.float32).tobytes())
    value = InferInput("x", [2, 1], "FP32").set_data_from_numpy(np.ones((2, 1), np.float32))
    grpc = InferenceServerClient(wide.grpc)
    assert grpc.infer("wide", [value]).as_numpy("y").nbytes == ANSWER

    def inferences():
        stats = wide.get("/v2/models/wide/stats")[1]["model_stats"][0]["inference_stats"]
        return sum(stats[outcome]["count"] for outcome in ("success", "fail"))

    before, counted = wide.memory_bytes(), inferences()
    with socket.create_connection(("127.0.0.1", wide.grpc_port)) as client:
        client.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + http2_frame(4, 0, 0, b""))
        path = "/inference.GRPCInferenceService/ModelInfer"
        for i in range(60):  # one after the other: what is computed and not refused yet is no answer
            client.sendall(grpc_call(2 * i + 1, path, request.SerializeToString()))
            eventually(lambda: inferences() - counted > i, timeout=60, otherwise=lambda: str(inferences() - counted))
        assert wide.memory_bytes() - before < 256 * MIB
        assert grpc.is_model_ready("wide")
    # An answer that has no room is an error; it has, once the connection is gone.
    def is_answered():
        with contextlib.suppress(Exception):
            return grpc.infer("wide", [value]).as_numpy("y").nbytes == ANSWER
        return False

    eventually(is_answered, timeout=30, otherwise="the room is not given back")


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
