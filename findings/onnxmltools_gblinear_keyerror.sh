#!/usr/bin/env bash
# onnxmltools cannot export a linear model of XGBoost (booster="gblinear"), and says so by a KeyError.
#
# Behaviour: convert_xgboost takes any XGBRegressor or XGBClassifier. Of booster "gbtree" it makes an ONNX model; of
# "gblinear" it reads the parameters of trees from the model's configuration, which has none, and raises
# KeyError: 'gbtree_model_param', which names neither the booster nor a remedy. XGBoost itself predicts with such models.
#
# Seen with onnxmltools 1.16.0, xgboost-cpu 3.2.0, onnx 1.19.1.
# Exit code: 0 while that is so, 1 if it is not any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet numpy==2.3.5 onnx==1.19.1 onnxmltools==1.16.0 xgboost-cpu==3.2.0 scikit-learn==1.7.2 packaging==25.0
"$folder/venv/bin/python" - <<'PYTHON'
import sys

import numpy as np
import xgboost
from onnxmltools import convert_xgboost
from onnxmltools.convert.common.data_types import FloatTensorType

x = np.random.default_rng(1).random((100, 4)).astype(np.float32)


def export(booster):
    model = xgboost.XGBRegressor(booster=booster, n_estimators=5).fit(x, x.sum(axis=1))
    try:
        convert_xgboost(model, initial_types=[("x", FloatTensorType([None, 4]))])
    except Exception as error:
        return repr(error)
    return "a model"


seen = {booster: export(booster) for booster in ("gbtree", "gblinear")}
for booster, outcome in seen.items():
    print(f"{booster}: {outcome}")
as_before = seen == {"gbtree": "a model", "gblinear": "KeyError('gbtree_model_param')"}
print("as before" if as_before else "this has changed")
sys.exit(not as_before)
PYTHON
