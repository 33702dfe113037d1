"""Readiness: a server is ready while it can serve, says so the same over every protocol, and says what is wrong
with each model. By the unmodified tritonclient."""

import contextlib
import json
import os
import queue
import shutil
import socket
import subprocess
import urllib.error
import urllib.request

import grpc
import numpy as np
import pytest
import tritonclient.grpc as grpc_client
import tritonclient.http as http_client
from tritonclient.utils import InferenceServerException

from conftest import write_pair
from foliot_tools import onnx_models
from foliot_tools.cluster import Cluster
from foliot_tools.server import Server, ServerFailed, foliot_binary
from foliot_tools.waiting import await_output, eventually

SERVING, NOT_SERVING = b"\x08\x01", b"\x08\x02"
OPTIONS = {"page_cache": "16MiB", "page_size": "256KiB"}


def readiness(server):
    """What HTTP, gRPC and gRPC's health check say, which must be the same."""
    status = server.get("/v2/health/ready")[0]
    with http_client.InferenceServerClient(server.http) as http, grpc_client.InferenceServerClient(server.grpc) as rpc:
        said = {http.is_server_ready(), rpc.is_server_ready(), {200: True, 503: False}[status]}
        assert http.is_server_live() and rpc.is_server_live()
    with grpc.insecure_channel(server.grpc) as channel:
        check = channel.unary_unary("/grpc.health.v1.Health/Check")(b"", timeout=10)
    said.add({SERVING: True, NOT_SERVING: False}[check])
    (ready,) = said
    return ready


def write_dense(folder, name, **options):
    return onnx_models.random_dense_network(folder / name / "1/model.onnx", (64, 32, 10), **options)


def write_broken(folder, names):
    """Each another way."""
    for i, name in enumerate(names):
        (folder / name / "1").mkdir(parents=True)
        if i % 3 == 0:
            (folder / name / "1/model.onnx").write_bytes(b"this is no model")
        elif i % 3 == 1:
            (folder / name / "1/weights.bin").write_bytes(b"nothing here")
        else:
            write_pair(folder / name / "model.onnx")
            (folder / name / "model.toml").write_text("batch_sizes = [0]\n")


