"""Estimators of scikit-learn, from files of skops or, where they are trusted, of pickle and joblib."""

import dataclasses
import pathlib
import warnings

from foliot.adapters import common, estimator_columns, mlflow_signature
from foliot.description import STRINGS, ModelError

WHAT = "foliot.sklearn"
METHODS = ("predict", "predict_proba", "predict_log_proba", "decision_function", "transform")
# Whose `predict` is the class of the highest probability.
BY_PROBABILITY = ("LogisticRegression", "LogisticRegressionCV", "DecisionTreeClassifier", "ExtraTreeClassifier",
                  "RandomForestClassifier", "ExtraTreesClassifier", "HistGradientBoostingClassifier",
                  "GradientBoostingClassifier", "MLPClassifier", "GaussianNB", "MultinomialNB", "CalibratedClassifierCV")
PICKLES = (".pkl", ".pickle", ".joblib")
# Types of scikit-learn that skops does not trust by itself, and that hold only numbers. Invalid ones can crash the process
# (the nodes of a tree), which is confined and started again.
PLAIN = {
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.gaussian_process._gpc._BinaryGaussianProcessClassifierLaplace",
    "sklearn.gaussian_process.kernels.ConstantKernel",
    "sklearn.gaussian_process.kernels.Product",
    "sklearn.gaussian_process.kernels.RBF",
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
    "sklearn.tree._tree.Tree",
}


def sklearn(path, *, method="", inputs=None, batch_size_max=None, trusted=(), on_request=()):
    """Serves the estimator or pipeline in `path`, by `method` (predict, or transform if it has only that); by each of `on_request` that it has, for calls that name this
    output.

    Numbers with a fraction are answered as FP32. Classes that have names are answered with their numbers in `classes_`,
    from 0 on. `trusted`: types in a skops file that are not scikit-learn's own, as skops names them.
    """
    if method and method not in METHODS:
        raise ModelError(f"{WHAT}: method is {method!r}: it is one of {', '.join(METHODS)}")
    common.require("sklearn", WHAT)
    estimator = on_one_thread(read(common.existing_file(path, WHAT), trusted))
    method = method or ("predict" if hasattr(estimator, "predict") else "transform")
    if not hasattr(estimator, method):
        raise ModelError(f"{WHAT}: '{path}' has a {type(estimator).__name__}, which has no {method}: give another method")
    further = [each for each in on_request if each in METHODS and each != method and hasattr(estimator, each)]
    run = methods_of(estimator, [method, *further])
    table, numbers = table_of(estimator, inputs), numbers_of(estimator)

    def predict(batch):
        try:
            results = run(table.of(batch))
        except Exception as error:
            raise estimator_columns.with_unknown(error, table.named(batch)) from error
        found = {name: numbers(result) for name, result in results.items()}
        return {common.Names.output if name == method and not common.Names.as_mlserver else name: value
                for name, value in found.items()}

    common.register(predict, table.inputs, batch_size_max, WHAT, columns=table.columns, examples=table.examples,
                    source=estimator, method=method)


def methods_of(estimator, methods):
    """A function that returns {method: what it returns of the rows}. Classes are taken from the probabilities where these
    decide them, so that a row is computed once."""
    runs = {name: getattr(estimator, name) for name in methods}
    kind = type(estimator_columns.last_step(estimator)).__name__
    classes = getattr(estimator, "classes_", None)
    if kind not in BY_PROBABILITY or not {"predict", "predict_proba"} <= runs.keys() or getattr(classes, "ndim", 0) != 1:
        return lambda rows: {name: run(rows) for name, run in runs.items()}
    others = {name: run for name, run in runs.items() if name not in ("predict", "predict_proba")}

    def run(rows):
        probabilities = runs["predict_proba"](rows)
        best = probabilities.argmax(axis=1)
        rest = probabilities.copy()
        rest[range(len(best)), best] = 0
        # Which of two that are equal up to rounding it is depends on how it is computed.
        close = (probabilities.max(axis=1) - rest.max(axis=1, initial=0) < 1e-6).any()
        found = {"predict": runs["predict"](rows) if close else classes[best], "predict_proba": probabilities}
        return {name: found[name] if name in found else others[name](rows) for name in methods}

    return run


@dataclasses.dataclass
class Table:
    """The inputs of an estimator, and what makes a batch of them its argument."""

    inputs: dict
    of: object
    columns: tuple = ()
    examples: dict = dataclasses.field(default_factory=dict)
    named: object = lambda batch: {}  # {what a column is called: (its Column, its values)}, for errors


