"""Folders of MLflow that are compiled: beside the container of the same folder they have the same interface, the same answers
and the same refusals, and the answers are the library's."""

import dataclasses
import json
import sys

import joblib
import lightgbm
import numpy as np
import pytest
import xgboost
import yaml
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from conftest import serving
from foliot_tools.seeds import fresh_seed

ROWS = 160
STAYS = "runs in a container and is not compiled"
# Of the columns of a signature: how MLflow names the type, the datatype of the input, and numpy's.
TYPES = {"double": ("FP64", np.float64), "float": ("FP32", np.float32), "long": ("INT64", np.int64),
         "integer": ("INT32", np.int32), "boolean": ("BOOL", np.bool_)}
COLUMNS = {"width": "double", "height": "float", "count": "long", "rank": "integer", "new": "boolean"}
TENSOR = json.dumps([{"type": "tensor", "name": "rows", "tensor-spec": {"dtype": "float64", "shape": [-1, len(COLUMNS)]}}])
UNNAMED = json.dumps([{"type": "float"}] * len(COLUMNS))


@dataclasses.dataclass
class Case:
    flavour: str
    options: dict  # of the flavour
    save: object  # writes the model's file into a folder
    answers: object  # what the library answers of rows
    signature: str | None = None  # None: of columns
    function: dict = dataclasses.field(default_factory=dict)
    runtime: str = ""
    datatype: str = "FP64"  # of the only input


def signature_of(columns):
    return json.dumps([{"type": kind, "name": name, "required": True} for name, kind in columns.items()])


def pickled(model, method="predict", flavour="sklearn", **more):
    key = "pickled_model" if flavour == "sklearn" else "data"
    function = {"predict_fn": method} if method != "predict" else {}
    return Case(flavour, {key: "model.pkl"}, lambda folder: joblib.dump(model, folder / "model.pkl"), getattr(model, method),
                function=function, **more)


def saved(model, flavour, file, answers, kind, method="predict", **more):
    function = {"predict_fn": method} if method != "predict" else {}
    return Case(flavour, {"data": file, "model_class": kind}, lambda folder: model.save_model(folder / file), answers,
                function=function, **more)


def make_rows(random):
    rows = random.normal(size=(ROWS, len(COLUMNS))) * [3, 0.2, 5, 40, 1]
    for position, kind in enumerate(COLUMNS.values()):
        rows[:, position] = (rows[:, position] > 0 if kind == "boolean" else rows[:, position]).astype(TYPES[kind][1])
    return rows


def cases(random):
    rows = make_rows(random)
    value = rows @ random.normal(size=len(COLUMNS)) / 10 + np.abs(rows[:, 0])
    two, three = (value > np.median(value)).astype(int), np.digitize(value, np.quantile(value, [0.3, 0.6]))
    odd = np.array([-7, 3, 12])[three]
    forest = RandomForestClassifier(10, max_depth=6, random_state=1)
    boosted = xgboost.XGBClassifier(n_estimators=12, max_depth=4).fit(rows, three)
    line = xgboost.XGBRegressor(n_estimators=12).fit(rows, value)
    stopped = xgboost.train({"objective": "binary:logistic"}, xgboost.DMatrix(rows[:80], two[:80]), 30,
                            [(xgboost.DMatrix(rows[80:], random.permutation(two[80:])), "test")], early_stopping_rounds=2,
                            verbose_eval=False)
    light = lightgbm.train({"objective": "regression", "verbose": -1, "min_data_in_leaf": 3}, lightgbm.Dataset(rows, value), 12)
    named = lightgbm.LGBMClassifier(n_estimators=12, min_child_samples=3, verbose=-1).fit(rows, odd)
    pair = lightgbm.LGBMClassifier(n_estimators=12, min_child_samples=3, verbose=-1).fit(rows, two)
    return rows, {
        "logistic": pickled(make_pipeline(StandardScaler(), LogisticRegression()).fit(rows, odd)),
        "shares": pickled(make_pipeline(StandardScaler(), forest).fit(rows, three), "predict_proba"),
        "served": pickled(LogisticRegression(max_iter=20).fit(rows, two), runtime="mlserver_mlflow.MLflowRuntime"),
        "ridge": pickled(Ridge().fit(rows, value), signature=TENSOR),
        "gradient": pickled(GradientBoostingRegressor(n_estimators=10).fit(rows, value), signature=UNNAMED, datatype="FP32"),
        "histogram": pickled(HistGradientBoostingClassifier(max_iter=10).fit(rows, two)),
        "plain": pickled(DecisionTreeClassifier(max_depth=5).fit(rows, two), signature="", datatype="FP32"),
        "boosted": saved(boosted, "xgboost", "model.ubj", boosted.predict, "xgboost.sklearn.XGBClassifier"),
        "boosted-shares": saved(boosted, "xgboost", "model.json", boosted.predict_proba, "xgboost.sklearn.XGBClassifier",
                                "predict_proba"),
        "line": saved(line, "xgboost", "model.ubj", line.predict, "xgboost.sklearn.XGBRegressor"),
        "stopped": saved(stopped, "xgboost", "model.ubj", lambda x: stopped.predict(xgboost.DMatrix(x)),
                         "xgboost.core.Booster", signature=TENSOR),
        "light": saved(light, "lightgbm", "model.lgb", light.predict, "lightgbm.basic.Booster"),
        "light-labels": pickled(named, flavour="lightgbm"),
        "light-shares": pickled(pair, "predict_proba", "lightgbm"),
    }


