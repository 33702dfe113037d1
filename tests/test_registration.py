"""Registration as a job: a network becomes variants of a task, which is served at once, or nothing is left of it."""

import contextlib
import re
import signal
import subprocess
import sys

import grpc
import numpy as np
import pytest
import tritonclient.http as http_client
from onnx import TensorProto, helper

import foliot.jobs
from foliot_tools import onnx_models
from foliot_tools.cluster import Cluster
from foliot_tools.disk import small_disk
from foliot_tools.grpc_protocol import jobs_protocol
from foliot_tools.jobs import make_key, receiver, refused
from foliot_tools.server import Server, foliot_binary
from foliot_tools.waiting import eventually
from cluster_calls import is_ready, reason_of

OPTIONS = {"page_size": "256KiB", "page_cache": "64MiB", "variants_python": sys.executable}
CLASSES, FEATURES, ROWS = 10, 64, 500
VARIANTS = ["digits-bfloat16", "digits-float32", "digits-int8"]


def write_classifier(path, classes=CLASSES, name="x", hidden=0):
    """Scores by matrix multiplication; `hidden`: by a detour that takes longer."""
    patterns = np.random.default_rng(1).normal(size=(FEATURES, classes)).astype(np.float32)
    weights, nodes, at = {"patterns": patterns}, [], name
    if hidden:
        there = np.zeros((FEATURES, hidden), np.float32)
        there[:, :FEATURES] = np.eye(FEATURES)
        weights |= {"there": there, "turn": np.eye(hidden, dtype=np.float32), "back": np.ascontiguousarray(there.T)}
        nodes = [helper.make_node("MatMul", [name, "there"], ["far"], "there_of"),
                 helper.make_node("MatMul", ["far", "turn"], ["turned"], "turn_of"),
                 helper.make_node("MatMul", ["turned", "back"], ["near"], "back_of")]
        at = "near"
    nodes.append(helper.make_node("MatMul", [at, "patterns"], ["scores"], "scores_of"))
    onnx_models.save(path, nodes, {name: (TensorProto.FLOAT, ["batch", FEATURES])},
                     {"scores": (TensorProto.FLOAT, ["batch", classes])}, weights)
    return patterns


def rows_of(patterns, rows=ROWS, noise=2.2):
    random = np.random.default_rng(2)
    labels = random.integers(patterns.shape[1], size=rows)
    x = patterns.T[labels] + noise * random.normal(size=(rows, FEATURES))
    return x.astype(np.float32), labels


@pytest.fixture(name="root")
def folder_of_jobs(tmp_path):
    """With digits.onnx and digits.npz."""
    root = tmp_path / "jobs"
    root.mkdir()
    x, labels = rows_of(write_classifier(root / "digits.onnx"))
    np.savez(root / "digits.npz", x=x, labels=labels)
    return root


@pytest.fixture(name="repository")
def folder_of_models(tmp_path):
    folder = tmp_path / "models"
    write_classifier(folder / "other" / "model.onnx")
    return folder


def start(serve, repository, root, **options):
    server = serve(repository, **{**OPTIONS, **options}, jobs=root)
    return server, foliot.jobs.Jobs(server.http)


def infer(server, rows, task="digits", **options):
    """(variant, classes)"""
    tensor = http_client.InferInput("x", list(rows.shape), "FP32")
    tensor.set_data_from_numpy(rows)
    with http_client.InferenceServerClient(server.http) as client:
        result = client.infer(task, [tensor], **options)
    return result.get_response().get("parameters", {}).get("variant"), result.as_numpy("scores").argmax(axis=1)


def index(server):
    return {model["name"]: model["state"] for model in server.post("/v2/repository/index")[1]}


def nothing_left(server, repository, *names):
    assert not [name for name in (*VARIANTS, "digits", *names) if name in index(server)]
    assert sorted(path.name for path in repository.iterdir() if not path.name.startswith(".")) == ["other"]
    drafts = repository / ".registrations"
    assert not drafts.exists() or not list(drafts.iterdir())


def register(jobs, **options):
    return jobs.register_model("digits", "digits.onnx", "digits.npz", "digits", **options)


