"""Tasks: one name for several variants, of which the server chooses one by what a call says that it needs."""

import json
import os
import pathlib
import queue
import subprocess
import sys

import numpy as np
import pytest
import tritonclient.grpc as grpc_client
import tritonclient.http as http_client
from onnx import TensorProto, helper
from tritonclient.utils import InferenceServerException

from foliot_tools import onnx_models
from foliot_tools.bench import bench
from foliot_tools.jobs import TASK
from foliot_tools.log import read_log
from foliot_tools.server import ROOT, foliot_binary
from foliot_tools.waiting import await_output, eventually

OPTIONS = {"page_size": "256KiB", "page_cache": "64MiB"}


def write_network(path, shift=0, hidden=None, name="x"):
    """Scores of four classes: the four inputs, `shift` places further. With `hidden`, by a detour that takes longer."""
    weights = {"last": np.roll(np.eye(4, dtype=np.float32), shift, axis=1)}
    nodes = [helper.make_node("MatMul", [name, "last"], ["scores"], "scores_of")]
    if hidden:
        there = np.zeros((4, hidden), np.float32)
        there[:, :4] = np.eye(4)
        weights |= {"there": there, "turn": np.eye(hidden, dtype=np.float32), "last": there.T @ weights["last"]}
        weights["last"] = np.vstack([np.roll(np.eye(4, dtype=np.float32), shift, axis=1),
                                     np.zeros((hidden - 4, 4), np.float32)])
        nodes = [helper.make_node("MatMul", [name, "there"], ["wide"], "there_of"),
                 helper.make_node("MatMul", ["wide", "turn"], ["turned"], "turn_of"),
                 helper.make_node("MatMul", ["turned", "last"], ["scores"], "scores_of")]
    return onnx_models.save(path, nodes, {name: (TensorProto.FLOAT, ["batch", 4])},
                            {"scores": (TensorProto.FLOAT, ["batch", 4])}, weights)


def write_task(folder, name, text):
    (folder / name).mkdir(exist_ok=True)
    (folder / name / "task.toml").write_text(text)


@pytest.fixture(name="repository")
def variants(tmp_path):
    """The task `classes` of two variants; their answers differ."""
    folder = tmp_path / "models"
    write_network(folder / "small" / "model.onnx")
    write_network(folder / "large" / "model.onnx", shift=1, hidden=1024)
    write_task(folder, "classes", TASK)
    return folder


def start(serve, repository, **options):
    server = serve(repository, **OPTIONS, **options)
    eventually(lambda: server.get("/v2/health/ready")[0] == 200)
    for model in ("small", "large"):  # a variant that is loaded is chosen rather than one that is not yet
        if (repository / model).exists():
            infer(http_client, server.http, rows_of(0), task=model)
    return server


def parameters_of(result):
    response = result.get_response()
    if isinstance(response, dict):
        return response["parameters"]
    return {name: getattr(value, value.WhichOneof("parameter_choice")) for name, value in response.parameters.items()}


def tensor_of(module, rows, name="x"):
    tensor = module.InferInput(name, list(rows.shape), "FP32")
    tensor.set_data_from_numpy(rows)
    return tensor


def infer(module, address, rows, task="classes", **options):
    """(variant, classes)"""
    with module.InferenceServerClient(address) as client:
        result = client.infer(task, [tensor_of(module, rows)], **options)
    return parameters_of(result).get("variant"), result.as_numpy("scores").argmax(axis=1).tolist()


def rows_of(*classes):
    return np.eye(4, dtype=np.float32)[list(classes)]


def both(server):
    return (http_client, server.http), (grpc_client, server.grpc)


def test_clients_call_a_task_like_a_model(serve, repository):
    server = start(serve, repository)
    for module, address in both(server):
        assert infer(module, address, rows_of(2, 3, 0)) == ("small", [2, 3, 0])
        assert infer(module, address, rows_of(2, 3, 0), parameters={"accuracy": "0.9"}) == ("large", [3, 0, 1])
    assert infer(http_client, server.http, rows_of(1), parameters={"accuracy": 0.9}) == ("large", [2])
    assert infer(http_client, server.http, rows_of(1), parameters={"accuracy": 0}) == ("small", [1])
    # Another name for a model is still that model.
    assert infer(http_client, server.http, rows_of(1), task="large") == (None, [2])

    with grpc_client.InferenceServerClient(server.grpc) as client:
        assert client.is_model_ready("classes")
        metadata = client.get_model_metadata("classes", as_json=True)
        assert [tensor["name"] for tensor in metadata["inputs"]] == ["x"]
        # Further batch sizes come while the first is served.
        eventually(lambda: client.get_model_config("classes").config.max_batch_size == 16)
        assert {model.name: model.state for model in client.get_model_repository_index().models}["classes"] == "READY"
        answers = queue.Queue()
        client.start_stream(lambda result, error: answers.put((result, error)))
        client.async_stream_infer("classes", [tensor_of(grpc_client, rows_of(3))], parameters={"accuracy": "0.95"})
        result, error = answers.get(timeout=60)
        client.stop_stream()
    assert error is None
    assert parameters_of(result)["variant"] == "large"
    statistics = server.get("/v2/models/classes/stats")[1]["model_stats"][0]["inference_stats"]
    assert statistics["success"]["count"] == 8 - 1  # calls, without the one of the model itself


