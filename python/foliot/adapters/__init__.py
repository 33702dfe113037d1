"""Ready-made containers for the files of common libraries: one call in model.py.

Each has one input "x" and one output "y" by default, so that models of different libraries can take each other's place;
runs on one thread, since replicas are what fills the cores; and finds its output's type and shape by running on zeros.
"""

from foliot.adapters.boosted_trees import catboost, lightgbm, xgboost
from foliot.adapters.onnx_runtime import onnxruntime
from foliot.adapters.pytorch import torch
from foliot.adapters.scikit_learn import sklearn

__all__ = ["catboost", "lightgbm", "onnxruntime", "sklearn", "torch", "xgboost"]
