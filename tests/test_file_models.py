"""Files that scikit-learn, XGBoost and LightGBM wrote, served without a model.py: the answers are those of the library,
with the names and shapes of KServe's servers or, where MLServer's settings lie beside the file, of MLServer."""

import base64
import json
import sys

import joblib
import lightgbm
import numpy as np
import pytest
import skops.io
import tritonclient.http as http_client
import xgboost
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from conftest import serving
from foliot_tools.seeds import fresh_seed

FEATURES, ROWS = 5, 40


def settings(folder, runtime, file, **more):
    (folder / "model-settings.json").write_text(json.dumps(
        {"name": folder.name, "implementation": runtime, "parameters": {"uri": f"./{file}"}, **more}))


@pytest.fixture(scope="module", name="served")
def files_of_frameworks(tmp_path_factory):
    """(a client, rows, {model: (input, output, what the library answers)}, reasons of models that are not served)"""
    random = np.random.default_rng(fresh_seed())
    rows = random.normal(size=(ROWS, FEATURES)).astype(np.float32)
    classes, values = random.integers(0, 3, ROWS), rows @ random.normal(size=FEATURES)
    forest = RandomForestClassifier(10, random_state=1).fit(rows, classes)
    line = Ridge().fit(rows, values)
    scores = xgboost.XGBClassifier(n_estimators=4).fit(rows, classes)
    softmax = xgboost.train({"objective": "multi:softmax", "num_class": 3}, xgboost.DMatrix(rows, classes), 4)
    labels = random.integers(0, 2, (ROWS, 2))
    several = xgboost.XGBClassifier(n_estimators=4).fit(rows, labels)
    trees = lightgbm.LGBMClassifier(n_estimators=4, min_child_samples=2, verbose=-1).fit(rows, classes)
    repository = tmp_path_factory.mktemp("models")

    def folder(name, trusted=False):
        made = repository / name
        made.mkdir()
        (made / "model.toml").write_text(f'[container]\npython = "{sys.executable}"\n'
                                         f"trust_pickle = {str(trusted).lower()}\n")
        return made

    joblib.dump(forest, folder("joblib", trusted=True) / "model.joblib")
    (folder("version") / "3").mkdir()
    skops.io.dump(LogisticRegression().fit(rows, classes), repository / "version/3/model.skops")
    scores.save_model(folder("json") / "model.json")
    trees.booster_.save_model(folder("bst") / "model.bst")
    joblib.dump(line, folder("ml-sklearn") / "line.joblib")
    settings(repository / "ml-sklearn", "mlserver_sklearn.SKLearnModel", "line.joblib")
    scores.save_model(folder("ml-xgboost") / "model.ubj")
    settings(repository / "ml-xgboost", "mlserver_xgboost.XGBoostModel", "model.ubj",
             inputs=[{"name": "f", "datatype": "FP32", "shape": [-1, FEATURES]}])
    softmax.save_model(folder("ml-softmax") / "model.json")
    settings(repository / "ml-softmax", "mlserver_xgboost.XGBoostModel", "model.json")
    several.save_model(folder("ml-several") / "model.json")
    settings(repository / "ml-several", "mlserver_xgboost.XGBoostModel", "model.json")
    joblib.dump(line, folder("other", trusted=True) / "model.joblib")
    settings(repository / "other", "mlserver_huggingface.HuggingFaceRuntime", "model.joblib")
    joblib.dump(line, folder("untrusted") / "model.joblib")
    (folder("damaged") / "model.ubj").write_bytes(b"no model")
    expected = {
        "joblib": ("input-0", "output-0", forest.predict(rows)),
        "version": ("input-0", "output-0", skops.io.load(repository / "version/3/model.skops").predict(rows)),
        "json": ("input-0", "output-0", scores.predict_proba(rows)),
        "bst": ("input-0", "output-0", trees.predict_proba(rows)),
        "ml-sklearn": ("input-0", "predict", line.predict(rows).reshape(-1, 1)),
        "ml-xgboost": ("f", "predict", scores.predict(rows).reshape(-1, 1)),
        "ml-softmax": ("input-0", "predict", softmax.predict(xgboost.DMatrix(rows)).reshape(-1, 1)),
        "ml-several": ("input-0", "predict", several.predict(rows)),
    }
    with serving(repository, tmp_path_factory.mktemp("log") / "server.log") as server:
        client = http_client.InferenceServerClient(server.http)
        reasons = {each["name"]: each.get("reason", "") for each in client.get_model_repository_index()}
        yield client, rows, expected, reasons


