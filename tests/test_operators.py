"""The node tests of ONNX: all pass but those in node_tests/expected_failures.txt."""

import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent / "node_tests"))

import expectations
import node_tests

SHARE_MIN = 0.95


def test_node_tests():
    runner = pathlib.Path(os.environ["FOLIOT"]).parent / "node_test_runner"
    outcomes = node_tests.run_all(runner)
    passed = sum(outcome.verdict == "pass" for outcome in outcomes)
    failed = sum(outcome.verdict == "fail" for outcome in outcomes)
    breaches = expectations.breaches(outcomes, expectations.read())
    assert not breaches, "\n".join(breaches)
    assert passed >= SHARE_MIN * (passed + failed)


@pytest.mark.parametrize(
    "verdicts, complaint",
    [
        ({"det": "fail", "mish": "fail", "add": "pass"}, None),
        ({"det": "fail", "mish": "pass", "add": "pass"}, None),
        ({"det": "fail", "mish": "fail", "add": "fail"}, "add fails"),
        ({"det": "pass", "mish": "fail", "add": "pass"}, "det passes"),
        ({"det": "refused", "mish": "fail", "add": "pass"}, "det is refused"),
        ({"mish": "fail", "add": "pass"}, "det is no case"),
    ],
)
def test_the_list_of_failures_may_only_shrink(verdicts, complaint):
    outcomes = [node_tests.Outcome(name, "Op", "", 1, (), verdict) for name, verdict in verdicts.items()]
    breaches = expectations.breaches(outcomes, {"det": "no Det", "mish": "by rounding"})
    assert len(breaches) == (complaint is not None)
    assert complaint is None or breaches[0].startswith(complaint)
