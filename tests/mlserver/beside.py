"""The same folders behind mlserver and behind Foliot, asked the same by mlserver's own codecs, over REST and gRPC."""

import datetime
import json
import shutil
import sys
import urllib.error
import urllib.request

import catboost
import cloudpickle
import grpc
import joblib
import lightgbm
import mlflow
import numpy as np
import pandas
import xgboost
from mlserver import types
from mlserver.codecs import Base64Codec, DatetimeCodec, NumpyCodec, NumpyRequestCodec, PandasCodec, StringCodec, StringRequestCodec
from mlserver.grpc import converters, dataplane_pb2_grpc
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

from foliot_tools.mlserver import Mlserver, wait_until_ready
from foliot_tools.server import Server

FEATURES = 4
NAMES = ["a", "b", "c", "d"]
TOWNS = ["Bern", "Thun", "Genève"]
ROWS_MAX = 6
TOLERANCE = 1e-5
PIP = {"pip_requirements": ["scikit-learn"]}  # to find them out takes a process and a minute
SKLEARN, XGBOOST, LIGHTGBM, CATBOOST, MLFLOW = (
    "mlserver_sklearn.SKLearnModel", "mlserver_xgboost.XGBoostModel", "mlserver_lightgbm.LightGBMModel",
    "mlserver_catboost.CatboostModel", "mlserver_mlflow.MLflowRuntime")
STAYS = "runs in a container and is not compiled"


class Typed(mlflow.pyfunc.PythonModel):
    """Of columns of every type that MLServer's codecs carry: what each of them is."""

    def predict(self, context, model_input, params=None):
        return pandas.DataFrame({
            "size": [len(each) for each in model_input["raw"]], "year": [each.year for each in model_input["day"]],
            "shout": [each.upper() for each in model_input["word"]]})


class Named(mlflow.pyfunc.PythonModel):
    def predict(self, context, model_input, params=None):
        return {"sum": np.asarray(model_input).sum(axis=1), "twice": 2 * np.asarray(model_input)}


