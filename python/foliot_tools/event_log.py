"""Reads the event log of `foliot serve --event-log FILE.csv`."""

import csv
import dataclasses


@dataclasses.dataclass(frozen=True)
class Event:
    """One row: an action (type LOAD, UNLOAD or INFER) or a request. Times are in
    microseconds since the server started."""

    kind: str
    id: int
    type: str
    model: str
    batch: int
    start_us: float
    end_us: float
    expected_us: float
    status: str


def read_event_log(path):
    """All events, in the order in which they were written."""
    def number(text, kind):
        return kind(text) if text else kind(0)

    with open(path, newline="") as file:
        return [
            Event(
                row["kind"],
                number(row["id"], int),
                row["type"],
                row["model"],
                number(row["batch"], int),
                number(row["start_us"], float),
                number(row["end_us"], float),
                number(row["expected_us"], float),
                row["status"],
            )
            for row in csv.DictReader(file)
        ]
