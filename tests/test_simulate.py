"""`foliot simulate`: what it prints and writes, that a seed reproduces a run, and
that whatever is wrong with an experiment is named by file, line and key."""

import csv
import json
import pathlib
import re
import subprocess

import pytest

from foliot_tools.server import foliot_binary

EXAMPLES = pathlib.Path(__file__).resolve().parent.parent / "examples/simulate"
EXPERIMENT = """
duration = "4s"
warm_up = "1s"
schedulers = ["clockwork", "edf"]
[cluster]
devices = 2
[[models]]
profile = "resnet50"
count = 3
slo = "50ms"
[[models]]
profile = "resnet18"
slo = "25ms"
[[streams]]
rate = 500
"""


def simulate(*arguments):
    return subprocess.run([foliot_binary(), "simulate", *map(str, arguments)],
                          capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture
def experiment(tmp_path):
    """experiment(text) writes an experiment file."""

    def write(text):
        path = tmp_path / "experiment.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def hashes(output):
    return re.findall(r"events ([0-9a-f]{16})", output)


def test_prints_a_line_per_policy_and_the_estimate(experiment):
    result = simulate(experiment(EXPERIMENT))
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert [line.split()[0] for line in lines[1:3]] == ["clockwork", "edf"]
    assert lines[3].startswith("fluid estimate")


def test_prints_the_clairvoyant_bound_where_it_is_asked_for(experiment):
    result = simulate(experiment(EXPERIMENT), "--duration", "3s", "--bound")
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[4].startswith("clairvoyant bound")
    bound = float(lines[4].split()[3])
    for line in lines[1:3]:
        assert float(line.split()[3]) <= bound


def test_a_seed_reproduces_a_run(experiment):
    path = experiment(EXPERIMENT)
    first, second, other = simulate(path), simulate(path), simulate(path, "--seed", 2)
    assert hashes(first.stdout) == hashes(second.stdout)
    assert len(hashes(first.stdout)) == 2
    assert not set(hashes(first.stdout)) & set(hashes(other.stdout))


def test_writes_reports_and_series(experiment, tmp_path):
    out = tmp_path / "out"
    result = simulate(experiment(EXPERIMENT), "--scheduler", "fcfs", "--duration", "3s", "--output", out)
    assert result.returncode == 0, result.stderr
    report = json.loads((out / "fcfs.json").read_text(encoding="utf-8"))
    everything = report["all"]
    assert everything["offered"] == everything["good"] + sum(everything["missed"].values())
    assert report["measured_seconds"] == 2
    assert [group["name"] for group in report["groups"]] == ["resnet50", "resnet18"]
    with open(out / "fcfs.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 3
    assert sum(int(row["offered"]) for row in rows) == report["requests"]
    assert sum(int(row["resnet18.offered"]) for row in rows) < report["requests"]


def attainments(experiment, tmp_path, weight):
    """Of two groups of the same models under overload; the second has this weight."""
    path = experiment("""
duration = "4s"
warm_up = "1s"
[[models]]
name = "plain"
profile = "resnet50"
count = 5
slo = "50ms"
[[models]]
name = "dear"
profile = "resnet50"
count = 5
slo = "50ms"
weight = %s
[[streams]]
rate = 1500
""" % weight)
    result = simulate(path, "--scheduler", "foliot", "--output", tmp_path / "out")
    assert result.returncode == 0, result.stderr
    groups = json.loads((tmp_path / "out/foliot.json").read_text(encoding="utf-8"))["groups"]
    return {group["name"]: group["good"] / group["offered"] for group in groups}


def test_weight_decides_what_is_refused(experiment, tmp_path):
    alike = attainments(experiment, tmp_path, 1)
    assert abs(alike["plain"] - alike["dear"]) < 0.05
    weighed = attainments(experiment, tmp_path, 5)
    assert weighed["dear"] > alike["dear"] + 0.1
    assert weighed["plain"] < alike["plain"]


FAILING = """[[faults]]
kind = "fail"
at = "2s"
length = "1s"
"""


@pytest.mark.parametrize("actions", ['"load"', '["exec"]', '["load", "exec"]'])
def test_a_device_that_fails_costs_little(experiment, actions):
    result = simulate(experiment(EXPERIMENT + FAILING + f"actions = {actions}"))
    assert result.returncode == 0, result.stderr
    shares = re.findall(r"could have been: ([0-9.]+) %", result.stdout)
    assert len(shares) == 2 and min(map(float, shares)) > 97, result.stdout


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.stem)
def test_examples_run(example):
    # No longer than the longest warm-up, so that all of them are quick.
    result = simulate(example, "--scheduler", "clockwork", "--duration", "31s")
    assert result.returncode == 0, result.stderr


def change(old, new):
    assert old in EXPERIMENT
    return EXPERIMENT.replace(old, new)


@pytest.mark.parametrize("text, message", [
    (change("rate = 500", "rate = -500"), "experiment.toml:15: 'rate' must be above 0"),
    (change("devices = 2", "device = 2"), "experiment.toml:6: unknown key 'device'; known here are"),
    (change("devices = 2", "devices = 0"), "experiment.toml:6: 'devices' must be a whole number from 1"),
    (change("profile = \"resnet50\"", "profile = \"resnet51\""), "experiment.toml:8: 'profile' is none of densenet169"),
    (change("schedulers = [\"clockwork\", \"edf\"]", "schedulers = \"best\""), "experiment.toml:4: 'schedulers'"),
    (change("warm_up = \"1s\"", "warm_up = \"9s\""), "experiment.toml:3: 'warm_up' must be shorter than duration"),
    (change("rate = 500", "trace = {kind = \"azure-2019\", files = [\"gone.csv\"]}"), "gone.csv"),
    (EXPERIMENT + FAILING + 'actions = ["load", "input"]', "experiment.toml:20: 'actions' must be load, exec or both"),
    (EXPERIMENT + FAILING + 'factor = 2', "experiment.toml:20: unknown key 'factor'"),
    (EXPERIMENT + FAILING.replace("fail", "fails"), "'kind' must be kill, freeze, slow, delay, partition, drain, fail or away"),
    ("duration = ", "experiment.toml:1:"),
])
def test_errors_name_file_line_and_key(experiment, text, message):
    result = simulate(experiment(text))
    assert result.returncode != 0
    assert message in result.stderr


def test_plays_a_pipeline():
    result = simulate(EXAMPLES / "pipeline.toml", "--duration", "4s", "--scheduler", "foliot")
    assert result.returncode == 0, result.stderr
    runs = re.search(r"^  street +offered +(\d+) +attained +([\d.]+) %", result.stdout, re.MULTILINE)
    visits = re.search(r"^  join +offered +(\d+)", result.stdout, re.MULTILINE)
    assert int(runs[1]) > 1000
    assert float(runs[2]) > 50
    assert int(visits[1]) < int(runs[1]), "some are refused before their last stage"
    assert "fluid estimate" not in result.stdout


def test_plays_a_pipeline_whose_stage_is_visited_for_each_element():
    result = simulate(EXAMPLES / "elements.toml", "--duration", "4s", "--scheduler", "foliot")
    assert result.returncode == 0, result.stderr
    offered = {name: int(count) for name, count in re.findall(r"^  (\w+) +offered +(\d+)", result.stdout, re.MULTILINE)}
    assert offered["street"] > 1000
    mean = (4 * 1 + 2 * 2 + 3 + 5) / 11
    assert abs(offered["classify"] / offered["detect"] - mean) < 0.15


FOR_EACH = """models = "resnet50"
elements = [1, 1]
[[pipelines.stages]]
models = "resnet50"
name = "b"
after = "resnet50"
for_each = "resnet50"
"""


@pytest.mark.parametrize("stage, message", [
    ('models = "none"', "pipeline 'p': stage 'none': models 'none' do not exist"),
    ('models = "resnet50"\nafter = "second"', "stage 'resnet50': there is no stage 'second' before it"),
    ('models = "resnet50"\nshare = 0.5', "the first stage is visited by all runs: share must be 1"),
    ('models = "resnet50"\nelements = [1]', "elements must be probable to be 0, 1 and so on: at least two numbers"),
    ('models = "resnet50"\nelements = [0, -1]', "'elements' must be a list of numbers from 0 on"),
    ('models = "resnet50"\nfor_each = "resnet50"', "for_each: there is no stage 'resnet50' before it"),
    ('models = "resnet50"\n[[pipelines.stages]]\nmodels = "resnet50"\nname = "b"\nafter = "resnet50"\nfor_each = "resnet50"',
     "stage 'b': for_each: stage 'resnet50' has no elements"),
    (FOR_EACH + "elements = [1, 1]", "it is visited for each element, and cannot have elements of its own"),
    (FOR_EACH + '[[pipelines.stages]]\nmodels = "resnet50"\nname = "c"\nafter = "b"\nshare = 0.5',
     "a share is of a stage that is visited once, and 'b' is visited for each element of 'resnet50'"),
    (FOR_EACH.replace("[1, 1]", str([1] * 255)) + '[[pipelines.stages]]\nmodels = "resnet50"\nname = "c"\nafter = "b"',
     "stage 'c': a run may have 256 visits up to here; it may have 255"),
], ids=["unknown models", "unknown stage", "share of the first", "one number", "below zero", "itself", "no elements",
        "elements of elements", "share of elements", "too many"])
def test_what_is_wrong_with_a_pipeline_is_named(experiment, stage, message):
    path = experiment(EXPERIMENT.replace("count = 3", "count = 1")
                      + f'[[pipelines]]\nname = "p"\n[[pipelines.stages]]\n{stage}\n')
    result = simulate(path)
    assert result.returncode == 1
    assert message in result.stderr
    assert path.name in result.stderr