@pytest.mark.parametrize("name", ["joblib", "version", "json", "bst", "ml-sklearn", "ml-xgboost", "ml-softmax", "ml-several"])
def test_answers_are_those_of_the_library(served, name):
    client, rows, expected, _ = served
    input_name, output_name, wanted = expected[name]
    tensor = http_client.InferInput(input_name, rows.shape, "FP32").set_data_from_numpy(rows)
    answer = client.infer(name, [tensor]).as_numpy(output_name)
    assert answer.shape == wanted.shape
    np.testing.assert_allclose(answer, wanted, rtol=1e-5, atol=1e-5)


def test_outputs_are_methods_and_inputs_are_columns_where_settings_list_them(tmp_path):
    random = np.random.default_rng(fresh_seed())
    towns, ages = random.choice(["Bern", "Thun"], ROWS), random.normal(size=ROWS)
    rows = np.column_stack([towns.astype(object), ages])
    labels = np.where((towns == "Bern") & (ages > -1), "yes", "no")
    columns = ColumnTransformer([("town", OneHotEncoder(), [0]), ("age", "passthrough", [1])])  # which refuses other towns
    pipeline = make_pipeline(columns, LogisticRegression()).fit(rows, labels)
    folder = tmp_path / "models/p"
    folder.mkdir(parents=True)
    (folder / "model.toml").write_text(f'[container]\npython = "{sys.executable}"\n')
    joblib.dump(pipeline, folder / "model.joblib")
    settings(folder, "mlserver_sklearn.SKLearnModel", "model.joblib",
             inputs=[{"name": "town", "datatype": "BYTES", "shape": [-1, 1]},
                     {"name": "age", "datatype": "FP64", "shape": [-1, 1]}],
             outputs=[{"name": "predict", "datatype": "BYTES", "shape": [-1, 1]},
                      {"name": "predict_proba", "datatype": "FP64", "shape": [-1, 2]}])
    with serving(tmp_path / "models", tmp_path / "server.log") as server:
        client = http_client.InferenceServerClient(server.http)
        tensors = [http_client.InferInput("town", [ROWS, 1], "BYTES").set_data_from_numpy(rows[:, :1]),
                   http_client.InferInput("age", [ROWS, 1], "FP64").set_data_from_numpy(ages.reshape(-1, 1))]
        asked = [http_client.InferRequestedOutput("predict_proba")]
        answer = client.infer("p", tensors, outputs=asked)
        assert [each["name"] for each in answer.get_response()["outputs"]] == ["predict_proba"]
        np.testing.assert_allclose(answer.as_numpy("predict_proba"), pipeline.predict_proba(rows), rtol=1e-9)
        answer = client.infer("p", tensors)
        assert [text.decode() for text in answer.as_numpy("predict")[:, 0]] == pipeline.predict(rows).tolist()


# (outputs that are asked for, what mlserver 1.7.1 answers: name, data type, shape, content type), of a classifier of four
# rows with three classes that have names.
ANSWERS_OF_MLSERVER = [
    ([], [("predict", "BYTES", [4, 1], "np")]),
    (["predict_proba"], [("predict_proba", "FP64", [4, 3], "np")]),
    (["predict_proba", "predict"], [("predict_proba", "FP64", [4, 3], "np"), ("predict", "BYTES", [4, 1], "np")]),
]


