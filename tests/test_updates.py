"""Models that come, change and go while others are served: nothing is refused
because of it, what is bad is said and left out, and nothing leads out of the
repository."""

import os
import pathlib
import shutil
import signal
import subprocess
import threading
import time
import urllib.parse

import numpy as np
import onnx
import pytest
import tritonclient.http as triton
from onnx import TensorProto, helper

from foliot_tools import onnx_models
from foliot_tools.server import Server, ServerFailed, foliot_binary
from foliot_tools.waiting import eventually

# In the background a compilation would never end on a machine that has other work.
OPTIONS = {"page_size": "256KiB", "page_cache": "16MiB", "compile_in_background": "false"}


def write_slow(path, layers=200):
    """Takes seconds to compile."""
    sizes = [16 + i % 7 for i in range(layers)]
    return onnx_models.random_dense_network(path, sizes)


def ask(server, model="m"):
    with triton.InferenceServerClient(server.http, network_timeout=60) as client:
        request = triton.InferInput("x", [1, 1], "FP32")
        request.set_data_from_numpy(np.ones((1, 1), np.float32))
        return client.infer(model, [request]).as_numpy("y")[0, 0]


def load(server, model="m", what="load"):
    return server.post(f"/v2/repository/models/{urllib.parse.quote(model, safe='')}/{what}")


def index(server):
    return {entry["name"]: entry for entry in server.post("/v2/repository/index")[1]}


def children(process):
    result = []
    for status in pathlib.Path("/proc").glob("[0-9]*/status"):
        try:
            if f"\nPPid:\t{process}\n" in status.read_text():
                result.append(int(status.parent.name))
        except OSError:
            pass
    return result


def was_started_with(process, word):
    try:
        return word in pathlib.Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return False


def compilers(server):
    """Process ids of the server's compilations: its children, and the copies of the one that stands by. A child that is
    not known as either yet may become each."""
    result = []
    for child in children(server.process.pid):
        if was_started_with(child, b"stand-by"):
            result += children(child)
        elif was_started_with(child, b"confined-compile"):
            result.append(child)
    return result


@pytest.fixture
def server(tmp_path, serve):
    onnx_models.constant(tmp_path / "models/m/1/model.onnx", 1)
    server = serve(tmp_path / "models", **OPTIONS)
    server.repository = tmp_path / "models"
    return server


def test_a_new_version_takes_over_and_an_old_one_comes_back(server):
    assert ask(server) == 1
    onnx_models.constant(server.repository / "m/2/model.onnx", 2)
    assert ask(server) == 1
    assert load(server)[0] == 200
    assert ask(server) == 2
    assert index(server)["m"]["version"] == "2"
    shutil.rmtree(server.repository / "m/2")
    assert load(server)[0] == 200
    assert ask(server) == 1


def test_statistics_distinguish_versions(server):
    def served(path):
        return {each["version"]: each["inference_stats"]["success"]["count"] for each in server.get(path)[1]["model_stats"]}

    ask(server)
    ask(server)
    onnx_models.constant(server.repository / "m/2/model.onnx", 2)
    assert load(server)[0] == 200
    ask(server)
    assert served("/v2/models/m/stats") == {"2": 1}
    assert served("/v2/models/stats") == {"1": 2, "2": 1}
    metrics = server.metrics()
    assert metrics['nv_inference_request_success{model="m",version="1"}'] == 2
    assert metrics['nv_inference_exec_count{model="m",version="2"}'] == 1


def test_no_request_is_refused_because_of_an_update(server):
    answers, failures, stop = [], [], threading.Event()

    def client():
        while not stop.is_set():
            try:
                answers.append(ask(server))
            except Exception as error:  # noqa: BLE001: whatever the client raises is what is tested
                failures.append(error)

    clients = [threading.Thread(target=client) for _ in range(4)]
    for each in clients:
        each.start()
    for version in range(2, 12):
        onnx_models.constant(server.repository / f"m/{version}/model.onnx", version)
        assert load(server)[0] == 200
    eventually(lambda: 11 in answers)
    stop.set()
    for each in clients:
        each.join()
    assert not failures
    assert len(set(answers)) > 3


def test_a_bad_version_is_refused_and_the_old_one_stays(server):
    (server.repository / "m/2").mkdir()
    (server.repository / "m/2/model.onnx").write_bytes(b"rubbish")
    status, answer = load(server)
    assert status == 400 and "m/2/model.onnx" in answer["error"]
    assert ask(server) == 1
    entry = index(server)["m"]
    assert (entry["version"], entry["state"]) == ("1", "READY")
    assert "version 2" in entry["reason"] and "model.onnx" in entry["reason"]
    onnx_models.constant(server.repository / "m/3/model.onnx", 3)
    assert load(server)[0] == 200
    assert ask(server) == 3
    assert index(server)["m"]["reason"] == ""


def test_unloading_and_loading_again(server):
    assert load(server, what="unload")[0] == 200
    assert index(server)["m"]["state"] == "UNAVAILABLE"
    assert load(server, what="unload")[0] == 404
    assert load(server)[0] == 200
    assert ask(server) == 1
    shutil.rmtree(server.repository / "m")
    assert load(server, what="unload")[0] == 200
    assert "m" not in index(server)


