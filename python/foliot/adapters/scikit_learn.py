"""Estimators of scikit-learn, from files of skops or, where they are trusted, of pickle and joblib."""

import pathlib

from foliot.adapters import common
from foliot.description import ModelError

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


def sklearn(path, *, method="predict", inputs=None, batch_size_max=None, trusted=()):
    """Serves the estimator or pipeline in `path`, by `method`.

    Numbers with a fraction are answered as FP32. Classes that have names are answered with their numbers in `classes_`,
    from 0 on. `trusted`: types in a skops file that are not scikit-learn's own, as skops names them.
    """
    if method not in METHODS:
        raise ModelError(f"{WHAT}: method is {method!r}: it is one of {', '.join(METHODS)}")
    common.require("sklearn", WHAT)
    estimator = on_one_thread(read(common.existing_file(path, WHAT), trusted))
    if not hasattr(estimator, method):
        raise ModelError(f"{WHAT}: '{path}' has a {type(estimator).__name__}, which has no {method}: give another method")
    name, inputs = common.one_input(inputs, getattr(estimator, "n_features_in_", None), WHAT)
    run, numbers = getattr(estimator, method), numbers_of(estimator)

    def predict(batch):
        return {common.Names.output: numbers(run(batch[name]))}

    common.register(predict, inputs, batch_size_max, WHAT)


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
        if positions is not None and result.dtype.kind in "OUS":
            return np.array([positions[name] for name in result.tolist()], np.int64)
        return result.astype(np.float32) if result.dtype.kind == "f" else result

    return numbers
