"""Personal models whose features another model computes: an ONNX model, a pipeline; its updates and its removal."""

import re
import urllib.request

import grpc
import numpy as np
import pytest
from onnx import TensorProto, helper

from foliot import personal
from foliot_tools import onnx_models
from foliot_tools.grpc_protocol import personal_protocol
from foliot_tools.waiting import eventually
from test_access import new_key
from test_personal import listed

OPTIONS = {"page_size": "256KiB", "page_cache": "16MiB"}
FEATURES, PIXELS = 6, 12
SETTINGS = 'features = "embed"\nprior = "zero"\n[exploration]\nname = "greedy"\npool = 0\n'
ITEMS = np.random.default_rng(3).normal(0, 1, (40, PIXELS)).astype(np.float32)


def weights_of(version):
    return np.random.default_rng(version).normal(0, PIXELS**-0.5, (PIXELS, FEATURES)).astype(np.float32)


def embed(version, pixels):
    return np.tanh(pixels @ weights_of(version))


def write_embedder(repository, version):
    """pixels [batch, 12] -> embedding [batch, 6]"""
    nodes = [helper.make_node("MatMul", ["pixels", "w"], ["raw"]), helper.make_node("Tanh", ["raw"], ["embedding"])]
    onnx_models.save(
        repository / "embed" / str(version) / "model.onnx",
        nodes,
        {"pixels": (TensorProto.FLOAT, ["batch", PIXELS])},
        {"embedding": (TensorProto.FLOAT, ["batch", FEATURES])},
        {"w": weights_of(version)},
    )


@pytest.fixture(name="repository")
def films(tmp_path):
    folder = tmp_path / "models"
    write_embedder(folder, 1)
    (folder / "films").mkdir()
    (folder / "films/personal.toml").write_text(SETTINGS)
    return folder


def inputs(*items):
    return {"pixels": ITEMS[list(items)]}


def client(server, **options):
    return personal.Client(server.http, "films", **options)


def observations(user, ratings):
    return [personal.Observation(user, item, value) for item, value in ratings]


def expected(version, ratings, items):
    """The ridge of these ratings, (item, value), with lambda 1."""
    rows = embed(version, ITEMS[[item for item, _ in ratings]])
    weights = np.linalg.solve(rows.T @ rows + np.eye(FEATURES), rows.T @ np.array([value for _, value in ratings]))
    return embed(version, ITEMS[list(items)]) @ weights


def test_features_are_those_of_the_model(serve, repository):
    server = serve(repository, **OPTIONS)
    ratings = [(0, 4.5), (1, 1.0), (2, 3.0)]
    with client(server, timeout=20) as films:
        films.observe_all(observations("ada", ratings), inputs(*(item for item, _ in ratings)))
        assert films.predict("ada", [0, 1, 2]) == pytest.approx(expected(1, ratings, [0, 1, 2]), abs=1e-4)
        assert films.predict("ada", [7, 8], inputs(7, 8)) == pytest.approx(expected(1, ratings, [7, 8]), abs=1e-4)
        best = films.top_k("ada", 3, list(range(40)), inputs(*range(40)))
        wanted = expected(1, ratings, range(40))
        assert best.items == np.argsort(-wanted)[:3].tolist() and best.version == "1"
        films.observe("ada", best.items[0], 5, query=best.query, inputs=inputs(best.items[0]))
        ratings.append((best.items[0], 5))
        assert films.predict("ada", 9, inputs(9)) == pytest.approx(expected(1, ratings, [9])[0], abs=1e-4)
    page = server.metrics()
    assert page['foliot_personal_features_total{model="films",from="model"}'] >= 40
    assert page['foliot_personal_features_total{model="films",from="cache"}'] >= 1
    assert page['foliot_personal_features_total{model="films",from="known"}'] >= 3


