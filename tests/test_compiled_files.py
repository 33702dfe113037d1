"""Files of frameworks that are compiled: beside the container of the same file they have the same interface, the same answers
and the same refusals, and the answers are the library's."""

import dataclasses
import json
import struct
import sys

import joblib
import lightgbm
import numpy as np
import pytest
import xgboost
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (ExtraTreesRegressor, GradientBoostingClassifier, HistGradientBoostingClassifier,
                              RandomForestClassifier)
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from onnx import TensorProto, helper

from conftest import serving
from foliot_tools import onnx_models
from foliot_tools.seeds import fresh_seed

FEATURES, ROWS = 5, 160
STAYS = "runs in a container and is not compiled"
CATEGORY = 4  # the column of whole numbers


@dataclasses.dataclass
class Case:
    save: object  # writes the file into a folder
    answers: object  # {output: what the library answers of rows}
    runtime: str = ""
    file: str = "model.joblib"


def cases(random):
    rows = random.normal(size=(ROWS, FEATURES)) * 10.0 ** random.uniform(-2, 3, FEATURES)
    rows[:, CATEGORY] = random.integers(0, 4, ROWS)
    value = rows[:, :4] / np.abs(rows[:, :4]).mean(axis=0) @ random.normal(size=4) + rows[:, CATEGORY]
    two, three = (value > np.median(value)).astype(int), np.digitize(value, np.quantile(value, [0.3, 0.6]))
    names = np.array(["ash", "oak", "yew"])[three]
    missing = np.where(random.random(rows.shape) < 0.1, np.nan, rows)

    def table(**more):
        return ColumnTransformer([("kind", OneHotEncoder(**more), [CATEGORY]), ("size", StandardScaler(), [0, 1, 2, 3])])

    def scikit(model, table, targets, runtime=""):
        model.fit(table, targets)
        output = "predict" if runtime else "output-0"
        position = {name: i for i, name in enumerate(getattr(model, "classes_", ()))}

        def answers(x):
            found = model.predict(x)
            found = np.array([position[name] for name in found]) if found.dtype.kind in "US" else found
            return {output: found.reshape(-1, 1) if runtime else found,
                    **({"predict_proba": model.predict_proba(x)} if runtime and hasattr(model, "predict_proba") else {})}

        return Case(lambda folder: joblib.dump(model, folder / "model.joblib"), answers, runtime)

    boosted = xgboost.XGBClassifier(n_estimators=20, max_depth=4).fit(missing, three)
    pair = xgboost.XGBClassifier(n_estimators=20, max_depth=4).fit(rows, two)
    line = xgboost.XGBRegressor(n_estimators=20).fit(rows, value)
    large = rows * [1, 1, 1, 1, 1e8]  # beyond the whole numbers of float32
    light = lightgbm.LGBMRegressor(n_estimators=20, min_child_samples=3, verbose=-1).fit(large, value)
    classes = lightgbm.LGBMClassifier(n_estimators=20, min_child_samples=3, verbose=-1).fit(rows, two)
    sklearn_runtime, xgboost_runtime = "mlserver_sklearn.SKLearnModel", "mlserver_xgboost.XGBoostModel"
    return rows, {
        "logistic": scikit(make_pipeline(StandardScaler(), LogisticRegression()), rows, two),
        "logistic-names": scikit(LogisticRegression(max_iter=30), rows, names),
        "logistic-ml": scikit(make_pipeline(StandardScaler(), LogisticRegression()), rows, three, sklearn_runtime),
        "onehot": scikit(make_pipeline(table(), LogisticRegression()), rows, two),
        "onehot-ignore": scikit(make_pipeline(table(handle_unknown="ignore"), RandomForestClassifier(10, max_depth=5)),
                                rows, three),
        "ridge-ml": scikit(Ridge(), rows, value, sklearn_runtime),
        "tree": scikit(DecisionTreeClassifier(max_depth=6), missing, three),
        "forest-ml": scikit(RandomForestClassifier(20), rows, two, sklearn_runtime),
        "extra": scikit(ExtraTreesRegressor(20), rows, np.column_stack([value, -value])),
        "gradient": scikit(GradientBoostingClassifier(n_estimators=10), rows, three),
        "histogram": scikit(HistGradientBoostingClassifier(max_iter=10), missing, two),
        "xgboost": Case(lambda folder: boosted.save_model(folder / "model.json"),
                        lambda x: {"output-0": boosted.predict_proba(x)}, file="model.json"),
        "xgboost-ml": Case(lambda folder: pair.save_model(folder / "model.ubj"),
                           lambda x: {"predict": pair.predict(x).reshape(-1, 1), "predict_proba": pair.predict_proba(x)},
                           xgboost_runtime, "model.ubj"),
        "xgboost-line": Case(lambda folder: line.save_model(folder / "model.ubj"), lambda x: {"output-0": line.predict(x)},
                             file="model.ubj"),
        "lightgbm": Case(lambda folder: light.booster_.save_model(folder / "model.txt"),
                         lambda x: {"output-0": light.predict(x)}, file="model.txt"),
        "lightgbm-classes": Case(lambda folder: classes.booster_.save_model(folder / "model.bst"),
                                 lambda x: {"output-0": classes.predict_proba(x)[:, 1]}, file="model.bst"),
    }


