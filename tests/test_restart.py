"""Starting again, stopping, and settings: what holds over a server's life."""

import signal
import subprocess
import threading
import urllib.error

import numpy as np
import pytest
import tritonclient.http as triton

from conftest import write_small_models
from foliot_tools import onnx_models
from foliot_tools.log import read_log
from foliot_tools.server import Server, foliot_binary
from foliot_tools.waiting import eventually


def infer(server, model="dense"):
    pixels = np.full((1, 64), 0.5, np.float32)
    with triton.InferenceServerClient(server.http) as client:
        request = triton.InferInput("pixels", [1, 64], "FP32")
        request.set_data_from_numpy(pixels)
        return client.infer(model, [request]).as_numpy("probabilities")


def package_files(cache):
    return {path: path.stat().st_mtime_ns for path in cache.rglob("*") if path.is_file()}


def test_a_restart_compiles_nothing(tmp_path, serve):
    repository, cache = write_small_models(tmp_path / "models"), tmp_path / "cache"
    first = serve(repository, cache=cache, page_cache="16MiB")
    before = infer(first)
    first.stop()
    packages = package_files(cache)
    assert packages

    second = serve(repository, cache=cache, page_cache="16MiB")
    np.testing.assert_array_equal(infer(second), before)
    assert package_files(cache) == packages


def test_the_default_cache_is_in_the_repository(tmp_path, serve):
    repository = write_small_models(tmp_path / "models")
    serve(repository, page_cache="16MiB")
    assert package_files(repository / ".foliot")


def test_a_changed_model_is_compiled_anew(tmp_path, serve):
    repository, cache = write_small_models(tmp_path / "models"), tmp_path / "cache"
    first = serve(repository, cache=cache, page_cache="16MiB")
    before = infer(first)
    first.stop()
    onnx_models.random_dense_network(repository / "dense/1/model.onnx", (64, 32, 10), seed=9)
    assert not np.array_equal(infer(serve(repository, cache=cache, page_cache="16MiB")), before)


def test_a_model_that_arrives_later_can_be_loaded(tmp_path, serve):
    repository = write_small_models(tmp_path / "models")
    server = serve(repository, page_cache="16MiB")
    onnx_models.random_dense_network(repository / "late/1/model.onnx", (64, 32, 10), seed=4)
    with triton.InferenceServerClient(server.http, network_timeout=60) as client:
        assert not client.is_model_ready("late")
        client.load_model("late")
        assert client.is_model_ready("late")
    assert infer(server, "late").shape == (1, 10)


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_it_drains_and_stops(tmp_path, by):
    repository = write_small_models(tmp_path / "models")
    with Server(repository, tmp_path / "log", page_cache="16MiB") as server:
        failures, answers = [], []
        stopping = threading.Event()

        def ask():
            while True:
                try:
                    answers.append(infer(server))
                except Exception as error:  # noqa: BLE001: whatever the client raises is what is tested
                    if not stopping.is_set():
                        failures.append(error)
                    return

        clients = [threading.Thread(target=ask) for _ in range(4)]
        for client in clients:
            client.start()
        eventually(lambda: len(answers) >= 20 or failures)
        stopping.set()
        assert server.stop(by) == 0, server.output()
        for client in clients:
            client.join(30)
        assert not failures and answers


def test_clients_that_try_again_lose_nothing_over_restarts(tmp_path):
    """They try again what is refused with 503, and where they find no server or lose the connection."""
    server = Server(write_small_models(tmp_path / "models"), tmp_path / "log", page_cache="16MiB")
    body = {"inputs": [{"name": name, "shape": [1, 4], "datatype": "FP32", "data": [1, 2, 3, 4]} for name in ("a", "b")]}
    answers, others = [], []
    over = threading.Event()

    def ask():
        while not over.is_set():
            try:
                status, answer = server.post("/v2/models/pair/infer", body)
            except (ConnectionError, urllib.error.URLError):  # refused or reset
                continue
            (answers if status == 200 else others).append((status, answer))

    with server:
        clients = [threading.Thread(target=ask) for _ in range(4)]
        for client in clients:
            client.start()
        for restart in range(3):
            before = len(answers)
            eventually(lambda: len(answers) > before + 50, otherwise=server.output)  # noqa: B023
            if restart < 2:
                assert server.stop() == 0, server.output()
                server.start()
        over.set()
        for client in clients:
            client.join(60)
            assert not client.is_alive(), "a request was never answered"
    assert {status for status, _ in others} <= {503}, others[:3]
    assert all(answer["outputs"][0]["data"] == [2, 4, 6, 8] for _, answer in answers)


