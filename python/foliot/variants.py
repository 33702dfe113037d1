"""Makes variants of a model and the task that they answer: python -m foliot.variants MODEL.onnx --validation FILE.npz ...

    python -m foliot.variants digits.onnx --validation digits.npz --task digits --repository models

writes models/digits-float32, digits-bfloat16 and digits-int8, each a model that `foliot serve` serves, and the task
models/digits/task.toml with the accuracy of each. int8 is onnxruntime's quantize_static, calibrated on part of the validation
set; the accuracy of all is measured on the rest, by Foliot's own kernels (`foliot run`).

The validation set is an .npz with an array for each input of the model, rows first, and `labels`: for each row a class, which
is compared with the output's largest element (or with the output itself, if that has one whole number for each row).

Needs numpy, onnx and onnxruntime. Bad input is an error that names it; nothing is written then.
"""

import argparse
import logging
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

import numpy as np

PRECISIONS = ("float32", "bfloat16", "int8")
NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
# Rows that onnxruntime calibrates on, at most: it keeps all their activations.
CALIBRATION_MAX = 256


class VariantsError(ValueError):
    """Why no variants were made, in one clear sentence."""


class ValidationSet:
    """Inputs by name and labels, of equally many rows, divided in two: the first rows calibrate, the others measure."""

    def __init__(self, inputs, labels, share):
        self.inputs = inputs
        self.labels = labels
        rows = len(labels)
        self.calibrated = min(CALIBRATION_MAX, max(1, round(rows * share)))
        if rows - self.calibrated < 1:
            raise VariantsError(f"the validation set has {rows} rows, of which {self.calibrated} calibrate (--calibration "
                                f"{share}); at least one more must be left to measure")

    def calibration(self):
        return [{name: array[row:row + 1] for name, array in self.inputs.items()} for row in range(self.calibrated)]

    def rest(self):
        return {name: array[self.calibrated:] for name, array in self.inputs.items()}, self.labels[self.calibrated:]


def read_network(path, shown):
    """The ONNX file. `shown`: what errors call it."""
    import onnx

    try:
        return onnx.load(path)
    except Exception as error:  # of protobuf and of the file system
        raise VariantsError(f"{shown}: cannot be read as ONNX: {error}") from error


def read_validation(file, model, labels_name, share, path=None):
    """The validation set of an .npz, checked against the model's inputs. `path`: what errors call the file."""
    path = path or file
    try:
        with np.load(file, allow_pickle=False) as arrays:
            found = {name: arrays[name] for name in arrays.files}
    except (OSError, ValueError, EOFError, AttributeError, zipfile.BadZipFile) as error:
        raise VariantsError(f"{path}: cannot be read as .npz: {error}") from error
    if labels_name not in found:
        raise VariantsError(f"{path}: has no array '{labels_name}' (--labels); it has {', '.join(sorted(found)) or 'none'}")
    labels = found.pop(labels_name)
    if labels.ndim != 1 or not np.issubdtype(labels.dtype, np.integer):
        raise VariantsError(f"{path}: '{labels_name}' must be whole numbers, one for each row, and is {labels.dtype} of shape "
                            f"{list(labels.shape)}")
    if len(labels) == 0:
        raise VariantsError(f"{path}: the validation set is empty")
    wanted = [value.name for value in true_inputs(model)]
    for name in wanted:
        if name not in found:
            raise VariantsError(f"{path}: has no array '{name}', an input of the model; it has "
                                f"{', '.join(sorted(found)) or 'none'} beside the labels")
        if found[name].ndim == 0 or len(found[name]) != len(labels):
            rows = len(found[name]) if found[name].ndim else "no"
            raise VariantsError(f"{path}: '{name}' has {rows} rows, and '{labels_name}' has {len(labels)}")
    unknown = sorted(set(found) - set(wanted))
    if unknown:
        raise VariantsError(f"{path}: has an array '{unknown[0]}', which is no input of the model; leave it out")
    if not 0 < share < 1:
        raise VariantsError(f"--calibration is {share}; it must be between 0 and 1")
    return ValidationSet(found, labels, share)


def true_inputs(model):
    """The graph's inputs that no initializer fills."""
    filled = {initializer.name for initializer in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in filled]


def quantize(source, target, calibration):
    """int8 weights per channel and uint8 activations between QuantizeLinear and DequantizeLinear."""
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class Reader(CalibrationDataReader):
        def __init__(self):
            self.left = iter(calibration)

        def get_next(self):
            return next(self.left, None)

    logging.getLogger().setLevel(logging.ERROR)  # the quantizer's advice is not for these
    folded = target.with_suffix(".folded.onnx")
    try:
        # Folds BatchNormalization, which the quantizer leaves as it is.
        quant_pre_process(source, folded, skip_symbolic_shape=True)
        quantize_static(folded, target, Reader(), quant_format=QuantFormat.QDQ, per_channel=True,
                        activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8)
    finally:
        folded.unlink(missing_ok=True)