def test_loading_what_is_served_already_changes_nothing(server):
    assert load(server)[0] == 200
    assert ask(server) == 1


def test_the_server_is_ready_while_it_loads(server):
    write_slow(server.repository / "slow/1/model.onnx")
    loading = threading.Thread(target=load, args=(server, "slow"))
    loading.start()
    eventually(lambda: index(server).get("slow", {}).get("state") == "LOADING")
    assert server.get("/v2/health/ready")[0] == 200
    assert ask(server) == 1
    onnx_models.constant(server.repository / "n/1/model.onnx", 5)
    assert load(server, what="unload")[0] == 200  # does not wait for the load of another
    loading.join()


# Watching


@pytest.fixture
def watching(tmp_path, serve):
    onnx_models.constant(tmp_path / "models/m/1/model.onnx", 1)
    server = serve(tmp_path / "models", watch="100ms", **OPTIONS)
    server.repository = tmp_path / "models"
    return server


def test_the_repository_is_watched(watching):
    onnx_models.constant(watching.repository / "m/2/model.onnx", 2)
    eventually(lambda: ask(watching) == 2)
    onnx_models.constant(watching.repository / "n/model.onnx", 7)
    eventually(lambda: index(watching).get("n", {}).get("state") == "READY")
    assert ask(watching, "n") == 7
    shutil.rmtree(watching.repository / "n")
    eventually(lambda: "n" not in index(watching))
    (watching.repository / "m/3").mkdir()
    (watching.repository / "m/3/model.onnx").write_bytes(b"rubbish")
    eventually(lambda: "version 3" in index(watching)["m"]["reason"])
    assert ask(watching) == 2


def test_a_name_that_cannot_be_looked_at_ends_nothing(watching):
    (watching.repository / "itself").symlink_to("itself")
    eventually(lambda: "symbolic links" in index(watching).get("itself", {}).get("reason", ""))
    assert ask(watching) == 1
    (watching.repository / "itself").unlink()
    onnx_models.constant(watching.repository / "n/model.onnx", 7)
    eventually(lambda: index(watching).get("n", {}).get("state") == "READY")
    assert "itself" not in index(watching)


def test_a_name_that_cannot_be_looked_at_is_said_at_start(tmp_path, serve):
    onnx_models.constant(tmp_path / "models/m/model.onnx", 1)
    (tmp_path / "models/itself").symlink_to("itself")
    listed = subprocess.run([foliot_binary(), "models", tmp_path / "models"], capture_output=True, text=True)
    assert "itself: Too many levels of symbolic links" in listed.stdout + listed.stderr
    assert ask(serve(tmp_path / "models", **OPTIONS)) == 1


