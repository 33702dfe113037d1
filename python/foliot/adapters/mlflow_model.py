"""A folder that MLflow wrote: MLmodel says which library reads which file, and which inputs the model has.

The library itself reads the file, so MLflow need not be installed but for models that are its own Python functions. The
answer is what MLflow's `predict` returns.
"""

import dataclasses
import importlib.metadata
import json
import pathlib
import re
import sys

import numpy as np

from foliot.adapters import boosted_trees, common, estimator_columns, mlflow_signature, onnx_runtime, scikit_learn
from foliot.description import STRINGS, ModelError

FILE = "MLmodel"
EXAMPLE = "serving_input_example.json"
WHAT = "MLmodel"
# As MLServer's runtime for MLflow names an output that has no name.
OUTPUT = "output-1"
BYTES_MAX = 1 << 20
REQUIREMENT = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^\]]*\])?\s*(?:==\s*([^\s;,]+))?")
READERS = {}  # by flavour, filled below: each returns a Reading; None: it has registered the model


@dataclasses.dataclass
class Reading:
    """What a flavour's reader has made of the folder."""

    run: object  # answers a table or array
    source: object = None  # the library's model, whose `method` it runs
    method: str = "predict"


def register():
    """Registers the model of the working directory. Raises ModelError."""
    content = read()
    note, differing = note_of_requirements(), differing_packages()
    if note:
        print(note, file=sys.stderr)
    try:
        register_flavour(content)
    except Exception as error:
        if not differing:
            raise
        what = str(error) if isinstance(error, ModelError) else f"{type(error).__name__}: {error}"
        raise ModelError(f"{what}; of requirements.txt {differing}") from error


