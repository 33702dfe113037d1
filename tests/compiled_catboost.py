"""Files of CatBoost that are compiled: they answer as the library does, also where values are missing, and beside the container
of the same file. Needs catboost, which is not among the packages of the other tests."""

import dataclasses
import json
import sys

import catboost
import numpy as np
import pytest
import yaml

from conftest import serving
from foliot_tools.seeds import fresh_seed

FEATURES, ROWS = 5, 200
STAYS = "runs in a container and is not compiled"
RUNTIME = "mlserver_catboost.CatboostModel"
COLUMNS = [f"c{i}" for i in range(FEATURES)]


@dataclasses.dataclass
class Case:
    model: object
    answers: object  # {output: what the library answers of rows}
    form: str = "kserve"  # mlserver, mlflow
    method: str = "predict"


def cases(random):
    rows = random.normal(size=(ROWS, FEATURES)) * 10.0 ** random.uniform(-2, 3, FEATURES)
    value = rows / np.abs(rows).mean(axis=0) @ random.normal(size=FEATURES)
    two, three = (value > np.median(value)).astype(int), np.digitize(value, np.quantile(value, [0.3, 0.6]))
    odd, names = np.array([-7, 3, 12])[three], np.array(["ash", "oak", "yew"])[three]
    missing = np.where(random.random(rows.shape) < 0.1, np.nan, rows)
    usual = {"iterations": 30, "depth": 4, "verbose": 0, "allow_writing_files": False, "thread_count": 1,
             "random_seed": int(random.integers(1 << 31))}
    classifier, regressor = catboost.CatBoostClassifier, catboost.CatBoostRegressor

    def labels(model, position=lambda found: found):
        return lambda x: {"output-0": position(np.ravel(model.predict(x)))}

    pair, line = classifier(**usual).fit(rows, two), regressor(**usual).fit(rows, value)
    several = classifier(**usual).fit(missing, odd)
    named = classifier(**usual).fit(rows, names)
    above = regressor(**usual, nan_mode="Max").fit(missing, value)
    deep = classifier(**usual, grow_policy="Depthwise").fit(missing, three)
    leaves = regressor(**{**usual, "depth": 6}, grow_policy="Lossguide").fit(rows, value)
    both = regressor(**usual, loss_function="MultiRMSE").fit(rows, np.column_stack([value, -value]))
    return rows, missing, {
        "pair": Case(pair, labels(pair)),
        "pair-ml": Case(pair, lambda x: {"predict": pair.predict(x).reshape(-1, 1)}, "mlserver"),
        "pair-shares": Case(pair, lambda x: {"output-1": pair.predict_proba(x)}, "mlflow", "predict_proba"),
        "several": Case(several, labels(several)),
        "several-shares": Case(several, lambda x: {"output-1": several.predict_proba(x)}, "mlflow", "predict_proba"),
        "several-flow": Case(several, lambda x: {"output-1": np.ravel(several.predict(x))}, "mlflow"),
        "named": Case(named, labels(named, lambda found: np.searchsorted(["ash", "oak", "yew"], found))),
        "line": Case(line, labels(line)),
        "line-flow": Case(line, lambda x: {"output-1": line.predict(x)}, "mlflow"),
        "above": Case(above, labels(above)),
        "deep": Case(deep, labels(deep)),
        "leaves": Case(leaves, labels(leaves)),
        "both": Case(both, lambda x: {"output-0": both.predict(x)}),
    }


CASES = ("pair", "pair-ml", "pair-shares", "several", "several-shares", "several-flow", "named", "line", "line-flow", "above", "deep",
         "leaves", "both")


