"""A model that is a file of a framework, without a model.py: which library reads it, and what clients of other servers
call its inputs and outputs. The server says by the environment which file it is, and what the settings beside it say."""

import os
import pathlib

from foliot.adapters import boosted_trees, common, mlflow_model, scikit_learn
from foliot.description import ModelError

# Of MLServer's runtimes.
BY_RUNTIME = {"mlserver_sklearn": "sklearn", "mlserver_xgboost": "xgboost", "mlserver_lightgbm": "lightgbm",
              "mlserver_catboost": "catboost"}
MLFLOW = "mlserver_mlflow"
# Which its runtime for scikit-learn answers with where a request names them.
MLSERVER_METHODS = ("predict", "predict_proba", "transform")
BY_SUFFIX = {".skops": "sklearn", ".joblib": "sklearn", ".pkl": "sklearn", ".pickle": "sklearn", ".json": "xgboost",
             ".ubj": "xgboost", ".txt": "lightgbm", ".cbm": "catboost"}


def register(name):
    """Registers the model in the file `name`. As MLServer answers, where its settings name a runtime: output `predict`,
    [N, 1], labels of classifiers, and further methods for calls that name them. Else as KServe's servers do: `output-0`, [N],
    scores of boosted trees. The input is named by the settings, else `input-0`. Raises ModelError."""
    runtime = os.environ.get("FOLIOT_MLSERVER_RUNTIME", "")
    inputs = declared_inputs()
    common.Names.is_file = True
    common.Names.input = next(iter(inputs), "input-0")
    if len(inputs) == 1 and inputs[common.Names.input][0] in ("FP32", "FP64"):
        common.Names.datatype = inputs[common.Names.input][0]
    common.Names.as_mlserver = runtime in (*BY_RUNTIME, MLFLOW)
    if name == mlflow_model.FILE:
        return mlflow_model.register()
    as_mlserver = runtime in BY_RUNTIME
    if runtime.startswith("mlserver_") and not as_mlserver:
        raise ModelError(f"'{name}' is for MLServer's runtime {runtime}, which is not served; move its code to a model.py")
    library = BY_RUNTIME[runtime] if as_mlserver else library_of(pathlib.Path(name))
    common.Names.output = "predict" if as_mlserver else "output-0"
    if library == "sklearn":
        scikit_learn.sklearn(name, inputs=inputs if len(inputs) > 1 else None,
                             method=os.environ.get("FOLIOT_PREDICT_FN", "") if as_mlserver else "",
                             on_request=(*MLSERVER_METHODS, *declared_outputs()) if as_mlserver else ())
    elif library == "xgboost":
        boosted_trees.xgboost(name, labels=as_mlserver)
    elif library == "lightgbm":
        boosted_trees.lightgbm(name)
    else:
        boosted_trees.catboost(name)


def declared_inputs():
    """{name: declaration} of the inputs that settings declare; of several each is a column."""
    lines = [line.partition(" ") for line in os.environ.get("FOLIOT_INPUTS", "").splitlines()]
    return {name: (datatype or "FP32", [1]) for datatype, _, name in lines}


def declared_outputs():
    return os.environ.get("FOLIOT_OUTPUTS", "").splitlines()


def library_of(path):
    """Of XGBoost and LightGBM both write model.bst."""
    if path.suffix in BY_SUFFIX:
        return BY_SUFFIX[path.suffix]
    with path.open("rb") as file:
        begins = boosted_trees.LIGHTGBM_BEGINS
        return "lightgbm" if file.read(len(begins)) == begins else "xgboost"
