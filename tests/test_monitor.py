"""The monitor page and its feed at the metrics port, and `foliot top`: what they say is what the metrics and
the log say, of a server and of a controller."""

import json
import re
import socket
import subprocess
import urllib.error
import urllib.request

import pytest

from foliot_tools import onnx_models
from foliot_tools.bench import bench
from foliot_tools.cluster import Cluster
from foliot_tools.log import read_log
from foliot_tools.server import ROOT, Server, foliot_binary
from foliot_tools.waiting import eventually

HOSTILE = "<img src=x onerror=alert(1)>"
PAGE = ROOT / "src/observe/monitor/page"


def get(port, path, headers=None):
    """(status, headers, body) of a GET at the metrics port."""
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers=headers or {})
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read()


def feed(port, since=""):
    status, _, body = get(port, f"/monitor/feed?since={since}")
    assert status == 200 and len(body) <= 1_000_000
    return json.loads(body)


def metrics_outcomes(port):
    """Requests (rows) by how the controller ended them, as the metrics have them."""
    text = get(port, "/metrics")[2].decode()
    found = re.findall(r'^foliot_controller_requests_total\{outcome="(\w+)"\} (\S+)$', text, re.MULTILINE)
    return {outcome: int(float(count)) for outcome, count in found if float(count) > 0}


@pytest.fixture(name="observed", scope="module")
def server_under_load(tmp_path_factory):
    """(a server that has nothing to do any more, the folder of its log), of four models, one of a hostile name,
    of which its page cache holds some."""
    folder = tmp_path_factory.mktemp("monitor")
    for i, name in enumerate(("model_0", "model_1", "model_2", HOSTILE)):
        onnx_models.random_dense_network(folder / "models" / name / "model.onnx", (64, 128, 10), seed=i)
    log = folder / "log"
    with Server(folder / "models", folder / "console", page_size="64KiB", page_cache="128KiB", log=log) as server:
        bench(server.grpc, "all", rate=150, duration="2s", deadline="50ms")
        bench(server.grpc, "model_0", rate=50, duration="1s", deadline="20us")
        yield server, log


def settled(server):
    """An answer of the feed when no action is under way."""

    def still():
        answer = feed(server.metrics_port)
        return answer if all(device["actions"] == 0 for device in answer["devices"]) else None

    return eventually(still)


def test_counts_equal_the_metrics(observed):
    server, _ = observed
    answer = settled(server)
    counts = metrics_outcomes(server.metrics_port)
    assert answer["outcomes"] == counts
    assert counts["served"] > 100 and sum(counts.values()) > counts["served"], "some were refused"
    by_model = {}
    for model in answer["models"]:
        assert model["waiting"] == model["sent"] == 0
        assert model["arrivals"] == sum(model["outcomes"].values())
        for outcome, count in model["outcomes"].items():
            by_model[outcome] = by_model.get(outcome, 0) + count
    assert by_model == counts
    assert {model["name"] for model in answer["models"]} == {"model_0", "model_1", "model_2", HOSTILE}


def over(answer):
    return {action["id"]: action for action in answer["actions"] if "status" in action}


def test_intervals_equal_the_log(observed):
    server, folder = observed
    answer = settled(server)
    shown = over(answer)

    def written():
        log = read_log(folder)
        return log if len(log.actions) >= len(shown) and len(log.requests) >= len(answer["requests"]) else None

    log = eventually(written)
    logged = {action.id: action for action in log.actions}
    assert log.dropped == 0 and logged.keys() == shown.keys() and len(shown) > 50
    # Both count from an origin of their own: it is the same for all instants.
    any_id = next(iter(shown))
    origin = shown[any_id]["sent"] - round(logged[any_id].sent_us * 1000)
    types = set()
    for number, action in logged.items():
        drawn = shown[number]
        types.add(action.type)
        assert (drawn["type"], drawn["model"], drawn["device"]) == (action.type, action.model, action.device)
        assert drawn["status"] == action.status
        for instant, of_log in (("sent", action.sent_us), ("begin", action.start_us), ("end", action.end_us)):
            assert drawn[instant] - origin == round(of_log * 1000), (number, instant)
        if action.type == "UNLOAD":
            continue
        for instant, of_log in (("expected_begin", action.expected_start_us), ("expected_end", action.expected_end_us)):
            assert drawn[instant] - origin == round(of_log * 1000), (number, instant)
        if action.type == "INFER":
            assert (drawn["lane"], drawn["lanes"], drawn["rows"], drawn["batch"]) == (
                action.lane, action.lanes, action.rows, action.batch_size)
    assert types == {"LOAD", "UNLOAD", "INFER"}
    of_feed = {int(request["id"]): request for request in answer["requests"]}
    assert of_feed.keys() == {request.id for request in log.requests}
    for request in log.requests:
        drawn = of_feed[request.id]
        assert (drawn["model"], drawn["outcome"]) == (request.model, request.status)
        assert drawn["arrival"] - origin == round(request.arrival_us * 1000)
        assert drawn["finished"] - origin == round(request.departure_us * 1000)
        assert drawn.get("action") == request.action or request.status != "served"
    assert any("earliest" in request for request in answer["requests"] if request["outcome"] == "unmeetable")


