"""A network as its framework exported it, with rows and the framework's own answers."""

import dataclasses
from collections.abc import Callable


class NotExported(Exception):
    """The framework or its exporter does not write the network, for a reason."""


@dataclasses.dataclass
class Case:
    name: str
    model: object
    rows: dict  # input -> array
    answers: Callable  # {input: array} -> an array for each output, or None where the framework has none
    independent: bool  # whether each row is computed by itself
