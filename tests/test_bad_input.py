"""Whatever comes from outside and is wrong gets an error that names the thing,
and the server goes on serving."""

import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import urllib.parse
import zlib

import grpc
import numpy as np
import pytest
from onnx import TensorProto, helper
from tritonclient.grpc import service_pb2, service_pb2_grpc

from foliot_tools import onnx_models
from foliot_tools.disk import small_disk
from foliot_tools.server import Server, ServerFailed, foliot_binary

MIB = 1 << 20


# Models


def write_good(folder, name="good"):
    return onnx_models.random_dense_network(folder / name / "1/model.onnx", (64, 32, 10))


def write_corrupt(folder):
    path = folder / "corrupt/1/model.onnx"
    path.parent.mkdir(parents=True)
    path.write_bytes(np.random.default_rng(1).bytes(4096))


def write_empty(folder):
    path = folder / "empty/1/model.onnx"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"")


def write_truncated(folder):
    path = write_good(folder, "truncated")
    path.write_bytes(path.read_bytes()[:-2000])


def write_unknown_operator(folder):
    onnx_models.save(
        folder / "strange/1/model.onnx",
        [helper.make_node("Frobnicate", ["x"], ["y"], "the_strange_node")],
        {"x": (TensorProto.FLOAT, ["batch", 4])},
        {"y": (TensorProto.FLOAT, ["batch", 4])},
    )


def write_uninferable_shape(folder):
    """A Reshape whose target is computed from an input's values."""
    onnx_models.save(
        folder / "shapeless/1/model.onnx",
        [helper.make_node("Reshape", ["x", "shape"], ["y"], "the_shapeless_node")],
        {"x": (TensorProto.FLOAT, [4, 4]), "shape": (TensorProto.INT64, [2])},
        {"y": (TensorProto.FLOAT, ["rows", "columns"])},
    )


def write_bad_settings(folder):
    write_good(folder, "bad_settings")
    (folder / "bad_settings/model.toml").write_text('default_slo = "soon"\n')


def write_too_large(folder):
    onnx_models.random_dense_network(folder / "too_large/1/model.onnx", (64, 4096, 4096, 10))
    (folder / "too_large/model.toml").write_text("batch_sizes = [1]\n")


def write_two_of_one_name(folder):
    path = write_good(folder, "twice")
    shutil.copy(path, folder / "twice/model.onnx")


def write_one_name_in_two_folders(folder):
    for name in ("first_of_two", "second_of_two"):
        write_good(folder, name)
        (folder / name / "model.toml").write_text('name = "shared_name"\n')


