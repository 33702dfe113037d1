"""`foliot plan`: what it prints and draws, and that whatever is wrong is named by file and line."""

import pathlib
import subprocess

import pytest

from foliot_tools.server import foliot_binary

EXAMPLE = pathlib.Path(__file__).resolve().parent.parent / "examples/plan"


def plan(files, *arguments):
    command = [foliot_binary(), "plan", files["pipeline.toml"]]
    for flag in ("trace", "prices", "profiles"):
        suffix = "csv" if flag == "trace" else "toml"
        command += [f"--{flag}", files[f"{flag}.{suffix}"]]
    return subprocess.run([*map(str, command), *map(str, arguments)], capture_output=True, text=True, timeout=120,
                          check=False)


@pytest.fixture
def files(tmp_path):
    """The files of the example, where a test may change them."""
    copies = {path.name: tmp_path / path.name for path in EXAMPLE.iterdir()}
    for name, copy in copies.items():
        copy.write_text((EXAMPLE / name).read_text(encoding="utf-8"), encoding="utf-8")
    return copies


def test_prints_the_configuration_and_draws_the_cost(files, tmp_path):
    result = plan(files, "--slo", "150ms", "--output", tmp_path / "cost.svg")
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert ": 2801 queries in 19.998 s" in lines[0]
    assert [line.split()[0] for line in lines[2:6]] == ["STAGE", "decode", "cheap", "fine"]
    assert " 30.0 % " in lines[5]
    assert any(line.startswith("predicted: P50 ") for line in lines)
    assert any(line.startswith("cost: ") for line in lines)
    assert (tmp_path / "cost.svg").read_text(encoding="utf-8").startswith("<svg ")


def test_a_longer_slo_costs_no_more(files):
    def cost(slo):
        text = plan(files, "--slo", slo).stdout
        return float(text.split("cost: ")[1].split()[0])

    assert cost("60ms") > cost("600ms")


def test_says_what_the_plan_keeps_on_other_arrivals(files):
    result = plan(files, "--slo", "150ms")
    assert "held out: plans for either half of the trace keep " in result.stdout
    assert "warning: on other arrivals like these, expect as little as " in result.stderr


def test_a_stage_with_conditions_and_no_visits_is_named(files):
    text = files["profiles.toml"].read_text()
    assert "warning: stage 'fine' has conditions" not in plan(files).stderr
    files["profiles.toml"].write_text(text.split("[visits]")[0])
    assert "warning: stage 'fine' has conditions" in plan(files).stderr


def test_takes_the_devices_that_there_are(files):
    def replicas(kind):
        lines = plan(files).stdout.splitlines()[3:6]
        return sum(int(line.split()[5]) for line in lines if line.split()[3] == kind)

    assert replicas("cpu") > 3
    files["prices.toml"].write_text('cpu = { dollars = 0.05, devices = 3 }\n"cpu:4" = 0.20\ncuda = 0.68\n')
    assert 0 < replicas("cpu") <= 3


def test_ends_where_kinds_cost_nothing(files):
    files["prices.toml"].write_text('cpu = 0\n"cpu:4" = 0\ncuda = 0.68\n')
    assert "cost: 0.00 dollars" in plan(files).stdout


@pytest.mark.parametrize("file, old, new, complaint", [
    ("prices.toml", "cpu = 0.05", "cpu = { devices = 2 }", "prices.toml:2: needs 'dollars'"),
    ("trace.csv", None, "", "trace.csv': no instant is in it"),
    ("trace.csv", None, "1.0\n2.0\n1.5\n", "trace.csv': line 3: 1.5 s comes before the instant above it"),
    ("prices.toml", "cuda = 0.68", "", "prices.toml: no price of 'cuda'"),
    ("prices.toml", "cuda = 0.68", "cuda = -1", "prices.toml:4: 'cuda'"),
    ("profiles.toml", 'stage = "cheap"', 'stage = "cheaper"', "no [[profile]] of stage 'cheap'"),
    ("profiles.toml", "batch_sizes = [1, 2, 4, 8]", "batch_sizes = [2, 4, 8, 16]", "batch sizes must begin with 1"),
    ("pipeline.toml", 'image = "decode.image"', 'image = "fine.image"', "pipeline.toml"),
])
def test_what_is_wrong_is_named(files, file, old, new, complaint):
    text = files[file].read_text(encoding="utf-8")
    files[file].write_text(new if old is None else text.replace(old, new), encoding="utf-8")
    result = plan(files, "--slo", "150ms")
    assert result.returncode == 1 and result.stdout == ""
    assert complaint in result.stderr


def test_an_slo_below_the_service_time_is_named(files):
    result = plan(files, "--slo", "15ms")
    assert result.returncode == 1
    assert "the SLO of 15 ms is below the service time" in result.stderr
    assert "pipeline.toml" in result.stderr


def test_saves_the_plan_for_a_tuner(files, tmp_path):
    saved = tmp_path / "plan.toml"
    result = plan(files, "--slo", "150ms", "--save", saved)
    assert result.returncode == 0, result.stderr
    assert f"{saved}: the plan, by which a server tunes the pipeline" in result.stdout
    text = saved.read_text(encoding="utf-8")
    assert text.count("[[stage]]") == 3 and text.count("[[window]]") > 5
    assert 'name = "fine"' in text and 'model = "resnet"' in text and "visited = 0.3" in text


def test_a_trace_without_a_rate_is_no_plan_for_a_tuner(files, tmp_path):
    files["trace.csv"].write_text("1.0\n1.0\n", encoding="utf-8")
    result = plan(files, "--slo", "150ms", "--save", tmp_path / "plan.toml")
    assert result.returncode == 1
    assert "--save: a tuner needs the rate of the trace" in result.stderr
    assert not (tmp_path / "plan.toml").exists()
