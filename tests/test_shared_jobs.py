"""Jobs that several front ends of a cluster share through Redis: one runs them, all answer for them."""

import signal
import subprocess
import urllib.request

import grpc
import numpy as np
import pytest

import foliot.jobs
from foliot_tools.cluster import Cluster
from foliot_tools.grpc_protocol import jobs_protocol
from foliot_tools.jobs import refused
from foliot_tools.redis import Redis
from foliot_tools.server import foliot_binary, free_ports
from foliot_tools.waiting import eventually
from cluster_calls import is_ready
from test_jobs import infer, rows_of, write_repository

PAGES = {"page_cache": "64MiB"}
FORM = "foliot:{jobs}:form"
MANY = 500_000  # rows of a job that takes some seconds


@pytest.fixture(name="repository")
def models(tmp_path):
    return write_repository(tmp_path / "models")


@pytest.fixture(name="root")
def folder_of_jobs(tmp_path):
    root = tmp_path / "jobs"
    root.mkdir()
    return root


@pytest.fixture(name="redis")
def server_of_redis(tmp_path):
    with Redis(tmp_path / "redis") as redis:
        yield redis


@pytest.fixture(name="cluster")
def controller_and_workers(tmp_path, repository):
    with Cluster(tmp_path, repository, workers=1, frontends=0, **PAGES) as cluster:
        yield cluster


class Sharer:
    """A front end that shares jobs, and a client of it."""

    def __init__(self, cluster, redis, root, **options):
        self.part = cluster.add_frontend(jobs=root, jobs_store=redis.address, **options)
        self.jobs = foliot.jobs.Jobs(self.part.http)
        eventually(lambda: is_ready(self.part, "numbers"), timeout=60)

    def is_keeper(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.part.metrics_port}/metrics", timeout=10) as page:
            return "\nfoliot_jobs_keeper 1\n" in page.read().decode()

    def shown(self, job_id):
        """The job; None, if this one does not know it yet."""
        return next((job for job in self.jobs.list() if job["id"] == job_id), None)

    def done(self, job_id):
        return (self.shown(job_id) or {"progress": {"done": 0}})["progress"]["done"]

    def wait(self, job_id):
        eventually(lambda: self.shown(job_id))
        return self.jobs.wait(job_id)


def keeper_and_others(sharers):
    def found():
        keepers = [sharer for sharer in sharers if sharer.is_keeper()]
        return keepers[0] if len(keepers) == 1 else None
    keeper = eventually(found, 60)
    return keeper, [sharer for sharer in sharers if sharer is not keeper]


def share(cluster, redis, root, count):
    sharers = [Sharer(cluster, redis, root) for _ in range(count)]
    return keeper_and_others(sharers)


def check(root, output, rows, scale):
    np.testing.assert_allclose(np.load(root / output / "y.npy"), scale * rows, rtol=1e-5, atol=1e-5)
    assert sorted(path.name for path in (root / output).iterdir()) == ["y.npy"]


def same_everywhere(sharers, condition):
    """What all show, once all show the same and it meets the condition."""
    def shown():
        lists = [sharer.jobs.list() for sharer in sharers]
        return lists[0] if all(one == lists[0] for one in lists) and condition(lists[0]) else None
    return eventually(shown, 60)


def test_each_front_end_answers_every_call(cluster, redis, root, tmp_path):
    rows = rows_of(1000)
    np.save(root / "rows.npy", rows)
    linked = tmp_path / "elsewhere"  # as another machine mounts it
    linked.symlink_to(root)
    sharers = [Sharer(cluster, redis, folder) for folder in (root, linked, root)]
    keeper, followers = keeper_and_others(sharers)
    job = followers[0].jobs.submit_offline({"x": "rows.npy"}, "by_follower", task="numbers", accuracy=0.9)
    assert job["progress"]["total"] == 1000
    assert followers[0].jobs.get(job["id"])["id"] == job["id"], "a client sees what it submitted"
    other = keeper.jobs.submit_offline({"x": "rows.npy"}, "by_keeper", model="small")
    for sharer in sharers:
        assert sharer.wait(job["id"])["progress"]["variants"] == {"large": 1000}
        assert sharer.wait(other["id"])["state"] == "succeeded"
    check(root, "by_follower", rows, 3)
    check(root, "by_keeper", rows, 2)
    shown = same_everywhere(sharers, lambda jobs: all(one["state"] == "succeeded" for one in jobs))
    assert [one["id"] for one in shown] == [job["id"], other["id"]]
    # What is wrong is refused as the keeper refuses it.
    follower = followers[1].jobs
    assert refused(lambda: follower.submit_offline({"x": "none.npy"}, "o", model="small"))[0] == 404
    assert refused(lambda: follower.submit_offline({"x": "rows.npy"}, "by_keeper", model="small"))[0] == 409
    assert refused(lambda: follower.register_model("n", "x.onnx", "x.npz", "numbers"))[0] == 400
    assert refused(lambda: follower.cancel(job["id"]))[0] == 409
    assert refused(lambda: follower.cancel("none"))[0] == 404
    # Over gRPC, too.
    messages, stub_of = jobs_protocol()
    with grpc.insecure_channel(followers[0].part.grpc) as channel:
        stub = stub_of(channel)
        assert [one.id for one in stub.List(messages.ListRequest()).jobs] == [job["id"], other["id"]]
        submitted = stub.Submit(messages.SubmitRequest(offline=messages.OfflineJob(
            model="small", inputs={"x": "rows.npy"}, output="by_grpc")))
    assert keeper.wait(submitted.id)["state"] == "succeeded"


