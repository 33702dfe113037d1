"""Containers (docs/CONTAINERS.md) under `foliot serve`: code of users that is served like any model, and that fails, hangs,
dies and changes."""

import os
import pathlib
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import skops.io
import tritonclient.grpc as grpc_client
import tritonclient.http as http_client
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from tritonclient.utils import InferenceServerException

from foliot_tools import onnx_models
from foliot_tools.cluster import Cluster
from foliot_tools.http_load import HttpLoad
from foliot_tools.server import ROOT, foliot_binary
from foliot_tools.waiting import await_output, eventually

# Doubles its input; what it does with a first number below zero is up to the test.
MODEL = """import foliot, os, time
print("loading", os.getpid())

@foliot.model(inputs={"x": ("FP32", [2])}, outputs={"y": ("FP32", [2])}, batch_size_max=8)
def predict(batch):
    x = batch["x"]
    if (x[:, 0] < 0).any():
        %s
    return {"y": 2 * x}
"""
ADDED = MODEL.replace("2 * x", "2 * x + 1")
LINE_OF_TROUBLE = 8


def write_container(folder, text, settings="", version="1"):
    """The folder of a container whose interpreter is that of the tests."""
    (folder / version).mkdir(parents=True)
    (folder / version / "model.py").write_text(text)
    (folder / "model.toml").write_text(f'[container]\npython = "{sys.executable}"\n{settings}')
    return folder


@pytest.fixture
def repository(tmp_path):
    return tmp_path / "models"


def started(serve, repository, text=MODEL % "pass", settings="", **options):
    """A server of the one container 'm', ready."""
    write_container(repository / "m", text, settings)
    server = serve(repository, **OPTIONS, **options)
    eventually(lambda: server.get("/v2/models/m/ready")[0] == 200, otherwise=server.output)
    return server


def body_of(values, **parameters):
    values = np.asarray(values, np.float32)
    return {"inputs": [{"name": "x", "shape": list(values.shape), "datatype": "FP32", "data": values.ravel().tolist()}],
            "parameters": parameters}


def ask(server, values, model="m", **parameters):
    """(status, answer as JSON)."""
    return server.post(f"/v2/models/{model}/infer", body_of(values, **parameters))


def answer_of(server, values, **parameters):
    status, answer = ask(server, values, **parameters)
    assert status == 200, answer
    return np.array(answer["outputs"][0]["data"], np.float32).reshape(np.shape(values))


def replicas(server):
    """Process ids of the replicas of a server."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            is_child = f"\nPPid:\t{server.process.pid}\n" in (path / "status").read_text()
            if is_child and b"foliot.runtime" in (path / "cmdline").read_bytes():
                found.append(int(path.name))
        except OSError:
            pass  # it has ended meanwhile
    return sorted(found)


def is_gone(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    return False


def index(server):
    return {entry["name"]: entry for entry in server.post("/v2/repository/index")[1]}


OPTIONS = {"page_size": "256KiB", "page_cache": "16MiB"}
GOOD = [[1, 2]]
TROUBLE = [[-1, 2]]


# It is served as any model


def test_a_container_of_scikit_learn_over_http_and_grpc(repository, serve):
    """The example of the documents, by an unmodified tritonclient."""
    data = load_digits()
    classifier = LogisticRegression(max_iter=5000).fit(data.data, data.target)
    write_container(repository / "digits", (ROOT / "examples/containers/digits/model.py").read_text(), "batch_size_max = 4\n")
    skops.io.dump(classifier, repository / "digits/1/digits.skops")
    server = serve(repository, **OPTIONS)
    pixels = data.data[:10].astype(np.float32)
    for module, address in ((http_client, server.http), (grpc_client, server.grpc)):
        with module.InferenceServerClient(address) as client:
            assert client.is_model_ready("digits")
            request = module.InferInput("pixels", [10, 64], "FP32")
            request.set_data_from_numpy(pixels)
            result = client.infer("digits", [request])
            np.testing.assert_array_equal(result.as_numpy("digit"), classifier.predict(data.data[:10]))
            np.testing.assert_allclose(result.as_numpy("probabilities"), classifier.predict_proba(data.data[:10]), atol=1e-5)
    metadata = server.get("/v2/models/digits")[1]
    assert metadata["inputs"] == [{"name": "pixels", "datatype": "FP32", "shape": [-1, 64]}]
    assert metadata["outputs"] == [{"name": "digit", "datatype": "INT64", "shape": [-1]},
                                   {"name": "probabilities", "datatype": "FP32", "shape": [-1, 10]}]
    assert server.get("/v2/models/digits/config")[1]["max_batch_size"] == 4
    assert server.get("/v2/models/digits/stats")[1]["model_stats"][0]["inference_stats"]["success"]["count"] == 2


def test_what_libraries_ask_for_is_there(serve, repository):
    """DuckDB ends where it may not read its memory's limit; onnxruntime reports what it is used for unless it is switched off."""
    text = MODEL % "pass" + """
import getpass, pathlib
assert getpass.getuser() == "foliot"
list(pathlib.Path("/sys/fs/cgroup").iterdir())
assert os.environ["ORT_DISABLE_TELEMETRY"] == "1"
"""
    assert answer_of(started(serve, repository, text), [[1, 2]]).tolist() == [[2, 4]]


