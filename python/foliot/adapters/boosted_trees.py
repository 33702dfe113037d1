"""Boosted trees and linear models, from the files that XGBoost and LightGBM write."""

import json

from foliot.adapters import common

LIGHTGBM_BEGINS = b"tree\n"  # its files of text


def xgboost(path, *, inputs=None, batch_size_max=None, labels=False):
    """Serves a model that Booster.save_model or XGBClassifier.save_model wrote (JSON or UBJ): its probabilities or values, of
    the trees up to the best iteration. Linear ones (booster gblinear) have no iterations to choose from. `labels`: what
    XGBClassifier wrote answers with the number of the class, and with probabilities to calls that name `predict_proba`."""
    what = "foliot.xgboost"
    library = common.require("xgboost", what)
    booster = library.Booster({"nthread": 1})
    booster.load_model(common.existing_file(path, what))
    booster.set_param({"nthread": 1})
    best = booster.attr("best_iteration")
    trees = (0, int(best) + 1 if best is not None else 0)
    name, inputs = common.one_input(inputs, booster.num_features(), what)

    def scores(batch):
        return booster.inplace_predict(batch[name], iteration_range=trees)

    # XGBoost predicts in place of trees only.
    def linear_scores(batch):
        return booster.predict(library.DMatrix(batch[name], nthread=1))

    learner = json.loads(booster.save_config())["learner"]
    run = linear_scores if learner["gradient_booster"]["name"] == "gblinear" else scores
    objective = learner["objective"]["name"]
    is_classifier = json.loads(booster.attr("scikit_learn") or "{}").get("_estimator_type") == "classifier"
    answer = (lambda values: classes_of(values, objective)) if labels and is_classifier else (
        lambda values: {common.Names.output: values})
    common.register(lambda batch: answer(run(batch)), inputs, batch_size_max, what, columns=booster.feature_names or (),
                    source=booster)


def classes_of(scores, objective):
    """What XGBClassifier answers of its scores: the number of the class of each row, and probabilities; of several labels a
    row, which of them hold, as there in floating point."""
    import numpy as np  # here, so that a missing numpy can be reported as an error like any other

    if objective == "multi:softmax":
        return {common.Names.output: scores.astype("int32")}
    if objective == "multi:softprob":
        return {common.Names.output: scores.argmax(axis=1).astype("int64"), "predict_proba": scores}
    holds = scores > (0 if objective == "binary:logitraw" else 0.5)
    if scores.ndim == 2:
        return {common.Names.output: holds.astype("float64"), "predict_proba": scores}
    return {common.Names.output: holds.astype("int64"), "predict_proba": np.column_stack([1 - scores, scores])}


def catboost(path, *, inputs=None, batch_size_max=None):
    """Serves a model that CatBoost.save_model wrote (cbm): classes, or values. Classes that have names are answered with
    their numbers in `classes_`."""
    what = "foliot.catboost"
    numpy = common.require("numpy", what)
    library = common.require("catboost", what)
    model = library.CatBoost()
    model.load_model(common.existing_file(path, what))
    kind = "Class" if len(model.classes_) else "RawFormulaVal"
    positions = {str(name): position for position, name in enumerate(model.classes_)}

    def classes(result):
        if result.dtype.kind not in "OUS":
            return result.astype("int64")
        if common.Names.as_mlserver:
            return result.astype(str).astype(object)
        return numpy.array([positions[str(name)] for name in result.tolist()], "int64")
    name, inputs = common.one_input(inputs, len(model.feature_names_), what)

    def predict(batch):
        result = model.predict(batch[name], prediction_type=kind, thread_count=1)
        result = result.reshape(-1) if result.ndim == 2 and result.shape[1] == 1 else result
        return {common.Names.output: classes(result) if kind == "Class" else common.fractions(result)}

    common.register(predict, inputs, batch_size_max, what, source=model)


def lightgbm(path, *, inputs=None, batch_size_max=None):
    """Serves a model that Booster.save_model wrote: its probabilities or values."""
    what = "foliot.lightgbm"
    library = common.require("lightgbm", what)
    booster = library.Booster(model_file=common.existing_file(path, what))
    name, inputs = common.one_input(inputs, booster.num_feature(), what)

    def predict(batch):
        return {common.Names.output: common.fractions(booster.predict(batch[name], num_threads=1))}

    common.register(predict, inputs, batch_size_max, what, source=booster)