def test_a_cluster_of_the_repository_serves_what_is_registered(serve, repository, root, tmp_path):
    with Cluster(tmp_path, repository, workers=2, frontends=1, watch="1s", page_cache="64MiB") as cluster:
        (frontend,) = cluster.frontends
        frontend.await_ready()
        with pytest.raises(foliot.jobs.JobError, match="no jobs"):
            register(foliot.jobs.Jobs(frontend.http))
        server, jobs = start(serve, repository, root)
        job = jobs.wait(register(jobs, accuracy=0.5)["id"])
        assert job["state"] == "succeeded", job
        eventually(lambda: is_ready(frontend, "digits") and reason_of(frontend, "digits") == "", timeout=60)
        rows = np.load(root / "digits.npz")["x"][:20]
        best = max(job["progress"]["accuracies"].items(), key=lambda each: each[1])
        variant, classes = infer(frontend, rows, parameters={"accuracy": best[1]})
        assert job["progress"]["accuracies"][variant] >= best[1]
        assert np.array_equal(classes, infer(server, rows, parameters={"accuracy": best[1]})[1])


def test_what_is_registered_is_served_without_a_restart(serve, repository, root):
    server, jobs = start(serve, repository, root)
    submitted = register(jobs, accuracy=0.5, default_slo="5s")
    assert (submitted["kind"], submitted["progress"]["total"]) == ("register", 5)
    job = jobs.wait(submitted["id"])
    assert job["state"] == "succeeded", job
    assert job["progress"]["done"] == 5
    accuracies = job["progress"]["accuracies"]
    assert sorted(accuracies) == VARIANTS
    # As a call measures it, on the rows behind those that calibrated.
    with np.load(root / "digits.npz") as arrays:
        x, labels = arrays["x"][100:], arrays["labels"][100:]
    for name in VARIANTS:
        classes = np.concatenate([infer(server, x[at:at + 8], name)[1] for at in range(0, len(x), 8)])
        assert accuracies[name] == pytest.approx(np.mean(classes == labels), abs=1e-6), name
    assert index(server)["digits"] == "READY"
    best = max(accuracies, key=accuracies.get)
    variant, _ = infer(server, x[:1], parameters={"accuracy": accuracies[best]})
    assert accuracies[variant] == pytest.approx(accuracies[best])
    text = (repository / "digits" / "task.toml").read_text()
    assert 'default_slo = "5s"' in text and "accuracies of 400 rows of 500; 100 calibrated int8" in text
    assert not list((repository / ".registrations").iterdir())
    # And after one.
    assert server.stop() == 0
    server, jobs = start(serve, repository, root)
    assert infer(server, x[:1])[0] in VARIANTS
    assert jobs.get(job["id"])["progress"]["accuracies"] == accuracies


def test_a_second_network_joins_the_task(serve, repository, root):
    server, jobs = start(serve, repository, root, watch="1s")
    assert jobs.wait(register(jobs, precisions=["float32"])["id"])["state"] == "succeeded"
    write_classifier(root / "wide.onnx", hidden=256)
    second = jobs.register_model("wide", "wide.onnx", "digits.npz", "digits", precisions=["bfloat16"], batch_sizes=[1, 2])
    assert jobs.wait(second["id"])["state"] == "succeeded"
    eventually(lambda: index(server).get("digits") == "READY")
    task = (repository / "digits" / "task.toml").read_text()
    assert re.findall(r'model = "(.*)"', task) == ["digits-float32", "wide-bfloat16"]
    # Of other classes it does not fit, and the task stays as it was.
    patterns = write_classifier(root / "three.onnx", classes=3)
    x, labels = rows_of(patterns)
    np.savez(root / "three.npz", x=x, labels=labels)
    third = jobs.wait(jobs.register_model("three", "three.onnx", "three.npz", "digits", precisions=["float32"])["id"])
    assert third["state"] == "failed" and "scores" in third["error"]
    assert "three-float32" not in index(server)
    assert (repository / "digits" / "task.toml").read_text() == task
    assert infer(server, x[:1])[0] in ("digits-float32", "wide-bfloat16")


