"""How model.py names its model: exactly one function, by @foliot.model or through a ready-made adapter."""

import dataclasses
from collections.abc import Callable

from foliot.description import Description, ModelError, make_description


@dataclasses.dataclass(frozen=True)
class Model:
    """`predict` takes {input: array} and returns {output: array}, each with a row for each request."""

    description: Description
    predict: Callable
    called: str = "predict"  # in errors
    source: object = None  # what an adapter has read of a file
    method: str = "predict"  # of it, whose answer the first output is


# Of this process, in the order of their registration; a process serves one model.py.
registered: list[Model] = []


def model(function=None, /, *, inputs=None, outputs=None, batch_size_max=None):
    """Declares that the decorated function is the container's model.

    inputs, outputs: {name: (data type, shape of one row)}. The function gets {name: array [rows, ...]}, with the rows of
    1 to `batch_size_max` requests (default: what model.toml allows), and returns the same of its outputs. Its arrays are
    valid during the call and can be read only.
    """
    if function is not None or inputs is None or outputs is None:
        raise ModelError('@foliot.model needs inputs and outputs: @foliot.model(inputs={"x": ("FP32", [784])}, '
                         'outputs={"y": ("INT64", [])})')
    description = make_description(inputs, outputs, batch_size_max)

    def register(predict):
        if not callable(predict):
            raise ModelError(f"@foliot.model decorates {predict!r}: it must be a function")
        registered.append(Model(description, predict))
        return predict

    return register


def the_model():
    """The one model that model.py has registered. Raises ModelError."""
    if not registered:
        raise ModelError("model.py declares no model: decorate one function with @foliot.model(inputs=..., outputs=...), "
                         "or call a ready-made adapter such as foliot.sklearn(PATH)")
    if len(registered) > 1:
        names = ", ".join(repr(getattr(each.predict, "__name__", "?")) for each in registered)
        raise ModelError(f"model.py declares {len(registered)} models ({names}): a container has one; keep one, "
                         "and make a container of each other")
    return registered[0]