def write(folder, case, compiled):
    folder.mkdir(parents=True)
    case.save(folder)
    (folder / "model.toml").write_text(f'[container]\npython = "{sys.executable}"\ntrust_pickle = true\n'
                                       f'compile = "{"auto" if compiled else "never"}"\n')
    if case.runtime:
        (folder / "model-settings.json").write_text(json.dumps(
            {"name": folder.name, "implementation": case.runtime, "parameters": {"uri": f"./{case.file}"}}))


@pytest.fixture(scope="module", name="served")
def compiled_files(tmp_path_factory):
    """(a server, rows, {model: Case}); beside each model lies NAME-container."""
    rows, models = cases(np.random.default_rng(fresh_seed()))
    repository = tmp_path_factory.mktemp("models")
    for name, case in models.items():
        write(repository / name, case, compiled=True)
        write(repository / f"{name}-container", case, compiled=False)
    with serving(repository, tmp_path_factory.mktemp("log") / "server.log") as server:
        yield server, rows, models


CASES = ("logistic", "logistic-names", "logistic-ml", "onehot", "onehot-ignore", "ridge-ml", "tree", "forest-ml", "extra",
         "gradient", "histogram", "xgboost", "xgboost-ml", "xgboost-line", "lightgbm", "lightgbm-classes")


def requests_for(random, rows, name):
    """Requests of clients, as JSON: of all types, with numbers that are missing, infinite, too large and unknown."""
    few = rows[random.integers(0, len(rows), 6)]
    scaled = few * 10.0 ** random.uniform(-3, 3, few.shape)
    whole = random.integers(-3, 5, few.shape)
    for datatype, table in (("FP64", few), ("FP32", few.astype(np.float32)), ("FP64", scaled), ("INT64", whole),
                            ("UINT8", whole & 3)):
        yield {"inputs": [tensor("input-0", datatype, table)]}
    yield {"inputs": [tensor("some name", "FP64", few)]}
    yield {"inputs": [tensor(f"column {i}", "FP64", few[:, i]) for i in range(FEATURES)]}
    yield {"inputs": [tensor("input-0", "FP64", few)], "outputs": [{"name": "predict_proba"}]}
    yield {"inputs": [tensor("input-0", "FP64", few[:, :3])]}
    for number in (None, 1e39, -1e39, 1e300, 2.5):
        for column in (0, CATEGORY):
            table = few[:1].tolist()
            table[0][column] = number
            yield {"inputs": [{"name": "input-0", "datatype": "FP64", "shape": [1, FEATURES], "data": table}]}


def tensor(name, datatype, table):
    return {"name": name, "datatype": datatype, "shape": list(table.shape), "data": table.ravel().tolist()}


@pytest.mark.parametrize("name", CASES)
def test_the_container_and_what_is_compiled_are_the_same_to_clients(served, name):
    server, rows, _ = served
    assert f"model '{name}' {STAYS}" not in server.output()
    (_, compiled), (_, container) = (server.get(f"/v2/models/{each}") for each in (name, f"{name}-container"))
    assert compiled["inputs"] == container["inputs"] and compiled["outputs"] == container["outputs"]
    random = np.random.default_rng(fresh_seed())
    for request in requests_for(random, rows, name):
        status, answer = server.post(f"/v2/models/{name}/infer", request)
        expected_status, expected = server.post(f"/v2/models/{name}-container/infer", request)
        assert status == expected_status, (request, answer, expected)
        if status != 200:
            continue
        described = [[{**each, "data": None} for each in one["outputs"]] for one in (answer, expected)]
        assert described[0] == described[1], request
        for found, wanted in zip(answer["outputs"], expected["outputs"]):
            check(found["data"], wanted["data"], wanted["datatype"], request)