def test_wrong_requests_are_named(serve, repository, root, tmp_path):
    server, jobs = start(serve, repository, root)
    (root / "up").symlink_to(tmp_path, target_is_directory=True)
    np.savez(tmp_path / "secret.npz", x=np.zeros((4, FEATURES), np.float32), labels=np.zeros(4, int))

    def why(file="digits.onnx", validation="digits.npz", task="digits", name=None, **options):
        return refused(jobs.register_model, name, file, validation, task, **options)

    assert why(validation="up/secret.npz") == (
        400, "'validation': path 'up/secret.npz' leads out of the folder of jobs (--jobs)")
    assert why(file="gone.onnx")[0] == 404
    assert "'file' must be a path that ends in .onnx" in why(file="digits.npz")[1]
    assert "'accuracy' must be a number from 0 to 1, not -0.1" in why(accuracy=-0.1)[1]
    assert why(task="other") == (409, "'other' is a model and no task; give another 'task'")
    assert "'task' must have 1 to 64 letters" in why(task="a/b")[1]
    assert "'precisions' must be a list" in why(precisions=["int4"])[1]
    assert "'sizes' is unknown" in why(sizes=3)[1]
    assert jobs.list() == []

    x, labels = rows_of(np.zeros((FEATURES, CLASSES), np.float32), 20)
    sets = {
        "empty": ({"x": x[:0], "labels": labels[:0]}, "empty.npz: the validation set is empty"),
        "uneven": ({"x": x[:7], "labels": labels}, "uneven.npz: 'x' has 7 rows, and 'labels' has 20"),
        "unlabelled": ({"x": x}, "unlabelled.npz: has no array 'labels'"),
        "other": ({"z": x, "labels": labels}, "other.npz: has no array 'x', an input of the model"),
        "shape": ({"x": x[:, :3], "labels": labels}, "input 'x'"),
        "pickled": ({"x": np.array([None] * 20), "labels": labels}, "pickled.npz: cannot be read as .npz"),
    }
    for name, (arrays, error) in sets.items():
        np.savez(root / f"{name}.npz", **arrays)
        job = jobs.wait(jobs.register_model(None, "digits.onnx", f"{name}.npz", "digits", precisions=["float32"])["id"])
        assert job["state"] == "failed" and error in job["error"], job
    (root / "torn.onnx").write_bytes(b"torn")
    (root / "torn.npz").write_bytes(b"torn")
    for file, validation, error in (("torn.onnx", "digits.npz", "torn.onnx: cannot be read as ONNX"),
                                    ("digits.onnx", "torn.npz", "torn.npz: cannot be read as .npz")):
        job = jobs.wait(jobs.register_model(None, file, validation, "digits")["id"])
        assert job["state"] == "failed" and error in job["error"], job
    output = jobs.wait(register(jobs, output="logits")["id"])
    assert "the network has no output 'logits' ('output'); it has scores" in output["error"]
    best = jobs.wait(register(jobs, accuracy=1, precisions=["float32"])["id"])
    assert best["state"] == "failed" and "the nearest is 'digits-float32'" in best["error"]
    nothing_left(server, repository)


def test_an_interpreter_without_its_libraries_is_named(serve, repository, root):
    server, jobs = start(serve, repository, root, variants_python="/usr/bin/python3")
    job = jobs.wait(register(jobs)["id"])
    assert job["state"] == "failed" and "with --variants-python" in job["error"], job
    nothing_left(server, repository)


def test_a_full_disk_is_named(serve, repository, root):
    drafts = repository / ".registrations"
    drafts.mkdir()
    prefix, preexec = small_disk(drafts)
    server, jobs = start(serve, repository, root, prefix=prefix, preexec=preexec)
    job = jobs.wait(register(jobs)["id"])
    assert job["state"] == "failed" and "validation.npz: cannot be written" in job["error"], job
    nothing_left(server, repository)


def at_step(jobs, job_id, done):
    job = jobs.get(job_id)
    assert job["state"] in ("queued", "running"), job
    return job["progress"]["done"] >= done


@pytest.mark.parametrize("step", [0, 1, 2])
def test_a_cancelled_registration_leaves_nothing(serve, repository, root, step):
    write_slow(root)
    server, jobs = start(serve, repository, root)
    job_id = register(jobs)["id"]
    eventually(lambda: at_step(jobs, job_id, step), 120)
    jobs.cancel(job_id)
    assert jobs.wait(job_id)["state"] == "cancelled"
    nothing_left(server, repository)
    assert infer(server, np.zeros((1, FEATURES), np.float32), "other")[1].shape == (1,)


def write_slow(root):
    """A network and a set that take seconds to measure."""
    write_classifier(root / "digits.onnx", hidden=2048)
    x, labels = rows_of(np.zeros((FEATURES, CLASSES), np.float32), 20000)
    np.savez(root / "digits.npz", x=x, labels=labels)


@contextlib.contextmanager
def killed_server(repository, tmp_path, root):
    server = Server(repository, tmp_path / "killed.log", **OPTIONS, jobs=root).start()
    try:
        yield server
    finally:
        server.process.send_signal(signal.SIGKILL)
        server.process.wait()


