"""Jobs that the server keeps: offline queries over files, which survive whatever ends the server."""

import contextlib
import json
import shutil
import signal
import sqlite3
import subprocess

import numpy as np
import pytest
import tritonclient.http as http_client
from onnx import TensorProto, helper

import foliot.jobs
from foliot_tools import onnx_models
from foliot_tools.jobs import TASK, make_key, receiver, refused
from foliot_tools.server import Server, foliot_binary, free_ports
from foliot_tools.waiting import eventually

OPTIONS = {"page_size": "256KiB", "page_cache": "64MiB"}


def write_network(path, scale, wide=4):
    """y = scale * x, by a detour over `wide` numbers."""
    there = np.zeros((4, wide), np.float32)
    there[:, :4] = np.eye(4)
    nodes = [helper.make_node("MatMul", ["x", "there"], ["far"], "there_of"),
             helper.make_node("MatMul", ["far", "turn"], ["turned"], "turn_of"),
             helper.make_node("MatMul", ["turned", "back"], ["y"], "back_of")]
    weights = {"there": there, "turn": np.eye(wide, dtype=np.float32), "back": scale * there.T}
    return onnx_models.save(path, nodes, {"x": (TensorProto.FLOAT, ["batch", 4])}, {"y": (TensorProto.FLOAT, ["batch", 4])},
                            weights)


def write_repository(folder):
    write_network(folder / "small" / "model.onnx", 2)
    write_network(folder / "large" / "model.onnx", 3, wide=1024)
    (folder / "numbers").mkdir()
    (folder / "numbers" / "task.toml").write_text(TASK)
    return folder


@pytest.fixture(name="repository")
def models(tmp_path):
    return write_repository(tmp_path / "models")


@pytest.fixture(name="root")
def folder_of_jobs(tmp_path):
    root = tmp_path / "jobs"
    root.mkdir()
    return root


def rows_of(count, seed=5):
    return np.random.default_rng(seed).normal(size=(count, 4)).astype(np.float32)


def start(serve, repository, root, **options):
    server = serve(repository, **OPTIONS, jobs=root, **options)
    eventually(lambda: server.get("/v2/health/ready")[0] == 200)
    return server, foliot.jobs.Jobs(server.http)


def infer(server, model, rows, **options):
    tensor = http_client.InferInput("x", list(rows.shape), "FP32")
    tensor.set_data_from_numpy(rows)
    with http_client.InferenceServerClient(server.http) as client:
        return client.infer(model, [tensor], **options).as_numpy("y")


def answers_of_calls(server, model, rows):
    return np.concatenate([infer(server, model, rows[begin:begin + 500]) for begin in range(0, len(rows), 500)])


def test_a_job_answers_every_row_in_its_place(serve, repository, root):
    server, jobs = start(serve, repository, root)
    rows = rows_of(1000)
    np.save(root / "rows.npy", rows)
    submitted = jobs.submit_offline({"x": "rows.npy"}, "out/answers", task="numbers", accuracy=0.9)
    assert submitted["state"] in ("queued", "running")
    assert submitted["progress"]["total"] == 1000
    job = jobs.wait(submitted["id"])
    assert job["state"] == "succeeded", job
    assert job["progress"] == {"done": 1000, "total": 1000, "variants": {"large": 1000}, "bytes": 16000}
    assert job["created_ms"] <= job["started_ms"] <= job["ended_ms"]
    np.testing.assert_array_equal(np.load(root / "out/answers/y.npy"), answers_of_calls(server, "large", rows))
    assert [each["id"] for each in jobs.list()] == [job["id"]]
    second = jobs.submit_offline({"x": "rows.npy"}, "out/second", model="small")
    assert jobs.wait(second["id"])["state"] == "succeeded"
    np.testing.assert_allclose(np.load(root / "out/second/y.npy"), 2 * rows, rtol=1e-6)
    assert [each["id"] for each in jobs.list()] == [job["id"], second["id"]]


def test_a_job_survives_that_its_server_is_killed(serve, repository, root, tmp_path):
    """As often as it is killed: each row is answered once, as a direct call answers it."""
    rows = rows_of(40000)
    np.save(root / "rows.npy", rows)
    job_id, done, kills = None, 0, 0
    for _ in range(3):
        with contextlib.ExitStack() as stack:
            server = stack.enter_context(killed_server(repository, tmp_path, root))
            jobs = foliot.jobs.Jobs(server.http)
            if job_id is None:
                job_id = jobs.submit_offline({"x": "rows.npy"}, "answers", model="large")["id"]
            eventually(lambda: jobs.get(job_id)["progress"]["done"] > done + 500, 120)  # noqa: B023
            job = jobs.get(job_id)
            done = job["progress"]["done"]
        if job["state"] == "succeeded":
            break  # a fast machine does many rows between two looks
        assert job["state"] == "running", job
        kills += 1
    assert kills > 0
    # What is not marked as done may be anything.
    server, jobs = start(serve, repository, root)
    begun = jobs.get(job_id)["progress"]["done"]
    assert begun >= done, "progress that a client saw is kept"
    job = jobs.wait(job_id)
    assert job["state"] == "succeeded", job
    assert job["progress"]["done"] == len(rows)
    np.testing.assert_array_equal(np.load(root / "answers" / "y.npy"), answers_of_calls(server, "large", rows))
    assert sorted(path.name for path in (root / "answers").iterdir()) == ["y.npy"]