def test_since_gives_the_rest_or_everything(observed):
    server, _ = observed
    answer = settled(server)
    again = feed(server.metrics_port, answer["next"])
    assert (again["full"], again["lost"], again["actions"], again["requests"]) == (False, 0, [], [])
    process, _, number = answer["next"].partition(".")
    assert process == answer["process"]
    for since in ("", "0", number, f"{process}.{int(number) + 1}", f"{process}.-1", f"{process}x.1", "1234.5", "%00", "a" * 4000):
        whole = feed(server.metrics_port, since)
        assert whole["full"] and len(whole["actions"]) == len(answer["actions"]), since
    assert not feed(server.metrics_port, f"{process}.0")["full"]
    assert get(server.metrics_port, "/monitor/feed")[0] == 200
    later = bench(server.grpc, "model_1", rate=100, duration="200ms", deadline="50ms")
    rest = feed(server.metrics_port, answer["next"])
    assert not rest["full"] and rest["now"] > answer["now"]
    assert 0 < len(rest["requests"]) < len(answer["requests"]) and later is not None


def test_the_page_is_served_with_a_strict_policy(observed):
    server, _ = observed
    status, headers, page = get(server.metrics_port, "/")
    assert status == 200 and headers["Content-Type"] == "text/html; charset=utf-8"
    policy = headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; ") and "unsafe" not in policy and "http" not in policy
    total = len(page)
    assert b"<script>" not in page and b"style=" not in page and b"onclick" not in page
    linked = re.findall(r'(?:src|href)="(monitor/[^"]+)"', page.decode())
    imported = {f"monitor/{name}" for file in PAGE.glob("*.js") for name in re.findall(r"from '\./(\w+\.js)'", file.read_text())}
    assert {"monitor/page.js", "monitor/style.css"} <= set(linked) and len(imported) >= 3
    for path in imported | set(linked):
        status, headers, body = get(server.metrics_port, f"/{path}")
        assert status == 200 and headers["Content-Security-Policy"] == policy
        kind = {"css": "text/css; charset=utf-8", "svg": "image/svg+xml", "js": "text/javascript; charset=utf-8"}
        assert headers["Content-Type"] == kind[path.rpartition(".")[2]]
        assert body == (PAGE / path.removeprefix("monitor/")).read_bytes()
        total += len(body)
    assert total <= 300_000
    assert get(server.metrics_port, "/monitor/nothing.js")[0] == 404 and get(server.metrics_port, "/monitor/../page.js")[0] == 404


def test_names_are_text_and_no_other_host_is_asked():
    for file in PAGE.iterdir():
        text = file.read_text()
        for never in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "http://", "https://"):
            assert never not in text.replace("http://www.w3.org/2000/svg", ""), f"{file.name}: {never}"


def top(*arguments):
    return subprocess.run([foliot_binary(), "top", *arguments], capture_output=True, text=True, check=False, timeout=30)


def test_top_says_the_same(observed):
    server, _ = observed
    answer = settled(server)
    url = f"127.0.0.1:{server.metrics_port}"
    one = json.loads(top("--once", "--json", url).stdout)
    assert one["outcomes"] == answer["outcomes"] and one["models"] == answer["models"]
    shown = top("--once", url)
    assert shown.returncode == 0 and shown.stderr == ""
    assert f"in time {answer['outcomes']['served']} " in shown.stdout
    row = next(line.split() for line in shown.stdout.splitlines() if line.startswith("model_0"))
    outcomes = next(model["outcomes"] for model in answer["models"] if model["name"] == "model_0")
    assert [int(row[1]), int(row[2])] == [outcomes["served"], sum(outcomes.values()) - outcomes["served"]]
    assert HOSTILE in shown.stdout
    wrong = top("--once", server.http)
    assert wrong.returncode == 1 and wrong.stderr.startswith("foliot top: ")


def new_key(keys, name, scope):
    made = subprocess.run([foliot_binary(), "keys", "new", name, "--scope", scope], capture_output=True, text=True, check=True)
    with keys.open("a") as file:
        file.write(made.stdout)
    return made.stderr.splitlines()[-1]