def check(found, wanted, datatype, what):
    if not datatype.startswith("FP"):
        assert found == wanted, what
        return
    wanted = np.array(wanted, float)
    usual = np.median(np.abs(wanted)) if wanted.size else 0
    np.testing.assert_allclose(np.array(found, float), wanted, rtol=1e-5, atol=1e-6 * max(usual, 1), err_msg=str(what))


@pytest.mark.parametrize("name", CASES)
def test_answers_are_those_of_the_library(served, name):
    server, rows, models = served
    table = rows * [1, 1, 1, 1, 1e8] if name == "lightgbm" else rows
    wanted = models[name].answers(table)
    request = {"inputs": [tensor("input-0", "FP64", table)], "outputs": [{"name": output} for output in wanted]}
    status, answer = server.post(f"/v2/models/{name}/infer", request)
    assert status == 200, answer
    for output in answer["outputs"]:
        expected = wanted[output["name"]]
        assert output["shape"] == list(expected.shape)
        check(output["data"], expected.ravel().tolist(), "FP64" if expected.dtype.kind == "f" else "INT64", name)


def test_equal_votes_are_decided_by_the_last_bit_of_the_library(tmp_path):
    """Of trees and forests of ten, with and without weights, of which some rows have two classes that differ by rounding alone."""
    random, models = np.random.default_rng(fresh_seed()), {}
    for number, (kind, weights) in enumerate(3 * [({}, None), ({}, "balanced"), ({"max_features": 1}, "balanced")]):
        rows = random.normal(size=(ROWS, FEATURES))
        classes = np.digitize(rows @ random.normal(size=FEATURES), [-0.5, 0.5])
        seeded = {"max_depth": 5, "class_weight": weights, "random_state": int(random.integers(1 << 31))}
        model = DecisionTreeClassifier(**kind, **seeded) if kind else RandomForestClassifier(10, **seeded)
        models[f"model{number}"] = model.fit(rows, classes)
        case = Case(lambda folder, model=models[f"model{number}"]: joblib.dump(model, folder / "model.joblib"), None)
        write(tmp_path / f"models/model{number}", case, compiled=True)
    table, equal = random.normal(size=(8000, FEATURES)), 0
    with serving(tmp_path / "models", tmp_path / "server.log") as server:
        assert STAYS not in server.output()
        for name, model in models.items():
            status, answer = server.post(f"/v2/models/{name}/infer", {"inputs": [tensor("input-0", "FP64", table)]})
            assert status == 200, answer
            assert answer["outputs"][0]["data"] == model.predict(table).tolist(), (name, model)
            shares = np.sort(model.predict_proba(table), axis=1)
            equal += np.count_nonzero(shares[:, -1] - shares[:, -2] < 1e-12)
    print(f"{equal} rows have two classes with equal votes")


def test_what_is_not_compiled_says_why_and_is_served(tmp_path):
    rows = np.eye(FEATURES)
    neighbours = KNeighborsClassifier(1).fit(rows, range(FEATURES))
    write(tmp_path / "models/near", Case(lambda folder: joblib.dump(neighbours, folder / "model.joblib"), None), compiled=True)
    for start in range(2):
        with serving(tmp_path / "models", tmp_path / f"server{start}.log") as server:
            (line,) = [line for line in server.output().splitlines() if STAYS in line]
            assert "model 'near'" in line and "KNeighborsClassifier is not among those that are converted" in line
            status, answer = server.post("/v2/models/near/infer", {"inputs": [tensor("input-0", "FP64", rows)]})
            assert status == 200 and answer["outputs"][0]["data"] == list(range(FEATURES))
        # The second start reads the reason.
        (kept,) = (tmp_path / "models/.foliot/converted").iterdir()
        assert [each.name for each in kept.iterdir()] == ["reason.txt"]