@contextlib.contextmanager
def killed_server(repository, tmp_path, root):
    """A server that is killed at the end of the block."""
    server = Server(repository, tmp_path / "killed.log", **OPTIONS, jobs=root).start()
    try:
        yield server
    finally:
        server.process.send_signal(signal.SIGKILL)
        server.process.wait()


def test_a_stopped_server_leaves_its_jobs_to_the_next(serve, repository, root):
    server, jobs = start(serve, repository, root)
    rows = rows_of(100000)
    np.save(root / "rows.npy", rows)
    first = jobs.submit_offline({"x": "rows.npy"}, "first", model="large")["id"]
    second = jobs.submit_offline({"x": "rows.npy"}, "second", model="small")["id"]
    eventually(lambda: jobs.get(first)["progress"]["done"] > 100)
    running, waiting = jobs.list()  # one answer, so that both are of one moment
    assert waiting["state"] == "queued" or running["state"] == "succeeded", "one runs at a time"
    assert server.stop() == 0
    server, jobs = start(serve, repository, root)
    assert jobs.wait(first)["state"] == "succeeded"
    assert jobs.wait(second)["state"] == "succeeded"
    np.testing.assert_array_equal(np.load(root / "first" / "y.npy"), answers_of_calls(server, "large", rows))
    np.testing.assert_array_equal(np.load(root / "second" / "y.npy"), answers_of_calls(server, "small", rows))


def test_clients_are_answered_while_a_job_runs(serve, repository, root):
    server, jobs = start(serve, repository, root)
    np.save(root / "rows.npy", rows_of(1_000_000))  # which no machine ends before it is cancelled
    job_id = jobs.submit_offline({"x": "rows.npy"}, "answers", model="large")["id"]
    eventually(lambda: jobs.get(job_id)["progress"]["done"] > 0)
    rows = rows_of(3, seed=8)
    for _ in range(50):
        np.testing.assert_allclose(infer(server, "small", rows, timeout=5_000_000), 2 * rows, rtol=1e-6)
    job = jobs.get(job_id)
    assert job["state"] == "running", "calls were answered beside it"
    cancelled = jobs.cancel(job_id)
    assert cancelled["cancel_requested"]
    assert jobs.wait(job_id)["state"] == "cancelled"
    assert refused(jobs.cancel, job_id) == (409, f"job '{job_id}' has cancelled already")
    np.testing.assert_allclose(infer(server, "small", rows), 2 * rows, rtol=1e-6)


def test_wrong_requests_are_named(serve, repository, root, tmp_path):
    server, jobs = start(serve, repository, root)
    np.save(root / "rows.npy", rows_of(10))
    np.save(root / "few.npy", rows_of(3))
    np.save(root / "objects.npy", np.array(["a", "b"]))
    np.save(tmp_path / "secret.npy", rows_of(10))
    (root / "link.npy").symlink_to(tmp_path / "secret.npy")
    (root / "up").symlink_to(tmp_path, target_is_directory=True)

    def why(inputs=None, output="answers", **request):
        request = {"model": "small", **request} if "task" not in request else request
        return refused(jobs.submit_offline, {"x": "rows.npy"} if inputs is None else inputs, output, **request)

    for path in ("link.npy", "up/secret.npy"):
        assert why({"x": path}) == (400, f"input 'x': path '{path}' leads out of the folder of jobs (--jobs)")
    assert "begins with a dot" in why({"x": "../secret.npy"})[1]
    assert "must be relative" in why({"x": str(tmp_path / "secret.npy")})[1]
    assert why(output="up/answers")[0] == 400
    assert not (tmp_path / "answers").exists()
    assert why({"x": "absent.npy"})[0] == 404
    assert "type that no tensor has" in why({"x": "objects.npy"})[1]
    assert "input 'z' has 3 rows, and 'x' has 10" in why({"x": "rows.npy", "z": "few.npy"})[1]
    assert why(model="absent") == (404, "unknown model 'absent'")
    assert why(task="small") == (400, "'small' is no task but a model: name it as 'model'")
    assert "'accuracy' must be a number from 0 to 1, not 1.5" in why(task="numbers", accuracy=1.5)[1]
    assert "webhooks are off" in why(webhook="http://localhost/")[1]
    assert "'sizes' is unknown" in refused(jobs.submit, "offline", model="small", sizes=3)[1]
    assert "there is no kind of job 'online'" in refused(jobs.submit, "online")[1]
    assert refused(jobs.get, "absent") == (404, "there is no job 'absent'")
    assert server.post("/v2/jobs", b"nonsense")[0] == 400
    assert server.get("/v2/jobs?state=running")[0] == 400
    assert server.request("DELETE", "/v2/jobs")[0] == 405
    assert jobs.list() == []

    # What only the model can know fails the job.
    np.save(root / "wide.npy", np.zeros((4, 9), np.float32))
    wide = jobs.wait(jobs.submit_offline({"x": "wide.npy"}, "wide", model="small")["id"])
    assert wide["state"] == "failed" and "input 'x'" in wide["error"]
    nearest = jobs.wait(jobs.submit_offline({"x": "rows.npy"}, "best", task="numbers", accuracy=0.99)["id"])
    assert nearest["state"] == "failed" and "the nearest is 'large'" in nearest["error"]
    assert jobs.wait(jobs.submit_offline({"x": "rows.npy"}, "answers", model="small")["id"])["state"] == "succeeded"
    assert why() == (409, "'output': path 'answers': File exists; name a new folder")


