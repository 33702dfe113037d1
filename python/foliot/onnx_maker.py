"""Makes ONNX of the file of a framework: python -m foliot.onnx_maker FOLDER, started by a server (docs/CONTAINERS.md).

The environment has what foliot.runtime is given, of the same file. Into the folder that FOLIOT_ONNX_OUTPUT names it writes

    model.onnx        with the inputs and outputs of the container
    description.json  these, as the container sends them
    model.onnx.answers       rows, and what the container answers of them (src/models/repository/answer_check.h)
    note.txt          what the container would have printed

Exit code 2 and one line at the end: it cannot be converted. With FOLIOT_ONNX_VERSIONS it prints the versions of all that a
conversion depends on instead. The process is confined: it reads FOLDER and the libraries of its interpreter, and writes that
one folder.
"""

import importlib.metadata
import os
import pathlib
import sys

from foliot import loading
from foliot.description import ModelError

# Changes with every change of what is made.
MAKER = 7
PACKAGES = ("numpy", "onnx", "skl2onnx", "onnxmltools", "scikit-learn", "xgboost", "xgboost-cpu", "lightgbm", "catboost", "scipy",
            "skops", "joblib", "pandas", "PyYAML")


def versions():
    found = [f"maker {MAKER}", f"python {sys.version}"]
    for name in PACKAGES:
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return "\n".join(found)


def make(folder, name, output):
    """Raises ModelError."""
    from foliot.adapters import common

    for package in ("numpy", "onnx", "skl2onnx", "onnxmltools"):  # before the file is read, which may take long
        common.require(package, "compiling it")
    from foliot.adapters import converted_model, mlflow_model

    model = loading.load_file(folder, name)
    made = converted_model.convert(model)
    (output / "description.json").write_bytes(model.description.to_json())
    (output / "model.onnx.answers").write_bytes(made.answers)
    (output / "model.onnx").write_bytes(made.graph)
    (output / "note.txt").write_text(mlflow_model.note_of_requirements() if name == mlflow_model.FILE else "", encoding="utf-8")


def main(arguments):
    if "FOLIOT_ONNX_VERSIONS" in os.environ:
        print(versions())
        return 0
    try:
        make(arguments[0], os.environ["FOLIOT_MODEL_FILE"], pathlib.Path(os.environ["FOLIOT_ONNX_OUTPUT"]))
    except ModelError as error:
        print(" ".join(str(error).split()), file=sys.stderr)
        return 2
    except MemoryError:
        print("converting it needs more memory than `memory` in [container]", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