def test_predictions_of_containers_are_kept_on_request(repository, serve):
    write_container(repository / "m", MODEL % "pass")
    settings = repository / "m/model.toml"
    settings.write_text("cache = true\n" + settings.read_text())
    server = serve(repository, **OPTIONS)
    first, again = ask(server, GOOD)[1], ask(server, GOOD)[1]
    assert "cached" not in first["parameters"] and again["parameters"]["cached"] is True
    assert first["outputs"] == again["outputs"]


def test_what_it_prints_is_in_the_log(repository, serve):
    server = started(serve, repository, MODEL % "print('trouble\\033[31m', flush=True)")
    assert ask(server, TROUBLE)[0] == 200
    eventually(lambda: "trouble" in server.output(), otherwise=server.output)
    lines = [line for line in server.output().splitlines() if "trouble" in line]
    assert all("m/0" in line and "\033" not in line for line in lines), lines
    assert any("m/0" in line and "loading" in line for line in server.output().splitlines())


# Calls that fail


FAILURES = {
    "raises": ("raise ValueError('three')", f"predict raised ValueError: three (model.py, line {LINE_OF_TROUBLE})"),
    "exits": ("raise SystemExit(0)", f"predict raised SystemExit: 0 (model.py, line {LINE_OF_TROUBLE})"),
    "shape": ("return {'y': x[0]}", "output 'y' has the shape [2]: for 1 rows it must be [1, 2]"),
    "type": ("return {'y': x.astype(complex)}", "output 'y' has the data type complex128"),
    "name": ("return {'z': x}", "predict returned the outputs ['z']: declared are ['y']"),
}


def test_a_call_that_fails_is_an_error_and_no_other_call_fails(repository, serve):
    for name, (trouble, _) in FAILURES.items():
        write_container(repository / name, MODEL % trouble)
    server = started(serve, repository)
    eventually(lambda: all(server.get(f"/v2/models/{name}/ready")[0] == 200 for name in FAILURES), otherwise=server.output)
    processes = replicas(server)
    for name, (_, expected) in FAILURES.items():
        for _ in range(2):
            status, answer = ask(server, TROUBLE, name)
            assert status == 500 and answer["reason"] == "model_error", answer
            assert ask(server, GOOD, name)[1]["outputs"][0]["data"] == [2, 4]
        eventually(lambda text=expected: text in server.output(), otherwise=server.output)
    with pytest.raises(InferenceServerException) as error, grpc_client.InferenceServerClient(server.grpc) as client:
        request = grpc_client.InferInput("x", [1, 2], "FP32")
        request.set_data_from_numpy(np.array(TROUBLE, np.float32))
        client.infer("raises", [request])
    assert error.value.status() == "StatusCode.INTERNAL"
    assert replicas(server) == processes and len(processes) == 1 + len(FAILURES), "the processes go on"