def test_a_webhook_learns_that_a_job_has_ended(serve, repository, root):
    with receiver(refused=1) as hook:
        address = f"127.0.0.1:{hook.server_port}"
        _, jobs = start(serve, repository, root, webhooks=address)
        np.save(root / "rows.npy", rows_of(10))
        other = refused(jobs.submit_offline, {"x": "rows.npy"}, "none", model="small", webhook="http://127.0.0.1:1/x")
        assert other[0] == 400 and "127.0.0.1:1 is not allowed; the server's --webhooks" in other[1]
        assert not (root / "none").exists()
        job = jobs.submit_offline({"x": "rows.npy"}, "answers", model="small", webhook=f"http://{address}/done?job=7")
        for _ in range(2):
            path, body = hook.received.get(timeout=60)
            assert path == "/done?job=7"
            assert (body["id"], body["state"], body["progress"]["done"]) == (job["id"], "succeeded", 10)
        eventually(lambda: jobs.get(job["id"])["webhook"]["state"] == "delivered")
        assert jobs.get(job["id"])["webhook"]["tries"] == 2
        failed = jobs.submit_offline({"x": "rows.npy"}, "failed", task="numbers", accuracy=0.99,
                                     webhook=f"http://{address}/failed")
        assert hook.received.get(timeout=60)[1]["state"] == "failed"
        assert jobs.get(failed["id"])["error"]


def test_keys_see_their_own_jobs(serve, repository, root, tmp_path):
    entries, keys = zip(*(make_key("one", "jobs"), make_key("two", "jobs"), make_key("caller", "infer"),
                          make_key("operator", "jobs", "admin")), strict=True)
    (tmp_path / "keys.toml").write_text("".join(entries))
    server, _ = start(serve, repository, root, keys=tmp_path / "keys.toml")
    one, two, caller, operator = (foliot.jobs.Jobs(server.http, key) for key in keys)
    assert refused(foliot.jobs.Jobs(server.http).list)[0] == 401
    assert refused(caller.list) == (403, "the key has no scope 'jobs'")
    np.save(root / "rows.npy", rows_of(10))
    job = one.submit_offline({"x": "rows.npy"}, "answers", model="small")
    assert job["owner"] == "one"
    assert one.wait(job["id"])["state"] == "succeeded"
    assert refused(two.get, job["id"]) == (404, f"there is no job '{job['id']}'")
    assert refused(two.cancel, job["id"])[0] == 404
    assert two.list() == []
    assert operator.get(job["id"])["state"] == "succeeded"
    assert len(operator.list()) == 1


def test_outputs_of_a_key_have_a_limit(serve, repository, root):
    _, jobs = start(serve, repository, root, jobs_bytes_per_key="10KiB")
    np.save(root / "rows.npy", rows_of(500))
    first = jobs.wait(jobs.submit_offline({"x": "rows.npy"}, "first", model="small")["id"])
    assert (first["state"], first["progress"]["bytes"]) == ("succeeded", 8000)
    second = jobs.wait(jobs.submit_offline({"x": "rows.npy"}, "second", model="small")["id"])
    assert second["state"] == "failed"
    assert "take 8000 bytes, and those of other jobs of the same key 8000; at most 10240 are allowed" in second["error"]
    (root / "first" / "y.npy").unlink()
    (root / "first").rmdir()
    assert jobs.wait(jobs.submit_offline({"x": "rows.npy"}, "third", model="small")["id"])["state"] == "succeeded"


