"""What a worker costs whose LOADs fail, since packages are damaged on its machine and not on others."""

import threading

import numpy as np
import onnxruntime
import pytest
import tritonclient.http
from tritonclient.utils import InferenceServerException

from foliot_tools import onnx_models
from foliot_tools.cluster import Cluster, Part
from foliot_tools.waiting import eventually

MODELS = [f"dense{i}" for i in range(6)]
DAMAGED = "dense0"  # the largest, and so its package is


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    for name in MODELS:
        hidden = 512 if name == DAMAGED else 32 + 8 * int(name[-1])
        onnx_models.random_dense_network(folder / name / "1/model.onnx", (64, hidden, 10))
    return folder


class SeparateCaches(Cluster):
    """Each worker has a cache of its own, as if on a machine of its own. Two of the six models fit its pages."""

    def worker_part(self, name):
        return Part(self.folder / f"{name}.log", "worker", self.repository, controller=self.address, name=name,
                    cache=self.folder / name, threads=1, page_size="256KiB", page_cache="512KiB")

    def damage(self, worker, which):
        packages = sorted((path for path in (self.folder / worker).rglob("*") if path.is_file()),
                          key=lambda path: path.stat().st_size)
        assert len(packages) >= len(MODELS)
        for package in packages[which]:
            with open(package, "r+b") as file:
                file.truncate(0)


def ask_all(frontend, repository, stopping, answers, refusals):
    """Asks every model in turn, without a deadline, until stopped."""
    pixels = np.random.default_rng(1).random((1, 64), np.float32)
    request = tritonclient.http.InferInput("pixels", pixels.shape, "FP32")
    request.set_data_from_numpy(pixels)
    expected = {name: onnxruntime.InferenceSession(repository / name / "1/model.onnx").run(None, {"pixels": pixels})[0]
                for name in MODELS}
    with tritonclient.http.InferenceServerClient(frontend.http, network_timeout=30) as client:
        while not stopping.is_set():
            for name in MODELS:
                try:
                    answer = client.infer(name, [request]).as_numpy("probabilities")
                    np.testing.assert_allclose(answer, expected[name], rtol=1e-3, atol=1e-5)
                    answers.append(name)
                except InferenceServerException as error:
                    refusals.append((name, error.message()))


def under_load(cluster, repository, until):
    """Runs `until()` while both front ends are asked; returns answers and refusals."""
    stopping, answers, refusals = threading.Event(), [], []
    threads = [threading.Thread(target=ask_all, args=(frontend, repository, stopping, answers, refusals))
               for frontend in cluster.frontends * 2]
    for thread in threads:
        thread.start()
    try:
        until(answers)
    finally:
        stopping.set()
        for thread in threads:
            thread.join(60)
    return answers, refusals


def await_answers(answers, count, timeout=60):
    eventually(lambda: len(answers) >= count, timeout, lambda: f"{len(answers)} of {count} answers")


def test_a_damaged_package_on_one_of_two_workers(repository, tmp_path):
    with SeparateCaches(tmp_path, repository) as cluster:
        cluster.damage("worker0", slice(-1, None))
        complaint = r"load failed: .*worker0.*"

        def until(answers):
            cluster.workers[0].await_line(complaint)
            await_answers(answers, len(answers) + 600)

        answers, refusals = under_load(cluster, repository, until)
        assert not refusals, refusals[:3]
        assert answers.count(DAMAGED) > 80
        failures = cluster.workers[0].output().count("load failed")
        assert failures <= 12, "attempts become rarer"
        assert "failing" not in cluster.controller.output(), "its other models are well"


def test_a_worker_whose_packages_are_all_damaged(repository, tmp_path):
    with SeparateCaches(tmp_path, repository) as cluster:
        cluster.damage("worker0", slice(None))

        def until(answers):
            cluster.controller.await_line(r"device \d+ of worker 'worker0' is lost: failing")
            await_answers(answers, len(answers) + 600)

        answers, refusals = under_load(cluster, repository, until)
        assert not refusals, refusals[:3]
        assert all(answers.count(name) > 80 for name in MODELS)
        assert "worker1' is" not in cluster.controller.output()