def test_a_follower_cancels_what_the_keeper_runs(cluster, redis, root):
    np.save(root / "rows.npy", rows_of(MANY))
    keeper, (follower,) = share(cluster, redis, root, 2)
    running = keeper.jobs.submit_offline({"x": "rows.npy"}, "first", model="large")["id"]
    queued = follower.jobs.submit_offline({"x": "rows.npy"}, "second", model="large")["id"]
    eventually(lambda: (follower.shown(running) or {}).get("state") == "running", 60)
    assert follower.jobs.cancel(queued)["state"] == "cancelled"
    assert follower.jobs.cancel(running)["cancel_requested"]
    assert keeper.wait(running)["state"] == "cancelled"
    same_everywhere([keeper, follower], lambda jobs: [one["state"] for one in jobs] == ["cancelled"] * 2)


def test_another_goes_on_when_the_keeper_is_killed(cluster, redis, root):
    rows = rows_of(MANY)
    np.save(root / "rows.npy", rows)
    keeper, followers = share(cluster, redis, root, 3)
    job_id = followers[0].jobs.submit_offline({"x": "rows.npy"}, "answers", model="large")["id"]
    waiting_id = keeper.jobs.submit_offline({"x": "rows.npy"}, "later", model="small")["id"]
    eventually(lambda: followers[0].done(job_id) > 500, 120)
    keeper.part.kill()
    shown = followers[0].jobs.get(job_id)
    assert shown["state"] == "running", "a follower knows it still; a longer job is needed if it has ended"
    # Submissions wait for the next keeper.
    last_id = followers[1].jobs.submit_offline({"x": "rows.npy"}, "last", model="small")["id"]
    second, (third,) = keeper_and_others(followers)
    for sharer in (second, third):
        job = sharer.wait(job_id)
        assert (job["state"], job["progress"]["done"]) == ("succeeded", len(rows)), job
        assert sharer.wait(waiting_id)["state"] == "succeeded"
        assert sharer.wait(last_id)["state"] == "succeeded"
    check(root, "answers", rows, 3)
    check(root, "later", rows, 2)
    check(root, "last", rows, 2)
    shown = same_everywhere([second, third], lambda jobs: len(jobs) == 3)
    assert [one["id"] for one in shown] == [job_id, waiting_id, last_id]
    # One that comes back is a follower.
    keeper.part.start()
    keeper.part.await_ready()
    same_everywhere([keeper, second, third], lambda jobs: len(jobs) == 3)
    assert not keeper.is_keeper()


def test_a_keeper_that_stood_still_changes_nothing(cluster, redis, root):
    rows = rows_of(MANY)
    np.save(root / "rows.npy", rows)
    keeper, (follower,) = share(cluster, redis, root, 2)
    job_id = keeper.jobs.submit_offline({"x": "rows.npy"}, "answers", model="large")["id"]
    eventually(lambda: follower.done(job_id) > 500, 120)
    keeper.part.process.send_signal(signal.SIGSTOP)
    job = follower.wait(job_id)
    assert (job["state"], job["progress"]["done"]) == ("succeeded", len(rows)), job
    keeper.part.process.send_signal(signal.SIGCONT)
    keeper.part.await_line("does not keep the jobs of unix:.*redis.sock any more")
    same_everywhere([keeper, follower], lambda jobs: jobs == [job])
    check(root, "answers", rows, 3)
    assert follower.is_keeper() and not keeper.is_keeper()


def test_a_keeper_that_stops_gives_its_jobs_to_another(cluster, redis, root):
    rows = rows_of(MANY)
    np.save(root / "rows.npy", rows)
    keeper, (follower,) = share(cluster, redis, root, 2)
    job_id = keeper.jobs.submit_offline({"x": "rows.npy"}, "answers", model="large")["id"]
    eventually(lambda: follower.done(job_id) > 500, 120)
    assert keeper.part.stop() == 0
    follower.part.await_line("keeps the jobs of unix:.*redis.sock from now on")
    job = follower.wait(job_id)
    assert (job["state"], job["progress"]["done"]) == ("succeeded", len(rows)), job
    check(root, "answers", rows, 3)