def test_requests_of_mlservers_clients_have_its_answers(tmp_path):
    random = np.random.default_rng(fresh_seed())
    rows = random.normal(size=(ROWS, 3))
    forest = RandomForestClassifier(8, random_state=1).fit(rows, np.array(["low", "middle", "high"])[rows.argmax(axis=1)])
    folder = tmp_path / "models/p"
    folder.mkdir(parents=True)
    (folder / "model.toml").write_text(f'[container]\npython = "{sys.executable}"\n')
    joblib.dump(forest, folder / "model.joblib")
    settings(folder, "mlserver_sklearn.SKLearnModel", "model.joblib")
    few = rows[:4]
    whole = {"name": "anything", "datatype": "FP64", "shape": [4, 3], "data": few.tolist()}
    columns = [{"name": name, "datatype": "FP32", "shape": [4, 1], "data": few[:, i].tolist()} for i, name in enumerate("abc")]
    with serving(tmp_path / "models", tmp_path / "server.log") as server:
        def ask(inputs, **more):
            status, answer = server.post("/v2/models/p/infer", {"inputs": inputs, **more})
            assert status == 200, answer
            return answer["outputs"]

        for inputs, request in ([whole], {}), (columns, {"parameters": {"content_type": "pd"}}):
            for asked, wanted in ANSWERS_OF_MLSERVER:
                outputs = ask(inputs, outputs=[{"name": name} for name in asked], **request)
                assert [(each["name"], each["datatype"], each["shape"], each["parameters"]["content_type"]) for each in outputs] \
                    == wanted
        assert ask([whole])[0]["data"] == forest.predict(few).tolist()
        np.testing.assert_allclose(ask([whole], outputs=[{"name": "predict_proba"}])[0]["data"],
                                   forest.predict_proba(few).ravel(), rtol=1e-9)
        (encoded,) = ask([whole], outputs=[{"name": "predict", "parameters": {"content_type": "base64"}}])
        assert encoded["parameters"]["content_type"] == "base64"
        assert [base64.b64decode(text).decode() for text in encoded["data"]] == forest.predict(few).tolist()
        missing = [[1, 2, None]]
        status, answer = server.post("/v2/models/p/infer", {"inputs": [
            {"name": "x", "datatype": "FP32", "shape": [1, 3], "data": missing}]})
        assert status == 200 and answer["outputs"][0]["data"] == forest.predict([[1, 2, np.nan]]).tolist()
        client = http_client.InferenceServerClient(server.http)
        raw = http_client.InferInput("x", few.shape, "FP64").set_data_from_numpy(few)
        assert client.infer("p", [raw]).as_numpy("predict").ravel().tolist() == [each.encode() for each in forest.predict(few)]


def test_the_implementation_may_come_from_the_environment(tmp_path):
    """As KServe's runtime for MLServer mounts a model: a file, and variables."""
    rows = np.eye(FEATURES, dtype=np.float32)
    line = Ridge().fit(rows, np.arange(FEATURES))
    joblib.dump(line, tmp_path / "model.joblib")
    (tmp_path / "model.toml").write_text(f'[container]\npython = "{sys.executable}"\n')
    environment = ("env", "MLSERVER_MODEL_IMPLEMENTATION=mlserver_sklearn.SKLearnModel", "MLSERVER_MODEL_NAME=line")
    with serving(tmp_path, tmp_path.parent / "server.log", prefix=environment) as server:
        tensor = http_client.InferInput("input-0", rows.shape, "FP32").set_data_from_numpy(rows)
        answer = http_client.InferenceServerClient(server.http).infer("line", [tensor]).as_numpy("predict")
    np.testing.assert_allclose(answer, line.predict(rows).reshape(-1, 1), rtol=1e-5, atol=1e-6)


def test_what_cannot_be_served_says_what_to_do(served):
    reasons = served[3]
    assert "is a pickle" in reasons["untrusted"] and "trust_pickle = true" in reasons["untrusted"]
    assert "model.ubj cannot be loaded" in reasons["damaged"]
    assert "mlserver_huggingface, which is not served" in reasons["other"]


def test_changed_settings_are_taken_up(tmp_path):
    random = np.random.default_rng(fresh_seed())
    rows = random.normal(size=(ROWS, FEATURES)).astype(np.float32)
    scores = xgboost.XGBClassifier(n_estimators=4).fit(rows, random.integers(0, 3, ROWS))
    folder = tmp_path / "models/m"
    folder.mkdir(parents=True)
    (folder / "model.toml").write_text(f'[container]\npython = "{sys.executable}"\n')
    scores.save_model(folder / "model.json")
    with serving(tmp_path / "models", tmp_path / "server.log") as server:
        client = http_client.InferenceServerClient(server.http)
        assert client.get_model_metadata("m")["outputs"][0]["name"] == "output-0"
        settings(folder, "mlserver_xgboost.XGBoostModel", "model.json")
        client.load_model("m")
        tensor = http_client.InferInput("input-0", rows.shape, "FP32").set_data_from_numpy(rows)
        np.testing.assert_array_equal(client.infer("m", [tensor]).as_numpy("predict")[:, 0], scores.predict(rows))
