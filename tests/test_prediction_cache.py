"""A model with `cache = true`: equal inputs are answered with the prediction of an earlier call, over every protocol and in
a cluster, and never with another model's."""

import queue

import numpy as np
import pytest
import tritonclient.grpc as grpc_client
import tritonclient.http as http_client

from foliot_tools import onnx_models
from foliot_tools.cluster import Cluster
from foliot_tools.waiting import eventually

OPTIONS = {"page_size": "256KiB", "page_cache": "16MiB"}


def write_models(folder):
    for name in ("kept", "other"):
        onnx_models.random_dense_network(folder / name / "1/model.onnx", (64, 32, 10))
    (folder / "kept/model.toml").write_text("cache = true\n")


@pytest.fixture(name="server")
def caching_server(tmp_path, serve):
    write_models(tmp_path / "models")
    server = serve(tmp_path / "models", **OPTIONS)
    eventually(lambda: server.get("/v2/models/kept")[0] == 200 and server.get("/v2/models/other")[0] == 200)
    return server


def pixels(seed):
    return np.random.default_rng(seed).random((1, 64), np.float32)


def tensor(module, seed):
    value = module.InferInput("pixels", [1, 64], "FP32")
    value.set_data_from_numpy(pixels(seed))
    return value


def over_http(address, seed, model="kept"):
    with http_client.InferenceServerClient(address) as client:
        return client.infer(model, [tensor(http_client, seed)])


def over_grpc(address, seed, model="kept"):
    with grpc_client.InferenceServerClient(address) as client:
        return client.infer(model, [tensor(grpc_client, seed)])


def over_a_stream(address, seed, model="kept"):
    done = queue.Queue()
    with grpc_client.InferenceServerClient(address) as client:
        client.start_stream(lambda result, error: done.put((result, error)))
        client.async_stream_infer(model, [tensor(grpc_client, seed)])
        result, error = done.get(timeout=30)
    assert error is None
    return result


def is_cached(result):
    response = result.get_response()
    if isinstance(response, dict):
        return response["parameters"].get("cached", False)
    return response.parameters["cached"].bool_param if "cached" in response.parameters else False


def probabilities(result):
    return result.as_numpy("probabilities")


def ask_in_every_way(http, grpc, seed):
    return [over_http(http, seed), over_grpc(grpc, seed), over_a_stream(grpc, seed)]


def test_equal_inputs_are_answered_with_the_earlier_prediction(server):
    first = over_http(server.http, 1)
    assert not is_cached(first)
    for again in ask_in_every_way(server.http, server.grpc, 1):
        assert is_cached(again)
        assert probabilities(again).tobytes() == probabilities(first).tobytes()
    assert not is_cached(over_grpc(server.grpc, 2))
    assert is_cached(over_http(server.http, 2))


def test_only_models_that_ask_for_it_are_kept(server):
    first, again = over_http(server.http, 1, "other"), over_http(server.http, 1, "other")
    assert not is_cached(first) and not is_cached(again)
    assert "foliot_request" in first.get_response()["parameters"], "a computed answer has its number in the log"


def test_hits_and_misses_are_counted(server):
    for seed in (1, 1, 1, 2):
        over_http(server.http, seed)
    stats = server.get("/v2/models/kept/stats")[1]["model_stats"][0]
    assert stats["inference_stats"]["cache_hit"]["count"] == 2
    assert stats["inference_stats"]["cache_miss"]["count"] == 2
    assert stats["inference_stats"]["success"]["count"] == 4
    assert stats["inference_count"] == 2
    metrics = server.metrics()
    assert metrics['nv_cache_num_hits_per_model{model="kept",version="1"}'] == 2
    assert metrics["foliot_prediction_cache_predictions"] == 2
    assert metrics["foliot_prediction_cache_bytes"] > 0


def test_a_new_version_gives_its_own_predictions(server, tmp_path):
    before = over_http(server.http, 1)
    onnx_models.random_dense_network(tmp_path / "models/kept/2/model.onnx", (64, 16, 10))
    assert server.post("/v2/repository/models/kept/load")[0] == 200
    after = over_http(server.http, 1)
    assert not is_cached(after)
    assert after.get_response()["model_version"] == "2"
    assert probabilities(after).tobytes() != probabilities(before).tobytes()
    (tmp_path / "models/kept/model.toml").write_text("cache = false\n")
    assert server.post("/v2/repository/models/kept/load")[0] == 200
    assert not is_cached(over_http(server.http, 1))


def test_bad_inputs_are_refused_as_ever(server):
    over_http(server.http, 1)
    body = {"inputs": [{"name": "pixels", "shape": [1, 63], "datatype": "FP32", "data": [0.5] * 63}]}
    for _ in range(2):
        status, answer = server.post("/v2/models/kept/infer", body)
        assert status == 400 and "'pixels'" in answer["error"]


def test_in_a_cluster(tmp_path):
    write_models(tmp_path / "models")
    with Cluster(tmp_path, tmp_path / "models", workers=1, frontends=1) as cluster:
        frontend = cluster.frontends[0]
        eventually(lambda: frontend.ready())
        assert not is_cached(over_http(frontend.http, 1))
        assert is_cached(over_grpc(frontend.grpc, 1))
