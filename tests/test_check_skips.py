"""The check of skipped tests finds a skip that is not allowed."""

import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import check_skips  # noqa: E402: needs the path

ALLOWED = '[[skips]]\ntest = "engine_program/IntactMarkTest.*"\nreason = "keeps no attributes"\n'


def googletest(suite, case, reason):
    """As googletest writes the report of a program, one case of which called GTEST_SKIP()."""
    skipped = f'<skipped message="src/a_test.cc:31&#x0A;{reason}&#x0A;"><![CDATA[src/a_test.cc:31\n{reason}]]></skipped>'
    return (f'<testsuites tests="2" name="AllTests"><testsuite name="{suite}">'
            f'<testcase name="Passes" status="run" result="completed" classname="{suite}"/>'
            f'<testcase name="{case}" status="run" result="skipped" classname="{suite}">{skipped}</testcase>'
            "</testsuite></testsuites>")


def pytest_case(test, reason):
    return f'<testcase classname="{test}" name="test_it"><skipped message="{reason}"/></testcase>'


@pytest.mark.parametrize(
    "report, complaint",
    [
        (googletest("IntactMarkTest", "IsSeen", "this file system keeps no attributes"), None),
        (googletest("IntactMarkTest", "IsSeen", "no time"), "engine_program/IntactMarkTest.IsSeen: no time"),
        (googletest("PackageTest", "Opens", "this file system keeps no attributes"), "engine_program/PackageTest.Opens"),
        ('<testsuites name="AllTests"><testcase name="A" status="notrun" classname="B"/></testsuites>', "B.A: disabled"),
        (f"<testsuites>{pytest_case('test_models', 'later')}</testsuites>", "test_models.test_it: later"),
    ],
)
def test_a_skip_that_is_not_allowed_is_found(report, complaint, tmp_path, monkeypatch, capsys):
    (tmp_path / "allowed_skips.toml").write_text(ALLOWED)
    (tmp_path / "engine_program.xml").write_text(report)
    monkeypatch.setattr(sys, "argv", ["check_skips.py", "--allowed", str(tmp_path / "allowed_skips.toml"),
                                      str(tmp_path / "engine_program.xml")])
    assert check_skips.main() == (complaint is not None)
    printed = capsys.readouterr().err
    assert complaint is None and not printed or complaint in printed
