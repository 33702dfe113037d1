"""The margin before deadlines follows from what is measured: tight deadlines are met by default,
in simulation and in service, and the metrics show by how much answers are early."""

import json
import re
import subprocess

from foliot_tools.server import foliot_binary

TIGHT = """
duration = "20s"
warm_up = "2s"
preload = true
[cluster]
devices = 1
{cluster}
[[models]]
profile = "{profile}"
count = 10
slo = "{slo}"
[[streams]]
rate = {rate}
"""


def simulated(tmp_path, policies=("foliot",), **settings):
    path = tmp_path / "tight.toml"
    path.write_text(TIGHT.format(**{"cluster": "", **settings}), encoding="utf-8")
    subprocess.run([foliot_binary(), "simulate", path, "--scheduler", ",".join(policies), "--output", tmp_path],
                   check=True, capture_output=True, timeout=120)
    return {policy: json.loads((tmp_path / f"{policy}.json").read_text(encoding="utf-8"))["all"] for policy in policies}


def test_tight_deadlines_are_met_by_default(tmp_path):
    report = simulated(tmp_path, profile="resnet18", slo="4ms", rate=200)["foliot"]
    assert report["attainment"] > 0.9
    assert report["mispredicted"] <= 1


def test_a_floor_is_kept(tmp_path):
    """3 ms of the 4 leave no time for an EXEC."""
    report = simulated(tmp_path, profile="resnet18", slo="4ms", rate=200, cluster='deadline_margin = "3ms"')["foliot"]
    assert report["attainment"] < 0.5


def test_slow_links_cost_no_more_than_they_take(tmp_path):
    reports = simulated(tmp_path, ("foliot", "clockwork", "flex"), profile="resnet50", slo="50ms", rate=250,
                        cluster='link = "5ms"\nlink_jitter = "1ms"')
    attained = {policy: report["attainment"] for policy, report in reports.items()}
    assert attained["foliot"] > 0.95
    assert attained["foliot"] >= max(attained.values()) - 0.001
