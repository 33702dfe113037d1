"""The log of a server, `foliot explain` and `foliot trace export`."""

import collections
import json
import subprocess

import pytest

from foliot_tools import onnx_models
from foliot_tools.bench import bench
from foliot_tools.cluster import Cluster
from foliot_tools.log import breaches, read_log
from foliot_tools.server import ROOT, Server, foliot_binary

MODELS = 6
PAGES = 4


@pytest.fixture(scope="module")
def log_folder(tmp_path_factory):
    """The log of a server whose page cache holds 4 of 6 models, under more load
    than it can carry."""
    folder = tmp_path_factory.mktemp("explain")
    for i in range(MODELS):
        onnx_models.random_dense_network(folder / f"models/model_{i}/model.onnx", (64, 128, 10), seed=i)
    log = folder / "the log"
    with Server(folder / "models", folder / "console", page_size="64KiB", page_cache=f"{64 * PAGES}KiB",
                log=log) as server:
        bench(server.grpc, "all", rate=300, duration="2s", deadline="50ms")
        bench(server.grpc, "model_0", rate=50, duration="1s", deadline="20us")
        assert server.stop() == 0
    return log


def foliot(*arguments, expect=0):
    result = subprocess.run([foliot_binary(), *map(str, arguments)], capture_output=True, text=True, check=False)
    assert result.returncode == expect, result.stdout + result.stderr
    return result.stdout if expect == 0 else result.stderr


def test_the_log_joins_requests_and_actions(log_folder):
    log = read_log(log_folder)
    # Whether a window was kept is a matter of the machine's load, not of the log.
    assert not [breach for breach in breaches(log, lambda model: 1, PAGES) if "outside" not in breach]
    actions = {action.id: action for action in log.actions}
    served = [request for request in log.requests if request.status == "served"]
    assert len(served) > 100
    for request in served:
        action = actions[request.action]
        assert request.id in action.requests
        assert (action.type, action.model, action.rows) == ("INFER", request.model, len(action.requests))
        assert request.arrival_us <= action.sent_us <= action.start_us <= request.departure_us
        assert request.exec_start_us == action.start_us
        if request.load is not None:
            load = actions[request.load]
            assert (load.type, load.model, load.device) == ("LOAD", request.model, action.device)
            assert load.end_us >= request.arrival_us
    assert any(request.load is not None for request in served)
    refused = [request for request in log.requests if request.status != "served"]
    assert refused
    for request in log.requests:
        assert abs(request.deadline_us - request.arrival_us - request.slo_us) < 0.01


def test_explain_lists_and_explains(log_folder):
    log = read_log(log_folder)
    cold = next(request for request in log.requests if request.load is not None and request.status == "served")
    text = foliot("explain", cold.id, "--log", log_folder)
    assert text.startswith(f"Request {cold.id} of model '{cold.model}' was answered after ")
    assert f"It waited for LOAD {cold.load} of its model" in text
    assert f"INFER {cold.action} was sent to device 0" in text

    listing = foliot("explain", "--log", log_folder, "--limit", 7).splitlines()
    assert len(listing) == 1 + 7 + 1
    assert f"7 of {len(log.requests)} requests" in listing[-1]

    refused = foliot("explain", "--log", log_folder, "--refused", "--limit", 1000).splitlines()[1:-1]
    assert len(refused) == sum(request.status != "served" for request in log.requests)
    # Not all were refused: a client whose deadline passes may cancel first, and an answer may come late.
    other = {"cancelled": "It was given up because", "late": "Its answer came after its deadline"}
    one_of_each = {request.status: request.id for request in log.requests if request.status != "served"}
    for status, number in one_of_each.items():
        assert other.get(status, "It was refused because") in foliot("explain", number, "--log", log_folder)

    slowest = max((r for r in log.requests if r.model == "model_3"), key=lambda r: r.departure_us - r.arrival_us)
    assert foliot("explain", "--log", log_folder, "--slowest", "--model", "model_3").startswith(
        f"Request {slowest.id} of model 'model_3'")


def test_explain_says_what_is_wrong(log_folder, tmp_path):
    assert "has no request 5;" in foliot("explain", 5, "--log", log_folder, expect=1)
    assert "has no such requests" in foliot("explain", "--model", "nobody", "--log", log_folder, expect=1)
    assert "cannot read" in foliot("explain", "--log", tmp_path / "nowhere", expect=1)
    for name in ("requests.csv", "actions.csv"):
        lines = (log_folder / name).read_text().splitlines(keepends=True)
        lines[2] = lines[2][:20] + "\n"
        (tmp_path / name).write_text("".join(lines))
    assert "requests.csv:3: " in foliot("explain", "--log", tmp_path, expect=1)
    (tmp_path / "requests.csv").write_text("hello\n")
    assert "requests.csv:1: not the first line" in foliot("trace", "export", tmp_path, expect=1)