def test_requirements_are_checked(serve, repository, tmp_path):
    (tmp_path / "prices.toml").write_text("cpu = 36000\n")
    server = start(serve, repository, prices=tmp_path / "prices.toml")

    def refused(parameters, task="classes"):
        messages = set()
        for module, address in both(server):
            with pytest.raises(InferenceServerException) as caught:
                infer(module, address, rows_of(0), task=task, parameters=parameters)
            messages.add(caught.value.message().split("; request ")[0])
        assert len(messages) == 1, messages
        return messages.pop()

    nearest = refused({"accuracy": "0.99"})
    assert "no variant with an accuracy of at least 0.99; the nearest is 'large', with 0.95" in nearest
    for value in ("1.5", "-0.1", "nan", "high", True):
        assert "parameter 'accuracy' must be a number from 0 to 1" in refused({"accuracy": value})
    for value in ("0", "-1", "inf", False):
        assert "parameter 'cost' must be a number of dollars above 0" in refused({"cost": value})
    costs = refused({"cost": "1e-9"})
    assert "that costs at most $1e-09 a row; the nearest is 'small': accuracy 0.8" in costs
    with pytest.raises(InferenceServerException, match="variant 'large' comes nearest: accuracy 0.95"):
        infer(http_client, server.http, rows_of(0), parameters={"accuracy": 0.9}, timeout=1)
    assert "parameter 'accuracy' is for tasks, and 'small' is none" in refused({"accuracy": "0.5"}, task="small")
    assert "parameter 'cost' is for tasks, and 'large' is none" in refused({"cost": "0.5"}, task="large")
    assert infer(grpc_client, server.grpc, rows_of(0), parameters={"accuracy": "0.9", "cost": "1"}) == ("large", [1])


def test_a_task_goes_on_without_a_variant(serve, repository):
    server = start(serve, repository)
    with http_client.InferenceServerClient(server.http) as client:
        client.unload_model("small")
        eventually(lambda: infer(http_client, server.http, rows_of(2))[0] == "large")
        entry = {model["name"]: model for model in client.get_model_repository_index()}["classes"]
        assert entry["state"] == "READY"
        assert "variant 'small' is UNAVAILABLE" in entry["reason"]
        client.unload_model("large")
        eventually(lambda: not client.is_model_ready("classes"))
        client.load_model("small")
        eventually(lambda: client.is_model_ready("classes"))
    assert infer(http_client, server.http, rows_of(2)) == ("small", [2])


def test_broken_tasks_have_a_reason_and_others_are_served(serve, repository):
    write_network(repository / "other" / "model.onnx", name="y")
    write_task(repository, "mixed", '[[variant]]\nmodel = "small"\naccuracy = 1\n[[variant]]\nmodel = "other"\naccuracy = 1\n')
    write_task(repository, "too_good", '[[variant]]\nmodel = "small"\naccuracy = 1.5\n')
    write_task(repository, "of_nothing", '[[variant]]\nmodel = "absent"\naccuracy = 1\n')
    server = start(serve, repository)
    index = {entry["name"]: entry for entry in server.post("/v2/repository/index", {})[1]}
    assert "variants must have equal inputs, outputs and buckets" in index["mixed"]["reason"]
    assert "too_good/task.toml:3: 'accuracy'" in index["too_good"]["reason"]
    assert "variant 'absent' is not in the repository" in index["of_nothing"]["reason"]
    await_output(server, "task 'too_good' cannot be served")
    assert infer(http_client, server.http, rows_of(2)) == ("small", [2])
    with pytest.raises(InferenceServerException, match="not ready"):
        infer(http_client, server.http, rows_of(2), task="mixed")


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_the_load_generator_asks_for_what_a_task_is_to_have(serve, repository, protocol):
    server = start(serve, repository)
    address = getattr(server, protocol)

    def served(**needs):
        before = server.metrics()
        report = bench(address, "classes", protocol=protocol, concurrency=1, duration="200ms", warmup="0s", **needs)
        counts = {variant: server.metrics().get(name, 0) - before.get(name, 0) for variant in ("small", "large")
                  for name in [f'foliot_task_requests_total{{outcome="served",task="classes",variant="{variant}"}}']}
        return report, counts

    report, counts = served()
    assert counts == {"small": report["good"], "large": 0}
    report, counts = served(accuracy=0.9, cost=1)
    assert counts == {"small": 0, "large": report["good"]}
    assert report["good"] > 0
    assert (report["settings"]["accuracy"], report["settings"]["cost"]) == ("at least 0.9", "at most $1 a row")
    report, counts = served(cost=1e-12)
    assert counts == {"small": 0, "large": 0}
    assert (report["refused"], report["good"]) == (report["offered"], 0)