def post_is_refused(sharer, output):
    try:
        sharer.jobs.submit_offline({"x": "rows.npy"}, output, model="small")
    except foliot.jobs.JobError as error:
        return error
    return None


@pytest.mark.parametrize("how", ["stands_still", "ends"])
def test_jobs_go_on_when_redis_is_back(cluster, redis, root, how):
    rows = rows_of(MANY)
    np.save(root / "rows.npy", rows)
    keeper, (follower,) = share(cluster, redis, root, 2)
    sharers = [keeper, follower]
    job_id = keeper.jobs.submit_offline({"x": "rows.npy"}, "answers", model="large")["id"]
    eventually(lambda: follower.done(job_id) > 500, 120)
    if how == "ends":
        redis.stop()
    else:
        redis.process.send_signal(signal.SIGSTOP)
    done = follower.jobs.get(job_id)["progress"]["done"]
    for number, sharer in enumerate(sharers):
        status, message = refused(lambda: sharer.jobs.submit_offline(  # noqa: B023
            {"x": "rows.npy"}, f"refused{number}", model="small"))  # noqa: B023
        assert status == 503 and "redis.sock" in message, message
        assert sharer.jobs.get(job_id)["progress"]["done"] >= done, "what was read stays"
        np.testing.assert_allclose(infer(sharer.part, "small", rows[:8]), 2 * rows[:8], rtol=1e-5)
    # Until the keeper must take it that another has the lease.
    eventually(lambda: not keeper.is_keeper(), 60)
    keeper.part.await_line("does not keep the jobs of unix:.*redis.sock any more")
    np.testing.assert_allclose(infer(keeper.part, "small", rows[:8]), 2 * rows[:8], rtol=1e-5)
    assert keeper.jobs.get(job_id)["state"] == "running"
    if how == "ends":
        redis.start()
    else:
        redis.process.send_signal(signal.SIGCONT)
    for sharer in sharers:
        job = sharer.wait(job_id)
        assert (job["state"], job["progress"]["done"]) == ("succeeded", len(rows)), job
    check(root, "answers", rows, 3)
    again = eventually(lambda: post_is_refused(follower, "after") is None, 60)
    assert again
    keeper_and_others(sharers)


def test_a_front_end_starts_without_redis_and_waits_for_it(cluster, redis, root):
    rows = rows_of(100)
    np.save(root / "rows.npy", rows)
    redis.stop()
    sharer = Sharer(cluster, redis, root)
    sharer.part.await_line("--jobs-store: unix:.*redis.sock: cannot connect.*jobs are refused until it answers")
    assert refused(sharer.jobs.list)[0] == 503
    np.testing.assert_allclose(infer(sharer.part, "small", rows[:8]), 2 * rows[:8], rtol=1e-5)
    redis.start()
    eventually(lambda: post_is_refused(sharer, "answers") is None, 60)
    (job,) = sharer.jobs.list()
    assert sharer.wait(job["id"])["state"] == "succeeded"


def failed_start(root, *flags):
    ports = (flag for name in ("http", "grpc", "metrics") for flag in (f"--{name}-port", "0"))
    done = subprocess.run([foliot_binary(), "frontend", "--controller", f"127.0.0.1:{free_ports(1)[0]}", "--jobs",
                           str(root), *map(str, flags), *ports], capture_output=True, text=True, timeout=60,
                          check=False)
    assert done.returncode != 0, done.stdout
    return done.stderr


def test_wrong_flags_are_named(root):
    for wrong in ("jobs.sqlite", "http://r", "redis://", "redis://a/x", "redis://:secret@a"):
        said = failed_start(root, "--jobs-store", wrong)
        assert "--jobs-store" in said and wrong in said and "redis://HOST" in said, said
    without = subprocess.run([foliot_binary(), "frontend", "--jobs-store", "redis://r"], capture_output=True, text=True,
                             timeout=60, check=False)
    assert without.returncode != 0 and "--jobs" in without.stderr


def test_newer_jobs_and_another_folder_end_the_start(cluster, redis, root, tmp_path):
    Sharer(cluster, redis, root)
    said = failed_start(tmp_path / "other", "--jobs-store", redis.address)
    assert "is not the folder of the other front ends" in said, said
    redis_cli(redis, "set", FORM, "2")
    said = failed_start(root, "--jobs-store", redis.address)
    assert "written by a newer Foliot, in form 2" in said and "redis.sock" in said, said


def redis_cli(redis, *words):
    return subprocess.run(["redis-cli", "-s", str(redis.socket), *words], capture_output=True, text=True, check=True,
                          timeout=60).stdout


def test_a_redis_without_a_disk_is_reported(cluster, redis, root):
    redis_cli(redis, "config", "set", "appendonly", "no")
    sharer = Sharer(cluster, redis, root)
    sharer.part.await_line("keeps jobs in memory alone")
