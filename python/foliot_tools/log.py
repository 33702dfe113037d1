"""Reads the log that --log FOLDER of `foliot serve`, `controller` or `worker` wrote."""

import csv
import dataclasses
import math
import pathlib


@dataclasses.dataclass(frozen=True)
class Request:
    """A line of requests.csv. Times are in microseconds since the server started;
    nan where there is none."""

    id: int
    model: str
    bucket: int
    arrival_us: float
    deadline_us: float
    slo_us: float
    queue_length: int
    cold_start: int
    returns: int
    status: str
    departure_us: float
    earliest_completion_us: float
    load: int | None
    action: int | None
    device: int | None
    batch_size: int
    exec_start_us: float
    input_us: float
    exec_us: float
    output_us: float
    client_id: str  # as it is escaped; empty: the client gave none
    client_id_bytes: int | None  # of all of it, if only its beginning was kept
    class_: str  # deadline, best_effort or offline
    task: str  # for which the model was chosen; empty: the call named the model
    selection: str  # by which an application asked it, escaped; empty: none did
    unmet: str  # what no variant of its task satisfied: accuracy or cost; empty: that is not why it was refused


@dataclasses.dataclass(frozen=True)
class Action:
    """A line of actions.csv, in the same units. The window of an UNLOAD has no end:
    `latest_us` is nan."""

    id: int
    type: str
    device: int
    model: str
    pages: int
    sent_us: float
    outcome_us: float
    earliest_us: float
    latest_us: float
    expected_start_us: float
    expected_end_us: float
    expected_us: float
    start_us: float
    end_us: float
    duration_us: float
    status: str
    queue_length: int
    bucket: int
    batch_size: int
    input_us: float
    output_us: float
    output_end_us: float
    rows: int
    requests: tuple
    kind: str  # of the device
    lane: int  # the first of the lanes that it took
    lanes: int  # so many


@dataclasses.dataclass(frozen=True)
class Log:
    """All records in the order of their ids, and how many the log lacks."""

    requests: list
    actions: list
    dropped: int

    def done(self):
        """The actions that were done."""
        return [action for action in self.actions if action.status == "done"]


CONVERT = {
    int: int,
    str: str,
    float: lambda text: float(text) if text else math.nan,
    int | None: lambda text: int(text) if text else None,
    tuple: lambda text: tuple(int(request) for request in text.split()),
}


def read_log(folder):
    requests, dropped_requests = read_records(Request, folder, "requests")
    actions, dropped_actions = read_records(Action, folder, "actions")
    return Log(requests, actions, dropped_requests + dropped_actions)


def read_records(kind, folder, stem):
    """(records, number of those that are missing)."""
    fields = [(field.name, field.name.rstrip("_"), CONVERT[field.type]) for field in dataclasses.fields(kind)]
    records, dropped = [], 0
    for name in (f"{stem}.previous.csv", f"{stem}.csv"):
        path = pathlib.Path(folder) / name
        if name.endswith(".previous.csv") and not path.exists():
            continue
        with open(path, newline="") as file:
            lines = []
            for line in file:
                if line.startswith("# dropped "):
                    dropped += int(line.split()[2])
                else:
                    lines.append(line)
        records += [kind(**{name: convert(row[column]) for name, column, convert in fields}) for row in csv.DictReader(lines)]
    return sorted(records, key=lambda record: record.id), dropped


def breaches(log, pages_of, pages_total):
    """What the log shows that must never happen, as sentences: two actions of an
    executor at the same time, one outside its window, more pages in use than a device
    has, an UNLOAD or an INFER of what is not loaded, a request answered twice."""
    found = [f"the log lacks {log.dropped} records"] if log.dropped else []
    done = sorted(log.done(), key=lambda action: (action.end_us, action.id))
    found += [f"{a.type} {a.id} began at {a.start_us}, outside {a.earliest_us} to {a.latest_us}" for a in done
              if a.start_us < a.earliest_us or a.start_us > a.latest_us]
    for device in {action.device for action in done}:
        found += breaches_of_device([a for a in done if a.device == device], pages_of, pages_total)
    ids = [request.id for request in log.requests]
    if len(ids) != len(set(ids)):
        found.append("a request was answered twice")
    return found


def breaches_of_device(done, pages_of, pages_total):
    found = []
    loads = [action for action in done if action.type == "LOAD"]
    infers = [action for action in done if action.type == "INFER"]
    lanes = range(max((infer.lane + infer.lanes for infer in infers), default=0))
    for alone in (loads, *([infer for infer in infers if infer.lane <= lane < infer.lane + infer.lanes] for lane in lanes)):
        in_order = sorted(alone, key=lambda action: action.start_us)
        found += [f"{b.type} {b.id} began before {a.type} {a.id} had ended" for a, b in zip(in_order, in_order[1:])
                  if b.start_us < a.end_us]
    loaded = set()
    for action in done:
        if action.type == "LOAD":
            if action.model in loaded:
                found.append(f"LOAD {action.id} of {action.model}, which was loaded")
            loaded.add(action.model)
            used = sum(pages_of(model) for model in loaded)
            if used > pages_total:
                found.append(f"LOAD {action.id}: {used} pages in use of {pages_total}")
        elif action.model not in loaded:
            found.append(f"{action.type} {action.id} of {action.model}, which was not loaded")
        if action.type == "UNLOAD":
            loaded.discard(action.model)
    return found
