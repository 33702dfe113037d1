"""Random models in folders as the documentation of MLServer, KServe, MLflow and Triton lays them out: of random kinds and classes,
with random fields of their settings, some of which are wrong."""

import dataclasses
import itertools
import json
import pathlib

import joblib
import lightgbm
import numpy as np
import xgboost
import yaml
from sklearn.cluster import KMeans
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.ensemble import (AdaBoostClassifier, BaggingClassifier, ExtraTreesClassifier, GradientBoostingClassifier,
                              HistGradientBoostingRegressor, IsolationForest, RandomForestClassifier, RandomForestRegressor,
                              StackingClassifier, VotingClassifier)
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import ElasticNet, LogisticRegression, Perceptron, PoissonRegressor, Ridge, RidgeClassifier
from sklearn.multioutput import MultiOutputRegressor
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, PolynomialFeatures, QuantileTransformer, StandardScaler
from sklearn.svm import SVC, SVR
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

TRAINED, ASKED = 120, 9
TRUSTED = "[container]\ntrust_pickle = true\n"

CLASSIFIERS = (
    lambda: LogisticRegression(max_iter=200), SVC, lambda: KNeighborsClassifier(3), lambda: RandomForestClassifier(8),
    lambda: ExtraTreesClassifier(8), lambda: GradientBoostingClassifier(n_estimators=5), GaussianNB, RidgeClassifier, Perceptron,
    lambda: MLPClassifier(hidden_layer_sizes=(6,), max_iter=50), lambda: DecisionTreeClassifier(max_depth=5), LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis, lambda: AdaBoostClassifier(n_estimators=5), lambda: BaggingClassifier(n_estimators=4),
    lambda: VotingClassifier([("a", LogisticRegression(max_iter=200)), ("b", GaussianNB())], voting="soft"),
    lambda: StackingClassifier([("a", GaussianNB()), ("b", DecisionTreeClassifier(max_depth=3))], cv=2),
    lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=200)),
    lambda: make_pipeline(MinMaxScaler(), PolynomialFeatures(2), SVC(probability=False)),
)
REGRESSORS = (
    Ridge, ElasticNet, SVR, lambda: KNeighborsRegressor(3), lambda: RandomForestRegressor(8), lambda: DecisionTreeRegressor(max_depth=6),
    lambda: HistGradientBoostingRegressor(max_iter=6), lambda: MLPRegressor(hidden_layer_sizes=(6,), max_iter=50), GaussianProcessRegressor,
    lambda: MultiOutputRegressor(Ridge()), lambda: make_pipeline(QuantileTransformer(n_quantiles=20), Ridge()),
    lambda: make_pipeline(StandardScaler(), PoissonRegressor()),
)
OTHERS = (lambda: KMeans(3, n_init=1), lambda: IsolationForest(n_estimators=8))
# Fields of model-settings.json by which MLServer answers no differently.
FIELDS = {"max_batch_size": (0, 1, 4, 200), "max_batch_time": (0, 0.001, 0.5), "parallel_workers": (0, 1, 4), "warm_workers": (True,),
          "cache_enabled": (True, False), "platform": ("sklearn", ""), "versions": (["v1"], []), "gzip_enabled": (True,)}
# What is wrong in settings, and a word of the reason that a user needs.
MISTAKES = {
    "name": ({"name": 7}, "name"), "batch": ({"max_batch_size": "8"}, "max_batch_size"), "negative": ({"max_batch_size": -1}, "max_batch_size"),
    "runtime": ({"implementation": "mlserver_huggingface.HuggingFaceRuntime"}, "mlserver_huggingface"),
    "uri": ({"parameters": {"uri": "./no-such-file.joblib"}}, "no-such-file.joblib"),
    "outside": ({"parameters": {"uri": "../../etc/passwd"}}, "uri"), "bucket": ({"parameters": {"uri": "s3://models/iris"}}, "uri"),
    "type": ({"inputs": [{"name": "x", "datatype": "FLOAT", "shape": [-1, 4]}]}, "datatype"),
    "shape": ({"inputs": [{"name": "x", "datatype": "FP64", "shape": "four"}]}, "shape"),
    "list": ({"inputs": {"name": "x"}}, "inputs"), "method": ({"parameters": {"extra": {"predict_fn": "__class__"}}}, "predict_fn"),
}


