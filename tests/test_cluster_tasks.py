"""Tasks of a cluster: workers offer them, the controller chooses the variant, front ends name it."""

import re
import shutil
import threading
import urllib.request

import pytest
import tritonclient.grpc as grpc_client
import tritonclient.http as http_client
from tritonclient.utils import InferenceServerException

from foliot_tools import log
from foliot_tools.cluster import Cluster
from foliot_tools.waiting import eventually
from cluster_calls import check_one_end_each_though_a_worker_is_killed, index_of, is_ready, reason_of
from test_tasks import TASK, infer, parameters_of, rows_of, tensor_of, write_network, write_task

PAGES = {"page_cache": "64MiB"}


def write_models(folder, task=TASK):
    """The task `classes`: what `large` answers is one class further than what `small` does."""
    write_network(folder / "small" / "model.onnx")
    write_network(folder / "large" / "model.onnx", shift=1, hidden=256)
    write_task(folder, "classes", task)
    return folder


@pytest.fixture(name="repository")
def variants(tmp_path):
    return write_models(tmp_path / "models")


def await_task(frontend, variants=2):
    """Ready, with so many variants."""
    eventually(lambda: is_ready(frontend, "classes") and (reason_of(frontend, "classes") == "") == (variants == 2),
               timeout=60)


def refusal_of(module, address, parameters):
    with pytest.raises(InferenceServerException) as caught:
        infer(module, address, rows_of(0), parameters=parameters)
    return caught.value.message()


def infer_or_none(frontend, **parameters):
    try:
        return infer(http_client, frontend.http, rows_of(2), parameters=parameters or None)
    except InferenceServerException:
        return None


class Caller:
    """Calls again and again, from a thread of its own, while its block runs."""

    def __init__(self, call):
        self._call = call
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.calls = 0
        self.failures = []

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()

    def _run(self):
        while not self._stop.is_set():
            try:
                self._call()
            except InferenceServerException as error:
                self.failures.append(error.message())
            self.calls += 1


def test_clients_of_a_cluster_say_what_they_need(repository, tmp_path):
    with Cluster(tmp_path, repository, workers=2, frontends=1, metrics=True, log=tmp_path / "log", **PAGES) as cluster:
        (frontend,) = cluster.frontends
        cluster.controller.await_line("task 'classes' is served")
        await_task(frontend)
        for module, address in ((http_client, frontend.http), (grpc_client, frontend.grpc)):
            assert infer(module, address, rows_of(2, 3, 0)) == ("small", [2, 3, 0])
            assert infer(module, address, rows_of(2, 3, 0), parameters={"accuracy": "0.9"}) == ("large", [3, 0, 1])
            nearest = refusal_of(module, address, {"accuracy": "0.99"})
            assert "no variant with an accuracy of at least 0.99; the nearest is 'large', with 0.95" in nearest
            costs = refusal_of(module, address, {"cost": "1e-12"})
            assert re.search("task 'classes' has no variant .* that costs at most .* the nearest is '(small|large)'", costs)
        assert infer(http_client, frontend.http, rows_of(1), task="large") == (None, [2])
        with http_client.InferenceServerClient(frontend.http) as client:
            with pytest.raises(InferenceServerException, match="'small' is none"):
                client.infer("small", [tensor_of(http_client, rows_of(0))], parameters={"accuracy": 0.5})
            # Rows of which each is a request of its own.
            many = client.infer("classes", [tensor_of(http_client, rows_of(*[1] * 40))], parameters={"accuracy": 0.9})
        assert parameters_of(many)["variant"] == "large"
        assert set(many.as_numpy("scores").argmax(axis=1)) == {2}
        page = urllib.request.urlopen(f"http://127.0.0.1:{cluster.controller.metrics_port}/metrics").read().decode()
        assert 'foliot_task_requests_total{outcome="served",task="classes",variant="large"} 46' in page
        assert "task" not in "".join(worker.output() for worker in cluster.workers), "there is nothing to say of it"
        assert cluster.controller.stop() == 0
    logged = log.read_log(tmp_path / "log").requests
    assert [(row.task, row.unmet) for row in logged if row.status == "unmeetable"] == [("classes", "cost")] * 2
    answered = {(row.task, row.model) for row in logged if row.status == "served"}
    assert answered == {("classes", "small"), ("classes", "large"), ("", "large")}


def test_each_variant_may_be_of_other_workers(repository, tmp_path):
    """One kind of worker has the one variant, and another kind the other."""
    with Cluster(tmp_path, repository, workers=0, frontends=0, **PAGES) as cluster:
        cluster.add_worker(models="small")
        frontend = cluster.add_frontend()
        cluster.controller.await_line("task 'classes' lacks something: variant 'large' is not served")
        await_task(frontend, variants=1)
        assert "variant 'large' is not served" in reason_of(frontend, "classes")
        assert infer(http_client, frontend.http, rows_of(2)) == ("small", [2])
        assert "the nearest is 'small', with 0.8" in refusal_of(http_client, frontend.http, {"accuracy": 0.9})
        cluster.add_worker(kind="big", models="large")
        await_task(frontend)
        assert infer(http_client, frontend.http, rows_of(2), parameters={"accuracy": 0.9}) == ("large", [3])
        assert infer(http_client, frontend.http, rows_of(2), parameters={"accuracy": 0.5})[0] in ("small", "large")
        cluster.workers[1].kill()
        cluster.controller.await_line("worker 'worker1'.*(lost|closed|ended|gone)")
        assert infer(http_client, frontend.http, rows_of(2)) == ("small", [2])
        assert "worker_lost" in refusal_of(http_client, frontend.http, {"accuracy": 0.9})