def test_the_export_is_in_the_trace_event_format(log_folder, tmp_path):
    foliot("trace", "export", log_folder, "--output", tmp_path / "trace.json")
    log = read_log(log_folder)
    trace = json.loads((tmp_path / "trace.json").read_text())
    events = collections.defaultdict(list)
    for event in trace["traceEvents"]:
        assert isinstance(event["name"], str) and isinstance(event["pid"], int) and isinstance(event["tid"], int)
        if event["ph"] != "M":
            assert event["ts"] >= 0
        events[event["ph"]].append(event)
    assert set(events) == {"M", "X", "C", "s", "f"}

    tracks = {(e["pid"], e["tid"]): e["args"]["name"] for e in events["M"] if e["name"] == "thread_name"}
    processes = {e["pid"]: e["args"]["name"] for e in events["M"] if e["name"] == "process_name"}
    assert set(processes.values()) == {"requests", "device 0"}
    device = next(pid for pid, name in processes.items() if name == "device 0")
    slices = collections.defaultdict(list)
    for event in events["X"]:
        assert event["dur"] >= 0
        slices[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    of_device = {tracks[track]: spans for track, spans in slices.items() if track[0] == device}
    infers = [action for action in log.actions if action.type == "INFER"]
    execs = {"EXEC" if infer.lane == 0 else f"EXEC on lane {infer.lane}" for infer in infers}
    assert set(of_device) == {"LOAD", "INPUT", "OUTPUT", *execs}
    assert sum(len(of_device[track]) for track in execs) == len(infers)
    assert len(of_device["LOAD"]) == len(log.actions) - len(infers)
    # On no track do two things overlap, up to the thousandths that were cut off.
    for spans in slices.values():
        spans.sort()
        assert all(b[0] >= a[1] - 0.002 for a, b in zip(spans, spans[1:]))

    # Each arrow begins at a request and ends at the EXEC that answered it.
    arrows = {event["id"]: event for event in events["f"]}
    assert {event["id"] for event in events["s"]} == set(arrows)
    assert len(arrows) == sum(request.exec_start_us > 0 for request in log.requests)
    starts = {start for track in execs for start, _ in of_device[track]}
    assert all(arrow["ts"] in starts and arrow["bp"] == "e" for arrow in arrows.values())

    counters = collections.defaultdict(list)
    for event in events["C"]:
        counters[event["name"]].append(event["args"]["value"])
    assert set(counters) == {"requests queued", "pages in use"}
    assert max(counters["pages in use"]) == PAGES and min(counters["pages in use"]) >= 0


def test_logs_of_a_cluster(small_models, tmp_path):
    """The controller's is as a server's; a worker's has its actions."""
    log = tmp_path / "log"
    with Cluster(tmp_path, small_models, workers=2, frontends=1, log=log) as cluster:
        bench(cluster.frontends[0].grpc, "dense", rate=100, duration="1s", deadline="1s")
        bench(cluster.frontends[0].grpc, "dense", rate=20, duration="1s", deadline="20us")
        for part in [*cluster.frontends, *cluster.workers, cluster.controller]:
            assert part.stop() == 0, part.output()
    records = read_log(log)
    actions = {action.id: action for action in records.actions}
    served = [request for request in records.requests if request.status == "served"]
    assert len(served) > 50
    assert all(request.id in actions[request.action].requests for request in served)
    assert "INFER" in foliot("explain", served[0].id, "--log", log)
    # A call with so little time may be given up by its client.
    refused = next(request for request in records.requests if request.status not in ("served", "cancelled"))
    assert "It was refused because" in foliot("explain", refused.id, "--log", log)
    foliot("trace", "export", log, "--output", tmp_path / "trace.json")
    names = [event["args"]["name"] for event in json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
             if event["name"] == "process_name"]
    assert {"requests", "device 0"} <= set(names)

    seen = 0
    for name in ("worker0", "worker1"):
        own = log.with_name(f"log.{name}")
        of_worker = read_log(own).actions
        seen += len(of_worker)
        for action in of_worker:
            there = actions[action.id]
            assert (action.type, action.model, action.requests) == (there.type, there.model, there.requests)
        if of_worker:
            assert "as a worker's has: ask that of its controller" in foliot("explain", "--log", own, expect=1)
        foliot("trace", "export", own, "--output", tmp_path / "worker.json")
    assert seen == len(actions)


def test_a_simulation_leaves_the_same_log_every_time(tmp_path):
    for name in ("first", "second"):
        foliot("simulate", ROOT / "examples/simulate/resnets.toml", "--scheduler", "foliot,clockwork", "--duration",
               "6s", "--log", tmp_path / name)
    for policy in ("foliot", "clockwork"):
        for file in ("requests.csv", "actions.csv"):
            first = (tmp_path / "first" / policy / file).read_bytes()
            assert first == (tmp_path / "second" / policy / file).read_bytes()
            assert first.count(b"\n") > 100
    assert "EXEC began at" in foliot("explain", "--slowest", "--log", tmp_path / "first/foliot")
    foliot("trace", "export", tmp_path / "first/foliot", "--output", tmp_path / "trace.json")
    assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
