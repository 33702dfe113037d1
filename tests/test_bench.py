"""`foliot bench --workload`: the file that a simulation plays drives a server, with the
same arrivals; what is wrong with it is named by file, line and key."""

import json
import subprocess

import pytest

from foliot_tools.server import foliot_binary

WORKLOAD = """
duration = "3s"
warm_up = "1s"
seed = 5
preload = true
[cluster]
devices = 1
[[models]]
name = "dense"
profile = "resnet18"
slo = "2s"
[[models]]
name = "pair"
profile = "mobile_pose_mobilenetv3"
[[streams]]
name = "bursty"
arrivals = "gamma"
coefficient_of_variation = 3
rate = 150
zipf = 1.0
[[streams]]
name = "urgent"
models = "dense"
rate = 60
slo = "1us"
[[streams]]
name = "relaxed"
models = "pair"
concurrency = 2
think_time = "50ms"
best_effort = true
"""


def foliot(*arguments):
    return subprocess.run([foliot_binary(), *map(str, arguments)],
                          capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture
def workload(tmp_path):
    """workload(text) writes a workload file."""

    def write(text=WORKLOAD):
        path = tmp_path / "workload.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def play(file, protocol, server, *flags):
    url = {"grpc": server.grpc, "http": server.http}[protocol]
    result = foliot("bench", "--workload", file, "--protocol", protocol, "--url", url, "--json", "-", *flags)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_each_stream_is_played_with_its_own_deadline(workload, small_server, protocol):
    report = play(workload(), protocol, small_server)
    streams = {stream["name"]: stream for stream in report["streams"]}
    assert streams["bursty"]["offered"] > 200
    assert streams["urgent"]["good"] == 0  # no server answers in a microsecond
    assert streams["urgent"]["offered"] > 60
    assert streams["relaxed"]["good"] == streams["relaxed"]["offered"] > 2
    assert sum(stream["offered"] for stream in report["streams"]) == report["offered"]
    assert sum(model["offered"] for model in report["models"]) == report["offered"]


def test_arrivals_are_those_of_the_simulation(workload, small_server, tmp_path):
    file = workload(WORKLOAD[:WORKLOAD.rindex("[[streams]]")])  # without the closed loop
    simulated = foliot("simulate", file, "--output", tmp_path / "out")
    assert simulated.returncode == 0, simulated.stderr
    groups = json.loads((tmp_path / "out/foliot.json").read_text(encoding="utf-8"))["groups"]

    def offered(entries):
        return {entry["name"]: entry["offered"] for entry in entries}

    assert offered(play(file, "grpc", small_server)["models"]) == offered(groups)
    assert offered(play(file, "grpc", small_server, "--seed", 6)["models"]) != offered(groups)


def change(old, new):
    assert old in WORKLOAD
    return WORKLOAD.replace(old, new)


@pytest.mark.parametrize("text, message", [
    (change("rate = 150", "rate = -150"), "workload.toml:19: 'rate' must be above 0"),
    (change("zipf = 1.0", "zipff = 1.0"), "workload.toml:20: unknown key 'zipff'; known here are"),
    (change("duration = \"3s\"", "duration = 3"), "workload.toml:2: 'duration'"),
    (change("models = \"dense\"", "models = \"dens\""), "models 'dens' do not exist"),
    (change("name = \"pair\"", "name = \"pear\"").replace("models = \"pair\"", "models = \"pear\""),
     "has no model 'pear' that is ready; it has dense, fixed, pair"),
])
def test_errors_name_what_is_wrong(workload, small_server, text, message):
    result = foliot("bench", "--workload", workload(text), "--url", small_server.grpc)
    assert result.returncode == 1
    assert message in result.stderr


def test_flags_of_a_stream_and_a_workload_exclude_each_other(workload):
    result = foliot("bench", "--workload", workload(), "--rate", 5)
    assert result.returncode != 0
    assert "excludes" in result.stderr
