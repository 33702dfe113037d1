"""The node tests of ONNX: as many pass as docs/OPERATORS.md says, case by case."""

import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent / "node_tests"))

import node_tests
import report

SHARE_MIN = 0.95


def test_node_tests():
    runner = pathlib.Path(os.environ["FOLIOT"]).parent / "node_test_runner"
    outcomes = node_tests.run_all(runner)
    passed = sum(outcome.verdict == "pass" for outcome in outcomes)
    failed = [f"{outcome.name}: {outcome.reason}" for outcome in outcomes if outcome.verdict == "fail"]
    assert passed >= SHARE_MIN * (passed + len(failed)), "\n".join(failed)

    written = pathlib.Path(__file__).parent.parent / "docs/OPERATORS.md"
    assert written.read_text() == report.document(outcomes), "docs/OPERATORS.md is out of date: run `make node-tests`"