def write_folders(root, random):
    """{model: its kind of requests}"""
    rows = random.normal(size=(200, FEATURES))
    table = pandas.DataFrame(rows, columns=NAMES)
    classes, values = (rows[:, 0] > rows[:, 1]).astype(int), rows @ np.arange(FEATURES)
    three = np.digitize(rows[:, 0], [-0.5, 0.5])
    words = np.array(["low", "middle", "high"])[three]
    mixed = pandas.DataFrame({"town": random.choice(TOWNS, 200), "a": rows[:, 0], "b": rows[:, 1]})
    kinds = {}

    def folder(name, runtime, kind, file="model.joblib", **more):
        made = root / name
        made.mkdir(parents=True)
        (made / "model-settings.json").write_text(json.dumps(
            {"name": name, "implementation": runtime, "parameters": {"uri": f"./{file}", **more.pop("parameters", {})}, **more}))
        (made / "model.toml").write_text(f'[container]\npython = "{sys.executable}"\n')
        kinds[name] = kind
        return made / file

    def sklearn(name, kind, model, **more):
        joblib.dump(model, folder(name, SKLEARN, kind, **more))

    def mlflow_folder(name, kind):
        path = folder(name, MLFLOW, kind, "model")
        return str(path)

    sklearn("labels", "numbers+proba", LogisticRegression().fit(rows, three))
    sklearn("names", "numbers+proba", RandomForestClassifier(10, random_state=1).fit(rows, words))
    sklearn("decides", "numbers", SVC().fit(rows, classes))
    sklearn("values", "numbers", Ridge().fit(rows, values))
    sklearn("several", "numbers", LinearRegression().fit(rows, np.column_stack([values, -values])))
    sklearn("scaled", "transform", StandardScaler().fit(rows))
    sklearn("method", "numbers", LogisticRegression().fit(rows, three), parameters={"extra": {"predict_fn": "predict_proba"}})
    sklearn("columns", "columns+proba", LogisticRegression().fit(table, classes))
    encoder = ColumnTransformer([("town", OneHotEncoder(), ["town"]), ("rest", StandardScaler(), ["a", "b"])])
    sklearn("table", "mixed+proba", make_pipeline(encoder, LogisticRegression()).fit(mixed, words))
    sklearn("described", "mixed+proba", make_pipeline(encoder, LogisticRegression()).fit(mixed, classes), inputs=[
        {"name": "town", "datatype": "BYTES", "shape": [-1, 1], "parameters": {"content_type": "str"}},
        {"name": "a", "datatype": "FP64", "shape": [-1, 1]}, {"name": "b", "datatype": "FP64", "shape": [-1, 1]}],
        parameters={"content_type": "pd"})
    texts = [" ".join(random.choice(["late", "good", "bad", "fast"], 4)) for _ in range(200)]
    sklearn("text", "texts", make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(texts, words))
    xgboost.XGBClassifier(n_estimators=8).fit(rows, classes).save_model(folder("xgb2", XGBOOST, "numbers+proba", "model.json"))
    xgboost.XGBClassifier(n_estimators=8).fit(rows, three).save_model(folder("xgb3", XGBOOST, "numbers+proba", "model.ubj"))
    xgboost.XGBRegressor(n_estimators=8).fit(rows, values).save_model(folder("xgbv", XGBOOST, "numbers", "model.json"))
    for name, target in ("lgb2", classes), ("lgb3", three):
        lightgbm.LGBMClassifier(n_estimators=8, verbose=-1).fit(rows, target).booster_.save_model(
            str(folder(name, LIGHTGBM, "numbers", "model.bst")))
    for name, target in ("cat2", classes), ("cat3", three), ("cat-names", words):
        catboost.CatBoostClassifier(iterations=8, verbose=0, allow_writing_files=False).fit(rows, target).save_model(
            str(folder(name, CATBOOST, "numbers", "model.cbm")))
    infer = mlflow.models.infer_signature
    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # the servers do not have this module
    mlflow.sklearn.save_model(LogisticRegression().fit(table, words), mlflow_folder("flow-columns", "columns"),
                              signature=infer(table, words), serialization_format="cloudpickle", **PIP)
    mlflow.sklearn.save_model(Ridge().fit(rows, values), mlflow_folder("flow-array", "numbers"),
                              signature=infer(rows, values), serialization_format="cloudpickle", **PIP)
    mlflow.sklearn.save_model(make_pipeline(encoder, LogisticRegression()).fit(mixed, classes), mlflow_folder("flow-table", "mixed"),
                              signature=infer(mixed, classes), serialization_format="cloudpickle", **PIP)
    typed = pandas.DataFrame({"raw": [b"\x00\xff"], "day": [datetime.datetime(2026, 11, 30)], "word": ["x"]})
    mlflow.pyfunc.save_model(mlflow_folder("flow-typed", "typed"), python_model=Typed(),
                             signature=infer(typed, Typed().predict(None, typed)), **PIP)
    mlflow.pyfunc.save_model(mlflow_folder("flow-named", "numbers"), python_model=Named(), signature=infer(rows, Named().predict(None, rows)), **PIP)
    return kinds


def request_of(kind, random, use_bytes):
    """A request of the kind, by one of the codecs that carry it."""
    count = int(random.integers(1, ROWS_MAX + 1))
    rows = random.normal(size=(count, FEATURES))
    kind, _, further = kind.partition("+")
    if kind == "texts":
        texts = [" ".join(random.choice(["late", "good", "bad", "new"], 3)) for _ in range(count)]
        return StringRequestCodec.encode_request(texts, use_bytes=use_bytes)
    if kind == "typed":
        return types.InferenceRequest(parameters=types.Parameters(content_type="pd"), inputs=[
            Base64Codec.encode_input("raw", [random.bytes(int(random.integers(0, 20))) for _ in range(count)], use_bytes=use_bytes),
            DatetimeCodec.encode_input("day", [datetime.datetime(2000 + i, 1, 2, 3, 4, 5) for i in random.integers(0, 60, count)],
                                       use_bytes=use_bytes),
            StringCodec.encode_input("word", [str(word) for word in random.choice(TOWNS, count)], use_bytes=use_bytes)])
    if kind in ("columns", "mixed"):
        table = pandas.DataFrame(rows, columns=NAMES)
        if kind == "mixed":
            table = pandas.DataFrame({"town": random.choice(TOWNS, count), "a": rows[:, 0], "b": rows[:, 1]})
        request = PandasCodec.encode_request(table, use_bytes=use_bytes)
    else:
        form, dtype = int(random.integers(3)), (np.float32, np.float64, np.int64)[random.integers(3)]
        rows = (3 * rows).astype(dtype) if kind == "numbers" else rows
        if form == 0:
            request = NumpyRequestCodec.encode_request(rows)
        else:
            tensor = NumpyCodec.encode_input(("x", "input-0")[form - 1], rows)
            if form == 2:  # as clients send it that know no codec
                tensor.parameters = None
            request = types.InferenceRequest(inputs=[tensor])
    asked = {"proba": ["predict", "predict_proba"]}.get(further, [])
    asked = [name for name in asked if random.integers(2)] or (["transform"] if kind == "transform" else [])
    if asked:
        request.outputs = [types.RequestOutput(name=name) for name in asked]
    return request


