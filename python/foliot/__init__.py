"""Serve any Python code with Foliot: a folder with a model.py is a container (docs/CONTAINERS.md).

    import foliot

    @foliot.model(inputs={"x": ("FP32", [784])}, outputs={"y": ("INT64", [])})
    def predict(batch):
        return {"y": classifier.predict(batch["x"])}

or, for a file that a library has written, one call: foliot.sklearn("digits.skops").
"""

from foliot.adapters import catboost, lightgbm, onnxruntime, sklearn, torch, xgboost
from foliot.description import ModelError, up_to
from foliot.pipeline import Pipeline, PipelineError
from foliot.registration import model

__all__ = ["ModelError", "Pipeline", "PipelineError", "catboost", "lightgbm", "model", "onnxruntime", "sklearn", "torch", "up_to",
           "xgboost"]
