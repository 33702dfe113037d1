"""Pipelines of scikit-learn over columns of texts and numbers, as MLServer, KServe and MLflow lay them out: random ones answer as the
library does, and for columns that are missing, of another type or hostile there is the right answer or an error that names
the column.

FOLIOT_PIPELINES is how many there are (default 6)."""

import dataclasses
import json
import os
import sys

import joblib
import numpy as np
import pytest
import yaml
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from conftest import serving
from foliot_tools.seeds import fresh_seed

COUNT = int(os.environ.get("FOLIOT_PIPELINES", 6))
ROWS, ASKED = 120, 20
WORDS = ("Bern", "Thun", "Genève", "dark grey", "x", "東京", "a,b", '"quoted"', " ")
LARGE = "x" * (10 << 20)
FORMS = ("mlserver", "kserve", "mlflow")


@dataclasses.dataclass
class Case:
    name: str
    form: str
    estimator: object
    texts: list  # names of the columns
    numbers: list
    table: np.ndarray  # objects, the texts first

    @property
    def columns(self):
        return self.texts + self.numbers


def encoder(random):
    """(step, whether values that it was not fitted on are an error)"""
    ordinal = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    filled = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore"))
    return [OneHotEncoder(), OneHotEncoder(handle_unknown="ignore"), OneHotEncoder(drop="first"), OrdinalEncoder(), ordinal, filled,
            OneHotEncoder(min_frequency=3, handle_unknown="infrequent_if_exist")][random.integers(7)]


def last(random):
    return [LogisticRegression(max_iter=200), RandomForestClassifier(8), GradientBoostingClassifier(n_estimators=5), Ridge(),
            DecisionTreeClassifier(max_depth=5), SVC(), GaussianNB()][random.integers(7)]


def make_case(random, number):
    texts = [f"text {i}" for i in range(int(random.integers(1, 4)))]
    numbers = [f"number {i}" for i in range(int(random.integers(1, 4)))]
    table = np.empty((ROWS, len(texts) + len(numbers)), object)
    for i in range(len(texts)):
        table[:, i] = random.choice(random.permutation(WORDS)[:random.integers(2, 6)], ROWS)
    amounts = random.normal(size=(ROWS, len(numbers))) * 10.0 ** random.uniform(-1, 3, len(numbers))
    is_missing = random.random() < 0.5
    amounts[random.random(amounts.shape) < 0.1 * is_missing] = np.nan
    table[:, len(texts):] = amounts
    steps = [("texts", encoder(random), list(range(len(texts)))),
             ("numbers", make_pipeline(SimpleImputer(strategy=("mean", "median")[random.integers(2)]), StandardScaler()),
              list(range(len(texts), table.shape[1])))]
    value = np.nan_to_num(amounts[:, 0]) / 10 + (table[:, 0] == table[0, 0])
    target = np.array([(value > np.median(value)).astype(int), np.digitize(value, np.quantile(value, [0.3, 0.6]))],
                      dtype=object)[random.integers(2)].astype(int)
    if random.random() < 0.4:
        target = np.array(["low", "middle", "high"])[target]
    model = last(random)
    if isinstance(model, Ridge):
        target = value
    pipeline = make_pipeline(ColumnTransformer(steps, sparse_threshold=0), model).fit(table, target)
    return Case(f"p{number}", FORMS[number % len(FORMS)], pipeline, texts, numbers, table)


def write(root, case):
    folder = root / case.name
    folder.mkdir(parents=True)
    joblib.dump(case.estimator, folder / "model.pkl")
    (folder / "model.toml").write_text(f'[container]\npython = "{sys.executable}"\ntrust_pickle = true\n')
    kinds = {name: "BYTES" for name in case.texts} | dict.fromkeys(case.numbers, "FP64")
    if case.form == "mlserver":
        (folder / "model-settings.json").write_text(json.dumps({
            "name": case.name, "implementation": "mlserver_sklearn.SKLearnModel", "parameters": {"uri": "./model.pkl"},
            "inputs": [{"name": name, "datatype": kind, "shape": [-1, 1]} for name, kind in kinds.items()]}))
    if case.form == "mlflow":
        columns = [{"type": "string" if kind == "BYTES" else "double", "name": name} for name, kind in kinds.items()]
        (folder / "MLmodel").write_text(yaml.safe_dump({
            "flavors": {"sklearn": {"pickled_model": "model.pkl"}, "python_function": {"loader_module": "mlflow.sklearn"}},
            "signature": {"inputs": json.dumps(columns)}}))


@pytest.fixture(scope="module", name="served")
def pipelines(tmp_path_factory):
    """(a server, the cases)"""
    random = np.random.default_rng(fresh_seed())
    root = tmp_path_factory.mktemp("models")
    cases = [make_case(random, number) for number in range(COUNT)]
    for case in cases:
        write(root, case)
    with serving(root, tmp_path_factory.mktemp("log") / "server.log") as server:
        yield server, cases


def names_of(server, case):
    return [each["name"] for each in server.get(f"/v2/models/{case.name}")[1]["inputs"]]


def inputs_of(names, case, table):
    return [{"name": name, "datatype": "BYTES" if i < len(case.texts) else "FP64", "shape": [len(table), 1],
             "data": [None if each != each else each for each in table[:, i].tolist()]}  # noqa: PLR0124: NaN
            for i, name in enumerate(names)]