def test_a_conversion_is_kept_until_the_file_changes(tmp_path):
    rows = np.eye(FEATURES)
    folder = tmp_path / "models/line"
    line = Ridge(1e-9).fit(rows, np.arange(FEATURES))
    write(folder, Case(lambda each: joblib.dump(line, each / "model.joblib"), None), compiled=True)
    converted = tmp_path / "models/.foliot/converted"

    def ask(server):
        status, answer = server.post("/v2/models/line/infer", {"inputs": [tensor("input-0", "FP64", rows)]})
        assert status == 200, answer
        return answer["outputs"][0]["data"]

    with serving(tmp_path / "models", tmp_path / "first.log") as server:
        np.testing.assert_allclose(ask(server), range(FEATURES), atol=1e-5)
    made = {each.name: (each / "model.onnx").stat().st_ino for each in converted.iterdir()}
    with serving(tmp_path / "models", tmp_path / "second.log") as server:
        np.testing.assert_allclose(ask(server), range(FEATURES), atol=1e-5)
        assert {each.name: (each / "model.onnx").stat().st_ino for each in converted.iterdir()} == made
        joblib.dump(Ridge(1e-9).fit(rows, -np.arange(FEATURES)), folder / "model.joblib")
        status, answer = server.post("/v2/repository/models/line/load", {})
        assert status == 200, answer
        np.testing.assert_allclose(ask(server), -np.arange(FEATURES), atol=1e-5)
        assert len(list(converted.iterdir())) == 2
        assert STAYS not in server.output()


def write_twice(folder, rows, fails, answers):
    """x [N, 3] -> y = 2 x and label = 7, with the answers of rows beside it."""
    folder.mkdir(parents=True)
    onnx_models.save(
        folder / "model.onnx",
        [helper.make_node("Add", ["x", "x"], ["y"]), helper.make_node("ReduceSum", ["x", "axes"], ["sum"], keepdims=0),
         helper.make_node("Mul", ["sum", "zero"], ["none"]), helper.make_node("Add", ["none", "seven"], ["float"]),
         helper.make_node("Cast", ["float"], ["label"], to=TensorProto.INT64)],
        {"x": (TensorProto.FLOAT, ["batch", 3])},
        {"y": (TensorProto.FLOAT, ["batch", 3]), "label": (TensorProto.INT64, ["batch"])},
        {"axes": np.array([1]), "zero": np.zeros(1, np.float32), "seven": np.full(1, 7, np.float32)})
    labels, values = answers
    (folder / "model.onnx.answers").write_bytes(struct.pack("<I", len(rows)) + fails.tobytes() + rows.tobytes()
                                                + values.tobytes() + labels.tobytes())


def test_a_program_that_answers_otherwise_is_not_served(tmp_path):
    random = np.random.default_rng(fresh_seed())
    rows = random.normal(size=(21, 3)).astype(np.float32)
    none, labels = np.zeros(len(rows), np.uint8), np.full(len(rows), 7)
    wrong = random.integers(len(rows))

    def changed(array, value):
        array = array.copy()
        array.reshape(len(rows), -1)[wrong, -1] = value
        return array

    cases = {
        "equal": (none, labels, rows * 2), "close": (none, labels, rows * np.float32(2 * (1 + 1e-6))),
        "other": (none, labels, changed(rows * 2, 1e3)), "label": (none, changed(labels, 8), rows * 2),
        "fails": (changed(none, 1), labels, rows * 2), "short": (none, labels[:-1], rows * 2),
    }
    for name, (fails, label, values) in cases.items():
        write_twice(tmp_path / "models" / name, rows, fails, (label, values))
    with serving(tmp_path / "models", tmp_path / "server.log") as server:
        _, index = server.post("/v2/repository/index", {})
    reasons = {each["name"]: each.get("reason", "") for each in index}
    assert (reasons["equal"], reasons["close"]) == ("", "")
    assert f"output 'y' of row {wrong} of those tried is 1000 by its library" in reasons["other"]
    assert f"output 'label' of row {wrong} of those tried is 8 by its library, and 7 compiled" in reasons["label"]
    assert f"row {wrong} of those tried is refused by its library, and is answered compiled" in reasons["fails"]
    assert "does not have the answers of this model" in reasons["short"]