def test_a_registration_survives_that_its_server_is_killed(serve, repository, root, tmp_path):
    write_slow(root)
    job_id = None
    for step in (0, 1, 2):
        with killed_server(repository, tmp_path, root) as server:
            jobs = foliot.jobs.Jobs(server.http)
            assert "digits" not in index(server)
            job_id = job_id or register(jobs)["id"]
            eventually(lambda: at_step(jobs, job_id, step), 120)  # noqa: B023
    server, jobs = start(serve, repository, root)
    assert jobs.get(job_id)["progress"]["done"] >= 2, "steps that a client saw are kept"
    job = jobs.wait(job_id)
    assert job["state"] == "succeeded", job
    assert sorted(job["progress"]["accuracies"]) == VARIANTS
    assert infer(server, np.zeros((1, FEATURES), np.float32))[0] in VARIANTS
    assert not list((repository / ".registrations").iterdir())


def test_a_webhook_learns_that_a_registration_has_ended(serve, repository, root):
    with receiver() as hook:
        address = f"127.0.0.1:{hook.server_port}"
        _, jobs = start(serve, repository, root, webhooks=address)
        job = register(jobs, precisions=["float32"], webhook=f"http://{address}/registered")
        path, body = hook.received.get(timeout=120)
        assert path == "/registered"
        assert (body["id"], body["state"]) == (job["id"], "succeeded")
        assert list(body["progress"]["accuracies"]) == ["digits-float32"]


def test_only_operators_register(serve, repository, root, tmp_path):
    entries, keys = zip(*(make_key("user", "jobs"), make_key("operator", "jobs", "admin")), strict=True)
    (tmp_path / "keys.toml").write_text("".join(entries))
    server, _ = start(serve, repository, root, keys=tmp_path / "keys.toml")
    user, operator = (foliot.jobs.Jobs(server.http, key) for key in keys)
    assert refused(register, user) == (403, "the key has no scope 'admin'")
    job = operator.wait(register(operator, precisions=["float32"])["id"])
    assert (job["state"], job["owner"]) == ("succeeded", "operator"), job


def test_the_command_line_registers(serve, repository, root):
    server, jobs = start(serve, repository, root)
    arguments = ["--task", "digits", "--file", "digits.onnx", "--validation", "digits.npz", "--precisions", "float32", "int8",
                 "--batch-sizes", "1", "4", "--default-slo", "100ms", "--wait"]
    done = subprocess.run([foliot_binary(), "jobs", "register", "--url", server.http, *arguments], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stderr
    assert "succeeded, 4 of 4 steps" in done.stdout
    assert re.search(r"^digits-int8: accuracy 0\.\d{4}$", done.stdout, re.M)
    assert index(server)["digits"] == "READY"
    assert jobs.list()[0]["request"]["batch_sizes"] == [1, 4]


def test_jobs_over_grpc(serve, repository, root):
    server, jobs = start(serve, repository, root)
    messages, stub_of = jobs_protocol()
    with grpc.insecure_channel(server.grpc) as channel:
        stub = stub_of(channel)
        request = messages.SubmitRequest(registration=messages.RegistrationJob(
            task="digits", file="digits.onnx", validation="digits.npz", precisions=["float32"], batch_sizes=[1, 8]))
        submitted = stub.Submit(request)
        assert (submitted.kind, submitted.total) == ("register", 3)
        assert jobs.wait(submitted.id)["state"] == "succeeded"
        shown = stub.Show(messages.ShowRequest(id=submitted.id))
        assert shown.accuracies["digits-float32"] > 0.5
        rows, _ = rows_of(np.zeros((FEATURES, CLASSES), np.float32), 30)
        np.save(root / "rows.npy", rows)
        offline = messages.SubmitRequest(offline=messages.OfflineJob(task="digits", inputs={"x": "rows.npy"}, output="answers",
                                                                     accuracy=0.5))
        job = stub.Submit(offline)
        assert jobs.wait(job.id)["state"] == "succeeded"
        assert np.load(root / "answers" / "scores.npy").shape == (30, CLASSES)
        assert [each.id for each in stub.List(messages.ListRequest()).jobs] == [submitted.id, job.id]
        assert dict(stub.Show(messages.ShowRequest(id=job.id)).variants) == {"digits-float32": 30}
        offline.offline.accuracy = 1.5
        for call, code, text in ((lambda: stub.Submit(offline), grpc.StatusCode.INVALID_ARGUMENT, "from 0 to 1, not 1.5"),
                                 (lambda: stub.Cancel(messages.CancelRequest(id=job.id)), grpc.StatusCode.ALREADY_EXISTS,
                                  "has succeeded already")):
            with pytest.raises(grpc.RpcError) as caught:
                call()
            assert caught.value.code() == code and text in caught.value.details()
