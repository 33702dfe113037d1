"""Says what a customer's message is about, and how sure it is (docs/CONTAINERS.md)."""

import foliot
import skops.io

classifier = skops.io.load("topics.skops")  # train.py writes it; it runs no code


@foliot.model(inputs={"text": ("BYTES", [], 8192)}, outputs={"topic": ("BYTES", []), "score": ("FP32", [])})
def predict(batch):
    scores = classifier.decision_function(batch["text"])
    return {"topic": classifier.classes_[scores.argmax(axis=1)], "score": scores.max(axis=1)}
