"""Boosted trees and linear models, from the files that XGBoost and LightGBM write."""

import json

from foliot.adapters import common


def xgboost(path, *, inputs=None, batch_size_max=None):
    """Serves a model that Booster.save_model or XGBClassifier.save_model wrote (JSON or UBJ): its probabilities or values, of
    the trees up to the best iteration. Linear ones (booster gblinear) have no iterations to choose from."""
    what = "foliot.xgboost"
    library = common.require("xgboost", what)
    booster = library.Booster({"nthread": 1})
    booster.load_model(common.existing_file(path, what))
    booster.set_param({"nthread": 1})
    best = booster.attr("best_iteration")
    trees = (0, int(best) + 1 if best is not None else 0)
    name, inputs = common.one_input(inputs, booster.num_features(), what)

    def predict(batch):
        return {common.OUTPUT: booster.inplace_predict(batch[name], iteration_range=trees)}

    # XGBoost predicts in place of trees only.
    def predict_linearly(batch):
        return {common.OUTPUT: booster.predict(library.DMatrix(batch[name], nthread=1))}

    kind = json.loads(booster.save_config())["learner"]["gradient_booster"]["name"]
    common.register(predict_linearly if kind == "gblinear" else predict, inputs, batch_size_max, what)


def lightgbm(path, *, inputs=None, batch_size_max=None):
    """Serves a model that Booster.save_model wrote: its probabilities or values."""
    what = "foliot.lightgbm"
    library = common.require("lightgbm", what)
    booster = library.Booster(model_file=common.existing_file(path, what))
    name, inputs = common.one_input(inputs, booster.num_feature(), what)

    def predict(batch):
        return {common.OUTPUT: booster.predict(batch[name], num_threads=1).astype("float32", copy=False)}

    common.register(predict, inputs, batch_size_max, what)