# Model -> what writes it, and the words that the reason must contain.
BAD_MODELS = {
    "corrupt": (write_corrupt, ("model.onnx",)),
    "empty": (write_empty, ("model.onnx",)),
    "truncated": (write_truncated, ("model.onnx",)),
    "strange": (write_unknown_operator, ("Frobnicate", "the_strange_node")),
    "shapeless": (write_uninferable_shape, ("the_shapeless_node",)),
    "bad_settings": (write_bad_settings, ("model.toml", "default_slo")),
    "too_large": (write_too_large, ("page cache",)),
    "twice": (write_two_of_one_name, ("twice/model.onnx", "twice/1/model.onnx")),
    "shared_name": (write_one_name_in_two_folders, ("first_of_two", "second_of_two")),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """One server with a good model among all the bad ones; its body limit is the default."""
    folder = tmp_path_factory.mktemp("bad_input")
    write_good(folder / "models")
    for write, _ in BAD_MODELS.values():
        write(folder / "models")
    with Server(folder / "models", folder / "log", page_size="1MiB", page_cache="32MiB") as server:
        yield server
        assert server.alive(), server.output()
        assert server.stop() == 0


@pytest.fixture(autouse=True)
def still_serving(request):
    """After each test with the shared server, the good model still answers."""
    yield
    if "server" in request.fixturenames:
        server = request.getfixturevalue("server")
        assert server.alive(), server.output()
        assert infer(server)[0] == 200


def infer_body(**changes):
    """A valid JSON request with some of its one input's members changed; None removes one."""
    tensor = {"name": "pixels", "shape": [1, 64], "datatype": "FP32", "data": [0.5] * 64} | changes
    return {"inputs": [{key: value for key, value in tensor.items() if value is not None}]}


def infer(server, body=None, model="good", headers=None):
    """(status, error text or None)."""
    status, answer = server.post(f"/v2/models/{model}/infer", infer_body() if body is None else body, headers)
    return status, answer.get("error") if isinstance(answer, dict) else None


def binary_request(data, shape=(1, 64), declared=None):
    """(body, headers) of a request whose tensor follows the JSON."""
    parameters = {"binary_data_size": len(data) if declared is None else declared}
    header = json.dumps(infer_body(data=None, shape=list(shape), parameters=parameters)).encode()
    return header + data, {"Inference-Header-Content-Length": str(len(header))}


@pytest.mark.parametrize("model", BAD_MODELS)
def test_a_bad_model_says_what_is_wrong_with_it(server, model):
    _, words = BAD_MODELS[model]
    status, index = server.post("/v2/repository/index")
    assert status == 200
    (entry,) = [each for each in index if each["name"] == model]
    assert entry["state"] == "UNAVAILABLE"
    for word in words:
        assert word in entry["reason"], entry["reason"]

    status, error = infer(server, model=model)
    assert status in (404, 503) and model in error
    status, answer = server.post(f"/v2/repository/models/{model}/load")
    assert 400 <= status < 600 and model in answer["error"]
    for word in words:
        assert word in answer["error"]


def test_the_good_model_is_ready_among_the_bad(server):
    assert server.get("/v2/health/ready")[0] == 200
    assert server.get("/v2/models/good/ready")[0] == 200
    assert server.get("/v2/models/corrupt/ready")[0] in (400, 404, 503)


# Requests


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"name": "pixel"}, ("pixel",)),
        ({"datatype": "INT64", "data": [1] * 64}, ("pixels", "INT64", "FP32")),
        ({"datatype": "FP33"}, ("FP33",)),
        ({"shape": [1, 63], "data": [0.5] * 63}, ("pixels", "63")),
        ({"shape": [1, 8, 8]}, ("pixels",)),
        ({"shape": [2, 64]}, ("pixels",)),
        ({"shape": [0, 64], "data": []}, ("pixels",)),
        ({"shape": [-1, 64]}, ("pixels",)),
        ({"shape": [1 << 62, 1 << 62]}, ("pixels",)),
        ({"shape": [1] * 63 + [64]}, ("pixels", "64", "--tensor-rank-max")),
        ({"shape": [1, "64"]}, ("shape",)),
        ({"shape": None}, ("shape",)),
        ({"data": None}, ("pixels",)),
        ({"data": [0.5] * 65}, ("pixels",)),
        ({"data": [0.5] * 63}, ("pixels",)),
        ({"data": ["half"] * 64}, ("pixels",)),
        ({"data": "all of it"}, ("data",)),
    ],
)
def test_a_wrong_input(server, changes, words):
    status, error = infer(server, infer_body(**changes))
    assert status == 400
    for word in words:
        assert word in error, error


def test_an_input_given_twice(server):
    body = infer_body()
    body["inputs"] *= 2
    status, error = infer(server, body)
    assert status == 400 and "pixels" in error


def test_too_many_tensors(server):
    body = infer_body()
    status, error = infer(server, body | {"inputs": body["inputs"] * 257})
    assert status == 400 and "257 inputs" in error and "--tensors-max" in error
    status, error = infer(server, body | {"outputs": [{"name": "probabilities"}] * 257})
    assert status == 400 and "257 outputs" in error and "--tensors-max" in error


def test_a_missing_input(server):
    status, error = infer(server, {"inputs": []})
    assert status == 400 and error


