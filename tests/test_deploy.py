"""What is shipped for operating Foliot is right: alerts, units, and the documents
that name metrics."""

import pathlib
import re
import shutil
import subprocess
import urllib.request

import pytest

from foliot_tools.server import foliot_binary

ROOT = pathlib.Path(__file__).resolve().parents[1]
NO_PROMTOOL = 69
RULES = ROOT / "deploy/prometheus/foliot.rules.yml"


def run(*command):
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


@pytest.mark.parametrize("arguments", [
    ("check", "rules", RULES),
    ("test", "rules", RULES.with_suffix(".test.yml")),
    ("check", "config", RULES.with_name("prometheus.yml")),
])
def test_alerts(arguments):
    done = run("tools/promtool", *arguments)
    if done.returncode == NO_PROMTOOL:
        pytest.skip(f"promtool cannot be had here: {done.stderr}")
    assert done.returncode == 0, done.stdout + done.stderr


def metric_names(text):
    names = set(re.findall(r"\bfoliot_[a-z_]+", text))
    return {re.sub(r"_(bucket|sum|count)$", "", name) for name in names}


def test_alerts_and_documents_name_metrics_that_exist(small_server):
    """Those of which there is a series from the start on; a model's come with its requests."""
    with urllib.request.urlopen(f"http://127.0.0.1:{small_server.metrics_port}/metrics", timeout=5) as answer:
        served = metric_names("\n".join(line for line in answer.read().decode().splitlines() if line.startswith("# TYPE")))
    sources = [ROOT / "src/calls/metrics.cc", *(ROOT / "src/metrics").glob("*_metrics.cc")]
    source = "".join(source.read_text() for source in sources)
    known = served | metric_names(source)
    for file in (RULES, ROOT / "docs/OPERATIONS.md"):
        assert metric_names(file.read_text()) <= known, file
    assert metric_names(source) <= metric_names((ROOT / "docs/OPERATIONS.md").read_text()), "every metric is explained"


UNITS = sorted((ROOT / "deploy/systemd").glob("*.service"))


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_units(unit):
    done = run("systemd-analyze", "verify", "--man=no", unit)
    complaints = [line for line in done.stderr.splitlines() if unit.name in line and "not executable" not in line]
    assert not complaints


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_units_start_what_exists_and_close_what_it_does_not_need(unit):
    text = unit.read_text()
    command, *flags = re.search(r"^ExecStart=/usr/local/bin/foliot (.*)$", text, re.MULTILINE)[1].split()
    known = run(foliot_binary(), command, "--help").stdout
    assert all(flag in known for flag in flags if flag.startswith("--") and flag != "--config"), flags
    hardening = text[text.index("NoNewPrivileges=") : text.index("[Install]")]
    assert "DynamicUser=yes" in text and hardening in (ROOT / "deploy/systemd/foliot.service").read_text()


def test_pods_start_what_exists_and_their_pools_are_read(tmp_path):
    text = (ROOT / "deploy/kubernetes/foliot.yaml").read_text()
    started = re.findall(r"args: \[(\w+),(.*?)\]", text, re.DOTALL)
    assert {command for command, _ in started} == {"controller", "worker", "frontend"}
    for command, arguments in started:
        known = run(foliot_binary(), command, "--help").stdout
        flags = re.findall(r"--[a-z-]+", arguments)
        assert flags and all(flag in known for flag in flags), command
    indented = re.search(r"pools\.toml: \|\n((?:    .*\n)+)", text)[1]
    pools = tmp_path / "pools.toml"
    pools.write_text(re.sub("^    ", "", indented, flags=re.MULTILINE) + '[kubernetes]\nserver = "http://127.0.0.1:1"\n')
    # What is wrong with the file would end it before the port that is in use does.
    done = run(foliot_binary(), "controller", "--listen", "no address", "--worker-pools", pools)
    assert done.returncode == 1 and "pools.toml" not in done.stderr, done.stderr