def table_of(estimator, declared):
    """`declared`: {name: declaration} of model.py or of settings; several are the columns. Otherwise columns are those that
    the estimator was fitted on: inputs of their own if some are texts, else one input for all. Raises ModelError."""
    several = declared is not None and len(declared) > 1
    if several and any(list(declaration[1]) != [1] for declaration in declared.values()):
        common.one_input(declared, None, WHAT)
    found = estimator_columns.columns_of(estimator)
    if found is None and several:
        found = [estimator_columns.Column() for _ in declared]
    if found is None or declared is not None and not several:
        name, inputs = common.one_input(declared, None, WHAT)
        return Table(inputs, lambda batch: batch[name])
    if found[0].is_list:
        name = common.Names.input
        return Table({name: (STRINGS, [1])}, lambda batch: [text.decode(errors="replace") for text in batch[name][:, 0]],
                     examples={name: [found[0].example]})
    if several or any(column.is_text for column in found):
        return table_of_columns(found, declared if several else {})
    name, inputs = common.one_input(None, len(found), WHAT)
    names = [column.name for column in found if column.name]
    example = [column.example or 0.0 for column in found]
    # scikit-learn would warn of each batch.
    warnings.filterwarnings("ignore", message="X does not have valid feature names")
    by_name = names and estimator_columns.chooses_by_name(estimator)
    table = (lambda batch: mlflow_signature.table_of(dict(zip(names, batch[name].T)))) if by_name else lambda batch: batch[name]
    called = [f"column '{column.name}'" if column.name else f"column {i}" for i, column in enumerate(found)]
    return Table(inputs, table, names, {name: example} if any(example) else {},
                 lambda batch: {title: (column, values) for title, column, values in zip(called, found, batch[name].T)})


def table_of_columns(found, declared):
    """An input for each column, with a declaration of settings or as it was fitted. Raises ModelError."""
    if declared and len(declared) != len(found):
        raise ModelError(f"{WHAT}: {len(declared)} inputs are declared, and the model was fitted on {len(found)} columns")
    own = [column.name or f"{common.Names.input}{i}" for i, column in enumerate(found)]
    names = own if not declared or set(declared) == set(own) else list(declared)
    inputs, kinds, examples = {}, {}, {}
    for name, column in zip(names, found):
        inputs[name] = declared.get(name, (STRINGS if column.is_text else "FP64", [1]))
        kinds[name] = "string" if inputs[name][0] == STRINGS else ""
        if column.example is not None and inputs[name][0] in ((STRINGS,) if column.is_text else ("FP32", "FP64")):
            examples[name] = [column.example]

    def table(batch):
        return mlflow_signature.table_of({title: mlflow_signature.column_of(batch[name], kinds[name])
                                          for title, name in zip(own, names)})

    return Table({name: inputs[name] for name in declared or names}, table, examples=examples,
                 named=lambda batch: {f"input '{name}'": (column, batch[name][:, 0]) for name, column in zip(names, found)})


def read(path, trusted):
    """The estimator. Raises ModelError."""
    suffix = pathlib.Path(path).suffix
    if suffix == ".skops":
        return read_skops(path, trusted)
    if suffix not in PICKLES:
        raise ModelError(f"{WHAT}: '{path}' is none of *.skops, *{', *'.join(PICKLES)}: save the model by skops.io.dump")
    if not common.trusts_pickle():
        raise common.refuse_pickle(path, "is a pickle", "save the model by skops.io.dump instead")
    import joblib  # comes with scikit-learn, and reads its own files and pickles

    return joblib.load(path)


def read_skops(path, trusted):
    io = common.require("skops.io", WHAT)
    needed = set(io.get_untrusted_types(file=path))
    unknown = sorted(needed - PLAIN - set(trusted))
    if unknown and not common.trusts_pickle():
        raise common.refuse_pickle(path, f"has the types {', '.join(unknown)}",
                                   f"if you know them, call {WHAT}(..., trusted={unknown})")
    return io.load(path, trusted=sorted(needed))


def on_one_thread(estimator):
    """Other processes cannot be started, and cores are filled by replicas."""
    if hasattr(estimator, "get_params"):
        jobs = [name for name in estimator.get_params() if name == "n_jobs" or name.endswith("__n_jobs")]
        estimator.set_params(**dict.fromkeys(jobs, 1))
    return estimator


def numbers_of(estimator):
    """A function that makes tensors of what the estimator's methods return."""
    import numpy as np

    classes = getattr(estimator, "classes_", None)
    if isinstance(classes, np.ndarray) and classes.dtype.kind in "OUS":
        positions = {name: position for position, name in enumerate(classes.tolist())}
    else:
        positions = None

    def numbers(result):
        if hasattr(result, "toarray"):  # a sparse matrix
            result = result.toarray()
        result = np.asarray(result)
        if common.Names.as_mlserver and result.dtype.kind in "OUS":
            return result.astype(str).astype(object)
        if positions is not None and result.dtype.kind in "OUS":
            return np.array([positions[name] for name in result.tolist()], np.int64)
        return common.fractions(result)

    return numbers