CASES = ("logistic", "shares", "served", "ridge", "gradient", "histogram", "plain", "boosted", "boosted-shares", "line", "stopped",
         "light", "light-labels", "light-shares")


def write(folder, case, compiled):
    folder.mkdir(parents=True)
    case.save(folder)
    content = {"flavors": {case.flavour: case.options,
                           "python_function": {"loader_module": f"mlflow.{case.flavour}", **case.function}}}
    signature = signature_of(COLUMNS) if case.signature is None else case.signature
    if signature:
        content["signature"] = {"inputs": signature, "outputs": None, "params": None}
    (folder / "MLmodel").write_text(yaml.safe_dump(content))
    (folder / "requirements.txt").write_text("no-such-package==7\n")
    (folder / "model.toml").write_text(f'[container]\npython = "{sys.executable}"\ntrust_pickle = true\n'
                                       f'compile = "{"auto" if compiled else "never"}"\n')
    if case.runtime:
        (folder / "model-settings.json").write_text(json.dumps(
            {"name": folder.name, "implementation": case.runtime, "parameters": {"uri": "."}}))


@pytest.fixture(scope="module", name="served")
def compiled_folders(tmp_path_factory):
    """(a server, rows, {model: Case}); beside each model lies NAME-container."""
    rows, models = cases(np.random.default_rng(fresh_seed()))
    repository = tmp_path_factory.mktemp("models")
    for name, case in models.items():
        write(repository / name, case, compiled=True)
        write(repository / f"{name}-container", case, compiled=False)
    with serving(repository, tmp_path_factory.mktemp("log") / "server.log") as server:
        yield server, rows, models


def tensor(name, datatype, values):
    data = values.astype(object).ravel().tolist()
    return {"name": name, "datatype": datatype, "shape": list(values.shape),
            "data": [bool(each) for each in data] if datatype == "BOOL" else data}


def inputs_for(case, rows):
    """As the signature declares them."""
    if case.signature is not None:
        dtype = np.float32 if case.datatype == "FP32" else float
        return [tensor("rows" if case.signature == TENSOR else "input-0", case.datatype, rows.astype(dtype).astype(float))]
    return [tensor(name, TYPES[kind][0], rows[:, [position]].astype(TYPES[kind][1]))
            for position, (name, kind) in enumerate(COLUMNS.items())]


def requests_for(random, rows, case):
    """Requests of clients: as the signature says, of other types and shapes, and with what no model takes."""
    few = rows[random.integers(0, len(rows), 6)]
    usual = inputs_for(case, few)
    yield {"inputs": usual}
    yield {"inputs": usual[::-1]}
    yield {"inputs": usual[:-1]}
    yield {"inputs": [*usual, {**usual[0], "name": "extra"}]}
    yield {"inputs": [*usual[:-1], {**usual[-1], "datatype": "BYTES", "data": ["x"] * len(usual[-1]["data"])}]}
    for first in ({"datatype": "INT64", "data": [int(each) for each in usual[0]["data"]]}, {"datatype": "FP64"},
                  {"data": [None, *usual[0]["data"][1:]]}, {"data": [1e39, *usual[0]["data"][1:]]},
                  {"data": [1e300, *usual[0]["data"][1:]]}, {"shape": [len(few)]}):
        yield {"inputs": [{**usual[0], **first}, *usual[1:]]}
    for position, number in ((2, 2.5), (2, None), (3, 1e12), (1, None), (1, 1e39)):
        if len(usual) > 1:
            data = [number, *usual[position]["data"][1:]]
            yield {"inputs": [*usual[:position], {**usual[position], "data": data, "datatype": "FP64"}, *usual[position + 1:]]}


