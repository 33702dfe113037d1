"""Devices of several kinds: workers that offer some models only, and the prices of kinds."""

import pathlib
import subprocess
import time

import numpy as np
import pytest
import tritonclient.http as triton
from tritonclient.utils import InferenceServerException

from foliot_tools.cluster import Cluster
from foliot_tools.server import foliot_binary

EXAMPLE = pathlib.Path(__file__).resolve().parent.parent / "examples/simulate/kinds.toml"


def foliot(*arguments):
    command = [foliot_binary(), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


# ---- Workers ----


@pytest.fixture(name="cluster")
def cluster_of_two_kinds(small_models, tmp_path):
    """A worker of kind "cpu" with `pair` only, and one of kind "big" with all but `dense`."""
    with Cluster(tmp_path, small_models, workers=0, frontends=0) as running:
        running.add_worker(models="pair")
        running.add_frontend()
        running.add_worker(kind="big", models="[!d]*")
        yield running


def tensor(name, values):
    request = triton.InferInput(name, values.shape, "INT64" if values.dtype == np.int64 else "FP32")
    request.set_data_from_numpy(values)
    return request


def ask_pair(client):
    a, b = np.ones((1, 4), np.float32), np.full((1, 4), 3, np.float32)
    np.testing.assert_array_equal(client.infer("pair", [tensor("a", a), tensor("b", b)]).as_numpy("sum"), a + b)


def ask_tokens(client):
    table = np.arange(30, dtype=np.float32).reshape(10, 3)
    tokens = np.array([[1, 2, 3]], np.int64)
    embedded = client.infer("tokens", [tensor("tokens", tokens)]).as_numpy("embedded")
    np.testing.assert_array_equal(embedded, table[tokens])


def ask_fixed(client):
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(client.infer("fixed", [tensor("x", x)]).as_numpy("y"), x.T)


def await_models(client, names, timeout=60):
    """Returns once these are served, and no others."""
    end = time.monotonic() + timeout
    while True:
        index = client.get_model_repository_index()
        if {entry["name"] for entry in index if entry["state"] == "READY"} == names:
            return
        assert time.monotonic() < end, index
        time.sleep(0.01)


def test_a_model_is_served_where_its_kind_offers_it(cluster):
    (frontend,) = cluster.frontends
    with triton.InferenceServerClient(frontend.http, network_timeout=60) as client:
        await_models(client, {"pair", "tokens", "fixed"})
        assert client.is_server_ready() and client.is_model_ready("tokens") and not client.is_model_ready("dense")
        for _ in range(5):
            ask_pair(client)
            ask_tokens(client)
            ask_fixed(client)
        # What is left runs what its kind can, and nothing else.
        cluster.workers[1].kill()
        cluster.controller.await_line("worker 'worker1'.*(lost|closed|ended|gone)")
        ask_pair(client)
        with pytest.raises(InferenceServerException, match="worker_lost"):
            ask_tokens(client)


def test_workers_of_one_kind_bring_the_same_models(cluster):
    worker = cluster.worker_part("another", kind="big", models="pair")
    cluster.workers.append(worker)
    found = worker.await_line("all workers of kind big must bring the same models: '(fixed|tokens)' is missing")
    assert found
    cluster.controller.await_line("worker 'another' at .* cannot join: all workers of kind big")
    cluster.add_worker(models="pair")
    for part in (worker, cluster.controller):  # it has tried again twice a second
        assert part.output().count("all workers of kind big must bring the same models") == 1


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--kind", "two words"], "'two words' is no kind: it takes 1 to 64 letters, digits and .:_-"),
        (["--kind", ""], "'' is no kind"),
        (["--models", "resnet*"], "matches --models resnet*"),
        (["--models", "a*", "--models", "b*"], "matches --models a* b*"),
    ],
)
def test_names_what_is_wrong_with_flags(small_models, tmp_path, flags, message):
    result = foliot("worker", small_models, "--cache", tmp_path / "cache", *flags)
    assert result.returncode != 0
    assert message in result.stderr


def test_models_are_chosen_of_a_repository_only():
    result = foliot("worker", "--emulate", "resnet18", "--models", "resnet*")
    assert result.returncode == 1
    assert "--models chooses among those of a REPOSITORY" in result.stderr


# ---- Prices ----


@pytest.fixture
def experiment(tmp_path):
    """experiment(prices) writes the example with a price file of its own; returns its path."""

    def write(prices):
        if prices is not None:
            (tmp_path / "prices.toml").write_text(prices)
        path = tmp_path / "kinds.toml"
        path.write_text(EXAMPLE.read_text().replace("../prices.toml", "prices.toml"))
        return path

    return write


def test_the_price_of_all_devices_is_printed(experiment):
    prices = experiment("cpu = 0.5\ncuda = 2\nother = 7\n")
    result = foliot("simulate", prices, "--scheduler", "foliot", "--duration", "1s")
    assert result.returncode == 0, result.stderr
    assert "devices: 4.00 dollars per hour" in result.stdout


@pytest.mark.parametrize(
    ("prices", "message"),
    [
        (None, "prices.toml"),
        ("cpu = 0.17\n", "lack kind 'cuda'"),
        ("cpu = 0.17\ncuda = -1\n", "prices.toml:2: 'cuda' must not be negative"),
        ("cpu = 'much'\ncuda = 1\n", "prices.toml:1: 'cpu'"),
        ("cpu = \n", "prices.toml:1"),
    ],
)
def test_names_what_is_wrong_with_prices(experiment, prices, message):
    result = foliot("simulate", experiment(prices), "--duration", "1s")
    assert result.returncode == 1
    assert message in result.stderr
    assert "kinds.toml:" in result.stderr
