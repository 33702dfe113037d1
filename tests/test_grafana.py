"""The dashboard of deploy/grafana: each expression of each panel, and each variable, has data of a real Prometheus that
scrapes a real server under load."""

import contextlib
import json
import math
import re
import threading

import numpy as np
import pytest
import tritonclient.http as http_client
from tritonclient.utils import InferenceServerException

from foliot_tools import onnx_models, prometheus
from foliot_tools.server import ROOT
from foliot_tools.waiting import eventually
from test_access import new_key

DASHBOARD = json.loads((ROOT / "deploy/grafana/foliot.json").read_text())
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
# As Grafana fills them in where all is chosen; the interval is some scrapes.
VARIABLES = {"$model": ".*", "$tenant": ".*", "$worker": ".*", "$__rate_interval": "10s"}


def filled(expression):
    for name, value in VARIABLES.items():
        expression = expression.replace(name, value)
    assert "$" not in expression, expression
    return prometheus.in_seconds(expression)


def call_over_and_over(url, key, over):
    """Calls of two models: some are answered, and of some the deadline is too short beside the others."""
    headers = {"Authorization": f"Bearer {key}"}
    given = http_client.InferInput("pixels", [16, 64], "FP32")
    given.set_data_from_numpy(np.zeros((16, 64), np.float32))
    with http_client.InferenceServerClient(url, concurrency=16) as client:
        while not over.is_set():
            calls = [client.async_infer(f"model_{i % 3}", [given], headers=headers, timeout=[1_000_000, 4_000][i % 2])
                     for i in range(16)]
            for each in calls:
                with contextlib.suppress(InferenceServerException):
                    each.get_result()


@pytest.fixture(name="watch", scope="module")
def prometheus_over_a_server(tmp_path_factory):
    ready, why = prometheus.available()
    if not ready:
        pytest.skip(f"Prometheus cannot be had here: {why}")
    from conftest import serving

    folder = tmp_path_factory.mktemp("grafana")
    keys = folder / "keys.toml"
    caller, reader = new_key(keys, "app", "infer"), new_key(keys, "prometheus", "metrics")
    for i in range(3):  # more than its pages
        onnx_models.random_dense_network(folder / f"models/model_{i}/model.onnx", (64, 512, 10), seed=i)
    over = threading.Event()
    with serving(folder / "models", folder / "console", keys=keys, page_size="64KiB", page_cache="384KiB") as server:
        load = threading.Thread(target=call_over_and_over, args=(server.http, caller, over))
        load.start()
        try:
            with prometheus.Prometheus(folder / "prometheus", {"foliot": [server.metrics_port]}, key=reader) as watch:
                yield watch
        finally:
            over.set()
            load.join()


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])
def test_each_expression_has_data(watch, panel):
    for target in panel["targets"]:
        expression = filled(target["expr"])

        def has_data(expression=expression):
            samples = watch.samples(expression)
            return samples and any(not math.isnan(value) for _, value in samples)

        eventually(has_data, 30, lambda expression=expression: f"no data: {expression}: {watch.samples(expression)}")
        labels = set(re.findall(r"{{(\w+)}}", target["legendFormat"]))
        assert labels <= set().union(*(each.keys() for each, _ in watch.samples(expression))) or "vector(0)" in expression


def test_each_variable_has_values(watch):
    variables = [each for each in DASHBOARD["templating"]["list"] if each["type"] == "query"]
    assert {each["name"] for each in variables} == {"model", "tenant", "worker"}
    for variable in variables:
        metric, label = re.fullmatch(r"label_values\((\w+), (\w+)\)", variable["query"]).groups()
        assert all(label in labels for labels, _ in watch.samples(metric)), variable["name"]
        assert any(f"${variable['name']}" in target["expr"] for panel in PANELS for target in panel["targets"])


def test_panels_do_not_overlap():
    taken = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
        assert not cells & taken and place["x"] + place["w"] <= 24, panel["title"]
        taken |= cells