@contextlib.contextmanager
def started(repository, console, **options):
    """A server that need not become ready."""
    server = Server(repository, console, **OPTIONS, **options)
    with open(console, "wb") as output:
        server.process = subprocess.Popen(server.command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    try:
        yield server
    finally:
        server.stop()


def await_line(server, text, timeout=120):
    def printed():
        if any(line.startswith(text) for line in server.output().splitlines()):
            return True
        assert server.alive(), server.output()
        return False

    eventually(printed, timeout, lambda: f"it does not say '{text}':\n{server.output()}")


def index(server):
    return {model["name"]: model for model in server.post("/v2/repository/index", {})[1]}


def models_command(*arguments):
    return subprocess.run([foliot_binary(), "models", *map(str, arguments)], capture_output=True, text=True, timeout=300)


FIVE = [f"broken{i}" for i in range(5)]


@pytest.fixture(scope="module")
def all_broken(tmp_path_factory):
    folder = tmp_path_factory.mktemp("all_broken")
    write_broken(folder / "models", FIVE)
    with started(folder / "models", folder / "log") as server:
        await_line(server, "not ready: 0 of 5 models can be served")
        yield server, folder / "models"


def test_no_model_can_be_served(all_broken):
    server, _ = all_broken
    assert not readiness(server)
    assert {name: (model["state"], bool(model["reason"])) for name, model in index(server).items()} == {
        name: ("UNAVAILABLE", True) for name in FIVE
    }


def test_calls_of_a_broken_model_say_why(all_broken):
    server, _ = all_broken
    done = queue.Queue()
    for module, address in ((http_client, server.http), (grpc_client, server.grpc)):
        value = module.InferInput("pixels", [1, 64], "FP32")
        value.set_data_from_numpy(np.zeros((1, 64), np.float32))
        with module.InferenceServerClient(address) as client:
            with pytest.raises(InferenceServerException, match="'broken1' is not ready: UNAVAILABLE: .*no model.onnx"):
                client.infer("broken1", [value])
            if module is grpc_client:
                client.start_stream(lambda result, error: done.put(error))
                client.async_stream_infer("broken1", [value])
                assert "no model.onnx" in str(done.get(timeout=30))


def test_the_models_command_says_what_is_wrong(all_broken):
    server, repository = all_broken
    for listed in (models_command(repository), models_command("--url", server.http)):
        assert listed.returncode == 1, listed
        lines = {line.split()[0]: line for line in listed.stdout.splitlines()[1:]}
        assert set(lines) == set(FIVE), listed
        assert "no model.onnx or model.py here" in lines["broken1"]
        assert "batch_sizes" in lines["broken2"]
        assert "not an ONNX model" in lines["broken0"] or "broken0/1/model.onnx" in lines["broken0"]


def test_a_model_that_is_mended_makes_it_ready(all_broken, tmp_path):
    server, repository = all_broken
    shutil.copytree(repository, tmp_path / "copy")
    try:
        shutil.rmtree(repository / "broken0")
        write_dense(repository, "broken0")
        assert server.post("/v2/repository/models/broken0/load")[0] == 200
        assert readiness(server)
        assert server.post("/v2/repository/models/broken0/unload")[0] == 200
        assert not readiness(server), "those that remain are broken"
    finally:
        shutil.rmtree(repository / "broken0")
        shutil.copytree(tmp_path / "copy/broken0", repository / "broken0")
        server.post("/v2/repository/models/broken0/load")


def test_one_that_can_be_served_is_enough_unless_it_is_strict(tmp_path, serve):
    repository = tmp_path / "models"
    write_broken(repository, ["broken"])
    write_dense(repository, "dense")
    lenient = serve(repository, **OPTIONS)
    assert readiness(lenient)
    await_output(lenient, "ready: 1 of 2 models on")
    lenient.stop()
    with started(repository, tmp_path / "strict.log", strict_readiness=True) as strict:
        await_line(strict, "not ready: 1 of 2 models can be served, and --strict-readiness asks for all")
        assert not readiness(strict)
        assert strict.get("/v2/models/dense/ready")[0] == 200
        shutil.rmtree(repository / "broken")
        write_dense(repository, "broken", seed=2)
        assert strict.post("/v2/repository/models/broken/load")[0] == 200
        assert readiness(strict)
        assert strict.post("/v2/repository/models/broken/unload")[0] == 200
        assert readiness(strict), "what a client unloaded is not wanted"


def test_an_empty_repository_is_ready_as_triton_is(tmp_path, serve):
    (tmp_path / "models").mkdir()
    assert readiness(serve(tmp_path / "models", strict_readiness=True, watch="1s", **OPTIONS))


@pytest.mark.parametrize("strict", [False, True])
def test_the_command_says_what_the_endpoint_says(tmp_path, strict):
    write_dense(tmp_path / "models", "good")
    write_broken(tmp_path / "models", ["broken"])
    with started(tmp_path / "models", tmp_path / "log", **({"strict_readiness": True} if strict else {})) as server:
        await_line(server, "not ready: 1 of 2" if strict else "ready: ")
        done = subprocess.run([foliot_binary(), "models", "--url", server.http, "--ready"], capture_output=True, text=True)
        assert readiness(server) is not strict
        assert (done.returncode, done.stdout.split(":")[0]) == ((1, "not ready") if strict else (0, "ready")), done


# The start


def get_status(server, path):
    try:
        with urllib.request.urlopen(f"http://{server.http}{path}", timeout=5) as response:
            return response.status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return None


def infers(server, name):
    value = http_client.InferInput("pixels", [1, 64], "FP32")
    value.set_data_from_numpy(np.zeros((1, 64), np.float32))
    with http_client.InferenceServerClient(server.http) as client:
        return client.infer(name, [value]).as_numpy("probabilities").shape == (1, 10)


def test_models_are_served_as_each_is_compiled(tmp_path):
    """The first by name is served while the last is still being compiled."""
    for i in range(12):
        write_dense(tmp_path / "models", f"dense{i:02}", seed=i)
    with started(tmp_path / "models", tmp_path / "log") as server:
        await_line(server, "listening: http")
        eventually(lambda: get_status(server, "/v2/models/dense00/ready") == 200, otherwise=server.output)
        assert infers(server, "dense00")
        states = {name: model["state"] for name, model in index(server).items()}
        assert states["dense11"] == "LOADING", states
        assert not readiness(server), "not while models are still to come"
        # A large body for a model that is still loading is refused before it is read.
        with socket.create_connection(("127.0.0.1", server.http_port), timeout=30) as connection:
            connection.sendall(b"POST /v2/models/dense11/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 9000000\r\n"
                               b"Expect: 100-continue\r\n\r\n")
            assert connection.recv(4096).startswith(b"HTTP/1.1 503 ")
        await_line(server, "ready: 12 models")
        assert readiness(server)
        assert infers(server, "dense11")


def test_a_larger_model_than_those_before_finds_room(tmp_path, serve):
    """Memory for inputs, outputs and intermediates grows with the models."""
    write_dense(tmp_path / "models", "a")
    wide = 1 << 19
    onnx_models.save(
        tmp_path / "models/wide/model.onnx",
        [onnx_models.helper.make_node("Relu", ["x"], ["y"], "relu")],
        {"x": (onnx_models.TensorProto.FLOAT, ["batch", wide])},
        {"y": (onnx_models.TensorProto.FLOAT, ["batch", wide])},
    )
    server = serve(tmp_path / "models", body_max="300MiB", tensor_max="300MiB", **OPTIONS)
    await_output(server, "ready: 2 models")
    x = np.linspace(-1, 1, 16 * wide, dtype=np.float32).reshape(16, wide)
    value = http_client.InferInput("x", [16, wide], "FP32")
    value.set_data_from_numpy(x)
    with http_client.InferenceServerClient(server.http, network_timeout=120) as client:
        np.testing.assert_array_equal(client.infer("wide", [value]).as_numpy("y"), np.maximum(x, 0))


def test_the_models_command_finds_the_packages_of_a_server_with_default_flags(tmp_path):
    write_dense(tmp_path / "models", "dense")
    with Server(tmp_path / "models", tmp_path / "log"):
        # Further batch sizes are compiled while the first is served.
        eventually(lambda: "not compiled" not in models_command(tmp_path / "models").stdout)


def test_a_cache_that_cannot_be_written_ends_the_start(tmp_path):
    write_dense(tmp_path / "models", "dense")
    (tmp_path / "models/.foliot").write_text("a file where the folder should be")
    with pytest.raises(ServerFailed) as caught:
        Server(tmp_path / "models", tmp_path / "log", ready_timeout=60, **OPTIONS).start()
    assert caught.value.exit_code == 1
    for part in ("cannot write into the folder for compiled models", str(tmp_path / "models/.foliot"), "--cache"):
        assert part in caught.value.output
    if os.geteuid() == 0:
        return  # root may write everywhere
    read_only = tmp_path / "read_only"
    read_only.mkdir(mode=0o555)
    with pytest.raises(ServerFailed, match="cannot write into the folder"):
        Server(tmp_path / "models", tmp_path / "log", cache=read_only, ready_timeout=60, **OPTIONS).start()


def test_ports_are_open_before_models_are_looked_at(tmp_path):
    """However many there are; tests/figures/start_ports.py has ten thousand of them."""
    for i in range(300):
        folder = tmp_path / "models" / f"m{i:03}"
        folder.mkdir(parents=True)
        (folder / "model.onnx").write_bytes(b"nothing" * 1000)
    with started(tmp_path / "models", tmp_path / "log") as server:
        await_line(server, "listening: http")
        assert "cannot be served" not in server.output().split("listening: http")[0]
        assert get_status(server, "/v2/health/live") == 200
        assert get_status(server, "/v2/health/ready") == 503
        assert get_status(server, "/v2/models/m299/ready") in (404, 503)


def index_of(part):
    """What a front end of a cluster lists, by name: state and reason."""
    request = urllib.request.Request(f"http://127.0.0.1:{part.http_port}/v2/repository/index", b"{}")
    with urllib.request.urlopen(request, timeout=10) as response:
        return {model["name"]: (model["state"], model.get("reason", "")) for model in json.load(response)}


def test_a_front_end_shows_what_the_workers_cannot_serve(tmp_path):
    models = tmp_path / "models"
    write_dense(models, "good")
    write_broken(models, ["broken"])
    with Cluster(tmp_path, models, workers=2, frontends=1, watch="200ms") as cluster:
        (frontend,) = cluster.frontends
        eventually(lambda: "broken" in index_of(frontend), otherwise=lambda: index_of(frontend))
        state, reason = index_of(frontend)["broken"]
        assert state == "UNAVAILABLE" and reason.startswith("worker 'worker0': ") and "model.onnx" in reason
        assert index_of(frontend)["good"] == ("READY", "")
        shutil.rmtree(models / "broken")
        eventually(lambda: "broken" not in index_of(frontend), otherwise=lambda: index_of(frontend))