def test_json_and_grpc_say_what_items_are(serve, repository):
    server = serve(repository, **OPTIONS)
    tensor = {"name": "pixels", "datatype": "FP32", "shape": [1, PIXELS], "data": ITEMS[5].tolist()}
    status, answer = server.post("/v2/personal/films/observe", {"user": 7, "item": 5, "value": 3, "id": 1, "inputs": [tensor]})
    assert status == 200, answer
    wanted = expected(1, [(5, 3)], [5, 6])
    assert server.post("/v2/personal/films/predict", {"user": 7, "item": 5})[1]["predictions"] == pytest.approx(wanted[:1], abs=1e-4)
    messages, stub_of = personal_protocol()
    raw = messages.Tensor(name="pixels", datatype="FP32", shape=[2, PIXELS], contents=ITEMS[[5, 6]].tobytes())
    pairs = [{"user": {"number": 7}, "item": item} for item in (5, 6)]
    with grpc.insecure_channel(server.grpc) as channel:
        stub = stub_of(channel)
        got = stub.Predict(messages.PredictRequest(model="films", pairs=pairs, inputs=[raw]), timeout=20)
        assert list(got.predictions) == pytest.approx(wanted, abs=1e-4)
        top = stub.TopK(messages.TopKRequest(model="films", users=[{"number": 7}], k=1, items=[5, 6], inputs=[raw]), timeout=20)
        assert top.results[0].items[0].item == (5 if wanted[0] > wanted[1] else 6)
        raw.shape[0] = 1
        raw.contents = ITEMS[6].tobytes()
        one = {"user_number": 8, "item": 6, "value": 2, "id_number": 1}
        stub.Observe(messages.ObserveRequest(model="films", observations=[one], inputs=[raw]), timeout=20)
    with client(server) as films:
        assert films.predict(8, 6) == pytest.approx(expected(1, [(6, 2)], [6])[0], abs=1e-4)


def test_bad_input_is_named(serve, repository):
    (repository / "movies/1").mkdir(parents=True)
    (repository / "movies/personal.toml").touch()
    personal.write_items(repository / "movies/1/items.features", [1], [[1.0]])
    server = serve(repository, **OPTIONS)
    with client(server) as films:
        films.observe(7, 0, 3, inputs=inputs(0))
    tensor = {"name": "pixels", "datatype": "FP32", "shape": [1, PIXELS], "data": ITEMS[1].tolist()}
    one = {"user": 7, "item": 1}
    for method, body, status, words in (
            ("predict", one, 404, "item 1 is unknown: it was not observed yet; send its input"),
            ("predict", {"user": 7, "item": 0, "inputs": [tensor]}, 400, "item 0 was observed with another input"),
            ("predict", {**one, "inputs": []}, 400, "0 inputs of items"),
            ("predict", {**one, "inputs": [{**tensor, "shape": [2, 6]}]}, 400, "must begin with 1"),
            ("predict", {**one, "inputs": [{**tensor, "shape": [1, 6]}]}, 400, "48 bytes are not [1,6] FP32"),
            ("predict", {**one, "inputs": [{**tensor, "name": "x"}]}, 400, "features of model 'embed': "),
            ("predict", {**one, "inputs": [{**tensor, "shape": [1, 3, 4]}]}, 400, "features of model 'embed': "),
            ("predict", {**one, "inputs": [{**tensor, "data": [1e39] * PIXELS}]}, 400, "number within FP32"),
            ("observe", {**one, "value": 1, "id": 1}, 404, "item 1 is unknown"),
            ("topk", {"user": 7, "k": 1}, 400, "name the items to choose from"),
            ("topk", {"user": 7, "k": 0, "items": [0]}, 400, "k = 0"),
            ("forget", {"user": 7, "inputs": [tensor]}, 400, "unknown member"),
    ):
        got, answer = server.post(f"/v2/personal/films/{method}", body)
        assert (got, words in answer["error"]) == (status, True), (method, body, answer)
    got, answer = server.post("/v2/personal/movies/predict", {"user": 7, "item": 1, "inputs": [tensor]})
    assert got == 400 and "in a table" in answer["error"], answer
    with client(server) as films:
        with pytest.raises(personal.PersonalError, match="must be finite"):
            films.predict(7, 1, {"pixels": np.full((1, PIXELS), np.nan, np.float32)})
        with pytest.raises(personal.PersonalError) as refused:
            personal.Client(server.http, "films", timeout=1e-6).predict(7, 1, inputs(1))
        assert refused.value.reason == "unmeetable"


