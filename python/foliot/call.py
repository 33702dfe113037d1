"""One call of predict: what it gets, and the check of what it returns."""

import sys
import time
import traceback

import numpy as np

from foliot.loading import describe, place_of
from foliot.rows import RowError, Rows

TRACEBACKS_MAX = 64  # different ones that are printed
# The server ends a process whose call takes four times what is expected and a second.
ISOLATION_SECONDS = 0.5


class CallFailed(Exception):
    """This call has no outputs, or some of its rows have none; the message says why. The next call may have."""

    def __init__(self, message, rows=None):
        super().__init__(message)
        self.rows = rows  # {position: why} of those that have none; None: all, for this reason


class Caller:
    """Calls a model's predict and copies what it returns to where it belongs.

    A failure's traceback goes to standard error once for each line and type of exception.
    """

    def __init__(self, model, folder):
        self._predict = model.predict
        self._called = model.called
        self._folder = folder
        self._printed = set()
        self._bounded = [tensor.name for tensor in model.description.inputs if tensor.bounded]

    def call(self, inputs, outputs):
        """inputs, outputs: {name: array or Rows}, all with the same number of rows. Raises CallFailed.

        Where predict fails on several rows, halves of them are computed until each that fails is alone, since rows are
        different clients'. Rows that are not known to be good after ISOLATION_SECONDS count as failed.
        """
        if self._bounded:
            inputs = inputs | {name: inputs[name].read() for name in self._bounded}
        try:
            self._call(inputs, outputs)
        except CallFailed as failure:
            rows = len(next(iter(inputs.values())))
            if rows == 1:
                raise
            failed = self._failed_rows(range(rows), failure, inputs, outputs, time.monotonic() + ISOLATION_SECONDS)
            if failed:
                raise CallFailed(str(failure), failed) from None

    def _failed_rows(self, rows, failure, inputs, outputs, end):
        """{row: why} of those among `rows`, on which predict has failed together."""
        if len(rows) == 1:
            return {rows[0]: str(failure)}
        failed = {}
        for half in (rows[:len(rows) // 2], rows[len(rows) // 2:]):
            if time.monotonic() > end:
                failed |= dict.fromkeys(half, "")  # another client's row may be the reason
                continue
            part = slice(half.start, half.stop)
            try:
                self._call({name: array[part] for name, array in inputs.items()},
                           {name: array[part] for name, array in outputs.items()})
            except CallFailed as half_failure:
                failed |= self._failed_rows(half, half_failure, inputs, outputs, end)
        return failed

    def _call(self, inputs, outputs):
        try:
            # A dict of its own, since predict may change it.
            returned = self._predict(dict(inputs))
        except BaseException as error:  # noqa: BLE001: also SystemExit
            self._print_once(error)
            raise CallFailed(f"{self._called} raised {describe(error, self._folder)}") from None
        if returned.__class__ is not dict and not isinstance(returned, dict):
            raise CallFailed(f"predict returned {kind_of(returned)}: it must be a dict of the outputs {names_of(outputs)}")
        if returned.keys() != outputs.keys():
            raise CallFailed(f"predict returned the outputs {names_of(returned)}: declared are {names_of(outputs)}")
        for name, wanted in outputs.items():
            write(name, returned[name], wanted)

    def _print_once(self, error):
        key = type(error), place_of(error, self._folder)
        if key not in self._printed and len(self._printed) < TRACEBACKS_MAX:
            self._printed.add(key)
            traceback.print_exception(error, file=sys.stderr)


def write(name, value, target):
    """Copies an output to `target`: its shape must be the same, or within the bound, its data type one that numpy casts
    within its kind or to a wider one. Raises CallFailed."""
    if isinstance(target, Rows):
        try:
            return target.write(value)
        except RowError as error:
            raise CallFailed(f"output '{name}' {error}") from None
    if not isinstance(value, np.ndarray):
        try:
            value = np.asarray(value)
        except Exception as error:  # noqa: BLE001: of any library that has arrays
            raise CallFailed(f"output '{name}' is {kind_of(value)}, not an array: {type(error).__name__}: {error}") from None
    if value.shape != target.shape:
        raise CallFailed(f"output '{name}' has the shape {list(value.shape)}: for {target.shape[0]} rows it must be "
                         f"{list(target.shape)}")
    try:
        np.copyto(target, value, "same_kind")
    except TypeError:
        raise CallFailed(f"output '{name}' has the data type {value.dtype}, which is not cast to {target.dtype} by itself: "
                         f"declare another, or return it .astype(numpy.{target.dtype.name})") from None


def kind_of(value):
    return "None" if value is None else f"a value of type {type(value).__name__}"


def names_of(tensors):
    return "[" + ", ".join(repr(name) for name in tensors) + "]"
