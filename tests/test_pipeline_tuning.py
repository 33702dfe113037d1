"""Pipelines whose plan a server follows: targets rise with the arrivals, and what is wrong with a plan is named."""

import json
import subprocess
import threading
import urllib.request

import numpy as np
import pytest
import tritonclient.http as http_client

from foliot_tools.cluster import Cluster
from foliot_tools.server import foliot_binary
from foliot_tools.waiting import await_output, eventually
from cluster_calls import is_ready
from test_pipelines import CASCADE, OPTIONS, WEIGHTS, infer, write_linear, write_pipeline

PRICES = "cpu = 0.1\n"
PROFILES = "".join(f"""
[[profile]]
stage = "{stage}"
kind = "cpu"
batch_sizes = [1, 2]
durations = ["20ms", "30ms"]
""" for stage in ("cheap", "fine", "last"))
WANTED = 'foliot_pipeline_replicas_wanted{pipeline="cascade",stage="cheap"}'
PLANNED = 'foliot_pipeline_replicas_planned{pipeline="cascade",stage="cheap"}'


def write_repository(folder):
    for name, weights in (("cheap", WEIGHTS), ("fine", -WEIGHTS), ("doubling", 2 * np.eye(4, dtype=np.float32))):
        write_linear(folder / name / "model.onnx", weights)
    write_pipeline(folder, "cascade", CASCADE)
    return folder