def over_rest(port, model, request):
    message = urllib.request.Request(f"http://127.0.0.1:{port}/v2/models/{model}/infer",
                                     request.model_dump_json(exclude_none=True).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(message, timeout=60) as answer:
            return types.InferenceResponse.model_validate_json(answer.read())
    except urllib.error.HTTPError as error:
        return f"{error.code} {error.read()[:300]!r}"


def over_grpc(stub, model, request, raw):
    message = converters.ModelInferRequestConverter.from_types(request, model, use_raw=raw)
    try:
        return converters.ModelInferResponseConverter.to_types(stub.ModelInfer(message, timeout=60))
    except grpc.RpcError as error:
        return f"{error.code()} {error.details()[:300]}"


def plain(value):
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def difference(theirs, ours):
    """What differs between the answers, or an empty text."""
    if isinstance(theirs, str) or isinstance(ours, str):
        return "" if isinstance(theirs, str) and isinstance(ours, str) else f"mlserver {str(theirs)[:300]}; Foliot {str(ours)[:300]}"
    described = [[(each.name, str(each.datatype), list(each.shape), each.parameters.content_type if each.parameters else None)
                  for each in answer.outputs] for answer in (theirs, ours)]
    if described[0] != described[1]:
        return f"mlserver has {described[0]}, Foliot {described[1]}"
    for one, other in zip(theirs.outputs, ours.outputs, strict=True):
        values = [[plain(value) for value in np.ravel(np.array(getattr(each.data, "root", each.data), object))] for each in (one, other)]
        if one.datatype in ("FP32", "FP64"):
            if not np.allclose(np.array(values[0], float), np.array(values[1], float), TOLERANCE, TOLERANCE, equal_nan=True):
                return f"{one.name}: mlserver has {values[0][:8]}, Foliot {values[1][:8]}"
        elif values[0] != values[1]:
            return f"{one.name}: mlserver has {values[0][:8]}, Foliot {values[1][:8]}"
    return ""


def compare(root, seed, requests, only=""):
    """Prints a line for each folder. Returns how many differ."""
    random = np.random.default_rng(seed)
    kinds = write_folders(root / "models", random)
    for name in [name for name in kinds if not name.startswith(only)]:
        shutil.rmtree(root / "models" / name)
        del kinds[name]
    with open(root / "mlserver.log", "w", encoding="utf-8") as log, \
            Server(root / "models", root / "foliot.log", cache=root / "cache") as ours:
        theirs = Mlserver(root / "models", sys.executable, log)
        try:
            wait_until_ready(theirs.port, list(kinds), theirs.process)
            wait_until_ready(ours.http_port, list(kinds))
            failures = ask_all(kinds, theirs, ours, random, requests)
            compiled = [name for name in kinds if f"model '{name}' {STAYS}" not in ours.output()]
            print(f"compiled: {', '.join(compiled) or 'none'}", flush=True)
            return failures
        finally:
            theirs.stop()


def ask_all(kinds, theirs, ours, random, requests):
    failures = 0
    channels = [grpc.insecure_channel(f"127.0.0.1:{port}") for port in (theirs.grpc_port, ours.grpc_port)]
    stubs = [dataplane_pb2_grpc.GRPCInferenceServiceStub(channel) for channel in channels]
    for model, kind in kinds.items():
        different, refused = [], 0
        for number in range(2 * requests):
            is_rest = number < requests
            request = request_of(kind, random, use_bytes=not is_rest)
            if is_rest:
                answers = [over_rest(port, model, request) for port in (theirs.port, ours.http_port)]
            else:
                raw = bool(number % 2)
                answers = [over_grpc(stub, model, request.model_copy(deep=True), raw) for stub in stubs]
            refused += isinstance(answers[0], str)
            what = difference(*answers)
            if what:
                different.append(f"{'REST' if is_rest else 'gRPC'} request {number}: {what}")
        failures += bool(different)
        note = f", of which mlserver refuses {refused}" if refused else ""
        print(f"{model:14} {kind:14} {2 * requests} requests{note}: {len(different)} differ"
              + (f"; {different[0]}" if different else ""), flush=True)
    for channel in channels:
        channel.close()
    return failures