def test_no_fifo_is_opened(watching):
    """Opening one would wait for a writer for ever."""
    folder = watching.repository / "n"
    folder.mkdir()
    os.mkfifo(folder / "weights")
    model = onnx.load(onnx_models.constant(watching.repository.parent / "whole.onnx", 9))
    (tensor, *_) = model.graph.initializer
    tensor.ClearField("raw_data")
    tensor.ClearField("float_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="weights")
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    eventually(lambda: "'weights' is no regular file" in index(watching).get("n", {}).get("reason", ""))
    assert ask(watching) == 1


def test_a_file_that_is_still_being_written_is_left_alone(watching):
    whole = onnx_models.constant(watching.repository.parent / "whole.onnx", 9).read_bytes()
    target = watching.repository / "n/model.onnx"
    target.parent.mkdir()
    with open(target, "wb", buffering=0) as file:
        for byte in whole[:60]:
            file.write(bytes([byte]))
            time.sleep(0.02)
            assert "n" not in index(watching)
        file.write(whole[60:])
    eventually(lambda: index(watching).get("n", {}).get("state") == "READY")
    assert ask(watching, "n") == 9


def test_what_a_client_has_unloaded_stays_so(watching):
    assert load(watching, what="unload")[0] == 200
    # A model that was added later is seen by a scan that has seen this one, too.
    onnx_models.constant(watching.repository / "later/1/model.onnx", 1)
    eventually(lambda: index(watching).get("later", {}).get("state") == "READY")
    assert index(watching)["m"]["state"] == "UNAVAILABLE"


def test_the_repository_is_watched_while_clients_change_it(tmp_path, serve):
    """The watching thread nearly always sleeps, and must not take wake-ups of the loading threads."""
    onnx_models.constant(tmp_path / "models/m/1/model.onnx", 1)
    server = serve(tmp_path / "models", watch="1h", **OPTIONS)
    for _ in range(10):
        assert load(server, what="unload")[0] == 200
        assert load(server)[0] == 200


# The process that compiles


def test_a_compiler_that_is_killed_is_an_error_that_names_the_model(server):
    eventually(lambda: not compilers(server))  # of other batch sizes of what is served
    write_slow(server.repository / "slow/1/model.onnx")
    answer = []
    loading = threading.Thread(target=lambda: answer.append(load(server, "slow")))
    loading.start()
    killed = eventually(lambda: compilers(server))
    for process in killed:
        os.kill(process, signal.SIGSTOP)  # so that a fast machine does not end it first
    assert ask(server) == 1
    for process in killed:
        os.kill(process, signal.SIGSEGV)
        os.kill(process, signal.SIGCONT)
    loading.join()
    status, body = answer[0]
    assert status == 500 and "signal 11" in body["error"]
    assert "signal 11" in index(server)["slow"]["reason"]
    assert ask(server) == 1


def test_compiling_gives_way_and_holds_nothing_of_the_server(tmp_path, serve):
    onnx_models.constant(tmp_path / "models/m/1/model.onnx", 1)
    server = serve(tmp_path / "models", page_size="256KiB", page_cache="16MiB")
    write_slow(tmp_path / "models/slow/1/model.onnx", layers=6000)
    loading = threading.Thread(target=load, args=(server, "slow"))
    loading.start()
    process = eventually(lambda: compilers(server))[0]
    eventually(lambda: os.sched_getscheduler(process) == os.SCHED_IDLE)
    eventually(lambda: b"confined-compile" in pathlib.Path(f"/proc/{process}/cmdline").read_bytes())
    files = {path.readlink() for path in pathlib.Path(f"/proc/{process}/fd").iterdir() if path.name > "3"}
    assert not any("socket" in str(file) for file in files)
    os.kill(process, signal.SIGKILL)
    loading.join()
    assert ask(server) == 1


def test_compiling_within_limits(tmp_path, serve):
    write_slow(tmp_path / "models/slow/1/model.onnx", layers=1000)
    onnx_models.constant(tmp_path / "models/m/1/model.onnx", 1)
    server = serve(tmp_path / "models", compile_memory="200MiB", **OPTIONS)
    # Its smallest batch size may fit.
    reason = eventually(lambda: index(server)["slow"]["reason"])
    assert "--compile-memory" in reason or "memory" in reason


def test_stopping_ends_a_compilation_at_once(tmp_path):
    write_slow(tmp_path / "models/slow/1/model.onnx", layers=6000)
    server = Server(tmp_path / "models", tmp_path / "log", **OPTIONS)
    with open(server.console, "wb") as console:
        server.process = subprocess.Popen(server.command, stdout=console, stderr=subprocess.STDOUT)
    eventually(lambda: compilers(server))
    begin = time.monotonic()
    assert server.stop(signal.SIGINT) == 0
    assert time.monotonic() - begin < 10
    assert "slow" not in server.output() or "cannot be served" not in server.output()


# Names


@pytest.mark.parametrize("name", ["..", "../m", "../../etc", "m/../m", "%2e%2e", "\0", "m\0", "m/", "/etc/passwd",
                                  "x" * 5000, ".foliot", "日本"])
def test_no_name_leads_out_of_the_repository(server, name):
    for what in ("load", "unload"):
        assert load(server, name, what)[0] in (400, 404, 414, 431)
    assert list(index(server)) == ["m"]


def test_a_model_that_leads_out_of_the_repository(server):
    outside = onnx_models.constant(server.repository.parent / "outside/1/model.onnx", 4)
    (server.repository / "folder").symlink_to(outside.parent.parent)
    (server.repository / "file/1").mkdir(parents=True)
    (server.repository / "file/1/model.onnx").symlink_to(outside)
    for name in ("folder", "file"):
        status, answer = load(server, name)
        assert status == 400 and "leads out of the repository" in answer["error"]


def test_external_data_that_leads_out_of_the_model(server, tmp_path):
    model = helper.make_model(helper.make_graph(
        [helper.make_node("Add", ["x", "w"], ["y"], "add")], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 1])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 1])]),
        opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    weight = model.graph.initializer.add(name="w", data_type=TensorProto.FLOAT, dims=[1],
                                         data_location=TensorProto.EXTERNAL)
    weight.external_data.add(key="location", value="../../m/1/model.onnx")
    path = server.repository / "thief/1/model.onnx"
    path.parent.mkdir(parents=True)
    path.write_bytes(model.SerializeToString())
    status, answer = load(server, "thief")
    assert status in (400, 404) and "external data" in answer["error"]


# Memory


def test_a_page_cache_larger_than_the_memory_is_refused(tmp_path):
    onnx_models.constant(tmp_path / "models/m/1/model.onnx", 1)
    with pytest.raises(ServerFailed) as caught:
        Server(tmp_path / "models", tmp_path / "log", page_cache="1TiB").start()
    assert caught.value.exit_code == 1
    assert "--page-cache" in caught.value.output and "available" in caught.value.output


def test_memory_stays_flat_over_many_updates(server):
    """1,000 updates are tests/figures/model_updates.py's; these show a leak of
    some 100 KiB each."""
    def update(count):
        for i in range(count):
            onnx_models.constant(server.repository / "m/1/model.onnx", i % 3)
            assert load(server)[0] == 200

    def mappings():
        return len(pathlib.Path(f"/proc/{server.process.pid}/maps").read_text().splitlines())

    update(30)
    memory, maps = server.memory_bytes(), mappings()
    update(60)
    assert server.memory_bytes() - memory < 6 << 20
    assert mappings() - maps < 40