def test_an_unknown_output(server):
    status, error = infer(server, infer_body() | {"outputs": [{"name": "wisdom"}]})
    assert status == 400 and "wisdom" in error


@pytest.mark.parametrize("size", [0, 255, 257])
def test_a_wrong_byte_count(server, size):
    body, headers = binary_request(bytes(size))
    status, error = infer(server, body, headers=headers)
    assert status == 400
    assert "pixels" in error and "256" in error


def test_bytes_declared_and_not_sent(server):
    body, headers = binary_request(bytes(100), declared=256)
    status, error = infer(server, body, headers=headers)
    assert status == 400 and error


@pytest.mark.parametrize("length", ["-1", "many", "999999999", "18446744073709551616"])
def test_a_wrong_header_length(server, length):
    body, _ = binary_request(bytes(256))
    status, error = infer(server, body, headers={"Inference-Header-Content-Length": length})
    assert status == 400 and error


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b"42", b'{"inputs": 5}', b'{"inputs": [5]}', b"\xff\xfe\x00", b"[" * 100_000,
     b'{"inputs": [{"name": "pixels"', b'{"inputs": []} trailing'],
    ids=["empty", "brace", "array", "null", "number", "inputs-number", "input-number", "not-utf8", "deep", "cut",
         "more"],
)
def test_malformed_json(server, body):
    status, error = infer(server, body)
    assert status == 400 and error


def test_a_compressed_body_that_is_not(server):
    status, error = infer(server, b"this is not gzip", headers={"Content-Encoding": "gzip"})
    assert status == 400 and error


def test_an_unknown_encoding(server):
    status, _ = infer(server, b"{}", headers={"Content-Encoding": "zstd"})
    assert status in (400, 415)


@pytest.mark.parametrize("timeout, statuses", [(1, (503, 504)), (-5, (400,)), (0, (200,))])
def test_an_impossible_deadline(server, timeout, statuses):
    """Zero means none, as with Triton."""
    status, error = infer(server, infer_body() | {"parameters": {"timeout": timeout}})
    assert status in statuses and (status == 200 or error)


def test_an_impossible_deadline_says_which_it_was_and_asks_for_no_retry(server):
    connection = http.client.HTTPConnection(server.http, timeout=30)
    body = json.dumps(infer_body() | {"parameters": {"timeout": 1}})
    connection.request("POST", "/v2/models/good/infer", body)
    response = connection.getresponse()
    assert response.status in (503, 504)
    assert response.getheader("Retry-After") is None
    error = response.read().decode()
    assert "unmeetable" in error and "earliest completion" in error
    assert "its deadline was 0.001 ms after arrival (parameter 'timeout', in microseconds)" in error


@pytest.mark.parametrize("timeout", ["soon", 1.5, None, [], 1e300])
def test_a_deadline_that_is_no_number_of_microseconds(server, timeout):
    status, error = infer(server, infer_body() | {"parameters": {"timeout": timeout}})
    assert status == 400 and "timeout" in error


@pytest.mark.parametrize("path", ["/v2/models/nobody", "/v2/models/nobody/config", "/v2/models/nobody/stats",
                                  "/v2/models/nobody/ready", "/v2/models/good/versions/9"])
def test_an_unknown_model_or_version(server, path):
    status, answer = server.get(path)
    assert status in (400, 404)
    if answer is not None and not path.endswith("/ready"):
        assert ("nobody" if "nobody" in path else "9") in answer["error"]


@pytest.mark.parametrize("model", ["nobody", "good/versions/9", "..%2f..%2fetc", "%00", urllib.parse.quote("日本")])
def test_inference_with_an_unknown_model(server, model):
    status, error = infer(server, model=model)
    assert status in (400, 404) and error


@pytest.mark.parametrize("method, path", [("POST", "/"), ("GET", "/v3"), ("DELETE", "/v2/models/good"),
                                          ("GET", "/v2/models/good/infer"), ("PUT", "/v2"),
                                          ("POST", "/v2/health/live")])
