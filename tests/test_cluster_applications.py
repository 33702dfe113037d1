"""Applications of a cluster: front ends define them, over the workers' models, and learn together through Redis."""

import json
import re
import urllib.request

import pytest
import tritonclient.grpc as grpc_client
import tritonclient.http as http_client
from tritonclient.utils import InferenceServerException

from foliot_tools.cluster import Cluster, Frontend
from foliot_tools.redis import Redis
from foliot_tools.waiting import await_output, eventually
from test_applications import STRAGGLING, infer, rows_of, write_application, write_classifier, write_straggler

GREEDY = 'models = ["wrong", "right"]\n[policy]\nname = "epsilon_greedy"\nepsilon = 0\n'


@pytest.fixture(name="models")
def classifiers(tmp_path):
    folder = tmp_path / "models"
    for name, shift in (("right", 0), ("wrong", 1)):
        write_classifier(folder / name / "model.onnx", shift)
    return folder


@pytest.fixture(name="applications")
def definitions(tmp_path):
    folder = tmp_path / "applications"
    folder.mkdir()
    write_application(folder, "digits", GREEDY)
    return folder


def add_frontend(cluster, name, **options):
    """One that serves applications, once it serves `digits`."""
    frontend = Frontend(cluster.folder / f"{name}.log", cluster.address, **options)
    cluster.frontends.append(frontend)
    frontend.await_ready()
    await_digits(frontend)
    return frontend


def await_digits(frontend, name="digits"):
    with http_client.InferenceServerClient(frontend.http) as client:
        eventually(lambda: client.is_model_ready(name))


def observe(frontend, parameters, loss):
    request = urllib.request.Request(f"http://{frontend.http}/v2/applications/digits/feedback",
                                     json.dumps({"feedback_id": parameters["feedback_id"], "loss": loss}).encode())
    with urllib.request.urlopen(request) as response:
        assert response.status == 200


def chosen(frontend, **parameters):
    return infer(http_client, frontend.http, "digits", rows_of(2), parameters=parameters)[1]


def test_a_front_end_serves_applications_over_the_models_of_workers(models, applications, tmp_path):
    with Cluster(tmp_path, models, workers=1, frontends=1) as cluster:
        write_application(applications, "broken", 'models = []\npolicy = "static"\n')
        frontend = add_frontend(cluster, "applications", applications=applications, watch="100ms")
        frontend.await_line("application 'broken' cannot be served")
        for module, address in ((http_client, frontend.http), (grpc_client, frontend.grpc)):
            labels, parameters = infer(module, address, "digits", rows_of(2))
            assert (labels.tolist(), parameters["models"]) == ([3], "wrong")
        observe(frontend, parameters, 1)
        assert chosen(frontend)["models"] == "right"
        # Those of another front end have no applications.
        with pytest.raises(InferenceServerException, match="digits"):
            infer(http_client, cluster.frontends[0].http, "digits", rows_of(2))
        write_application(applications, "another", GREEDY)
        await_digits(frontend, "another")
        cluster.workers[0].kill()
        with pytest.raises(InferenceServerException):
            infer(http_client, frontend.http, "digits", rows_of(2))
        cluster.add_worker()
        eventually(lambda: answers(frontend))
        assert chosen(frontend)["models"] == "right", "what was learned stays while no worker is there"


def test_a_late_model_of_a_worker_does_not_hold_up_the_answer(models, applications, tmp_path):
    write_straggler(models / "straggler")
    write_application(applications, "vote", 'models = ["straggler", "right"]\npolicy = "majority"\n')
    with Cluster(tmp_path, models, workers=1, frontends=0) as cluster:
        frontend = add_frontend(cluster, "applications", applications=applications)

        def inputs_bytes():
            with urllib.request.urlopen(f"http://127.0.0.1:{frontend.metrics_port}/metrics") as page:
                return float(re.search(r"^foliot_application_inputs_bytes (\S+)", page.read().decode(), re.MULTILINE)[1])

        def answering(rows, **options):
            return infer(http_client, frontend.http, "vote", rows, **options)[1]["models"]

        eventually(lambda: answering(rows_of(1)) == "straggler,right")
        assert answering(STRAGGLING, timeout=500_000) == "right"
        eventually(lambda: inputs_bytes() == 0)
        eventually(lambda: answering(rows_of(1), timeout=500_000) == "straggler,right")


def answers(frontend):
    try:
        return bool(chosen(frontend))
    except InferenceServerException:
        return False


def test_front_ends_learn_together(models, applications, tmp_path):
    with Redis(tmp_path / "redis") as redis, Cluster(tmp_path, models, workers=1, frontends=0) as cluster:
        shared = {"applications": applications, "state": redis.address}
        one, two = (add_frontend(cluster, name, **shared) for name in ("one", "two"))
        assert chosen(two)["models"] == chosen(two, context="rome")["models"] == "wrong"
        observe(one, chosen(one), 1)
        observe(one, chosen(one, context="rome"), 0)  # of the model that is right
        eventually(lambda: chosen(two)["models"] == "right")
        eventually(lambda: chosen(two, context="rome")["models"] == "right")
        # One that comes later knows it from its first call on.
        assert chosen(add_frontend(cluster, "three", **shared))["models"] == "right"


def test_what_is_learned_while_redis_is_gone_is_shared_later(models, applications, tmp_path):
    with Redis(tmp_path / "redis") as redis, Cluster(tmp_path, models, workers=1, frontends=0) as cluster:
        shared = {"applications": applications, "state": redis.address}
        one, two = (add_frontend(cluster, name, **shared) for name in ("one", "two"))
        redis.stop()
        observe(one, chosen(one), 1)
        assert chosen(one)["models"] == "right"
        one.await_line(f"what applications learned cannot be kept: {re.escape(redis.address)}")
        assert chosen(two)["models"] == "wrong"
        redis.start()
        eventually(lambda: chosen(two)["models"] == "right")


def test_a_place_to_learn_that_is_not_there_is_named(models, applications, tmp_path):
    with Cluster(tmp_path, models, workers=1, frontends=0) as cluster:
        for place, why in (("unix:/nowhere/redis.sock", "start Redis there, or give --state another place"),
                           ("redis://:secret@host", "FOLIOT_REDIS_PASSWORD"),
                           ("redis://host:0", "its port must be a number from 1 to 65535")):
            frontend = Frontend(tmp_path / "refused.log", cluster.address, applications=applications, state=place)
            cluster.frontends.append(frontend)
            assert frontend.process.wait(60) == 1
            await_output(frontend, why)
        for alone, why in (({"state": "redis://host"}, "--state requires --applications"),
                           ({"watch": "1s"}, "--watch looks for changes of --applications and --personal"),
                           ({"home_listen": "127.0.0.1:0"}, "--home-listen requires --personal")):
            frontend = Frontend(tmp_path / "alone.log", cluster.address, **alone)
            cluster.frontends.append(frontend)
            assert frontend.process.wait(60) != 0
            await_output(frontend, why)
        frontend = Frontend(tmp_path / "folder.log", cluster.address, applications=tmp_path / "nowhere")
        cluster.frontends.append(frontend)
        assert frontend.process.wait(60) == 1
        await_output(frontend, "nowhere")