def test_memory_that_cannot_be_locked_is_said_at_the_start(tmp_path, serve):
    repository = write_small_models(tmp_path / "models")
    without = ("setpriv", "--bounding-set=-ipc_lock,-sys_resource", "--inh-caps=-ipc_lock,-sys_resource",
               "prlimit", "--memlock=65536:65536")
    server = serve(repository, prefix=without, page_cache="16MiB")
    assert "memory could not be locked: raise the limit (ulimit -l unlimited)" in server.output()
    ready = next(line for line in server.output().splitlines() if line.startswith("ready:"))
    assert "16.0 MiB" in ready, ready
    assert infer(server).shape == (1, 10)


@pytest.mark.parametrize("tier", ["memory", "disk"])
def test_models_that_do_not_fit_together(tmp_path, serve, tier):
    """A page cache for 3 of 10 models: all answer, and the log balances."""
    repository, log = tmp_path / "models", tmp_path / "events"
    names = [f"m{i}" for i in range(10)]
    for i, name in enumerate(names):
        onnx_models.random_dense_network(repository / name / "model.onnx", (64, 512, 10), seed=i)
    server = serve(repository, page_size="256KiB", page_cache="768KiB", weights_tier=tier, log=log)
    first = {name: infer(server, name) for name in names}
    for _ in range(3):
        for name in names:
            np.testing.assert_allclose(infer(server, name), first[name], rtol=1e-5, atol=1e-6)
    server.stop()

    done = read_log(log).done()
    loaded = {}
    for action in sorted(done, key=lambda action: action.end_us):
        if action.type == "LOAD":
            assert not loaded.get(action.model)
            loaded[action.model] = True
            assert sum(loaded.values()) <= 3
        elif action.type == "UNLOAD":
            assert loaded.get(action.model)
            loaded[action.model] = False
        else:
            assert loaded.get(action.model)
    # Each at least once, and three stay.
    assert sum(action.type == "LOAD" for action in done) >= 10
    assert sum(action.type == "UNLOAD" for action in done) >= 7


def test_a_settings_file_has_the_names_of_the_flags(tmp_path, serve):
    repository = write_small_models(tmp_path / "models")
    config = tmp_path / "foliot.toml"
    config.write_text(f'page-cache = "16MiB"\npage-size = "256KiB"\ncache = "{tmp_path / "elsewhere"}"\n')
    serve(repository, config=config)
    assert package_files(tmp_path / "elsewhere")


def run(*arguments, check=True):
    command = [foliot_binary(), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=check)


def test_compile_and_models(tmp_path, serve):
    repository = write_small_models(tmp_path / "models")
    output = tmp_path / "dense.package"
    result = run("compile", repository / "dense/1/model.onnx", "--output", output, "--batch-sizes", "1,2", "--report")
    assert output.stat().st_size > 64 * 32 * 4
    assert "MatMul" in result.stdout and "weights" in result.stdout and "workspace" in result.stdout
    listed = run("models", repository).stdout
    server = serve(repository, page_cache="16MiB")
    served = run("models", "--url", server.http).stdout
    for name in ("dense", "pair", "tokens", "fixed"):
        assert name in listed and name in served
    assert "READY" in served


def test_every_command_has_help():
    for command in ("serve", "compile", "models", "bench"):
        assert "--help" in run(command, "--help").stdout
    assert run("no-such-command", check=False).returncode != 0
