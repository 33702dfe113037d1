"""What libraries answer of models in files, in a process that knows nothing of servers:

    python tests/library_answers.py SPECIFICATION.json

The specification is a list of {"library", "file", "class", "method", "rows", "to"}: `method` of the model in `file` is called with
the rows in the file `rows` (.npy), and its answer is saved in the file `to`.
"""

import json
import sys

import numpy as np


def answer(each):
    rows = np.load(each["rows"])
    if each["library"] == "sklearn":
        import joblib

        return getattr(joblib.load(each["file"]), each["method"])(rows)
    if each["library"] == "xgboost":
        import xgboost

        if each["class"] == "Booster":
            return xgboost.Booster(model_file=each["file"]).predict(xgboost.DMatrix(rows))
        model = getattr(xgboost, each["class"])()
        model.load_model(each["file"])
        return getattr(model, each["method"])(rows)
    if each["library"] == "lightgbm":
        import lightgbm

        return lightgbm.Booster(model_file=each["file"]).predict(rows)
    import onnxruntime

    session = onnxruntime.InferenceSession(each["file"], providers=["CPUExecutionProvider"])
    return session.run([each["method"]], {session.get_inputs()[0].name: rows.astype(np.float32)})[0]


def main(path):
    with open(path, encoding="utf-8") as file:
        specification = json.load(file)
    for each in specification:
        found = np.asarray(answer(each))
        np.save(each["to"], found.astype(str) if found.dtype == object else found)


if __name__ == "__main__":
    main(sys.argv[1])
