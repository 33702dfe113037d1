"""Estimators of scikit-learn, from files of skops or, where they are trusted, of pickle and joblib."""

import pathlib

from foliot.adapters import common, mlflow_signature
from foliot.description import STRINGS, ModelError

WHAT = "foliot.sklearn"
METHODS = ("predict", "predict_proba", "predict_log_proba", "decision_function", "transform")
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


def sklearn(path, *, method="predict", inputs=None, batch_size_max=None, trusted=(), methods=None):
    """Serves the estimator or pipeline in `path`, by `method`, or by each of `methods` as an output of that name.

    Numbers with a fraction are answered as FP32. Classes that have names are answered with their numbers in `classes_`,
    from 0 on. `trusted`: types in a skops file that are not scikit-learn's own, as skops names them.
    """
    outputs = {common.Names.output: method} if methods is None else {name: name for name in methods}
    for each in outputs.values():
        if each not in METHODS:
            raise ModelError(f"{WHAT}: method is {each!r}: it is one of {', '.join(METHODS)}")
    common.require("sklearn", WHAT)
    estimator = on_one_thread(read(common.existing_file(path, WHAT), trusted))
    for each in outputs.values():
        if not hasattr(estimator, each):
            raise ModelError(f"{WHAT}: '{path}' has a {type(estimator).__name__}, which has no {each}: give another method")
    inputs, table = table_inputs(inputs, getattr(estimator, "n_features_in_", None))
    runs, numbers = {name: getattr(estimator, each) for name, each in outputs.items()}, numbers_of(estimator)

    def predict(batch):
        rows = table(batch)
        return {name: numbers(run(rows)) for name, run in runs.items()}

    common.register(predict, inputs, batch_size_max, WHAT)


def table_inputs(inputs, features):
    """(declaration of the inputs, what makes a batch of them the argument): several inputs are columns of a table."""
    if inputs is None or len(inputs) == 1 or any(list(declaration[1]) != [1] for declaration in inputs.values()):
        name, inputs = common.one_input(inputs, features, WHAT)
        return inputs, lambda batch: batch[name]
    kinds = {name: "string" if declaration[0] == STRINGS else "" for name, declaration in inputs.items()}

    def table(batch):
        return mlflow_signature.table_of({name: mlflow_signature.column_of(batch[name], kind) for name, kind in kinds.items()})

    return inputs, table


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