def test_a_newer_version_of_the_model_is_followed(serve, repository):
    server = serve(repository, **OPTIONS)
    ratings = [(item, float(item % 5)) for item in range(10)]
    with client(server) as films:
        films.observe_all(observations("ada", ratings), inputs(*(item for item, _ in ratings)))
        films.predict("ada", 20, inputs(20))
        write_embedder(repository, 2)
        assert server.post("/v2/repository/models/embed/load", {})[0] == 200
        eventually(lambda: films.top_k("ada", 1, [0]).version == "2")
        assert films.predict("ada", list(range(10))) == pytest.approx(expected(2, ratings, range(10)), abs=1e-4)
        assert films.predict("ada", 20, inputs(20)) == pytest.approx(expected(2, ratings, [20])[0], abs=1e-4)
        assert server.post("/v2/repository/models/embed/unload", {})[0] == 200
        assert films.predict("ada", list(range(10))) == pytest.approx(expected(2, ratings, range(10)), abs=1e-4)
        with pytest.raises(personal.PersonalError, match="'embed'") as error:
            films.predict("ada", 21, inputs(21))
        assert error.value.status == 503


def test_a_restart_keeps_users_and_items(serve, repository, tmp_path):
    kept = tmp_path / "kept"
    ratings = [(3, 4.0), (4, 1.0)]
    server = serve(repository, **OPTIONS, observations=kept)
    with client(server) as films:
        films.observe_all(observations("ada", ratings), inputs(*(item for item, _ in ratings)))
    server.stop()
    write_embedder(repository, 2)
    server = serve(repository, **OPTIONS, observations=kept)
    with client(server) as films:
        assert films.predict("ada", [3, 4]) == pytest.approx(expected(2, ratings, [3, 4]), abs=1e-4)
        films.observe("bob", 4, 2.0)
        films.forget("ada")
        assert films.predict("ada", 4) == pytest.approx(films.predict("carl", 4)), "bob observed it, too"
        with pytest.raises(personal.PersonalError, match="item 3 is unknown") as error:
            films.predict("ada", 3)
        assert error.value.status == 404
    server.stop()
    server = serve(repository, **OPTIONS, observations=kept)
    with client(server) as films:
        assert films.predict("bob", 4) == pytest.approx(expected(2, [(4, 2.0)], [4])[0], abs=1e-4)
        with pytest.raises(personal.PersonalError, match="item 3 is unknown"):
            films.predict("bob", 3)


def test_a_pipeline_computes_features(serve, repository):
    (repository / "both").mkdir()
    (repository / "both/pipeline.toml").write_text(
        '[[stage]]\nname = "first"\nmodel = "embed"\ninputs = { pixels = "pixels" }\n'
        '[[output]]\nname = "embedding"\nfrom = "first.embedding"\n')
    (repository / "films/personal.toml").write_text(SETTINGS.replace("embed", "both"))
    server = serve(repository, **OPTIONS)
    with client(server) as films:
        eventually(lambda: server.get("/v2/models/films/ready")[0] == 200)
        films.observe("ada", 3, 4, inputs=inputs(3))
        assert films.predict("ada", 5, inputs(5)) == pytest.approx(expected(1, [(3, 4)], [5])[0], abs=1e-4)


def test_the_limits_of_a_key_count_what_is_computed(serve, repository, tmp_path):
    keys = tmp_path / "keys.toml"
    key = new_key(keys, "app", "infer")
    watcher = {"Authorization": f"Bearer {new_key(keys, 'watcher', 'metrics')}"}
    server = serve(repository, **OPTIONS, keys=keys)
    with client(server, key=key) as films:
        assert films.predict("ada", [1, 2], inputs(1, 2)).tolist() == [0, 0]
        request = urllib.request.Request(f"http://127.0.0.1:{server.metrics_port}/metrics", headers=watcher)
        with urllib.request.urlopen(request, timeout=10) as response:
            page = response.read().decode()
        found = re.findall(r'foliot_tenant_requests_total\{[^}]*tenant="app"[^}]*\} (\d+)', page)
        assert "4" in found, ("two predictions, and two items whose features were computed", found)


def test_it_is_listed(repository):
    code, output = listed(repository)
    assert code == 0 and "features of 'embed'" in output, output
