"""Pipelines of scikit-learn with columns of texts, as folders of MLServer's, of KServe's and of MLflow's: what Foliot answers over
every form of a table, beside what scikit-learn answers."""

import json
import sys
import urllib.error
import urllib.request

import joblib
import mlflow
import numpy as np
from mlserver.codecs import PandasCodec, StringRequestCodec
from mlserver.types import RequestOutput
from tabular_pipelines import make_cases

from foliot_tools.server import Server

TOLERANCE = 1e-5


def write_folders(root, cases):
    for case in cases:
        settings = f'[container]\npython = "{sys.executable}"\ntrust_pickle = true\n'
        for form in "ml", "kserve":
            folder = root / form / case.name
            folder.mkdir(parents=True)
            (folder / "model.toml").write_text(settings)
            joblib.dump(case.estimator, folder / "model.joblib")
        (root / "ml" / case.name / "model-settings.json").write_text(json.dumps(
            {"name": case.name, "implementation": "mlserver_sklearn.SKLearnModel", "parameters": {"uri": "./model.joblib"}}))
        flow = root / "flow" / case.name
        # The signature is of floats, which can be missing.
        table = case.table.astype({name: float for name in case.table.columns if case.table[name].dtype.kind in "iu"})
        mlflow.sklearn.save_model(case.estimator, str(flow), signature=mlflow.models.infer_signature(table),
                                  serialization_format="cloudpickle", pip_requirements=["scikit-learn"])
        (flow / "model.toml").write_text(settings)


def post(server, path, body):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(f"http://{server.http}{path}", data, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        raise ValueError(f"{path}: {error.code} {error.read()[:400]!r}") from None


def records_of(table):
    return json.loads(table.to_json(orient="records"))  # with null for what is missing


def same(found, wanted):
    found, wanted = np.ravel(np.array(found)), np.ravel(np.array(wanted))
    if wanted.dtype.kind == "f":
        return len(found) == len(wanted) and np.allclose(found.astype(float), wanted, TOLERANCE, TOLERANCE)
    return found.astype(str).tolist() == wanted.astype(str).tolist()


def argument_of(case):
    return case.table["comment"] if case.is_text else case.table


def check(found, form, wanted, ask):
    try:
        answer = ask()
    except ValueError as error:
        return found.append(f"{form}: {error}")
    if not same(answer, wanted):
        found.append(f"{form}: {answer[:3]} in place of {wanted[:3]}")


def check_codecs(server, case, found):
    """By mlserver's own codec, of the folder of MLServer's."""
    table = case.table
    request = StringRequestCodec.encode_request(table["comment"].tolist(), use_bytes=False) if case.is_text else \
        PandasCodec.encode_request(table, use_bytes=False)

    def ask(output):
        asked = request.model_copy(update={"outputs": [RequestOutput(name=output)]})
        body = asked.model_dump_json(exclude_none=True).encode()
        return post(server, f"/v2/models/{case.name}/infer", body)["outputs"][0]["data"]

    for method in "predict", "predict_proba":
        if hasattr(case.estimator, method):
            check(found, f"pd, {method}", getattr(case.estimator, method)(argument_of(case)), lambda m=method: ask(m))


def check_kserve(server, case, found):
    labels = case.estimator.predict(argument_of(case))
    # KServe's servers number classes that have names.
    labels = labels if labels.dtype.kind not in "OUS" else np.searchsorted(case.estimator.classes_, labels)
    rows = case.table["comment"].tolist() if case.is_text else records_of(case.table)
    check(found, "v1", labels, lambda: post(server, f"/v1/models/{case.name}:predict", {"instances": rows})["predictions"])


def check_mlflow(server, case, found):
    if case.is_text:  # MLflow's loader gives the vectorizer a table of one column
        return
    labels, path = case.estimator.predict(case.table), f"/v1/models/{case.name}:predict"
    check(found, "MLflow's folder, v1", labels, lambda: post(server, path, {"instances": records_of(case.table)})["predictions"])


def check_pipelines(root, seed, count=25):
    """Prints a line for each. Returns how many differ."""
    cases = make_cases(seed, count)
    write_folders(root, cases)
    found = {case.name: [] for case in cases}
    # A server may have 64 containers.
    for form, ask in ("ml", check_codecs), ("kserve", check_kserve), ("flow", check_mlflow):
        with Server(root / form, root / f"{form}.log", cache=root / f"{form}-cache", ready_timeout=900) as server:
            for case in cases:
                ask(server, case, found[case.name])
    for case in cases:
        if not case.is_text:
            invocations(root, case, found[case.name])
        print(f"{case.name} {case.shape}: {'; '.join(found[case.name]) or 'equal'}", flush=True)
    failures = sum(bool(each) for each in found.values())
    print(f"{count - failures} of {count} served with equal answers", flush=True)
    return failures


def invocations(root, case, found):
    """MLflow's path is that of a server with one model."""
    labels, split = case.estimator.predict(case.table), json.loads(case.table.to_json(orient="split"))
    bodies = {"dataframe_records": records_of(case.table), "dataframe_split": {key: split[key] for key in ("columns", "data")}}
    with Server(root / "flow" / case.name, root / "alone.log", cache=root / "alone-cache", ready_timeout=300) as server:
        for form, body in bodies.items():
            check(found, form, labels, lambda f=form, b=body: post(server, "/invocations", {f: b})["predictions"])