def test_a_row_fails_alone_in_its_batch(repository, serve):
    """Calls of other clients that share batches with it do not fail."""
    server = started(serve, repository, MODEL % "raise ValueError('three')")
    answers = {}

    def client(number):
        answers[number] = [ask(server, TROUBLE if number == 0 else [[number, 2]])[0] for _ in range(50)]

    clients = [threading.Thread(target=client, args=(number,)) for number in range(8)]
    for each in clients:
        each.start()
    for each in clients:
        each.join()
    assert answers == {number: [500 if number == 0 else 200] * 50 for number in range(8)}


# Processes that end


@pytest.mark.parametrize("replica_count", [1, 2])
def test_killed_under_load_each_request_has_one_end_and_the_model_is_served_again(repository, serve, replica_count):
    server = started(serve, repository, settings=f"replicas = {replica_count}\n")
    eventually(lambda: len(replicas(server)) == replica_count)
    inputs = np.random.default_rng(1).random((20, 2), np.float32)
    with HttpLoad(server.http, model="m", inputs=inputs, expected=[2 * inputs], rate=200, deadline_seconds=2,
                  input_name="x") as load:
        for _ in range(3):
            before = replicas(server)
            os.kill(before[0], signal.SIGKILL)
            eventually(lambda: len(replicas(server)) == replica_count and before[0] not in replicas(server),
                       otherwise=server.output)
            eventually(lambda: ask(server, GOOD, timeout=2_000_000)[0] == 200, otherwise=server.output)
    report = load.report
    outcomes = {request.outcome for request in report.requests}
    assert not report.unanswered() and report.stray == 0
    assert all(request.answers == 1 for request in report.requests)
    assert outcomes <= {"served", "worker_lost", "unmeetable", "expired", "late", "overload"}, outcomes
    assert "served" in outcomes
    await_output(server, "signal 9")


@pytest.mark.parametrize("trouble", ["time.sleep(3600)", "os._exit(7)"])
def test_a_call_that_hangs_or_ends_the_process_is_ended_and_the_model_is_served_again(repository, serve, trouble):
    server = started(serve, repository, MODEL % trouble)
    before = replicas(server)
    status, answer = ask(server, TROUBLE, timeout=500_000)
    assert status in (503, 504) and answer["reason"] in ("worker_lost", "expired", "late", "unmeetable"), answer
    eventually(lambda: replicas(server) and not set(replicas(server)) & set(before), otherwise=server.output)
    eventually(lambda: all(is_gone(process) for process in before), otherwise=server.output)
    eventually(lambda: ask(server, GOOD, timeout=2_000_000)[0] == 200, otherwise=server.output)
    np.testing.assert_array_equal(answer_of(server, GOOD), [[2, 4]])


def test_processes_end_with_the_server(repository, serve):
    server = started(serve, repository, settings="replicas = 2\n")
    processes = eventually(lambda: len(replicas(server)) == 2 and replicas(server))
    server.stop()
    eventually(lambda: all(is_gone(process) for process in processes))


def test_processes_end_with_a_server_that_is_killed(repository, tmp_path):
    from foliot_tools.server import Server

    write_container(repository / "m", MODEL % "pass")
    with Server(repository, tmp_path / "log", **OPTIONS) as server:
        processes = eventually(lambda: replicas(server))
        server.stop(by=signal.SIGKILL)
        eventually(lambda: all(is_gone(process) for process in processes))


# What cannot be served


