"""The mutation check limits broken tests by their unbroken durations, and continues a run that was interrupted."""

import importlib.machinery
import importlib.util
import pathlib

import pytest

PATH = pathlib.Path(__file__).resolve().parent.parent / "tools/mutation_check"
LOADER = importlib.machinery.SourceFileLoader("mutation_check", str(PATH))
mutation_check = importlib.util.module_from_spec(importlib.util.spec_from_loader("mutation_check", LOADER))
LOADER.exec_module(mutation_check)


@pytest.fixture(name="copy")
def built_copy(tmp_path):
    """A copy of which everything is built; write() makes test programs of it."""
    copy = object.__new__(mutation_check.Copy)
    copy.folder = copy.build = tmp_path
    copy.make = lambda targets: True
    (tmp_path / "bin").mkdir()
    return copy


def write(copy, name, script):
    path = copy.build / "bin" / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_the_test_that_fails_notices(copy):
    write(copy, "a_test", "exit 0")
    write(copy, "b_test", "echo '[  FAILED  ] Suite.Case (1 ms)'; exit 1")
    write(copy, "c_test", "exit 3")
    failure, taken = copy.run("a_test")
    assert failure is None and taken["wall"] >= 0
    assert copy.run("a_test", taken)[0] is None
    assert copy.run("b_test") == ("b_test: Suite.Case", None)
    assert copy.run("c_test") == ("c_test: exit status 3", None)


@pytest.mark.parametrize("script", ["exec tail -f /dev/null", "while :; do :; done"])
def test_one_that_stands_still_or_runs_on_does_not_end(copy, monkeypatch, script):
    write(copy, "a_test", script)
    monkeypatch.setattr(mutation_check, "LIMIT_MIN", 0.3)
    assert "a_test: does not end" in copy.run("a_test", {"cpu": 0, "wall": 0})[0]


def test_each_test_is_measured_once_and_unbroken(copy, tmp_path):
    source = tmp_path / "x.cc"
    source.write_text("good\n")
    for name in ("a_test", "b_test"):
        write(copy, name, f"echo {name} >> runs; cat x.cc >> runs; test {name} = a_test || grep -q good x.cc")
    copy.tests = lambda folder: ["a_test", "b_test"]
    results = mutation_check.Results(tmp_path / "results.json", {})
    change = mutation_check.Break(pathlib.Path("x.cc"), 0, "breaks it", "good", "bad")
    assert mutation_check.try_break(copy, change, results) == "b_test: exit status 1"
    assert source.read_text() == "good\n"
    runs = "a_test good a_test bad b_test good b_test bad".split()
    assert (tmp_path / "runs").read_text().split() == runs
    assert mutation_check.try_break(copy, change, results) == "b_test: exit status 1"
    assert (tmp_path / "runs").read_text().split() == runs + "a_test bad b_test bad".split()


def test_results_are_those_of_the_same_run_only(tmp_path):
    path = tmp_path / "results.json"
    run = {"commit": "abc", "seed": 1, "rooms": ["worker"]}
    first = mutation_check.Results(path, run)
    assert first.unbroken == {} and first.found == []
    first.unbroken = {"a_test": {"cpu": 1.5, "wall": 2}}
    for failure in ("a_test: Suite.Case", None, ""):
        first.add(failure)
    again = mutation_check.Results(path, run)
    assert again.unbroken == first.unbroken
    assert again.found == ["a_test: Suite.Case", None, ""]
    other = mutation_check.Results(path, run | {"commit": "def"})
    assert other.unbroken == {} and other.found == []
