"""Jobs that a front end of a cluster keeps: offline queries over the models of workers."""

import subprocess

import numpy as np
import pytest

import foliot.jobs
from foliot_tools.cluster import Cluster
from foliot_tools.jobs import refused
from foliot_tools.server import foliot_binary, free_ports
from foliot_tools.waiting import eventually
from cluster_calls import is_ready
from test_jobs import rows_of, write_repository

PAGES = {"page_cache": "64MiB"}


@pytest.fixture(name="repository")
def models(tmp_path):
    return write_repository(tmp_path / "models")


@pytest.fixture(name="root")
def folder_of_jobs(tmp_path):
    root = tmp_path / "jobs"
    root.mkdir()
    return root


def keep_jobs(cluster, root):
    """A front end that does, and a client of it."""
    frontend = cluster.add_frontend(jobs=root)
    eventually(lambda: is_ready(frontend, "numbers"), timeout=60)
    return frontend, foliot.jobs.Jobs(frontend.http)


def check(root, output, rows, scale):
    np.testing.assert_allclose(np.load(root / output / "y.npy"), scale * rows, rtol=1e-5, atol=1e-5)


def test_a_front_end_keeps_jobs_over_tasks_and_models(repository, root, tmp_path):
    rows = rows_of(1000)
    np.save(root / "rows.npy", rows)
    with Cluster(tmp_path, repository, workers=2, frontends=0, **PAGES) as cluster:
        frontend, jobs = keep_jobs(cluster, root)
        job = jobs.submit_offline({"x": "rows.npy"}, "by_task", task="numbers", accuracy=0.9)
        job = jobs.wait(job["id"])
        assert (job["state"], job["progress"]["variants"]) == ("succeeded", {"large": 1000}), job
        check(root, "by_task", rows, 3)
        job = jobs.wait(jobs.submit_offline({"x": "rows.npy"}, "by_model", model="small")["id"])
        assert job["state"] == "succeeded", job
        check(root, "by_model", rows, 2)
        assert [each["state"] for each in jobs.list()] == ["succeeded"] * 2
        # Networks are registered where their repository is.
        assert refused(lambda: jobs.register_model("n", "x.onnx", "x.npz", "numbers")) == (
            400, "jobs of kind 'register' do not run here: register the network at a server of the workers' "
                 "repository, `foliot serve REPOSITORY --jobs FOLDER`; workers with --watch take it")
        second = subprocess.run([foliot_binary(), "frontend", "--controller", cluster.address, "--jobs", str(root),
                                 *(flag for name in ("http", "grpc", "metrics") for flag in (f"--{name}-port", "0"))],
                                capture_output=True, text=True, timeout=60, check=False)
        assert second.returncode == 1 and "jobs.sqlite" in second.stderr and "another" in second.stderr, second.stderr
        assert frontend.stop() == 0


def test_a_job_survives_its_front_end_and_a_worker(repository, root, tmp_path):
    rows = rows_of(30000)
    np.save(root / "rows.npy", rows)
    with Cluster(tmp_path, repository, workers=2, frontends=0, **PAGES) as cluster:
        frontend, jobs = keep_jobs(cluster, root)
        job_id = jobs.submit_offline({"x": "rows.npy"}, "answers", model="large")["id"]
        eventually(lambda: jobs.get(job_id)["progress"]["done"] > 500, 60)
        frontend.kill()
        cluster.workers[0].kill()
        frontend.start()
        frontend.await_ready()
        begun = eventually(lambda: jobs.get(job_id)["progress"]["done"] or None, 60)
        assert begun >= 500, "progress that a client saw is kept"
        job = jobs.wait(job_id)
        assert (job["state"], job["progress"]["done"]) == ("succeeded", len(rows)), job
        check(root, "answers", rows, 3)


def test_what_is_wrong_with_the_folder_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    done = subprocess.run([foliot_binary(), "frontend", "--controller", f"127.0.0.1:{free_ports(1)[0]}", "--jobs",
                           str(tmp_path / "file"), "--http-port", "0", "--grpc-port", "0", "--metrics-port", "0"],
                          capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1 and f"--jobs {tmp_path / 'file'}" in done.stderr, done.stderr
