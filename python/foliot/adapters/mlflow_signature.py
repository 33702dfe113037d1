"""The inputs that the signature of an MLmodel declares, and the table or array that a model of MLflow gets of them."""

import json

from foliot.description import ModelError, NUMPY_NAMES

# As a signature names the types of columns.
COLUMN_TYPES = {"boolean": "BOOL", "integer": "INT32", "long": "INT64", "float": "FP32", "double": "FP64",
                "string": "BYTES", "binary": "BYTES", "datetime": "BYTES"}


def inputs_of(content, features, name):
    """(declaration of the inputs, what makes a batch of them the model's argument). Without a signature there is one input
    `name` of `features` numbers. Raises ModelError."""
    fields = fields_of(content)
    if not fields:
        if features is None:
            raise ModelError("MLmodel has no signature, and the model does not know how many features it has: log it with an "
                             "input_example, or write a model.py")
        return {name: ("FP32", [int(features)])}, lambda batch: batch[name]
    if fields[0].get("type") == "tensor":
        return tensors_of(fields, name)
    if any("name" not in field for field in fields):
        return unnamed_of(fields, name)
    names = [field["name"] for field in fields]
    if len(set(names)) < len(names):
        raise ModelError(f"MLmodel: the signature has several columns '{max(names, key=names.count)}'")
    return columns_of(fields)


def fields_of(content):
    signature = content.get("signature") or {}
    if not isinstance(signature, dict):
        raise ModelError("MLmodel: 'signature' must be a table")
    text = signature.get("inputs")
    if text is None:
        return []
    try:
        fields = json.loads(text)
    except (TypeError, ValueError) as error:
        raise ModelError(f"MLmodel: 'inputs' of the signature is no JSON: {error}") from error
    if not isinstance(fields, list) or not all(isinstance(field, dict) for field in fields):
        raise ModelError("MLmodel: 'inputs' of the signature must be a list of objects")
    return fields


def columns_of(fields):
    declared, kinds = {}, {}
    for field in fields:
        kinds[field["name"]] = type_of(field)
        declared[field["name"]] = (COLUMN_TYPES[kinds[field["name"]]], [1])
    return declared, lambda batch: table_of({name: column_of(batch[name], kind) for name, kind in kinds.items()})


def type_of(field):
    kind = field.get("type")
    if kind not in COLUMN_TYPES:
        raise ModelError(f"MLmodel: column '{field.get('name', '')}' of the signature has the type {kind!r}: served are "
                         f"{', '.join(COLUMN_TYPES)}")
    return kind


def unnamed_of(fields, name):
    """Columns without names are the values of a row, in their order."""
    kinds = {type_of(field) for field in fields}
    if len(kinds) > 1 or "datetime" in kinds:
        raise ModelError(f"MLmodel: the columns of the signature have the types {', '.join(sorted(kinds))} and no names: "
                         "log the model with a table that has names")
    kind = kinds.pop()
    return {name: (COLUMN_TYPES[kind], [len(fields)])}, lambda batch: text_of(batch[name], kind)


def tensors_of(fields, name):
    declared = {}
    for position, field in enumerate(fields):
        specification = field.get("tensor-spec") or {}
        shape, dtype = specification.get("shape"), specification.get("dtype")
        if dtype not in NUMPY_NAMES or not isinstance(shape, list) or shape[:1] != [-1] or -1 in shape[1:]:
            raise ModelError(f"MLmodel: tensor {position} of the signature has the type {dtype!r} and the shape {shape!r}: its "
                             "type must be one of numbers, and only the first dimension may vary")
        declared[field.get("name", name)] = (NUMPY_NAMES[dtype], shape[1:])
    if len(fields) == 1 and "name" not in fields[0]:
        return declared, lambda batch: batch[name]
    return declared, dict


def column_of(values, kind):
    import numpy as np  # here, so that a missing numpy can be reported as an error like any other

    values = values[:, 0]
    if kind == "datetime":
        return np.array([np.datetime64(text.decode() or "1970-01-01") for text in values], "datetime64[ns]")
    return text_of(values, kind)


def text_of(values, kind):
    if kind != "string":
        return values
    import numpy as np

    return np.array([text.decode(errors="replace") for text in values.ravel()], object).reshape(values.shape)


def table_of(columns):
    """Of pandas; where that is not installed an array, which is what models get that do not choose columns by name."""
    try:
        import pandas
    except ModuleNotFoundError:
        import numpy as np

        return np.column_stack(list(columns.values()))
    return pandas.DataFrame(columns)