def test_the_feed_needs_a_key_and_the_page_asks_for_it(serve, small_models, tmp_path):
    keys = tmp_path / "keys.toml"
    reader, other = new_key(keys, "viewer", "metrics"), new_key(keys, "app", "infer")
    port = serve(small_models, keys=keys, cache=tmp_path / "cache").metrics_port
    assert get(port, "/monitor/feed")[0] == 401 and get(port, "/metrics")[0] == 401
    assert get(port, "/monitor/feed", {"Authorization": f"Bearer {other}"})[0] == 403
    assert get(port, "/monitor/feed", {"Authorization": f"Bearer {reader}"})[0] == 200
    assert get(port, "/")[0] == 200 and get(port, "/monitor/page.js")[0] == 200
    assert top("--once", f"127.0.0.1:{port}").returncode == 1
    (tmp_path / "key").write_text(reader + "\n")
    assert top("--once", "--key-file", tmp_path / "key", f"127.0.0.1:{port}").returncode == 0


def said_of(port, query):
    """What the server says of a request; None: it knows none."""
    status, _, body = get(port, f"/monitor/explanation?{query}")
    assert status in (200, 404)
    return body.decode() if status == 200 else None


def test_a_request_is_explained_as_by_the_command(observed):
    server, log = observed
    request = next(each for each in settled(server)["requests"] if each["outcome"] == "unmeetable")
    done = subprocess.run([foliot_binary(), "explain", "--log", log, request["id"]], capture_output=True, text=True, check=True)
    assert said_of(server.metrics_port, f"request={request['id']}") == done.stdout
    assert said_of(server.metrics_port, "request=1") is None and said_of(server.metrics_port, "id=nothing") is None
    for wrong in ("", "?request=x", "?request=-1", "?what=1", "?request=1%"):
        assert get(server.metrics_port, f"/monitor/explanation{wrong}")[0] == 400, wrong


def test_without_a_log_the_server_says_how_to_keep_one(small_server):
    status, _, body = get(small_server.metrics_port, "/monitor/explanation?request=1")
    assert status == 404 and b"--log" in body


def unexplained(text):
    """(ms without a reason, ms in all) of an explanation of an answer. EXEC and OUTPUT are reasons themselves."""
    parts = text.split("Where the time went:\n")[1]
    in_all, rest = 0.0, 0.0
    for line in parts.splitlines():
        milliseconds, what = re.fullmatch(r" *([0-9.]+) ms  (.*)", line).groups()
        if what.startswith("while "):
            rest -= float(milliseconds)
        elif what.startswith(("queued", "on the device")):
            rest += float(milliseconds)
        elif what == "in all":
            in_all = float(milliseconds)
    return rest, in_all


def test_no_time_of_an_answer_is_without_a_reason(observed):
    server, _ = observed
    served = [each["id"] for each in settled(server)["requests"] if each["outcome"] == "served"]
    sums = [unexplained(said_of(server.metrics_port, f"request={number}")) for number in served]
    assert len(sums) > 100
    without, together = (sum(each) for each in zip(*sums, strict=True))
    print(f"{len(sums)} answers: {without:.2f} of {together:.2f} ms without a reason")
    # Numbers are rounded to 0.01 ms.
    assert without <= 0.02 * together + 0.03 * len(sums)


def test_a_controller_shows_its_workers(small_models, tmp_path):
    with Cluster(tmp_path, small_models, workers=2, frontends=1, metrics=True) as cluster:
        bench(cluster.frontends[0].grpc, "dense", rate=50, duration="1s", deadline="100ms")
        port = cluster.controller.metrics_port
        assert len(feed(port)["devices"]) == 2
        eventually(lambda: feed(port)["outcomes"] == metrics_outcomes(port))
        assert get(port, "/")[0] == 200
        assert get(cluster.frontends[0].metrics_port, "/")[0] == 404
        cluster.workers[0].kill()
        states = eventually(lambda: (lambda all_: all_ if "lost" in all_ else None)(
            [device["state"] for device in feed(port)["devices"]]))
        assert sorted(states) == ["lost", "up"]


def test_viewers_that_do_not_read_leave_room_for_others(serve, small_models, tmp_path):
    server = serve(small_models, cache=tmp_path / "cache")
    bench(server.grpc, "dense", rate=1500, duration="3s", deadline="50ms")  # so that an answer is too long for a socket
    viewers = []
    for _ in range(15):
        viewer = socket.socket()
        viewer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        viewer.connect(("127.0.0.1", server.metrics_port))
        viewer.sendall(b"GET /monitor/feed HTTP/1.1\r\nHost: x\r\n\r\n")
        viewers.append(viewer)
    assert [viewer.recv(12) for viewer in viewers] == [b"HTTP/1.1 200"] * len(viewers)
    assert len(json.dumps(feed(server.metrics_port))) > 500_000
    for viewer in viewers:
        viewer.close()