def test_metrics_and_the_log_name_task_and_variant(serve, repository, tmp_path):
    (tmp_path / "prices.toml").write_text("cpu = 3.6\n")
    server = start(serve, repository, log=tmp_path / "log", prices=tmp_path / "prices.toml")
    for _ in range(3):
        infer(http_client, server.http, rows_of(0, 1), parameters={"accuracy": 0.9})
    series = server.metrics()
    assert series['foliot_task_requests_total{outcome="served",task="classes",variant="large"}'] == 6
    seconds = series['foliot_task_dollars_total{task="classes",variant="large"}'] * 1000
    assert 0 < seconds < 60
    server.stop()
    of_task = next(request.id for request in read_log(tmp_path / "log").requests if request.task)
    explained = subprocess.run([foliot_binary(), "explain", str(of_task), "--log", tmp_path / "log"], check=True,
                               capture_output=True, text=True).stdout
    assert "of task 'classes' (variant 'large') was answered" in explained


def test_copies_are_decided_beside_the_controller(serve, repository):
    """For as long as calls come, their variant stays loaded though another model would take its place."""
    server = start(serve, repository, task_scaling="ilp")
    for _ in range(30):
        infer(http_client, server.http, rows_of(0))
    assert "task 'classes'" not in server.output()


def make_variants(*arguments):
    return subprocess.run([sys.executable, "-m", "foliot.variants", *map(str, arguments)], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(ROOT / "python"), "FOLIOT": foliot_binary()}, check=False)


def write_validation(path, rows=60, **changes):
    random = np.random.default_rng(3)
    inputs = random.normal(size=(rows, 4)).astype(np.float32)
    np.savez(path, **{"x": inputs, "labels": inputs.argmax(axis=1), **changes})
    return path


def test_variants_are_made_and_served(serve, tmp_path):
    repository = tmp_path / "models"
    repository.mkdir()
    model = write_network(tmp_path / "model.onnx", hidden=64)
    made = make_variants(model, "--validation", write_validation(tmp_path / "set.npz"), "--task", "classes",
                         "--repository", repository, "--accuracy", 0.9, "--default-slo", "5s")
    assert made.returncode == 0, made.stderr
    assert sorted(path.name for path in repository.iterdir()) == [
        "classes", "classes-bfloat16", "classes-float32", "classes-int8"]
    text = (repository / "classes" / "task.toml").read_text()
    assert 'model = "classes-float32"\naccuracy = 1\n' in text
    again = make_variants(model, "--validation", tmp_path / "set.npz", "--task", "classes", "--repository", repository)
    assert again.returncode == 1
    assert "exists; --replace" in again.stderr
    server = start(serve, repository)
    variant, classes = infer(http_client, server.http, 3 * rows_of(2, 1))
    assert variant in ("classes-float32", "classes-bfloat16", "classes-int8")
    assert classes == [2, 1]
    assert infer(http_client, server.http, rows_of(1), parameters={"accuracy": 1.0})[0] is not None

    def listed(*arguments):
        return subprocess.run([foliot_binary(), "variants", repository, *arguments], capture_output=True, text=True, check=False)

    # Further batch sizes are compiled while the first is served.
    eventually(lambda: "not compiled" not in listed("classes").stdout)
    plotted = listed("classes", "--plot", tmp_path / "classes.svg")
    assert plotted.returncode == 0, plotted.stderr
    lines = {line.split()[0]: line for line in plotted.stdout.splitlines()}
    assert " 1: " in lines["classes-int8"] and " 8: " in lines["classes-int8"]
    assert any(" yes " in line for line in lines.values())
    objects = {each["variant"]: each for each in map(json.loads, listed("classes", "--json").stdout.splitlines())}
    assert set(objects) == {name for name in lines if name.startswith("classes-")}
    assert {"1", "8"} <= set(objects["classes-int8"]["latency_ms"]) and any(each["front"] for each in objects.values())
    assert (tmp_path / "classes.svg").read_text().count("<circle") == 3
    assert "has no task 'absent'; its tasks: classes" in listed("absent").stderr


