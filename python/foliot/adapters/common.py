"""What all adapters need: their library, their file, and outputs found by a run on examples."""

import dataclasses
import importlib
import os
import pathlib

from foliot import loading, registration
from foliot.description import NUMPY_NAMES, STRINGS, ModelError, make_description, make_tensors


class Names:
    """What adapters call their input and output, and whether they answer as MLServer's runtimes: an output of one number a
    row has the shape [N, 1], numbers with a fraction stay FP64, and labels are texts."""

    input = "x"
    output = "y"
    as_mlserver = False
    datatype = ""  # of the numbers of the only input; empty: numbers()
    is_file = False  # there is no model.py: clients are those of other servers, and send numbers of any type


def require(module, needed_by):
    """The module of a library. Raises ModelError if it is not installed."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0]:
            raise
        raise ModelError(loading.missing_package(needed_by, error.name)) from error


def existing_file(path, needed_by):
    """The path as text, relative to model.py's folder. Raises ModelError."""
    if not pathlib.Path(path).is_file():
        raise ModelError(f"{needed_by}: there is no file '{path}' in {pathlib.Path.cwd()}")
    return str(path)


def trusts_pickle():
    """Whether model.toml has trust_pickle = true: a pickle runs what it wants while it is read."""
    return os.environ.get("FOLIOT_TRUST_PICKLE") == "1"


def refuse_pickle(path, why, instead):
    return ModelError(f"'{path}' {why}, and reading it can run any code: {instead}, or, if you trust the file, set "
                      "trust_pickle = true under [container] in model.toml")


def one_input(inputs, features, needed_by):
    """(name, declaration of the inputs): what model.py declares, or a row of `features` numbers. Raises ModelError."""
    if inputs is None:
        if features is None:
            raise ModelError(f'{needed_by}: the model does not know how many features it has: give inputs={{"x": ("FP32", [N])}}')
        inputs = {Names.input: (numbers(), [int(features)])}
    if len(make_tensors("inputs", inputs)) != 1:
        raise ModelError(f"{needed_by}: there are {len(inputs)} inputs, it takes one; several are combined by a function of "
                         "your own under @foliot.model")
    return next(iter(inputs)), inputs


def numbers():
    """The data type of features: what clients of other servers send becomes FP64, in which it is the same."""
    return Names.datatype or ("FP64" if Names.is_file else "FP32")


def register(predict, inputs, batch_size_max, needed_by, *, columns=(), examples=None, source=None, method="predict"):
    """Registers `predict`, with the outputs that it has on an example. Raises ModelError.

    columns: the names of the numbers of the only input. examples: {input: elements of a row}, of zeros where there is none.
    source: what was read of the file. method: the one of it whose answer is the first output.
    """
    from foliot import layout

    if Names.as_mlserver:
        predict = as_columns(predict)
    description = make_description(inputs, inputs, batch_size_max)
    tensors = tuple(dataclasses.replace(tensor, columns=tuple(columns), example=tuple((examples or {}).get(tensor.name, ())))
                    for tensor in description.inputs)
    try:
        found = predict({tensor.name: layout.examples(tensor, 1) for tensor in tensors})
    except Exception as error:
        last = (str(error).strip().splitlines() or [""])[-1]
        kind = "its example" if examples else "a row of zeros"
        raise ModelError(f"{needed_by}: the model cannot be run on {kind} ({type(error).__name__}: {last}); are the "
                         f"inputs right? They are {inputs}") from error
    outputs = {name: (datatype_of(value, name, needed_by), list(value.shape[1:])) for name, value in found.items()}
    description = dataclasses.replace(description, inputs=tensors, outputs=make_tensors("outputs", outputs))
    registration.registered.append(registration.Model(description, predict, source=source, method=method))


def fractions(values):
    """Numbers with a fraction as FP32, unless MLServer would answer FP64."""
    return values if Names.as_mlserver or values.dtype.kind != "f" else values.astype("float32", copy=False)


def as_columns(predict):
    def predict_columns(batch):
        return {name: value.reshape(-1, 1) if value.ndim == 1 else value for name, value in predict(batch).items()}

    return predict_columns


def datatype_of(value, name, needed_by):
    if value.ndim < 1 or value.shape[0] != 1:
        raise ModelError(f"{needed_by}: output '{name}' has the shape {list(value.shape)} for one row: the first dimension must "
                         "be the rows")
    if value.dtype == object:  # of bytes and texts
        return STRINGS
    if value.dtype.name not in NUMPY_NAMES:
        raise ModelError(f"{needed_by}: output '{name}' has the data type {value.dtype}: containers have "
                         f"{', '.join(NUMPY_NAMES.values())}")
    return NUMPY_NAMES[value.dtype.name]
