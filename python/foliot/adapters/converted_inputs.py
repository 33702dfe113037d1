"""The inputs of a container as one table of numbers, in the order of the columns that its model was fitted on."""

import numpy as np

from foliot.description import DATATYPES, STRINGS, ModelError

# Of whole numbers: what float64 holds exactly.
WHOLE_MAX = 1 << 53


class Inputs:
    """Either one input of all features, or an input [1] for each. `names`: the columns that the model was fitted on, if it has
    names. Raises ModelError if an input is something else."""

    def __init__(self, tensors, names=()):
        self.tensors = tensors
        for tensor in tensors:
            if tensor.datatype == STRINGS:
                raise ModelError(f"its input '{tensor.name}' is text")
            if tensor.bounded or len(tensor.shape) != 1 or len(tensors) > 1 and tensor.shape != (1,):
                raise ModelError(f"its input '{tensor.name}' is no row or column of numbers")
        own = [tensor.name for tensor in tensors]
        self.is_row = len(tensors) == 1
        self.features = tensors[0].shape[0] if self.is_row else len(tensors)
        by_name = not self.is_row and sorted(names) == sorted(own)
        self.columns = [own.index(name) for name in names] if by_name else list(range(len(own)))  # of each feature its tensor
        self._dtypes = [np.dtype(DATATYPES[tensors[0 if self.is_row else column].datatype])
                        for column in (range(self.features) if self.is_row else self.columns)]

    def with_fractions(self):
        """The features that can be missing, or infinite."""
        return [feature for feature, dtype in enumerate(self._dtypes) if dtype.kind == "f"]

    def fitted(self, rows):
        """The rows [N, features], float64, with numbers in place of those that the inputs cannot hold."""
        rows = rows.copy()
        for feature, dtype in enumerate(self._dtypes):
            if dtype.kind == "f":
                continue
            values = np.nan_to_num(rows[:, feature], nan=0.0, posinf=WHOLE_MAX, neginf=-WHOLE_MAX)
            if dtype.kind == "b":
                rows[:, feature] = values > 0
                continue
            limits = np.iinfo(dtype)
            rows[:, feature] = np.rint(np.clip(values, max(limits.min, -WHOLE_MAX), min(limits.max, WHOLE_MAX)))
        return rows

    def batch(self, rows):
        """{input: array} of rows that are fitted()."""
        with np.errstate(over="ignore", invalid="ignore"):
            if self.is_row:
                return {self.tensors[0].name: rows.astype(self._dtypes[0])}
            return {self.tensors[column].name: rows[:, [feature]].astype(self._dtypes[feature])
                    for feature, column in enumerate(self.columns)}
