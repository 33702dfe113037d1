"""Reads the event log of `foliot serve --event-log FILE.csv`."""

import csv
import dataclasses


@dataclasses.dataclass(frozen=True)
class Event:
    """One row: an action (type LOAD, UNLOAD or INFER), a request, or, last and only
    if the log could not keep up, "dropped" with their number as id. Times are in
    microseconds since the server started."""

    kind: str
    id: int
    type: str
    model: str
    batch: int
    start_us: float
    end_us: float
    expected_us: float
    earliest_us: float
    latest_us: float
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
                number(row["earliest_us"], float),
                float(row["latest_us"] or "inf"),
                row["status"],
            )
            for row in csv.DictReader(file)
        ]


def breaches(events, pages_of, pages_total):
    """What the log shows that must never happen, as sentences: two actions of an
    executor at the same time, one outside its window, more pages in use than there are, an UNLOAD or an
    INFER of what is not loaded, a request answered twice."""
    found = [f"the log lacks {e.id} events" for e in events if e.kind == "dropped"]
    done = sorted((e for e in events if e.kind == "action" and e.status == "done"), key=lambda e: (e.end_us, e.id))
    for kind in ("LOAD", "INFER"):
        lane = sorted((e for e in done if e.type == kind), key=lambda e: e.start_us)
        found += [f"{kind} {b.id} began before {kind} {a.id} had ended" for a, b in zip(lane, lane[1:])
                  if b.start_us < a.end_us]

    found += [f"{e.type} {e.id} began at {e.start_us}, outside {e.earliest_us} to {e.latest_us}" for e in done
              if not e.earliest_us <= e.start_us <= e.latest_us]

    loaded = set()
    for event in done:
        if event.type == "LOAD":
            if event.model in loaded:
                found.append(f"LOAD {event.id} of {event.model}, which was loaded")
            loaded.add(event.model)
            used = sum(pages_of(model) for model in loaded)
            if used > pages_total:
                found.append(f"LOAD {event.id}: {used} pages in use of {pages_total}")
        elif event.model not in loaded:
            found.append(f"{event.type} {event.id} of {event.model}, which was not loaded")
        if event.type == "UNLOAD":
            loaded.discard(event.model)

    requests = [e.id for e in events if e.kind == "request"]
    if len(requests) != len(set(requests)):
        found.append("a request was answered twice")
    return found