@dataclasses.dataclass
class ForeignFolder:
    name: str
    form: str  # mlserver, kserve, mlflow or triton
    folder: pathlib.Path
    file: pathlib.Path
    library: str
    kind: str  # of the model, for people and for the library
    rows: np.ndarray  # to ask for
    methods: list  # the first one answers
    classes: list | None = None  # texts, which KServe's servers number
    reason: str = ""  # what is wrong has this word; empty: it must be served
    is_text: bool = False  # labels are texts


def targets_of(random, rows):
    value = rows @ random.normal(size=rows.shape[1]) + random.normal(size=len(rows)) / 4
    split = np.digitize(value, np.quantile(value, [0.4, 0.7]))
    kinds = {"two": (value > np.median(value)).astype(int), "three": split, "odd": np.array([-3, 5, 40])[split],
             "names": np.array(["ash", "oak", "yew"])[split], "truth": value > np.median(value), "halves": split / 2}
    return kinds, value


def sklearn_model(random, rows):
    """(the model, its methods, the names of its classes or None)"""
    kinds, value = targets_of(random, rows)
    choice = random.random()
    if choice < 0.65:
        names = ("two", "three", "odd", "names", "truth")
        target = kinds[names[random.integers(len(names))]]
        model = CLASSIFIERS[random.integers(len(CLASSIFIERS))]().fit(rows, target)
        methods = ["predict", *(["predict_proba"] if hasattr(model, "predict_proba") else [])]
        return model, methods, model.classes_.tolist() if target.dtype.kind == "U" else None
    if choice < 0.92:
        make = REGRESSORS[random.integers(len(REGRESSORS))]
        model = make()
        target = np.column_stack([value, -value]) if isinstance(model, MultiOutputRegressor) else np.abs(value)
        return model.fit(rows, target), ["predict"], None
    return OTHERS[random.integers(len(OTHERS))]().fit(rows), ["predict"], None


def boosted_model(random, rows, library):
    """(the model, its class)"""
    kinds, value = targets_of(random, rows)
    few = {"n_estimators": int(random.integers(2, 12)), "max_depth": int(random.integers(2, 6))}
    kind = ("two", "three", "value")[random.integers(3)]
    if library == "lightgbm":
        model = (lightgbm.LGBMRegressor if kind == "value" else lightgbm.LGBMClassifier)(**few, min_child_samples=3, verbose=-1)
        return model.fit(rows, value if kind == "value" else kinds[kind]).booster_, "Booster"
    if random.random() < 0.3:
        parameters = {"two": {"objective": "binary:logistic"}, "three": {"objective": "multi:softprob", "num_class": 3},
                      "value": {"booster": ("gbtree", "gblinear", "dart")[random.integers(3)]}}[kind]
        target = value if kind == "value" else kinds[kind]
        return xgboost.train(parameters, xgboost.DMatrix(rows, target), few["n_estimators"]), "Booster"
    model = (xgboost.XGBRegressor if kind == "value" else xgboost.XGBClassifier)(**few)
    return model.fit(rows, value if kind == "value" else kinds[kind]), type(model).__name__


def some(random, fields):
    return {name: values[random.integers(len(values))] for name, values in fields.items() if random.random() < 0.25}


def write_model(random, folder, stem, suffixes):
    """A ForeignFolder without form, whose file is named by the stem and one of the suffixes of its library."""
    folder.mkdir(parents=True, exist_ok=True)
    features = int(random.integers(1, 9))
    rows = random.normal(size=(TRAINED, features)) * 10.0 ** random.uniform(-1, 2, features)
    asked = np.concatenate([rows[:ASKED - 2], 2 * rows[:2]])
    library = ("sklearn", "sklearn", "xgboost", "lightgbm")[random.integers(4)]
    suffix = suffixes[library][random.integers(len(suffixes[library]))]
    file = folder / f"{stem}{suffix}"
    if library == "sklearn":
        model, methods, classes = sklearn_model(random, rows)
        joblib.dump(model, file)
        last = model.steps[-1][1] if hasattr(model, "steps") else model
        return ForeignFolder("", "", folder, file, library, type(last).__name__, asked, methods, classes, is_text=classes is not None)
    model, kind = boosted_model(random, rows, library)
    model.save_model(file)
    methods = ["predict", *(["predict_proba"] if kind == "XGBClassifier" else [])]
    return ForeignFolder("", "", folder, file, library, kind, asked, methods)