def check(found, wanted, what, datatype="FP64"):
    wanted = np.asarray(wanted)
    if wanted.dtype.kind == "f":
        with np.errstate(over="ignore"):
            wanted = wanted.astype(np.float32 if datatype == "FP32" else np.float64)
        np.testing.assert_allclose(np.ravel(np.array(found, float)), wanted.ravel(), rtol=1e-5, atol=1e-5, err_msg=what)
    else:
        assert np.ravel(found).astype(str).tolist() == wanted.ravel().astype(str).tolist(), what


def labels_of(case, table):
    labels = case.estimator.predict(table)
    return np.searchsorted(case.estimator.classes_, labels) if case.form == "kserve" and labels.dtype.kind in "OU" else labels


def test_labels_and_probabilities_are_those_of_the_library(served):
    server, cases = served
    random = np.random.default_rng(fresh_seed())
    for case in cases:
        names, table = names_of(server, case), case.table[random.integers(0, ROWS, ASKED)]
        what = f"{case.name} {case.form} {case.estimator}"
        status, answer = server.post(f"/v2/models/{case.name}/infer", {"inputs": inputs_of(names, case, table)})
        assert status == 200, (what, answer)
        check(answer["outputs"][0]["data"], labels_of(case, table), what)
        instances = [dict(zip(names, [None if each != each else each for each in row])) for row in table.tolist()]  # noqa: PLR0124
        status, answer = server.post(f"/v1/models/{case.name}:predict", {"instances": instances})
        assert status == 200, (what, answer)
        check(answer["predictions"], labels_of(case, table), what)
        if case.form == "mlserver" and hasattr(case.estimator, "predict_proba"):
            request = {"inputs": inputs_of(names, case, table), "outputs": [{"name": "predict_proba"}]}
            status, answer = server.post(f"/v2/models/{case.name}/infer", request)
            assert status == 200, (what, answer)
            check(answer["outputs"][0]["data"], case.estimator.predict_proba(table), what)


def hostile(names, case, row):
    """(what is wrong, inputs, the row that it stands for or None, words that an error has)"""
    inputs = inputs_of(names, case, row[None])
    text, number = names[0], names[-1]

    def changed(position, **more):
        return [*inputs[:position], {**inputs[position], **more}, *inputs[position + 1:]]

    def with_value(position, value):
        other = row.copy()
        other[position] = value
        return other

    last_position = len(names) - 1
    yield "missing text", inputs[1:], None, text
    yield "missing number", inputs[:-1], None, number
    yield "extra", [*inputs, {**inputs[0], "name": "extra"}], None, "extra"
    yield "twice", [*inputs, inputs[0]], None, text
    yield "number for a text", changed(0, datatype="FP64", data=[1.5]), None, text
    yield "text for a number", changed(last_position, datatype="BYTES", data=["1.5"]), None, number
    yield "text in a number", changed(last_position, data=["1.5"]), None, number
    yield "whole number", changed(last_position, datatype="INT64", data=[3]), with_value(last_position, 3.0), number
    yield "null text", changed(0, data=[None]), None, text
    yield "null number", changed(last_position, data=[None]), with_value(last_position, np.nan), number
    yield "unseen", changed(0, data=["Nowhere"]), with_value(0, "Nowhere"), text
    yield "empty", changed(0, data=[""]), with_value(0, ""), text
    yield "zero byte", changed(0, data=["a\0b"]), with_value(0, "a\0b"), text
    yield "large text", changed(0, data=[LARGE]), None, text
    yield "list", changed(0, data=[["Bern"], ["Thun"]]), None, text
    yield "object", changed(0, data=[{"a": 1}]), None, text
    yield "other rows", changed(0, shape=[2, 1], data=["Bern", "Thun"]), None, ""
    yield "large number", changed(last_position, data=[1e300]), with_value(last_position, 1e300), number


def test_hostile_columns_have_the_right_answer_or_an_error_that_names_them(served):
    server, cases = served
    random = np.random.default_rng(fresh_seed())
    for case in cases:
        names, row = names_of(server, case), case.table[random.integers(ROWS)]
        for what, inputs, stands_for, word in hostile(names, case, row):
            status, answer = server.post(f"/v2/models/{case.name}/infer", {"inputs": inputs})
            where = f"{case.name} {case.form} {case.estimator}: {what}: {status} {str(answer)[:300]}"
            if status == 200:
                assert stands_for is not None, where
                (output,) = answer["outputs"]
                check(output["data"], labels_of(case, stands_for[None]), where, output["datatype"])
                continue
            assert status in (400, 413, 500), where
            if status == 500:  # of the library
                with pytest.raises(ValueError, match="."):
                    case.estimator.predict(stands_for[None])
            assert word in answer["error"], where
        status, answer = server.post(f"/v2/models/{case.name}/infer", {"inputs": inputs_of(names, case, row[None])})
        assert status == 200, answer


def test_a_table_names_row_and_column_of_what_is_wrong(served):
    server, cases = served
    for case in cases:
        names = names_of(server, case)
        row = dict(zip(names, [0.5 if each != each else each for each in case.table[0].tolist()]))  # noqa: PLR0124
        for change in {names[0]: 7}, {names[0]: None}, {names[-1]: "x"}, {"extra": 1}, {names[-1]: [[1]]}:
            status, answer = server.post(f"/v1/models/{case.name}:predict", {"instances": [row, row | change]})
            assert status == 400, (case, change, answer)
            assert next(iter(change)) in answer["error"] and "1" in answer["error"], (change, answer)