BAD = [
    ("import no_such_package", f"model.py needs the package 'no_such_package'; install it for {sys.executable}"),
    ("raise ValueError('three')", "model.py cannot be loaded: ValueError: three (model.py, line 1)"),
    ("", "model.py declares no model"),
    ((MODEL % "pass").replace("2 * x}", "x[:0]}"), "output 'y' has the shape [0, 2]: for 1 rows it must be [1, 2]"),
    ("import os; os._exit(7)", "exit code 7"),
]


def test_what_cannot_be_served_says_why(repository, serve):
    for position, (text, _) in enumerate(BAD):
        write_container(repository / f"bad{position}", text)
    write_container(repository / "nowhere", MODEL % "pass")
    (repository / "nowhere/model.toml").write_text('[container]\npython = "/no/such/python"\n')
    expected = {f"bad{position}": reason for position, (_, reason) in enumerate(BAD)} | {"nowhere": "/no/such/python"}
    server = started(serve, repository)
    entries = eventually(lambda: (found := index(server)) and all(found[name]["reason"] for name in expected) and found,
                         otherwise=server.output)
    listed = subprocess.run([foliot_binary(), "models", "--url", server.http], capture_output=True, text=True, check=False)
    for name, reason in expected.items():
        assert entries[name]["state"] == "UNAVAILABLE" and reason in entries[name]["reason"], entries[name]
        assert reason in listed.stdout + listed.stderr
        assert server.get(f"/v2/models/{name}/ready")[0] != 200
    assert listed.returncode == 1
    assert server.get("/v2/health/ready")[0] == 200, "the others are served"
    assert len(replicas(server)) == 1
    np.testing.assert_array_equal(answer_of(server, GOOD), [[2, 4]])


def test_bad_settings_name_file_and_line(repository, serve):
    write_container(repository / "bad", MODEL % "pass", "replicaz = 2\n")
    server = started(serve, repository)
    reason = index(server)["bad"]["reason"]
    assert "bad/model.toml:3" in reason and "replicaz" in reason


# Versions


def test_a_new_version_takes_over_without_a_failure(repository, serve):
    server = started(serve, repository)
    old = replicas(server)
    answers, failures, stop = set(), [], threading.Event()

    def client():
        while not stop.is_set():
            status, answer = ask(server, GOOD)
            if status == 200:
                answers.add(tuple(answer["outputs"][0]["data"]))
            else:
                failures.append(answer)

    clients = [threading.Thread(target=client) for _ in range(3)]
    for each in clients:
        each.start()
    try:
        (repository / "m/2").mkdir()
        (repository / "m/2/model.py").write_text(ADDED % "pass")
        status, answer = server.post("/v2/repository/models/m/load")
        assert status == 200, answer
        eventually(lambda: (3, 5) in answers)
    finally:
        stop.set()
        for each in clients:
            each.join()
    assert not failures and answers == {(2, 4), (3, 5)}
    eventually(lambda: all(is_gone(process) for process in old))
    assert index(server)["m"]["version"] == "2" and len(replicas(server)) == 1


def test_a_bad_version_changes_nothing(repository, serve):
    server = started(serve, repository)
    process = replicas(server)
    (repository / "m/2").mkdir()
    (repository / "m/2/model.py").write_text("raise ValueError('three')")
    status, answer = server.post("/v2/repository/models/m/load")
    assert status == 400 and "ValueError: three" in answer["error"], answer
    np.testing.assert_array_equal(answer_of(server, GOOD), [[2, 4]])
    assert "ValueError: three" in index(server)["m"]["reason"] and replicas(server) == process


def test_unloading_ends_the_process(repository, serve):
    server = started(serve, repository)
    process = replicas(server)[0]
    assert server.post("/v2/repository/models/m/unload")[0] == 200
    eventually(lambda: is_gone(process))
    assert ask(server, GOOD)[0] != 200
    assert server.post("/v2/repository/models/m/load")[0] == 200
    np.testing.assert_array_equal(answer_of(server, GOOD), [[2, 4]])


# In a cluster


def is_answered(client, request):
    try:
        return client.infer("m", [request]) is not None
    except InferenceServerException:
        return False