def check(found, wanted, datatype, what):
    if not datatype.startswith("FP"):
        assert found == wanted, what
        return
    wanted = np.array(wanted, float)
    usual = np.median(np.abs(wanted)) if wanted.size else 0
    np.testing.assert_allclose(np.array(found, float), wanted, rtol=1e-5, atol=1e-6 * max(usual, 1), err_msg=str(what))


@pytest.mark.parametrize("name", CASES)
def test_the_container_and_what_is_compiled_are_the_same_to_clients(served, name):
    server, rows, models = served
    assert f"model '{name}' {STAYS}" not in server.output(), server.output()
    (_, compiled), (_, container) = (server.get(f"/v2/models/{each}") for each in (name, f"{name}-container"))
    assert compiled["inputs"] == container["inputs"] and compiled["outputs"] == container["outputs"]
    random = np.random.default_rng(fresh_seed())
    for request in requests_for(random, rows, models[name]):
        status, answer = server.post(f"/v2/models/{name}/infer", request)
        expected_status, expected = server.post(f"/v2/models/{name}-container/infer", request)
        assert status == expected_status, (request, answer, expected)
        if status == 400:
            assert answer["error"].replace(f"'{name}'", "") == expected["error"].replace(f"'{name}-container'", "")
        if status != 200:
            continue
        described = [[{**each, "data": None} for each in one["outputs"]] for one in (answer, expected)]
        assert described[0] == described[1], request
        for found, wanted in zip(answer["outputs"], expected["outputs"]):
            check(found["data"], wanted["data"], wanted["datatype"], request)


@pytest.mark.parametrize("name", CASES)
def test_answers_are_those_of_the_library(served, name):
    server, rows, models = served
    table = rows.astype(np.float32).astype(float) if models[name].datatype == "FP32" else rows
    status, answer = server.post(f"/v2/models/{name}/infer", {"inputs": inputs_for(models[name], table)})
    assert status == 200, answer
    (output,) = answer["outputs"]
    wanted = models[name].answers(table)
    assert (output["name"], output["shape"]) == ("output-1", [ROWS, 1] if models[name].runtime else list(wanted.shape))
    check(output["data"], wanted.ravel().tolist(), "FP64" if wanted.dtype.kind == "f" else "INT64", name)


@pytest.mark.parametrize("name", ["logistic", "light-shares", "ridge"])
def test_tables_of_mlflows_clients_have_the_same_predictions(served, name):
    server, rows, models = served
    random = np.random.default_rng(fresh_seed())
    order = random.permutation(len(COLUMNS)) if models[name].signature is None else np.arange(len(COLUMNS))
    names = list(COLUMNS)
    kinds = [TYPES[kind][1] for kind in COLUMNS.values()] if models[name].signature is None else [float] * len(COLUMNS)
    instances = [{names[i]: kinds[i](row[i]).item() if kinds[i] is not float else row[i] for i in order} for row in rows[:7].tolist()]
    if models[name].signature is not None:
        instances = [list(each.values()) for each in instances]
    answers = [server.post(f"/v1/models/{each}:predict", {"instances": instances}) for each in (name, f"{name}-container")]
    assert [status for status, _ in answers] == [200, 200], answers
    np.testing.assert_allclose(*(answer["predictions"] for _, answer in answers), rtol=1e-5, atol=1e-6)


def test_requirements_that_are_not_met_are_listed_for_what_is_compiled(served):
    lines = served[0].output().splitlines()
    for name in "logistic", "light":
        assert any(f"model '{name}': requirements.txt: no-such-package==7 is missing" in line for line in lines)


def test_what_is_not_compiled_says_why_and_is_served(tmp_path):
    random = np.random.default_rng(fresh_seed())
    rows = make_rows(random)
    words = np.array(["low", "high"])[(rows[:, 0] > 0).astype(int)]
    case = pickled(LogisticRegression(max_iter=20).fit(rows, words))
    write(tmp_path / "models/words", case, compiled=True)
    with serving(tmp_path / "models", tmp_path / "server.log") as server:
        assert f"model 'words' {STAYS}: its output 'output-1' is text" in server.output()
        status, answer = server.post("/v2/models/words/infer", {"inputs": inputs_for(case, rows)})
        assert status == 200 and answer["outputs"][0]["data"] == case.answers(rows).tolist()