def write(folder, case, compiled=True):
    folder.mkdir(parents=True)
    case.model.save_model(str(folder / "model.cbm"))
    (folder / "model.toml").write_text(f'[container]\npython = "{sys.executable}"\ncompile = "{"auto" if compiled else "never"}"\n')
    if case.form == "mlserver":
        (folder / "model-settings.json").write_text(json.dumps(
            {"name": folder.name, "implementation": RUNTIME, "parameters": {"uri": "./model.cbm"}}))
    if case.form == "mlflow":
        function = {"loader_module": "mlflow.catboost", **({"predict_fn": case.method} if case.method != "predict" else {})}
        tensor = [{"type": "tensor", "tensor-spec": {"dtype": "float64", "shape": [-1, FEATURES]}}]
        (folder / "MLmodel").write_text(yaml.safe_dump({
            "flavors": {"catboost": {"data": "model.cbm", "model_type": type(case.model).__name__, "save_format": "cbm"},
                        "python_function": function},
            "signature": {"inputs": json.dumps(tensor)}}))


@pytest.fixture(scope="module", name="served")
def compiled_files(tmp_path_factory):
    """(a server, rows, rows with missing values, {model: Case}); beside each model lies NAME-container."""
    rows, missing, models = cases(np.random.default_rng(fresh_seed()))
    repository = tmp_path_factory.mktemp("models")
    for name, case in models.items():
        write(repository / name, case)
        write(repository / f"{name}-container", case, compiled=False)
    with serving(repository, tmp_path_factory.mktemp("log") / "server.log") as server:
        yield server, rows, missing, models


def ask(server, model, rows, datatype="FP64"):
    data = [None if number != number else number for number in rows.ravel().tolist()]  # noqa: PLR0124: NaN
    return server.post(f"/v2/models/{model}/infer", {
        "inputs": [{"name": "input-0", "datatype": datatype, "shape": list(rows.shape), "data": data}]})


def check(found, wanted, what):
    if wanted.dtype.kind != "f":
        assert found == wanted.ravel().tolist(), what
        return
    usual = np.median(np.abs(wanted))
    np.testing.assert_allclose(np.array(found, float), wanted.ravel(), rtol=1e-5, atol=1e-6 * max(usual, 1), err_msg=what)


@pytest.mark.parametrize("name", CASES)
def test_answers_are_those_of_the_library(served, name):
    server, rows, missing, models = served
    assert f"model '{name}' {STAYS}" not in server.output(), server.output()
    for table in rows, missing:
        status, answer = ask(server, name, table)
        expected_status, expected = ask(server, f"{name}-container", table)
        assert status == expected_status, (answer, expected)
        if status != 200:
            continue
        (output,) = answer["outputs"]
        wanted = models[name].answers(table)[output["name"]]
        assert output["shape"] == list(wanted.shape)
        check(output["data"], wanted, name)
        assert {**output, "data": None} == {**expected["outputs"][0], "data": None}


@pytest.mark.parametrize("name", CASES)
def test_the_container_and_what_is_compiled_are_the_same_to_clients(served, name):
    server, rows, *_ = served
    (_, compiled), (_, container) = (server.get(f"/v2/models/{each}") for each in (name, f"{name}-container"))
    assert compiled["inputs"] == container["inputs"] and compiled["outputs"] == container["outputs"]
    random = np.random.default_rng(fresh_seed())
    few = rows[random.integers(0, ROWS, 6)]
    for scale, number in ((1, 1e39), (100, -1e39), (1e-3, 1e300), (1, np.nan), (1, -0.0)):
        table = few * scale
        table[random.integers(6), random.integers(FEATURES)] = number
        (status, answer), (expected_status, expected) = (ask(server, each, table) for each in (name, f"{name}-container"))
        assert status == expected_status, (answer, expected)
        if status == 200:
            wanted = np.array(expected["outputs"][0]["data"])
            check(answer["outputs"][0]["data"], wanted, f"{name} {number}")


def test_trees_over_categories_stay_a_container(tmp_path):
    random = np.random.default_rng(fresh_seed())
    table = np.array([[number, int(number * 10) % 3] for number in random.random(90)], object)
    model = catboost.CatBoostClassifier(iterations=5, verbose=0, allow_writing_files=False).fit(
        table, (table[:, 0] > 0.5).astype(int), cat_features=[1])
    write(tmp_path / "models/kinds", Case(model, None))
    with serving(tmp_path / "models", tmp_path / "server.log") as server:
        assert f"model 'kinds' {STAYS}: its trees split by categories" in server.output(), server.output()