@pytest.mark.parametrize("beside", ["a compiled model", "nothing"])
def test_in_a_cluster(repository, tmp_path, beside):
    write_container(repository / "m", MODEL % "raise ValueError('three')")
    if beside != "nothing":
        onnx_models.constant(repository / "native/1/model.onnx", 1)
    with Cluster(tmp_path, repository, workers=1, frontends=1) as cluster:
        frontend = cluster.frontends[0]
        eventually(frontend.ready)
        with http_client.InferenceServerClient(frontend.http) as client:
            eventually(lambda: client.is_model_ready("m"))
            # The front end may still be connecting to the replica.
            request = http_client.InferInput("x", [1, 2], "FP32")
            request.set_data_from_numpy(np.array(GOOD, np.float32))
            eventually(lambda: is_answered(client, request))
            for values in (GOOD, TROUBLE, GOOD):
                request.set_data_from_numpy(np.array(values, np.float32))
                if values is TROUBLE:
                    with pytest.raises(InferenceServerException, match="model_error"):
                        client.infer("m", [request])
                else:
                    np.testing.assert_array_equal(client.infer("m", [request]).as_numpy("y"), [[2, 4]])


# foliot container check


def check(folder):
    return subprocess.run([foliot_binary(), "container", "check", str(folder)], capture_output=True, text=True, check=False)


def test_check_of_a_good_and_of_a_bad_container(repository):
    good = check(write_container(repository / "m", MODEL % "pass"))
    assert good.returncode == 0, good.stdout + good.stderr
    bad = check(write_container(repository / "bad", "raise ValueError('three')"))
    assert bad.returncode == 1 and "ValueError: three (model.py, line 1)" in bad.stdout + bad.stderr


def test_a_batch_that_may_wait_is_filled(serve, repository):
    folder = write_container(repository / "m", MODEL.replace("batch_size_max=8", "batch_size_max=2").replace(
        "2 * x", "0 * x + len(x)") % "pass")
    settings = folder / "model.toml"
    settings.write_text('batch_delay = "10s"\n' + settings.read_text())
    server = serve(repository, **OPTIONS)
    eventually(lambda: server.get("/v2/models/m/ready")[0] == 200, otherwise=server.output)
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda _: answer_of(server, [[1, 1]]), range(2)))
    assert all((answer == 2).all() for answer in answers), "each in a batch of both"


def test_batches_have_up_to_256_rows(serve, repository):
    text = MODEL.replace("batch_size_max=8", "batch_size_max=256")
    server = started(serve, repository, text % 'raise ValueError("no " + 600 * "x")')
    rows = np.arange(512, dtype=np.float32).reshape(256, 2)
    assert (answer_of(server, rows) == 2 * rows).all()
    largest = max(batch["batch_size"] for batch in server.get("/v2/models/m/stats")[1]["model_stats"][0]["batch_stats"])
    assert largest > 64, "they were one call, and nothing else is under way"
    assert answer_of(server, np.ones((257, 2))).sum() == 4 * 257, "two batches"
    # The reasons of all its rows come in one message.
    status, answer = ask(server, -1 - rows)
    assert status == 500 and answer["reason"] == "model_error"
    assert (answer_of(server, rows[:1]) == [0, 2]).all()
    assert "broke the protocol" not in server.output()


def test_a_batch_size_beyond_the_limit_is_named(serve, repository):
    write_container(repository / "m", MODEL % "pass")
    write_container(repository / "toml", MODEL % "pass", "batch_size_max = 257\n")
    write_container(repository / "code", MODEL.replace("batch_size_max=8", "batch_size_max=300") % "pass")
    server = serve(repository, **OPTIONS)
    reasons = {entry["name"]: entry["reason"] for entry in server.post("/v2/repository/index", {})[1]}
    assert "'batch_size_max' must be a whole number from 1 to 256, not 257" in reasons["toml"]
    assert "'batch_size_max' is 300; 1 to 256 are allowed" in reasons["code"]
