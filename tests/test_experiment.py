"""`foliot experiment`: what it writes can be drawn, and complaints name what is wrong."""

import csv
import json
import subprocess

import pytest
from foliot_tools.plot_experiment import PLOTS, plot_experiment
from foliot_tools.server import foliot_binary


def experiment(*arguments):
    return subprocess.run([foliot_binary(), "experiment", *map(str, arguments)], capture_output=True, text=True,
                          check=False)


@pytest.mark.parametrize("name", PLOTS)
def test_what_is_found_is_written_and_can_be_drawn(name, tmp_path):
    result = experiment(name, "--quick", "--output", tmp_path, "--scheduler", "clockwork", "--scheduler", "foliot")
    assert result.returncode == 0, result.stderr
    data = json.loads((tmp_path / f"{name}.json").read_text())
    for line, finding in zip(result.stdout.splitlines(), data["findings"], strict=True):
        assert line.startswith(f"{name}: {finding['what']}: paper ")
        assert line.endswith(f"here {finding['here']}")
    with open(tmp_path / f"{name}_results.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    if not name.startswith("inferline"):  # these compare planners and tuners
        assert {row["policy"] for row in rows} == {"clockwork", "foliot"}
    assert len(rows) == len(data["tables"]["results"])
    for picture in plot_experiment(tmp_path / f"{name}.json", tmp_path):
        assert picture.stat().st_size > 1000


def test_a_goal_that_is_missed_has_an_exit_code(tmp_path):
    result = experiment("infaas_scaling", "--quick", "--output", tmp_path)
    assert result.returncode == 4, result.stderr
    findings = json.loads((tmp_path / "infaas_scaling.json").read_text())["findings"]
    for line, finding in zip(result.stdout.splitlines(), findings, strict=True):
        assert f" ({'met' if finding['met'] else 'missed'}) / here " in line
    assert not findings[0]["met"], "nothing is 21 times cheaper than a GPU that costs 16 times a CPU"


@pytest.mark.parametrize("arguments, complaint", [
    (["figure_99"], "figure_99"),
    (["figure_5", "--scheduler", "lifo"], "there is no scheduler 'lifo'"),
    (["figure_5", "--quick", "--output", "/dev/null/x"], "/dev/null/x"),
    (["figure_5", "--duration", "soon"], "soon"),
])
def test_bad_flags_are_named(arguments, complaint):
    result = experiment(*arguments)
    assert result.returncode != 0
    assert complaint in result.stderr
