"""`foliot plan --from-log` and `foliot simulate --from-log`: a server's log in place of a trace and profiles. The log
here is that of a simulation, which has the same records."""

import subprocess

import pytest

from foliot_tools.server import foliot_binary

EXPERIMENT = """duration = "20s"
preload = true
[cluster]
devices = 4
page_cache = "4GiB"
[[models]]
profile = "resnet18"
name = "decoder"
[[models]]
profile = "resnet50"
name = "resnet"
slo = "60ms"
[[pipelines]]
name = "animals"
slo = "100ms"
[[pipelines.stages]]
models = "decoder"
[[pipelines.stages]]
models = "resnet"
after = ["decoder"]
share = 0.3
[[streams]]
name = "runs"
pipeline = "animals"
rate = 200
[[streams]]
name = "others"
models = ["resnet"]
rate = 50
"""

PIPELINE = """default_slo = "100ms"
[[stage]]
name = "decode"
model = "decoder"
inputs = { bytes = "photo" }
[[stage]]
name = "fine"
model = "resnet"
inputs = { image = "decode.image" }
when = [{ output = "decode.image", above = 0.5 }]
[[output]]
name = "scores"
from = ["fine.scores"]
fill = 0
"""


def foliot(*arguments):
    return subprocess.run([foliot_binary(), *map(str, arguments)], capture_output=True, text=True, timeout=300,
                          check=False)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A pipeline, prices, and the log of 20 s in which it was asked beside one of its models."""
    folder = tmp_path_factory.mktemp("logged")
    (folder / "experiment.toml").write_text(EXPERIMENT, encoding="utf-8")
    (folder / "prices.toml").write_text("cpu = 0.5\ncuda = 2\n", encoding="utf-8")
    (folder / "animals").mkdir()
    (folder / "animals/pipeline.toml").write_text(PIPELINE, encoding="utf-8")
    result = foliot("simulate", folder / "experiment.toml", "--log", folder / "log")
    assert result.returncode == 0, result.stderr
    return folder


def plan(files, *arguments, pipeline="animals"):
    return foliot("plan", files / pipeline / "pipeline.toml", "--prices", files / "prices.toml", *arguments)


def test_plans_for_what_a_server_logged(files):
    result = plan(files, "--from-log", files / "log/foliot")
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    queries = int(lines[0].split(": ")[1].split()[0])
    assert 3500 < queries < 4500  # those of the pipeline only
    assert [line.split()[0] for line in lines[3:5]] == ["decode", "fine"]
    assert lines[3].split()[1] == "100.0"
    assert 25 < float(lines[4].split()[1]) < 35
    assert lines[4].split()[3] == "cpu"


def test_a_plan_is_written_as_targets(files):
    result = plan(files, "--from-log", files / "log/foliot", "--apply", files / "targets.toml")
    assert result.returncode == 0, result.stderr
    text = (files / "targets.toml").read_text(encoding="utf-8")
    assert 'models = ["decoder"]' in text and 'models = ["resnet"]' in text
    replicas = [line.split()[5] for line in result.stdout.splitlines()[3:5]]
    assert [f"copies_least = {count}\ncopies_most = {count}\n" in text for count in replicas] == [True, True]


def test_profiles_add_kinds_to_those_of_the_log(files):
    profiles = files / "cuda.toml"
    profiles.write_text("".join(f'[[profile]]\nstage = "{stage}"\nkind = "cuda"\nbatch_sizes = [1]\n'
                                'durations = ["0.01ms"]\n' for stage in ("decode", "fine")), encoding="utf-8")
    result = plan(files, "--from-log", files / "log/foliot", "--profiles", profiles, "--slo", "1ms")
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("cuda") == 2


def test_simulates_what_a_server_logged(files):
    result = foliot("simulate", "--from-log", files / "log/foliot", "--pipeline", files / "animals/pipeline.toml",
                    "--scheduler", "foliot,inferline", "--output", files / "out")
    assert result.returncode == 0, result.stderr
    assert "foliot" in result.stdout and "inferline" in result.stdout
    again = foliot("simulate", "--from-log", files / "log/foliot", "--pipeline", files / "animals/pipeline.toml")
    assert [line for line in result.stdout.splitlines() if line.startswith("foliot ")][0].split()[:3] == \
        [line for line in again.stdout.splitlines() if line.startswith("foliot ")][0].split()[:3]


@pytest.mark.parametrize("arguments, complaint", [
    (("--from-log", "nowhere"), "nowhere/requests.csv"),
    (("--from-log", "{log}", "--trace", "trace.csv"), "--trace excludes --from-log"),
    ((), "--trace or --from-log is required"),
    (("--trace", "trace.csv"), "--profiles or --from-log is required"),
])
def test_what_is_wrong_with_a_log_is_named(files, arguments, complaint):
    result = plan(files, *(each.replace("{log}", str(files / "log/foliot")) for each in arguments))
    assert result.returncode != 0
    assert complaint in result.stdout + result.stderr


def test_a_log_of_another_pipeline_is_named(files):
    (files / "plants").mkdir(exist_ok=True)
    (files / "plants/pipeline.toml").write_text(PIPELINE, encoding="utf-8")
    result = plan(files, "--from-log", files / "log/foliot", pipeline="plants")
    assert result.returncode == 1
    assert "has no run of pipeline 'plants'" in result.stderr and "'animals'" in result.stderr


def test_a_simulation_needs_the_pipelines_of_a_log(files):
    result = foliot("simulate", "--from-log", files / "log/foliot")
    assert result.returncode == 1
    assert "has runs of pipeline 'animals': give its file with --pipeline animals/pipeline.toml" in result.stderr


def test_a_simulation_of_a_log_has_no_other_requests(files):
    result = foliot("simulate", files / "experiment.toml", "--from-log", files / "log/foliot")
    assert result.returncode == 1
    assert "experiment.toml:" in result.stderr and "'models'" in result.stderr
    assert "leave them out with --from-log" in result.stderr