def test_files_that_differ_between_workers_are_an_error_that_names_them(repository, tmp_path):
    """Which one was first is served."""
    other = write_models(tmp_path / "other", TASK.replace("0.95", "0.96"))
    with Cluster(tmp_path, lambda name: repository if name == "worker0" else other, workers=1, frontends=1, **PAGES) as cluster:
        (frontend,) = cluster.frontends
        await_task(frontend)
        cluster.add_worker()
        cluster.controller.await_line(
            "task 'classes' lacks something: the workers have different files classes/task.toml; copy the same file to all")
        eventually(lambda: "different files" in reason_of(frontend, "classes"))
        assert "the nearest is 'large', with 0.95" in refusal_of(http_client, frontend.http, {"accuracy": 0.96})
        cluster.workers[0].kill()
        eventually(lambda: infer_or_none(frontend, accuracy=0.96) == ("large", [3]))


def test_tasks_come_change_and_go_without_a_restart(repository, tmp_path):
    with Cluster(tmp_path, repository, workers=2, frontends=1, watch="1s", **PAGES) as cluster:
        (frontend,) = cluster.frontends
        await_task(frontend)
        with Caller(lambda: infer(http_client, frontend.http, rows_of(2))) as caller:
            write_task(repository, "classes", TASK.replace("0.95", "0.97"))
            eventually(lambda: infer_or_none(frontend, accuracy=0.96) == ("large", [3]))
            write_task(repository, "more", TASK)
            eventually(lambda: is_ready(frontend, "more"))
            assert infer(http_client, frontend.http, rows_of(2), task="more") == ("small", [2])
            shutil.rmtree(repository / "more")
            eventually(lambda: "more" not in index_of(frontend))
            write_task(repository, "broken", '[[variant]]\nmodel = "small"\naccuracy = 1.5\n')
            eventually(lambda: "broken/task.toml:3" in reason_of(frontend, "broken"))
            cluster.workers[1].await_line("task 'broken' cannot be served: .*broken/task.toml:3")
        assert caller.failures == [] and caller.calls > 0, "one worker after the other changed its mind"


def test_a_file_of_accuracies_goes_with_the_task(repository, tmp_path):
    (repository / "classes" / "task.toml").write_text(
        'accuracies = "measured.toml"\n[[variant]]\nmodel = "small"\n[[variant]]\nmodel = "large"\n')
    (repository / "classes" / "measured.toml").write_text("small = 0.3\nlarge = 0.4\n")
    write_task(repository, "broken", '[[variant]]\nmodel = "small"\naccuracy = 1.5\n')
    with Cluster(tmp_path, repository, workers=1, frontends=1, **PAGES) as cluster:
        (frontend,) = cluster.frontends
        await_task(frontend)
        assert infer(http_client, frontend.http, rows_of(2), parameters={"accuracy": 0.35}) == ("large", [3])
        assert "the nearest is 'large', with 0.4" in refusal_of(http_client, frontend.http, {"accuracy": 0.5})
        assert "broken/task.toml:3: 'accuracy'" in reason_of(frontend, "broken")


def test_a_task_without_a_worker_stays_known_like_its_models(repository, tmp_path):
    other = tmp_path / "other"
    write_network(other / "third" / "model.onnx")
    with Cluster(tmp_path, lambda name: repository if name == "worker0" else other, workers=1, frontends=1,
                 **PAGES) as cluster:
        (frontend,) = cluster.frontends
        await_task(frontend)
        cluster.add_worker(kind="other")
        eventually(lambda: is_ready(frontend, "third"))
        cluster.workers[0].kill()
        cluster.controller.await_line("worker 'worker0'.*(lost|closed|ended|gone)")
        for name in ("small", "classes"):
            with pytest.raises(InferenceServerException, match="worker_lost"):
                infer(http_client, frontend.http, rows_of(2), task=name)
            assert is_ready(frontend, name)
        assert infer(http_client, frontend.http, rows_of(2), task="third") == (None, [2])
        cluster.workers[0].start()
        cluster.workers[0].await_line("ready:", count=2)
        eventually(lambda: infer_or_none(frontend) == ("small", [2]))

        # Without the task, it comes back with the models only.
        cluster.workers[0].kill()
        shutil.rmtree(repository / "classes")
        cluster.workers[0].start()
        eventually(lambda: "classes" not in index_of(frontend))
        assert infer(http_client, frontend.http, rows_of(2), task="small") == (None, [2])


def test_each_call_has_one_answer_and_one_variant_though_a_worker_is_killed(repository, tmp_path):
    with Cluster(tmp_path, repository, workers=2, frontends=1, **PAGES) as cluster:
        (frontend,) = cluster.frontends
        await_task(frontend)

        def call(random):
            classes = random.integers(0, 4, 4)
            accuracy = random.choice([0.5, 0.9])
            variant, answers = infer(http_client, frontend.http, rows_of(*classes), timeout=5_000_000,
                                     parameters={"accuracy": accuracy})
            shift = {"small": 0, "large": 1}[variant]
            right = answers == ((classes + shift) % 4).tolist() and accuracy <= {"small": 0.8, "large": 0.95}[variant]
            return "served" if right else f"accuracy {accuracy}, {variant}: {answers}"

        check_one_end_each_though_a_worker_is_killed(cluster, call)
