"""Folders as MLflow writes them, served as they are: the answers are those of the library that wrote the model."""

import json
import sys
import urllib.request

import joblib
import lightgbm
import numpy as np
import pytest
import skops.io
import tritonclient.http as http_client
import xgboost
import yaml
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from conftest import serving
from foliot_tools.seeds import fresh_seed

COLUMNS, ROWS = ("width", "height", "depth"), 40


def post(server, path, body):
    request = urllib.request.Request(f"http://{server.http}{path}", json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def columns(kinds):
    return json.dumps([{"type": kind, "name": name, "required": True} for name, kind in kinds.items()])


def describe(folder, flavour, options, inputs, **function):
    """Writes MLmodel, as mlflow.models.Model.save does."""
    content = {"flavors": {flavour: options, "python_function": {"loader_module": f"mlflow.{flavour}", **function}},
               "model_size_bytes": 1, "signature": {"inputs": inputs, "outputs": None, "params": None}}
    (folder / "MLmodel").write_text(yaml.safe_dump(content))


@pytest.fixture(scope="module", name="served")
def folders_of_mlflow(tmp_path_factory):
    """(the server, rows, {model: what the library answers}, reasons of models that are not served)"""
    random = np.random.default_rng(fresh_seed())
    rows = random.normal(size=(ROWS, len(COLUMNS)))
    names = np.array(["big", "small"])[(rows[:, 0] > 0).astype(int)]
    numbers = (rows[:, 0] > 0).astype(int)
    line = LogisticRegression().fit(rows, names)
    forest = RandomForestClassifier(5, random_state=1).fit(rows, numbers)
    scores = xgboost.XGBClassifier(n_estimators=4).fit(rows, numbers)
    trees = lightgbm.train({"objective": "binary", "verbose": -1, "min_data_in_leaf": 2}, lightgbm.Dataset(rows, numbers), 4)
    repository = tmp_path_factory.mktemp("models")

    def folder(name, trusted=False):
        made = repository / name
        made.mkdir()
        (made / "model.toml").write_text(f'[container]\npython = "{sys.executable}"\n'
                                         f"trust_pickle = {str(trusted).lower()}\n")
        return made

    double = columns(dict.fromkeys(COLUMNS, "double"))
    tensor = json.dumps([{"type": "tensor", "tensor-spec": {"dtype": "float64", "shape": [-1, len(COLUMNS)]}}])
    skops.io.dump(line, folder("labels") / "model.skops")
    describe(repository / "labels", "sklearn", {"pickled_model": "model.skops", "serialization_format": "skops"}, double)
    (repository / "labels/requirements.txt").write_text("scikit-learn==0.1\nno-such-package==7\nnumpy\n")
    skops.io.dump(line, folder("probabilities") / "model.skops")
    describe(repository / "probabilities", "sklearn", {"pickled_model": "model.skops"}, tensor, predict_fn="predict_proba")
    named = json.dumps([{"type": "tensor", "name": "rows", "tensor-spec": {"dtype": "float64", "shape": [-1, len(COLUMNS)]}}])
    skops.io.dump(line, folder("named") / "model.skops")
    describe(repository / "named", "sklearn", {"pickled_model": "model.skops"}, named)
    (folder("version", trusted=True) / "3").mkdir()
    joblib.dump(forest, repository / "version/3/model.pkl")
    describe(repository / "version/3", "sklearn", {"pickled_model": "model.pkl"}, None)
    scores.save_model(folder("boosted") / "model.ubj")
    describe(repository / "boosted", "xgboost", {"data": "model.ubj", "model_class": "xgboost.sklearn.XGBClassifier"}, double)
    trees.save_model(folder("trees") / "model.lgb")
    describe(repository / "trees", "lightgbm", {"data": "model.lgb", "model_class": "lightgbm.basic.Booster"}, tensor)
    skops.io.dump(line, folder("ml") / "model.skops")
    describe(repository / "ml", "sklearn", {"pickled_model": "model.skops"}, double)
    (repository / "ml/model-settings.json").write_text(json.dumps(
        {"name": "ml", "implementation": "mlserver_mlflow.MLflowRuntime", "parameters": {"uri": "."}}))
    joblib.dump(forest, folder("untrusted") / "model.pkl")
    describe(repository / "untrusted", "sklearn", {"pickled_model": "model.pkl"}, double)
    (repository / "untrusted/requirements.txt").write_text("no-such-package==7\n")
    describe(folder("unknown"), "spark", {"model_data": "sparkml"}, double)
    (repository / "unknown/MLmodel").write_text("flavors:\n  spark: {}\n")
    (folder("damaged") / "MLmodel").write_text("flavors: [\n")
    describe(folder("outside"), "sklearn", {"pickled_model": "../labels/model.skops"}, double)
    describe(folder("arrays"), "sklearn", {"pickled_model": "model.skops"}, columns({"a": "array"}))
    skops.io.dump(line, repository / "arrays/model.skops")
    describe(folder("hidden"), "sklearn", {"pickled_model": "model.skops"}, double, predict_fn="__class__")
    describe(folder("list"), "sklearn", ["model.skops"], double)
    describe(folder("twice"), "sklearn", {"pickled_model": "model.skops"}, json.dumps([{"type": "double", "name": "a"}] * 2))
    skops.io.dump(line, repository / "twice/model.skops")
    (folder("long") / "MLmodel").write_text("flavors: {}\n" + "# x\n" * 300_000)
    expected = {
        "labels": line.predict(rows).astype(object), "probabilities": line.predict_proba(rows),
        "version": forest.predict(rows), "boosted": scores.predict(rows), "trees": trees.predict(rows),
        "ml": line.predict(rows).astype(object), "named": line.predict(rows).astype(object),
    }
    with serving(repository, tmp_path_factory.mktemp("log") / "server.log") as server:
        client = http_client.InferenceServerClient(server.http)
        reasons = {each["name"]: each.get("reason", "") for each in client.get_model_repository_index()}
        yield server, rows, expected, reasons


def tensors_of(client, model, rows):
    """One for each column where the model has columns."""
    declared = client.get_model_metadata(model)["inputs"]
    tensors = []
    for position, each in enumerate(declared):
        values = rows if len(declared) == 1 else rows[:, [position]]
        values = values.astype({"FP32": np.float32, "FP64": np.float64}[each["datatype"]])
        tensors.append(http_client.InferInput(each["name"], values.shape, each["datatype"]).set_data_from_numpy(values))
    return tensors


@pytest.mark.parametrize("name", ["labels", "probabilities", "version", "boosted", "trees", "ml", "named"])
def test_answers_are_those_of_the_library(served, name):
    server, rows, expected, reasons = served
    assert reasons[name] == ""
    client = http_client.InferenceServerClient(server.http)
    answer = client.infer(name, tensors_of(client, name, rows)).as_numpy("output-1")
    if name == "ml":  # MLServer's answers are columns
        assert answer.shape == (ROWS, 1)
        answer = answer[:, 0]
    if expected[name].dtype == object:
        assert [text.decode() for text in answer] == expected[name].tolist()
    else:
        np.testing.assert_allclose(answer, expected[name], rtol=1e-5, atol=1e-5)


def test_inputs_are_the_columns_of_the_signature(served):
    client = http_client.InferenceServerClient(served[0].http)
    inputs = client.get_model_metadata("labels")["inputs"]
    assert [(each["name"], each["datatype"], each["shape"]) for each in inputs] == [(name, "FP64", [-1, 1]) for name in COLUMNS]


def test_tables_as_clients_of_mlflow_send_them(served):
    server, rows, expected, _ = served
    instances = [dict(zip(COLUMNS, row)) for row in rows.tolist()]
    answer = post(server, "/v1/models/labels:predict", {"instances": instances})
    assert answer["predictions"] == expected["labels"].tolist()


def test_requirements_that_are_not_met_are_listed(served):
    server, _, _, reasons = served
    assert "scikit-learn==0.1 is " in server.output() and "no-such-package==7 is missing" in server.output()
    assert "is a pickle" in reasons["untrusted"] and "no-such-package==7 is missing" in reasons["untrusted"]


@pytest.mark.parametrize("name, words", [
    ("unknown", "MLmodel has the flavours spark: served are sklearn, xgboost"),
    ("damaged", "MLmodel is no YAML"),
    ("outside", "pickled_model is '../labels/model.skops': it must name a file in the folder"),
    ("arrays", "column 'a' of the signature has the type 'array'"),
    ("hidden", "predict_fn is '__class__': it must be the name of a method"),
    ("list", "flavour 'sklearn' must be a table"),
    ("twice", "the signature has several columns 'a'"),
    ("long", "MLmodel has 1,200,012 bytes: it may have 1,048,576"),
])
def test_what_cannot_be_served_says_why(served, name, words):
    assert words in served[3][name]


def test_a_folder_alone_is_a_model(tmp_path):
    rows = np.eye(len(COLUMNS))
    line = LogisticRegression().fit(rows, [0, 1, 1])
    skops.io.dump(line, tmp_path / "model.skops")
    describe(tmp_path, "sklearn", {"pickled_model": "model.skops"}, columns(dict.fromkeys(COLUMNS, "double")))
    (tmp_path / "model.toml").write_text(f'name = "line"\n[container]\npython = "{sys.executable}"\n')
    with serving(tmp_path, tmp_path.parent / "mlflow.log") as server:
        table = {"columns": COLUMNS[::-1], "data": rows[:, ::-1].tolist()}
        answer = post(server, "/invocations", {"dataframe_split": table})
    assert answer["predictions"] == line.predict(rows).tolist()