def mlserver_folder(random, root, name, may_be_wrong):
    """https://mlserver.readthedocs.io: model-settings.json beside the file, settings.json of the server above."""
    made = write_model(random, root / f"folder-{name}", ("model", "mnist-svm", "iris_v2", "my model")[random.integers(4)], {
        "sklearn": (".joblib", ".pkl", ".pickle"), "xgboost": (".json", ".ubj"), "lightgbm": (".bst", ".txt")})
    runtime = {"sklearn": "mlserver_sklearn.SKLearnModel", "xgboost": "mlserver_xgboost.XGBoostModel",
               "lightgbm": "mlserver_lightgbm.LightGBMModel"}[made.library]
    parameters = {"uri": random.choice(["./", ""]) + made.file.name,
                  **some(random, {"version": ("v0.1.0", "3", "1"), "content_type": ("np", "pd")})}
    settings = {"name": name, "implementation": runtime, "parameters": parameters, **some(random, FIELDS)}
    if random.random() < 0.3:
        settings["inputs"] = [{"name": ("predict", "input-0", "features")[random.integers(3)], "shape": [-1, made.rows.shape[1]],
                               "datatype": ("FP32", "FP64")[random.integers(2)], "parameters": {"content_type": "np"}}]
        made.rows = made.rows.astype(np.float32).astype(float)
    if made.library == "sklearn" and len(made.methods) > 1 and random.random() < 0.3:
        parameters["extra"] = {"predict_fn": "predict_proba"}
        made.methods = ["predict_proba", "predict"]
    if may_be_wrong and random.random() < 0.25:
        mistake = list(MISTAKES)[random.integers(len(MISTAKES))]
        change, made.reason = MISTAKES[mistake]
        if mistake == "method" and made.library != "sklearn":
            change, made.reason = MISTAKES["name"]
        settings = {**settings, **change, "parameters": {**parameters, **change.get("parameters", {})}}
    (made.folder / "model-settings.json").write_text(json.dumps(settings, indent=4))
    if random.random() < 0.5:
        (made.folder / "settings.json").write_text('{"debug": "true"}')
    return dataclasses.replace(made, name=name if isinstance(settings["name"], str) else made.folder.name, form="mlserver")


def kserve_folder(random, root, name, _may_be_wrong):
    """https://kserve.github.io: what storageUri leads to is one file, named model."""
    made = write_model(random, root / name, "model", {
        "sklearn": (".joblib", ".pkl"), "xgboost": (".bst", ".json", ".ubj"), "lightgbm": (".bst",)})
    if made.library == "sklearn":
        (made.folder / "model.toml").write_text(TRUSTED)
    made.methods = made.methods[:1]
    if made.kind == "XGBClassifier":  # KServe's server for XGBoost answers as Booster.predict
        made.kind = "Booster"
    return dataclasses.replace(made, name=name, form="kserve")


def mlflow_folder(random, root, name, _may_be_wrong):
    """https://mlflow.org: what save_model writes."""
    made = write_model(random, root / name, "model", {"sklearn": (".pkl",), "xgboost": (".ubj", ".json"), "lightgbm": (".lgb",)})
    options = {"sklearn": {"pickled_model": made.file.name, "serialization_format": "cloudpickle", "sklearn_version": "1.9.1"},
               "xgboost": {"data": made.file.name, "model_class": f"xgboost.sklearn.{made.kind}", "model_format": made.file.suffix[1:]},
               "lightgbm": {"data": made.file.name, "model_class": "lightgbm.basic.Booster"}}[made.library]
    names = [f"c{i}" for i in range(made.rows.shape[1])]
    columns = json.dumps([{"type": "double", "name": each, "required": True} for each in names])
    tensor = json.dumps([{"type": "tensor", "tensor-spec": {"dtype": "float64", "shape": [-1, len(names)]}}])
    function = {"loader_module": f"mlflow.{made.library}", "env": {"conda": "conda.yaml", "virtualenv": "python_env.yaml"}}
    if made.library == "sklearn" and len(made.methods) > 1 and random.random() < 0.4:
        function["predict_fn"] = "predict_proba"
        made.methods = made.methods[1:]
    content = {"flavors": {"python_function": function, made.library: options}, "mlflow_version": "3.17.2", "model_uuid": "0" * 32,
               "model_size_bytes": made.file.stat().st_size, "utc_time_created": "2026-11-30 12:00:00"}
    signature = (columns, tensor)[random.integers(2)]
    content["signature"] = {"inputs": signature, "outputs": None, "params": None}
    (made.folder / "MLmodel").write_text(yaml.safe_dump(content))
    (made.folder / "requirements.txt").write_text("numpy\nscikit-learn\n")
    (made.folder / "conda.yaml").write_text("name: mlflow-env\n")
    if made.library == "sklearn":
        (made.folder / "model.toml").write_text(TRUSTED)
    return dataclasses.replace(made, name=name, form="mlflow", methods=made.methods[:1])