def accuracy_of(foliot, model, validation, output, threads):
    """The share of the rows that measure which the model, as Foliot compiles it, classifies as their labels say."""
    inputs, labels = validation.rest()
    with tempfile.TemporaryDirectory(prefix="foliot-variants-") as folder:
        folder = pathlib.Path(folder)
        command = [foliot, "run", model, "--threads", str(threads), "--batch", str(min(8, len(labels))), "--output",
                   folder / "outputs"]
        for number, (name, array) in enumerate(inputs.items()):
            np.save(folder / f"{number}.npy", array)
            command += ["--input", f"{name}={folder / f'{number}.npy'}"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError as error:
            raise VariantsError(f"'{foliot}' cannot be started ({error.strerror}); say where it is with --foliot") from error
        if done.returncode != 0:
            raise VariantsError(f"{model}: foliot run failed: {done.stderr.strip()}")
        answers = {path.stem: np.load(path) for path in (folder / "outputs").iterdir()}
    if output not in answers:
        raise VariantsError(f"the model has no output '{output}' (--output); it has {', '.join(sorted(answers))}")
    return share_right(answers[output], labels)


def share_right(answer, labels):
    if np.issubdtype(answer.dtype, np.integer) and answer.size == len(labels):
        classes = answer.reshape(len(labels))
    elif answer.ndim >= 2:
        classes = answer.reshape(len(labels), -1).argmax(axis=1)
    else:
        raise VariantsError(f"an output of {answer.dtype} and shape {list(answer.shape)} names no class for each of "
                            f"{len(labels)} rows")
    return float(np.mean(classes == labels))


def model_toml(precision, batch_sizes):
    lines = [f"batch_sizes = [{', '.join(map(str, batch_sizes))}]\n"]
    if precision == "bfloat16":
        lines.append('precision = "bfloat16"\n')
    return "".join(lines)


def task_toml(accuracies, validation, default_slo, accuracy):
    rows = len(validation.labels)
    lines = [f"# Accuracies: of {rows - validation.calibrated} rows of {rows}; {validation.calibrated} calibrated int8.\n"]
    if default_slo:
        lines.append(f'default_slo = "{default_slo}"\n')
    if accuracy is not None:
        lines.append(f"accuracy = {accuracy}\n")
    for name, measured in accuracies.items():
        lines.append(f'\n[[variant]]\nmodel = "{name}"\naccuracy = {measured:.6g}\n')
    return "".join(lines)


def make(arguments):
    """Writes the variants and the task; returns the accuracies by name."""
    import onnx

    model = read_network(arguments.model, arguments.model)
    validation = read_validation(arguments.validation, model, arguments.labels, arguments.calibration)
    output = arguments.output or model.graph.output[0].name
    repository = arguments.repository
    if not repository.is_dir():
        raise VariantsError(f"--repository {repository}: is no folder")
    names = {precision: f"{arguments.task}-{precision}" for precision in arguments.precisions}
    for name in [arguments.task, *names.values()]:
        if not NAME.fullmatch(name):
            raise VariantsError(f"'{name}' cannot be a name: 1 to 64 letters, digits and '_.-'")
        if (repository / name).exists() and not arguments.replace:
            raise VariantsError(f"{repository / name} exists; --replace puts the new one in its place")
    # In the repository, so that the last step moves folders; a server does not read what begins with a dot.
    with tempfile.TemporaryDirectory(prefix=".foliot-variants-", dir=repository) as folder:
        made = pathlib.Path(folder)
        accuracies = {}
        for precision, name in names.items():
            (made / name).mkdir()
            (made / name / "model.toml").write_text(model_toml(precision, arguments.batch_sizes))
            if precision == "int8":
                quantize(arguments.model, made / name / "model.onnx", validation.calibration())
            else:
                onnx.save(model, made / name / "model.onnx")
            accuracies[name] = accuracy_of(arguments.foliot, made / name / "model.onnx", validation, output,
                                           arguments.threads)
            print(f"{name}: accuracy {accuracies[name]:.4f}", flush=True)
        best = max(accuracies.values())
        if arguments.accuracy is not None and arguments.accuracy > best:
            raise VariantsError(f"--accuracy is {arguments.accuracy}, and the best variant has {best:.4f}; ask for less")
        (made / arguments.task).mkdir()
        (made / arguments.task / "task.toml").write_text(
            task_toml(accuracies, validation, arguments.default_slo, arguments.accuracy))
        for name in [*names.values(), arguments.task]:  # the task last: its variants are there then
            if (repository / name).exists():
                shutil.rmtree(repository / name)
            (made / name).rename(repository / name)
    return accuracies


def parser():
    flags = argparse.ArgumentParser(prog="python -m foliot.variants", description=__doc__.split("\n", maxsplit=1)[0])
    flags.add_argument("model", type=pathlib.Path, help="the model, ONNX in float32")
    flags.add_argument("--validation", type=pathlib.Path, required=True, help=".npz with the inputs and the labels")
    flags.add_argument("--task", required=True, help="the name that clients call")
    flags.add_argument("--repository", type=pathlib.Path, required=True, help="folder with a folder per model")
    flags.add_argument("--precisions", nargs="+", choices=PRECISIONS, default=list(PRECISIONS))
    flags.add_argument("--batch-sizes", nargs="+", type=int, default=[1, 2, 4, 8])
    flags.add_argument("--labels", default="labels", help="the array of the validation set that has the classes")
    flags.add_argument("--output", help="the output that is compared (the first)")
    flags.add_argument("--calibration", type=float, default=0.2, help="share of the rows that calibrate int8 (0.2)")
    flags.add_argument("--accuracy", type=float, help="that calls get at least that ask for none")
    flags.add_argument("--default-slo", help="deadline of calls that bring none, such as 100ms")
    flags.add_argument("--threads", type=int, default=1, help="of the measurement (1)")
    flags.add_argument("--replace", action="store_true", help="replace folders that exist")
    flags.add_argument("--foliot", default=os.environ.get("FOLIOT", "foliot"), help="the foliot program ($FOLIOT)")
    return flags


def main():
    try:
        make(parser().parse_args())
    except (VariantsError, OSError) as error:
        print(f"foliot.variants: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