def test_a_wrong_path_or_method(server, method, path):
    assert server.request(method, path)[0] in (400, 404, 405)


def test_a_body_over_the_limit(server):
    """Refused by its declared length: the bytes need not be sent."""
    host, port = server.http.split(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(b"POST /v2/models/good/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n")
        assert b" 413 " in connection.recv(4096).split(b"\r\n")[0]


def test_a_compressed_body_that_unpacks_over_the_limit(server):
    compressor = zlib.compressobj(9, wbits=31)
    bomb = b"".join(compressor.compress(bytes(MIB)) for _ in range(512)) + compressor.flush()
    before = server.memory_bytes()
    status, error = infer(server, bomb, headers={"Content-Encoding": "gzip"})
    assert status in (400, 413) and error
    assert server.memory_bytes() - before < 200 * MIB


@pytest.mark.parametrize(
    "request_bytes",
    [b"\x00\x01\x02\x03\r\n\r\n", b"GET\r\n\r\n", b"POST /v2/models/good/infer HTTP/1.1\r\nContent-Length: x\r\n\r\n",
     b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 50_000 + b"\r\n", b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\n\r\n",
     b"POST /v2/models/good/infer HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"],
    ids=["bytes", "no-path", "bad-length", "many-headers", "long-path", "bad-chunk"],
)
def test_bytes_that_are_not_http(server, request_bytes):
    host, port = server.http.split(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        try:
            connection.sendall(request_bytes)
            answer = connection.recv(4096)
        except ConnectionError:
            answer = b""
        assert answer == b"" or answer.startswith((b"HTTP/1.1 4", b"HTTP/1.0 4"))


def test_a_client_that_goes_away(server):
    host, port = server.http.split(":")
    body = json.dumps(infer_body()).encode()
    head = f"POST /v2/models/good/infer HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    for cut in (len(head) // 2, len(head) + 10, len(head) + len(body)):
        with socket.create_connection((host, int(port)), timeout=30) as connection:
            connection.sendall((head + body)[:cut])


@pytest.mark.parametrize("payload", [b"", b"\x00" * 64, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 256])
def test_bytes_that_are_not_grpc(server, payload):
    host, port = server.grpc.split(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(payload)


def test_grpc_requests_that_contradict_themselves(server):
    def request(raw=(), **tensor):
        message = service_pb2.ModelInferRequest(model_name="good", raw_input_contents=raw)
        message.inputs.add(**({"name": "pixels", "datatype": "FP32", "shape": [1, 64]} | tensor))
        return message

    bad = [
        request(),
        request(raw=[bytes(255)]),
        request(raw=[bytes(256), bytes(256)]),
        request(raw=[bytes(256)], datatype="INT8"),
        request(raw=[bytes(256)], name="pixel"),
        request(raw=[bytes(256)], shape=[1, 1 << 61]),
        request(raw=[bytes(256)], shape=[-1, 64]),
        service_pb2.ModelInferRequest(),
        service_pb2.ModelInferRequest(model_name="good"),
        service_pb2.ModelInferRequest(model_name="good", model_version="9"),
    ]
    with grpc.insecure_channel(server.grpc) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        for message in bad:
            with pytest.raises(grpc.RpcError) as caught:
                stub.ModelInfer(message, timeout=10)
            assert caught.value.code() in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND), message
            assert caught.value.details()


# Starting


def start_and_fail(repository, log, **options):
    with pytest.raises(ServerFailed) as caught:
        with Server(repository, log, ready_timeout=60, **options):
            pass
    assert caught.value.exit_code is not None and caught.value.exit_code > 0, caught.value
    return caught.value.output


@pytest.mark.parametrize("which", ["http", "grpc", "metrics"])
def test_a_port_in_use(server, tmp_path, which):
    write_good(tmp_path / "models")
    port = getattr(server, f"{which}_port")
    output = start_and_fail(tmp_path / "models", tmp_path / "log", **{f"{which}_port": port})
    assert str(port) in output and f"--{which}-port" in output
    assert infer(server)[0] == 200


def test_a_repository_that_does_not_exist(tmp_path):
    assert "no/such/folder" in start_and_fail(tmp_path / "no/such/folder", tmp_path / "log")


def test_a_repository_that_is_a_file(tmp_path):
    (tmp_path / "models").write_text("")
    assert "models" in start_and_fail(tmp_path / "models", tmp_path / "log")


@pytest.mark.parametrize("flag, value", [("page_cache", "much"), ("page_size", "0"), ("http_port", "99999"),
                                         ("scheduler", "oracle"), ("default_slo", "-5ms"), ("threads", "0"),
                                         ("weights_tier", "cloud"), ("address", "not.an.address"),
                                         ("config", "no_such_file.toml")])
def test_a_bad_flag(tmp_path, flag, value):
    write_good(tmp_path / "models")
    output = start_and_fail(tmp_path / "models", tmp_path / "log", **{flag: value})
    assert value in output or flag.replace("_", "-") in output


@pytest.mark.parametrize("arguments, words", [
    (["serve", "{}/models", "--keys", "{}/gone.toml"], "{}/gone.toml: no such file"),
    (["serve", "{}/models", "--keys", "{}/models"], "{}/models: a folder, not a file"),
    (["worker", "{}/models"], "there is no model that can be served in {}/models"),
    (["simulate", "{}/gone.toml"], "{}/gone.toml: no such file"),
    # The model.toml beside it is wrong too, but of no interest before there is a model.
    (["compile", "{}/README.md"], "{}/README.md: it is not an ONNX model"),
])
def test_a_command_names_the_file_that_is_wrong(tmp_path, arguments, words):
    (tmp_path / "models").mkdir()
    (tmp_path / "README.md").write_text("# No model\n")
    (tmp_path / "model.toml").write_text("bogus = 1\n")
    command = [foliot_binary(), *(argument.format(tmp_path) for argument in arguments)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode != 0
    assert words.format(tmp_path) in result.stderr + result.stdout


def test_an_empty_repository_that_is_watched_is_served(tmp_path, serve):
    (tmp_path / "models").mkdir()
    server = serve(tmp_path / "models", watch="1s")
    assert server.get("/v2/health/ready")[0] == 200
    assert server.post("/v2/repository/index") == (200, [])


def test_a_full_disk_while_compiling(tmp_path, serve):
    write_good(tmp_path / "models")
    onnx_models.random_dense_network(tmp_path / "models/bulky/1/model.onnx", (64, 512, 10))
    cache = tmp_path / "cache"
    cache.mkdir()
    prefix, preexec = small_disk(cache)
    # One at a time: beside another, 'good' might find the disk full of what is about to be removed.
    server = serve(tmp_path / "models", cache=cache, prefix=prefix, preexec=preexec, page_cache="16MiB",
                   page_size="256KiB", compilations=1)
    _, index = server.post("/v2/repository/index")
    entries = {each["name"]: each for each in index}
    assert entries["bulky"]["state"] == "UNAVAILABLE"
    assert "cache" in entries["bulky"]["reason"]
    assert entries["good"]["state"] == "READY"
    assert infer(server)[0] == 200


def test_a_damaged_package_is_made_anew(tmp_path, serve):
    write_good(tmp_path / "models")
    cache = tmp_path / "cache"
    options = {"cache": cache, "page_cache": "16MiB"}
    first = serve(tmp_path / "models", **options)
    expected = first.post("/v2/models/good/infer", infer_body())[1]["outputs"]
    first.stop(signal.SIGINT)
    packages = [path for path in cache.rglob("*") if path.is_file()]
    assert packages
    for package in packages:
        size = package.stat().st_size
        with open(package, "r+b") as file:
            file.seek(size // 2)
            file.write(os.urandom(64))
            file.truncate(size - 1000)
    second = serve(tmp_path / "models", **options)
    assert second.post("/v2/models/good/infer", infer_body())[1]["outputs"] == expected
