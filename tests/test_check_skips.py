"""The check of skipped tests finds a skip that is not allowed."""

import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import check_skips  # noqa: E402: needs the path

ALLOWED = '[[skips]]\ntest = "program/IntactMarkTest.*"\nreason = "keeps no attributes"\n'
PASSED = '<testcase name="base/HashTest.X" classname="base/HashTest.X" status="run"/>'


def ctest_case(test, reason):
    """As ctest writes a test that called GTEST_SKIP()."""
    return (f'<testcase name="{test}" classname="{test}" status="notrun">'
            '<skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/>'
            f"<system-out>src/a_test.cc:31: Skipped\n{reason}\n\n[  SKIPPED ] 1 test</system-out></testcase>")


def pytest_case(test, reason):
    return f'<testcase classname="{test}" name="test_it"><skipped message="{reason}"/></testcase>'


@pytest.mark.parametrize(
    "case, complaint",
    [
        (PASSED, None),
        (ctest_case("program/IntactMarkTest.IsSeen", "this file system keeps no attributes"), None),
        (ctest_case("program/IntactMarkTest.IsSeen", "no time"), "IntactMarkTest.IsSeen: no time"),
        (ctest_case("program/PackageTest.Opens", "this file system keeps no attributes"), "PackageTest.Opens"),
        (pytest_case("test_models", "later"), "test_models.test_it: later"),
    ],
)
def test_a_skip_that_is_not_allowed_is_found(case, complaint, tmp_path, monkeypatch, capsys):
    (tmp_path / "allowed_skips.toml").write_text(ALLOWED)
    (tmp_path / "report.xml").write_text(f"<testsuite>{PASSED}{case}</testsuite>")
    monkeypatch.setattr(sys, "argv", ["check_skips.py", "--allowed", str(tmp_path / "allowed_skips.toml"),
                                      str(tmp_path / "report.xml")])
    assert check_skips.main() == (complaint is not None)
    printed = capsys.readouterr().err
    assert complaint is None and not printed or complaint in printed
