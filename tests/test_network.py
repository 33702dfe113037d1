"""Bad links, cut-off hosts and grey workers, in network namespaces: the scenarios of
tests/figures/network_faults.py, each for a shorter time."""

import pathlib
import sys

import pytest

from foliot_tools import network

sys.path.insert(0, str(pathlib.Path(__file__).parent / "figures"))

import network_faults  # noqa: E402: needs the path


def check(figures):
    broken = [f"{figure.check}: {figure.promised}: {figure.measured}" for figure in figures if not figure.ok]
    assert not broken


@pytest.mark.parametrize("scenario", network_faults.SCENARIOS, ids=lambda scenario: scenario.name)
def test_no_promise_is_broken(scenario, tmp_path):
    if reason := network.missing() or scenario.missing():
        pytest.skip(reason)
    check(network_faults.play(scenario, tmp_path, seconds=2))


def test_a_worker_that_is_slow_is_fenced(tmp_path):
    check(network_faults.slow_worker(tmp_path, rounds=1))
