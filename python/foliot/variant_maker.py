"""Makes what a registration needs of a network: python -m foliot.variant_maker FOLDER, started by a server (docs/TASKS.md).

FOLDER has model.onnx, validation.npz and request.json. Into the folder that FOLIOT_VARIANTS_OUTPUT names it writes

    int8.onnx             the network in int8, if that was asked
    rows/0.npy, 1.npy ... of the inputs, the rows that measure
    labels.npy            their labels
    made.json             what these are

Exit code 2 and one line at the end: the network or the validation set is wrong. The process is confined: it reads FOLDER and
the libraries of its interpreter, and writes that one folder.
"""

import json
import os
import pathlib
import sys


def make(source, output):
    from foliot.variants import VariantsError, quantize, read_network, read_validation

    import numpy as np

    request = json.loads((source / "request.json").read_text())
    model = read_network(source / "model.onnx", request["file"])
    validation = read_validation(source / "validation.npz", model, request["labels"], request["calibration"],
                                 request["validation"])
    outputs = [value.name for value in model.graph.output]
    compared = request["output"] or outputs[0]
    if compared not in outputs:
        raise VariantsError(f"the network has no output '{compared}' ('output'); it has {', '.join(sorted(outputs))}")
    inputs, labels = validation.rest()
    (output / "rows").mkdir()
    for number, array in enumerate(inputs.values()):
        np.save(output / "rows" / f"{number}.npy", np.ascontiguousarray(array))
    np.save(output / "labels.npy", np.ascontiguousarray(labels, dtype=np.int64))
    if request["quantise"]:
        try:
            quantize(source / "model.onnx", output / "int8.onnx", validation.calibration())
        except Exception as error:  # of onnxruntime, which has no class for all of them
            raise VariantsError(f"{request['file']}: cannot be quantised to int8; leave it out of 'precisions': "
                                f"{first_line(error)}") from error
    made = {"inputs": list(inputs), "output": compared, "rows": len(validation.labels), "calibrated": validation.calibrated}
    (output / "made.json").write_text(json.dumps(made))


def first_line(error):
    return (str(error) or type(error).__name__).strip().splitlines()[0]


def main():
    try:
        make(pathlib.Path(sys.argv[1]), pathlib.Path(os.environ["FOLIOT_VARIANTS_OUTPUT"]))
    except ImportError as error:
        print(f"{sys.executable}: {error}: variants need numpy, onnx and onnxruntime; name an interpreter that has them "
              "with --variants-python", file=sys.stderr)
        return 2
    except MemoryError:
        print("the network and its validation set need more memory than --variants-memory", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"variants cannot be written: {error}", file=sys.stderr)
        return 2
    except ValueError as error:  # VariantsError is one
        print(first_line(error), file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
