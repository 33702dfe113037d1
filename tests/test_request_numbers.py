"""A call can be found again: answers and refusals carry the number under which the log
shows them, and the log keeps the id that the client gave the call; by unmodified clients,
over HTTP, gRPC and streams, of a server and of a cluster."""

import queue
import re
import subprocess

import numpy as np
import pytest
import tritonclient.grpc as grpc_client
import tritonclient.http as http_client
from tritonclient.utils import InferenceServerException

from foliot_tools.cluster import Cluster
from foliot_tools.log import read_log
from foliot_tools.server import Server, foliot_binary

PIXELS = np.zeros((2, 64), np.float32)
NO_TIME = 1  # microseconds
LONG = "é" * 100  # 200 bytes
HOSTILE = "a'b\"c,d\n\x1b[2J\\\u202e"


@pytest.fixture(name="observed", scope="module", params=["server", "cluster"])
def server_or_cluster(request, small_models, tmp_path_factory):
    """(a front end, the folder of the log that knows its requests)."""
    folder = tmp_path_factory.mktemp(request.param)
    options = {"page_size": "256KiB", "page_cache": "16MiB"}
    if request.param == "server":
        with Server(small_models, folder / "console", cache=folder / "cache", log=folder / "log", **options) as server:
            yield server, folder / "log"
    else:
        with Cluster(folder, small_models, workers=1, frontends=1, log=folder / "log", **options) as cluster:
            yield cluster.frontends[0], folder / "log"


def explain(log, *arguments, expect=0):
    done = subprocess.run([foliot_binary(), "explain", "--log", log, *map(str, arguments)], capture_output=True,
                          text=True, check=False)
    assert done.returncode == expect, done.stdout + done.stderr
    return done.stdout if expect == 0 else done.stderr


def await_in_log(log, *arguments):
    """What `foliot explain` says, once the record is on disk."""
    for _ in range(200):
        done = subprocess.run([foliot_binary(), "explain", "--log", log, *map(str, arguments)], capture_output=True,
                              text=True, check=False)
        if done.returncode == 0:
            return done.stdout
    raise AssertionError(done.stderr)


def inputs(module, rows):
    tensor = module.InferInput("pixels", [rows, 64], "FP32")
    tensor.set_data_from_numpy(PIXELS[:rows])
    return [tensor]


def over_http(server, rows=1, **options):
    """(the number of the answer, None) or (None, the refusal)."""
    with http_client.InferenceServerClient(server.http) as client:
        try:
            response = client.infer("dense", inputs(http_client, rows), **options).get_response()
        except InferenceServerException as refusal:
            return None, refusal.message()
    return response["parameters"]["foliot_request"], None


def over_grpc(server, rows=1, **options):
    with grpc_client.InferenceServerClient(server.grpc) as client:
        try:
            response = client.infer("dense", inputs(grpc_client, rows), **options).get_response()
        except InferenceServerException as refusal:
            return None, refusal.message()
    return response.parameters["foliot_request"].string_param, None


def over_a_stream(server, rows=1, **options):
    done = queue.Queue()
    with grpc_client.InferenceServerClient(server.grpc) as client:
        client.start_stream(lambda result, error: done.put((result, error)))
        client.async_stream_infer("dense", inputs(grpc_client, rows), **options)
        result, error = done.get(timeout=30)
        client.stop_stream()
    if error is not None:
        return None, error.message()
    return result.get_response().parameters["foliot_request"].string_param, None


@pytest.fixture(name="ask", params=[over_http, over_grpc, over_a_stream])
def each_way(request):
    return request.param


def test_an_answer_is_explained_by_its_number_and_by_its_id(observed, ask):
    server, log = observed
    name = f"answer by {ask.__name__}"
    number, _ = ask(server, request_id=name)
    text = await_in_log(log, number)
    assert text.startswith(f"Request {number} of model 'dense' was answered after ")
    assert f"Its client calls it '{name}'.\n" in text
    assert explain(log, "--id", name) == text


def test_a_refusal_is_explained_by_its_number_and_by_its_id(observed, ask):
    server, log = observed
    name = f"refusal by {ask.__name__}"
    _, refusal = ask(server, request_id=name, timeout=NO_TIME)
    number = re.search(r"; request (\d+)$", refusal)[1]
    text = await_in_log(log, number)
    assert text.startswith(f"Request {number} of model 'dense' was refused after ")
    assert explain(log, "--id", name) == text


def test_the_rows_of_a_call_share_its_id(observed, ask):
    server, log = observed
    name = f"rows by {ask.__name__}"
    number, _ = ask(server, rows=2, request_id=name)
    await_in_log(log, number)  # the one that was answered last
    listing = explain(log, "--id", name).splitlines()
    assert [line.endswith(f"  {name}") for line in listing] == [False, True, True, False]
    assert number in {line.split()[0] for line in listing[1:3]}


def test_calls_without_an_id_have_none(observed, ask):
    server, log = observed
    number, _ = ask(server)
    assert "client" not in await_in_log(log, number)


def test_long_and_hostile_ids(observed, ask):
    server, log = observed
    number, _ = ask(server, request_id=LONG)
    text = await_in_log(log, number)
    assert f"Its client calls it '{'é' * 32}' (the first 64 of 200 bytes).\n" in text
    assert number in await_in_log(log, "--id", LONG)

    number, _ = ask(server, request_id=HOSTILE)
    text = await_in_log(log, number)
    shown = r"a'b\"c,d\x0a\x1b[2J\\\xe2\x80\xae".replace("\\\"", "\"")
    assert f"Its client calls it '{shown.replace(chr(39), chr(92) + chr(39))}'.\n" in text
    assert number in await_in_log(log, "--id", HOSTILE)
    assert number in await_in_log(log, "--id", shown), "as it was shown"
    assert "\x1b" not in explain(log, "--limit", 1000)
    assert any(request.client_id == shown for request in read_log(log).requests)


def test_says_that_there_is_no_such_id(observed):
    server, log = observed
    over_http(server)
    assert "no such requests that their client calls 'nobody\\x0a'" in explain(log, "--id", "nobody\n", expect=1)
