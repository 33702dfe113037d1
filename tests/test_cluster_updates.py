"""Models of a cluster change while they are asked for: a change takes effect when all
workers have made it, and no request is refused."""

import contextlib
import shutil
import threading

import numpy as np
import pytest
import tritonclient.http as triton
from tritonclient.utils import InferenceServerException

from foliot_tools import onnx_models
from foliot_tools.cluster import Cluster
from foliot_tools.waiting import eventually

WORKERS = ["worker0", "worker1"]


class Repositories:
    """One for each worker."""

    def __init__(self, folder):
        self.folder = folder
        for worker in WORKERS:
            self.put("m", 1, worker)

    def of(self, worker):
        return self.folder / worker

    def put(self, model, version, *workers):
        """A model whose answers are its version."""
        for worker in workers or WORKERS:
            # No reader may see half of it.
            draft = self.folder / "draft" / worker / str(version)
            onnx_models.constant(draft / "model.onnx", version)
            (self.of(worker) / model).mkdir(parents=True, exist_ok=True)
            draft.rename(self.of(worker) / model / str(version))

    def remove(self, model, *workers):
        for worker in workers or WORKERS:
            shutil.rmtree(self.of(worker) / model)


@pytest.fixture
def repositories(tmp_path):
    return Repositories(tmp_path / "repositories")


@pytest.fixture
def cluster(repositories, tmp_path):
    with Cluster(tmp_path, repositories.of, frontends=1, watch="100ms") as running:
        yield running


def ask(frontend, model="m"):
    with triton.InferenceServerClient(frontend.http, network_timeout=60) as client:
        request = triton.InferInput("x", [1, 1], "FP32")
        request.set_data_from_numpy(np.ones((1, 1), np.float32))
        return client.infer(model, [request]).as_numpy("y")[0, 0]


def served(frontend):
    with triton.InferenceServerClient(frontend.http) as client:
        return {entry["name"] for entry in client.get_model_repository_index() if entry["state"] == "READY"}


@contextlib.contextmanager
def asking(frontend):
    """Yields the answers of clients that ask for `m` all the time; none is refused."""
    answers, refusals, stop = [], [], threading.Event()

    def run():
        while not stop.is_set():
            try:
                answers.append(ask(frontend))
            except InferenceServerException as error:
                refusals.append(str(error))

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        yield answers
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not refusals, refusals[:3]


def test_a_new_version_takes_over_once_all_workers_have_it(cluster, repositories):
    (frontend,) = cluster.frontends
    with asking(frontend) as answers:
        repositories.put("m", 2, "worker0")
        # What comes later has been seen later.
        repositories.put("other", 1)
        eventually(lambda: "other" in served(frontend))
        assert set(answers) == {1}
        repositories.put("m", 2, "worker1")
        eventually(lambda: answers[-1] == 2)
        repositories.put("m", 3)
        eventually(lambda: answers[-1] == 3)
        count = len(answers)
        eventually(lambda: len(answers) > count + 50)
    # Clients of three threads: an answer may be noted a little late.
    changes = [(a, b) for a, b in zip(answers, answers[1:], strict=False) if a > b]
    assert len(changes) < 10 and set(answers[count:]) == {3}


def test_a_version_whose_files_change_is_another(cluster, repositories):
    (frontend,) = cluster.frontends
    with asking(frontend) as answers:
        for worker, other in zip(WORKERS, reversed(WORKERS), strict=True):
            draft = onnx_models.constant(repositories.folder / "draft/model.onnx", 5)
            draft.replace(repositories.of(worker) / "m/1/model.onnx")
            if worker == WORKERS[0]:
                repositories.put("other", 1)
                eventually(lambda: "other" in served(frontend))
                assert set(answers) == {1}, f"{other} has not changed"
        eventually(lambda: answers[-1] == 5)


def test_models_come_and_go(cluster, repositories):
    (frontend,) = cluster.frontends
    with asking(frontend):
        repositories.put("other", 7)
        eventually(lambda: "other" in served(frontend))
        assert ask(frontend, "other") == 7
        repositories.remove("other", "worker1")
        # As above.
        repositories.put("third", 1)
        eventually(lambda: "third" in served(frontend))
        assert ask(frontend, "other") == 7
        repositories.remove("other", "worker0")
        eventually(lambda: "other" not in served(frontend))
        with pytest.raises(InferenceServerException):
            ask(frontend, "other")
        repositories.put("other", 8)
        eventually(lambda: "other" in served(frontend))
        assert ask(frontend, "other") == 8


def test_a_bad_version_is_not_taken_and_the_old_one_stays(cluster, repositories):
    (frontend,) = cluster.frontends
    for worker in WORKERS:
        bad = repositories.of(worker) / "m/2"
        bad.mkdir()
        (bad / "model.onnx").write_bytes(b"no model at all")
    for worker in cluster.workers:
        eventually(lambda part=worker: "m/2/model.onnx" in part.output())
    assert ask(frontend) == 1


def test_a_worker_that_dies_holds_nothing_up(cluster, repositories):
    (frontend,) = cluster.frontends
    repositories.put("m", 2, "worker0")
    repositories.put("other", 1)
    eventually(lambda: "other" in served(frontend))
    assert ask(frontend) == 1
    cluster.workers[1].kill()
    eventually(lambda: ask(frontend) == 2)
    # It comes back as it was, is not let in, and is once it has the new version, too.
    cluster.workers[1].start()
    eventually(lambda: "must bring the same models" in cluster.controller.output())
    repositories.put("m", 2, "worker1")
    cluster.workers[1].await_line("ready:", count=2)
    cluster.workers[0].kill()
    cluster.controller.await_line("worker 'worker0'")
    assert ask(frontend) == 2


def test_a_restarted_controller_learns_what_was_served(cluster, repositories):
    (frontend,) = cluster.frontends
    repositories.put("m", 2)
    eventually(lambda: ask(frontend) == 2)
    cluster.controller.kill()
    frontend.await_ready(False)
    cluster.controller.start()
    frontend.await_ready()
    assert ask(frontend) == 2
    repositories.put("m", 3)
    eventually(lambda: ask(frontend) == 3)