def save_plan(tmp_path, pipeline, plan, rate=10):
    """The plan of that pipeline for arrivals that come evenly, in `plan`."""
    (tmp_path / "trace.csv").write_text("".join(f"{i / rate}\n" for i in range(rate * 60)))
    (tmp_path / "prices.toml").write_text(PRICES)
    (tmp_path / "profiles.toml").write_text(PROFILES)
    plan.parent.mkdir(parents=True, exist_ok=True)
    result = subprocess.run([foliot_binary(), "plan", pipeline, "--trace", tmp_path / "trace.csv", "--prices",
                             tmp_path / "prices.toml", "--profiles", tmp_path / "profiles.toml", "--slo", "200ms",
                             "--save", plan], capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, result.stderr
    assert f"{plan}: the plan, by which a server tunes the pipeline" in result.stdout
    return plan


class Load:
    """Calls, one after another, of so many clients."""

    def __init__(self, address, clients=8):
        self.over = threading.Event()
        self.threads = [threading.Thread(target=self.call, args=(address,)) for _ in range(clients)]

    def call(self, address):
        while not self.over.is_set():
            infer(http_client, address, "cascade", np.ones((4, 4), np.float32), timeout=20_000_000)

    def __enter__(self):
        for thread in self.threads:
            thread.start()

    def __exit__(self, *_):
        self.over.set()
        for thread in self.threads:
            thread.join()


def test_targets_rise_with_the_arrivals_and_fall_after_them(serve, tmp_path):
    repository = write_repository(tmp_path / "models")
    save_plan(tmp_path, repository / "cascade" / "pipeline.toml", repository / "cascade" / "plan.toml")
    server = serve(repository, **OPTIONS, pipeline_tuner="by_ratio")
    eventually(lambda: "pipeline 'cascade' is tuned; replicas: cheap " in server.output())
    series = server.metrics()
    planned = series[PLANNED]
    assert series[WANTED] == planned == 1
    with Load(server.http):
        eventually(lambda: server.metrics()[WANTED] > 2 * planned)
    await_output(server, "tuned pipelines want")  # more devices than there are
    eventually(lambda: server.metrics()[WANTED] == planned, timeout=90)


def test_by_default_it_is_estimated_what_the_arrivals_need(serve, tmp_path):
    repository = write_repository(tmp_path / "models")
    plan = save_plan(tmp_path, repository / "cascade" / "pipeline.toml", repository / "cascade" / "plan.toml")
    server = serve(repository, **OPTIONS)
    eventually(lambda: "pipeline 'cascade' is tuned; replicas: cheap 1" in server.output())
    with Load(server.http):
        eventually(lambda: server.metrics()[WANTED] > 1)
    # Nothing can be estimated then, and the ratio of the arrivals to the plan's, which begins anew, is not known yet.
    plan.write_text(plan.read_text().replace('slo = "200ms"\n', "", 1))
    eventually(lambda: server.metrics()[WANTED] == 1, timeout=30)
    with Load(server.http):
        eventually(lambda: server.metrics()[WANTED] > 1)
    assert "is not tuned" not in server.output()


def wanted_of(part):
    page = urllib.request.urlopen(f"http://127.0.0.1:{part.metrics_port}/metrics").read().decode()
    return next(float(line.rsplit(" ", 1)[1]) for line in page.splitlines() if line.startswith(WANTED))


def test_a_controller_tunes_pipelines_of_its_workers(tmp_path):
    repository = write_repository(tmp_path / "models")
    plans = tmp_path / "plans"
    save_plan(tmp_path, repository / "cascade" / "pipeline.toml", plans / "cascade" / "plan.toml")
    with Cluster(tmp_path, repository, workers=2, frontends=1, metrics=True,
                 controller_options={"plans": plans}) as cluster:
        eventually(lambda: is_ready(cluster.frontends[0], "cascade"), timeout=60)
        cluster.controller.await_line("pipeline 'cascade' is tuned; replicas: cheap 1")
        with Load(cluster.frontends[0].http):
            eventually(lambda: wanted_of(cluster.controller) > 2)


def test_workers_come_that_a_plan_lacks(tmp_path):
    """Without any load: the three stages have a replica each, and a worker has one device."""
    repository = write_repository(tmp_path / "models")
    plans = tmp_path / "plans"
    save_plan(tmp_path, repository / "cascade" / "pipeline.toml", plans / "cascade" / "plan.toml")
    command = ["foliot", "worker", repository, "--cache", tmp_path / "cache", "--threads", 1, "--page-size", "256KiB",
               "--page-cache", "16MiB"]
    (tmp_path / "pools.toml").write_text('start_up = "1s"\n[[kind]]\nname = "cpu"\nworkers_most = 3\n'
                                         f"command = {json.dumps([str(word) for word in command])}\n")
    with Cluster(tmp_path, repository, workers=0, frontends=0, metrics=True,
                 controller_options={"plans": plans, "worker_pools": tmp_path / "pools.toml"}) as cluster:
        cluster.controller.await_line("pipeline 'cascade' is tuned; replicas: cheap 1")
        cluster.controller.await_line("kind 'cpu' is to have 3 workers")
        cluster.controller.stop()


@pytest.mark.parametrize("old, new, complaint", [
    ("rate = ", "rate = -", "cascade/plan.toml:5: 'rate' must be above 0"),
    ('model = "doubling"', 'model = "tripling"', "cascade/plan.toml: stage 'last' has model 'tripling', and that of "
                                                 "the pipeline 'doubling'; plan it again"),
    ('content = "', 'content = "0', "cascade/plan.toml: is a plan of another pipeline.toml"),
])
def test_what_is_wrong_with_a_plan_is_named_once_and_the_pipeline_is_served(serve, tmp_path, old, new, complaint):
    repository = write_repository(tmp_path / "models")
    plan = save_plan(tmp_path, repository / "cascade" / "pipeline.toml", repository / "cascade" / "plan.toml")
    text = plan.read_text()
    assert old in text
    plan.write_text(text.replace(old, new, 1))
    server = serve(repository, **OPTIONS)
    eventually(lambda: complaint in server.output())
    infer(http_client, server.http, "cascade", np.ones((1, 4), np.float32), timeout=20_000_000)
    assert WANTED not in server.metrics()
    plan.write_text(text)
    eventually(lambda: server.metrics().get(WANTED) == 1, timeout=30)
    assert server.output().count("is not tuned: ") == 1


def test_nothing_is_tuned_if_so_asked(serve, tmp_path):
    repository = write_repository(tmp_path / "models")
    save_plan(tmp_path, repository / "cascade" / "pipeline.toml", repository / "cascade" / "plan.toml")
    server = serve(repository, **OPTIONS, pipeline_tuner="none")
    eventually(lambda: is_ready(server, "cascade"))
    assert "is tuned" not in server.output()
    assert WANTED not in server.metrics()