def read():
    """The content of MLmodel. Raises ModelError."""
    yaml = common.require("yaml", WHAT)
    try:
        file = pathlib.Path(FILE)
        if file.stat().st_size > BYTES_MAX:
            raise ModelError(f"{FILE} has {file.stat().st_size:,} bytes: it may have {BYTES_MAX:,}")
        # The loader that is written in C, where PyYAML has it, takes a fifth of the time.
        content = yaml.load(file.read_text(encoding="utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ModelError(f"{FILE} is no YAML: {' '.join(str(error).split())}") from error
    if not isinstance(content, dict) or not isinstance(content.get("flavors"), dict):
        raise ModelError(f"{FILE} has no table 'flavors': it says how the model is read, and MLflow always writes it")
    for name, options in content["flavors"].items():
        if not isinstance(options, (dict, type(None))):
            raise ModelError(f"{FILE}: flavour '{name}' must be a table")
    return content


def note_of_requirements():
    """What is printed of differing_packages(); empty: nothing."""
    differing = differing_packages()
    return f"requirements.txt: {differing}" if differing else ""


def differing_packages():
    """What requirements.txt asks for and this interpreter has not: "a==1 is missing, b==2 is 3 here"; empty: nothing."""
    requirements = pathlib.Path("requirements.txt")
    if not requirements.is_file():
        return ""
    found = []
    for line in requirements.read_text(encoding="utf-8", errors="replace").splitlines():
        match = REQUIREMENT.match(line.strip())
        if match is None:
            continue
        name, version = match.groups()
        try:
            installed = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found.append(f"{name}{'==' + version if version else ''} is missing")
            continue
        if version not in (None, installed):
            found.append(f"{name}=={version} is {installed} here")
    return ", ".join(found)


def register_flavour(content):
    flavours = content["flavors"]
    function = flavours.get("python_function") or {}
    method = function.get("predict_fn", "predict")
    if not isinstance(method, str) or method.startswith("_"):
        raise ModelError(f"{FILE}: predict_fn is {method!r}: it must be the name of a method, such as 'predict'")
    known = [name for name in READERS if name in flavours]
    if known:
        flavour = known[0]
        reading = READERS[flavour](flavours[flavour] or {}, method)
    elif "loader_module" in function:
        flavour, reading = "python_function", python_function()
    else:
        raise ModelError(f"{FILE} has the flavours {', '.join(flavours)}: served are {', '.join(READERS)} and python_function; "
                         "write a model.py that loads the model's own file")
    if reading is None:
        return
    inputs, table = mlflow_signature.inputs_of(content, features_of(reading.source), common.Names.input)
    columns = columns_of(inputs, reading.source)

    def predict(batch):
        made = table(batch)
        if known and isinstance(made, dict) and len(made) == 1:  # a library takes the array that has a name
            (made,) = made.values()
        try:
            return outputs_of(reading.run(made))
        except Exception as error:
            raise estimator_columns.with_unknown(error, {
                f"input '{name}'": (column, batch[name][:, 0]) for name, column in columns.items() if name in batch}) from error

    common.register(predict, inputs, None, f"the flavour {flavour} of {FILE}",
                    examples=examples_of(inputs, columns), source=reading.source, method=reading.method)


def columns_of(inputs, model):
    """{input: its Column} of an estimator of scikit-learn. One that was fitted on an array has no names: its columns are the inputs
    in their order."""
    columns = (estimator_columns.columns_of(model) or []) if hasattr(model, "get_params") else []
    in_order = len(columns) == len(inputs) and not any(column.name for column in columns)
    return dict(zip(inputs, columns)) if in_order else {column.name: column for column in columns}


def examples_of(inputs, columns):
    """{input: elements of a row}: the first row of the example that MLflow keeps with a model, else values that the columns of the
    estimator know."""
    row = {}
    try:
        split = json.loads(pathlib.Path(EXAMPLE).read_text(encoding="utf-8"))["dataframe_split"]
        row = dict(zip(split["columns"], split["data"][0]))
    except (OSError, ValueError, LookupError, TypeError):
        row = {name: column.example for name, column in columns.items()}
    found = {}
    for name, (datatype, shape, *_) in inputs.items():
        is_known = isinstance(row.get(name), str) if datatype == STRINGS else isinstance(row.get(name), int | float)
        if is_known and shape == [1] and datatype in (STRINGS, "FP32", "FP64"):
            found[name] = [row[name]]
    return found


def features_of(model):
    for name in "n_features_in_", "num_features", "num_feature":
        found = getattr(model, name, None)
        if found is not None:
            return found() if callable(found) else found
    return None


def outputs_of(result):
    """{name: array} of what a model's predict returned."""
    if hasattr(result, "columns"):  # a table of pandas
        return {str(name): plain(result[name].to_numpy()) for name in result.columns}
    if isinstance(result, dict):
        return {str(name): plain(value) for name, value in result.items()}
    if hasattr(result, "toarray"):  # a sparse matrix
        result = result.toarray()
    return {OUTPUT: plain(result)}


def plain(value):
    value = np.asarray(value)
    if value.dtype.kind not in "OUS":
        return value
    return np.array([each if isinstance(each, bytes) else str(each) for each in value.ravel().tolist()],
                    object).reshape(value.shape)


def file_of(options, *keys):
    name = next((options[key] for key in keys if options.get(key)), None)
    path = pathlib.Path(str(name))
    if name is None or path.is_absolute() or ".." in path.parts or not path.exists():
        raise ModelError(f"{FILE}: {' or '.join(keys)} is {name!r}: it must name a file in the folder")
    return str(path)


def sklearn(options, method):
    common.require("sklearn", WHAT)
    path = file_of(options, "pickled_model")
    return method_of(scikit_learn.on_one_thread(scikit_learn.read(path, ())), method, path)


def method_of(model, method, path):
    if not hasattr(model, method):
        raise ModelError(f"{FILE}: predict_fn is {method!r}, and '{path}' has a {type(model).__name__}, which has none")
    return Reading(getattr(model, method), model, method)


def xgboost(options, method):
    library = common.require("xgboost", WHAT)
    path = file_of(options, "data")
    kind = str(options.get("model_class", "Booster")).rpartition(".")[2]
    if kind.startswith("XGB") and hasattr(library, kind):
        model = getattr(library, kind)(n_jobs=1)
        model.load_model(path)
        return method_of(model, method, path)
    booster = library.Booster({"nthread": 1})
    booster.load_model(path)
    booster.set_param({"nthread": 1})
    booster.set_attr(best_iteration=None)  # all its trees answer, as with MLflow
    return Reading(lambda table: booster.predict(library.DMatrix(table, nthread=1)), booster)


def lightgbm(options, method):
    library = common.require("lightgbm", WHAT)
    path = file_of(options, "data")
    with open(path, "rb") as file:
        is_text = file.read(len(boosted_trees.LIGHTGBM_BEGINS)) == boosted_trees.LIGHTGBM_BEGINS
    if not is_text:
        return method_of(scikit_learn.on_one_thread(scikit_learn.read(path, ())), method, path)
    booster = library.Booster(model_file=path)
    return Reading(lambda table: booster.predict(table, num_threads=1), booster)


def catboost(options, method):
    library = common.require("catboost", WHAT)
    path = file_of(options, "data")
    kind = str(options.get("model_type", "CatBoost"))
    if not kind.startswith("CatBoost") or not hasattr(library, kind):
        raise ModelError(f"{FILE}: model_type is {kind!r}: it must be one of CatBoost's models")
    model = getattr(library, kind)()
    model.load_model(path, format=options.get("save_format", "cbm"))
    run = method_of(model, method, path).run
    return Reading(lambda table: one_column(run(table, thread_count=1)), model, method)


def one_column(result):
    return result[:, 0] if result.ndim == 2 and result.shape[1] == 1 else result


def onnx(options, _):
    """Under another name than model.onnx, which is compiled."""
    path = file_of(options, "data")
    onnx_runtime.onnxruntime(path)


def python_function():
    mlflow = common.require("mlflow", "the flavour python_function of MLmodel")
    if not common.trusts_pickle():
        raise common.refuse_pickle(FILE, "names a Python function, which MLflow keeps as a pickle",
                                   "move its code to a model.py")
    return Reading(mlflow.pyfunc.load_model(".").predict)


READERS.update(sklearn=sklearn, xgboost=xgboost, lightgbm=lightgbm, catboost=catboost, onnx=onnx)