def test_the_port_of_operators_has_jobs(serve, repository, root):
    (port,) = free_ports(1)
    server, jobs = start(serve, repository, root, admin_port=port)
    assert refused(jobs.list)[0] == 404
    assert foliot.jobs.Jobs(f"127.0.0.1:{port}").list() == []
    assert server.get("/v2/models/small")[0] == 200


def test_without_a_folder_there_are_no_jobs(serve, repository):
    server = serve(repository, **OPTIONS)
    jobs = foliot.jobs.Jobs(server.http)
    assert refused(jobs.list) == (501, "this server keeps no jobs: start it with --jobs FOLDER")


def serve_fails(repository, root, *flags):
    done = subprocess.run([foliot_binary(), "serve", str(repository), "--http-port", "0", "--grpc-port", "0", "--metrics-port",
                           "0", "--jobs", str(root), *flags], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    return done.stderr


def test_what_is_wrong_with_the_folder_is_named(repository, root, tmp_path):
    (tmp_path / "file").write_text("")
    assert f"--jobs {tmp_path / 'file'}" in serve_fails(repository, tmp_path / "file")
    assert "--webhooks http://x/: must be HOST or HOST:PORT" in serve_fails(repository, root, "--webhooks", "http://x/")
    (root / ".foliot" / "jobs.sqlite").write_bytes(b"x" * 9000)
    assert "jobs.sqlite" in serve_fails(repository, root) and "move it away" in serve_fails(repository, root)


def test_a_copy_of_the_database_brings_the_jobs_back(serve, repository, root, tmp_path):
    """Of a server that was stopped; what is damaged or of a newer Foliot since then is replaced by it."""
    server, jobs = start(serve, repository, root)
    np.save(root / "rows.npy", rows_of(10))
    job = jobs.wait(jobs.submit_offline({"x": "rows.npy"}, "answers", model="small")["id"])
    assert server.stop() == 0
    database = root / ".foliot" / "jobs.sqlite"
    shutil.copyfile(database, tmp_path / "copy")
    with contextlib.closing(sqlite3.connect(database)) as opened:
        opened.execute("PRAGMA user_version = 1000")
    assert "was written by a newer Foliot" in serve_fails(repository, root)
    database.write_bytes(b"x" * 9000)
    assert "cannot be used: file is not a database; move it away" in serve_fails(repository, root)
    shutil.copyfile(tmp_path / "copy", database)
    server, jobs = start(serve, repository, root)
    assert jobs.list() == [job]
    assert server.stop() == 0
    database.unlink()  # moved away: the jobs are lost then, and what they wrote stays
    _, jobs = start(serve, repository, root)
    assert jobs.list() == [] and np.load(root / "answers/y.npy").shape == (10, 4)


def test_the_command_line_submits_and_follows(serve, repository, root, tmp_path):
    server, jobs = start(serve, repository, root)
    rows = rows_of(300)
    np.save(root / "rows.npy", rows)

    def command(*arguments):
        return subprocess.run([foliot_binary(), "jobs", arguments[0], "--url", server.http, *map(str, arguments[1:])],
                              capture_output=True, text=True, check=False)

    done = command("submit", "--task", "numbers", "--input", "x=rows.npy", "--output", "answers", "--accuracy", 0.9, "--wait")
    assert done.returncode == 0, done.stderr
    assert done.stdout.rstrip().endswith("succeeded, 300 of 300 rows (100 %)")
    assert np.load(root / "answers" / "y.npy").shape == (300, 4)
    submitted = command("submit", "--model", "small", "--input", "x=rows.npy", "--output", "more")
    job_id = submitted.stdout.strip()
    assert jobs.wait(job_id)["state"] == "succeeded"
    shown = command("show", job_id).stdout
    assert f"job {job_id} (offline): succeeded, 300 of 300 rows" in shown
    assert json.loads(command("show", job_id, "--json").stdout)["id"] == job_id
    listed = command("list").stdout.splitlines()
    assert len(listed) == 3 and job_id in listed[2]
    assert command("cancel", job_id).stderr == f"foliot jobs: the server answered 409: job '{job_id}' has succeeded already\n"
    failed = command("submit", "--task", "numbers", "--input", "x=rows.npy", "--output", "best", "--accuracy", 0.99, "--wait")
    assert failed.returncode == 1 and "the nearest is 'large'" in failed.stderr
    assert "must be NAME=PATH.npy" in command("submit", "--model", "small", "--input", "rows.npy", "--output", "o").stderr
    absent = subprocess.run([foliot_binary(), "jobs", "list", "--url", "127.0.0.1:1"], capture_output=True, text=True, check=False)
    assert absent.returncode == 1 and "127.0.0.1:1" in absent.stderr