@pytest.mark.parametrize(("changes", "message"), [
    ({"x": np.zeros((0, 4), np.float32), "labels": np.zeros(0, np.int64)}, "the validation set is empty"),
    ({"labels": np.zeros(7, np.int64)}, "'x' has 60 rows, and 'labels' has 7"),
    ({"labels": np.zeros(60, np.float32)}, "'labels' must be whole numbers"),
    ({"z": np.zeros(60)}, "an array 'z', which is no input of the model"),
    ({"x": np.zeros((1, 4), np.float32), "labels": np.zeros(1, np.int64)}, "at least one more must be left"),
])
def test_bad_validation_sets_are_named(tmp_path, changes, message):
    (tmp_path / "models").mkdir()
    model = write_network(tmp_path / "model.onnx")
    path = write_validation(tmp_path / "set.npz", **changes)
    made = make_variants(model, "--validation", path, "--task", "classes", "--repository", tmp_path / "models")
    assert made.returncode == 1
    assert message in made.stderr
    assert list(pathlib.Path(tmp_path / "models").iterdir()) == []


def offline_job(server, inputs, folder, *flags, task="classes"):
    return [sys.executable, "-m", "foliot.offline", task, "--server", server.http, "--input", f"x={inputs}", "--output",
            str(folder), *map(str, flags)]


def run_offline(*arguments, **options):
    return subprocess.run(offline_job(*arguments, **options), capture_output=True, text=True, check=False,
                          env={**os.environ, "PYTHONPATH": str(ROOT / "python")})


def rows_in_log(folder):
    """Rows that are done, as often as the log has them. A last line without its end is still being written."""
    rows = []
    *lines, _ = (folder / "job.log").read_text().split("\n")
    for line in lines[1:]:
        begin, end, _ = json.loads(line.split(" ", maxsplit=1)[1])
        rows += range(begin, end)
    return rows


def test_an_offline_job_goes_on_where_it_was_killed(serve, repository, tmp_path):
    server = start(serve, repository)
    rows = np.random.default_rng(5).normal(size=(3000, 4)).astype(np.float32)
    np.save(tmp_path / "rows.npy", rows)
    job = tmp_path / "job"
    command = offline_job(server, tmp_path / "rows.npy", job, "--accuracy", 0.9, "--rows", 1)
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    for done in (300, 900):
        with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) as process:
            eventually(lambda: (job / "job.log").exists() and len(rows_in_log(job)) >= done, 120)  # noqa: B023
            process.kill()
    with open(job / "job.log", "ab") as log:
        log.write(b"0123abcd [7, ")  # what a crash leaves of a line
    before = len(rows_in_log(job))
    finished = run_offline(server, tmp_path / "rows.npy", job, "--accuracy", 0.9, "--rows", 1)
    assert finished.returncode == 0, finished.stderr
    assert f"goes on: {before} of 3000 rows are done" in finished.stdout
    assert sorted(rows_in_log(job)) == list(range(len(rows)))
    np.testing.assert_array_equal(np.load(job / "scores.npy"), np.roll(rows, 1, axis=1))
    assert (job / "variants.txt").read_text() == "0 3000 large\n"


def test_offline_jobs_name_what_is_wrong(serve, repository, tmp_path):
    server = start(serve, repository)
    np.save(tmp_path / "rows.npy", np.eye(4, dtype=np.float32))
    job = tmp_path / "job"
    assert run_offline(server, tmp_path / "rows.npy", job).returncode == 0
    again = run_offline(server, tmp_path / "rows.npy", job)
    assert again.returncode == 0 and "goes on: 4 of 4 rows" in again.stdout
    np.save(tmp_path / "rows.npy", 2 * np.eye(4, dtype=np.float32))
    assert "has a job of another task, of other rows" in run_offline(server, tmp_path / "rows.npy", job).stderr
    assert "cannot be read as .npy" in run_offline(server, tmp_path / "absent.npy", job).stderr
    refused = run_offline(server, tmp_path / "rows.npy", tmp_path / "other", "--accuracy", 0.99)
    assert refused.returncode == 1
    assert "the server answered 400" in refused.stderr and "the nearest is 'large'" in refused.stderr
    assert "unknown model 'absent'" in run_offline(server, tmp_path / "rows.npy", tmp_path / "third", task="absent").stderr
