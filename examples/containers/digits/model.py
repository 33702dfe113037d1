"""Reads handwritten digits of 8 x 8 pixels from 0 to 16, and how sure it is (docs/CONTAINERS.md)."""

import foliot
import skops.io

classifier = skops.io.load("digits.skops")  # train.py writes it; it runs no code


@foliot.model(inputs={"pixels": ("FP32", [64])}, outputs={"digit": ("INT64", []), "probabilities": ("FP32", [10])})
def predict(batch):
    probabilities = classifier.predict_proba(batch["pixels"])
    return {"digit": classifier.classes_[probabilities.argmax(axis=1)], "probabilities": probabilities}