def triton_folder(random, root, name, may_be_wrong):
    """https://docs.nvidia.com/triton: config.pbtxt beside the folders of versions."""
    from skl2onnx import to_onnx

    features = int(random.integers(1, 9))
    rows = random.normal(size=(TRAINED, features)).astype(np.float32)
    kinds, _ = targets_of(random, rows)
    makes = (LogisticRegression, lambda: RandomForestClassifier(8, max_depth=5), lambda: DecisionTreeClassifier(max_depth=5),
             lambda: make_pipeline(StandardScaler(), LogisticRegression()))
    chosen = makes[random.integers(len(makes))]
    version = int(random.integers(1, 4))
    file_name = ("model.onnx", "classifier.onnx")[random.integers(2)]
    folder = root / name
    count = int(random.integers(2, 4))
    target = kinds["two" if count == 2 else "three"]
    for number in range(1, version + 1):
        model = chosen().fit(rows, target)
        file = folder / str(number) / file_name
        file.parent.mkdir(parents=True)
        file.write_bytes(to_onnx(model, rows[:1], options={"zipmap": False}, target_opset={"": 18, "ai.onnx.ml": 3}).SerializeToString())
    lines = [f'name: "{name}"', ('platform: "onnxruntime_onnx"', 'backend: "onnxruntime"')[random.integers(2)],
             f"max_batch_size: {(8, 16)[random.integers(2)]}",
             f'input [ {{ name: "X" data_type: TYPE_FP32 dims: [ {features} ] }} ]',
             f'output [ {{ name: "probabilities" data_type: TYPE_FP32 dims: [ {count} ] }} ]']
    if file_name != "model.onnx":
        lines.append(f'default_model_filename: "{file_name}"')
    batching = ("dynamic_batching { }", "dynamic_batching { max_queue_delay_microseconds: 100 }")[random.integers(2)]
    further = (batching, "instance_group [ { count: 2 kind: KIND_CPU } ]", "version_policy: { latest { num_versions: 1 } }",
               "response_cache { enable: true }", 'parameters { key: "intra_op_thread_count" value: { string_value: "1" } }',
               'model_warmup [ { name: "w" batch_size: 1 } ]', 'optimization { graph { level: 1 } }')
    lines += [line for line in further if random.random() < 0.3]
    reason = ""
    if may_be_wrong and random.random() < 0.25:
        wrong = {"dims": (3, f"dims: [ {features + 1} ]", f"dims: [ {features} ]"), "output": (4, "other", "probabilities"),
                 "backend": (1, "tensorrt", None), "type": (3, "TYPE_INT64", "TYPE_FP32")}
        mistake = list(wrong)[random.integers(len(wrong))]
        place, new, old = wrong[mistake]
        lines[place] = 'backend: "tensorrt"' if old is None else lines[place].replace(old, new)
        reason = {"dims": "config.pbtxt", "output": "other", "backend": "tensorrt", "type": "INT64"}[mistake]
    (folder / "config.pbtxt").write_text("\n".join(lines) + "\n")
    return ForeignFolder(name, "triton", folder, file, "onnx", type(model).__name__, rows[:ASKED].astype(float), ["probabilities"],
                    reason=reason)


FORMS = {"mlserver": mlserver_folder, "kserve": kserve_folder, "mlflow": mlflow_folder, "triton": triton_folder}


def make_folders(root, random, count):
    """A list of ForeignFolder; those of a form lie in root/FORM, and the first of each is right."""
    forms = list(FORMS)
    return [FORMS[form](random, root / form, f"m{number}", number >= len(forms))
            for number, form in zip(range(count), itertools.cycle(forms))]
