"""The check of promises finds a test that is named and not there, and a row of a table that names none."""

import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import check_promises  # noqa: E402: needs the path

ME = "tests/test_check_promises.py"


def test_the_project_itself_passes():
    assert check_promises.main([]) == 0


@pytest.mark.parametrize("text, complaint", [
    (f"a (`{ME}::test_the_project_itself_passes`, `test_what_is_wrong_is_named`)", None),
    ("a (`foundation/access/key_ring_test.cc::EveryKeyIsAnother`,\n`TheDigestIsSha256`)", None),
    ("a (`tests/test_absent.py`)", "a.md:1: there is no file tests/test_absent.py"),
    (f"a\nb (`{ME}::test_the_project_itself_passes`, `test_absent`)", f"a.md:2: {ME} has no test test_absent"),
    ("a (`foundation/access/key_ring_test.cc::Absent`)", "a.md:1: foundation/access/key_ring_test.cc has no test Absent"),
])
def test_what_is_wrong_is_named(text, complaint):
    assert list(check_promises.missing_tests("a.md", text)) == ([complaint] if complaint else [])


@pytest.mark.parametrize("row, is_right", [("| a | b | `x_test.cc` |", True), ("| a | b | |", False)])
def test_rows_of_promises_name_a_test(row, is_right):
    found = list(check_promises.rows_without_test("a.md", f"| | how | test |\n|---|---|---|\n{row}\n"))
    assert (found == []) == is_right
    found = list(check_promises.rows_without_test("a.md", f"| against | what |\n|---|---|\n{row.replace('| b |', '|')}\n"))
    assert (found == []) == is_right


def test_sections_name_a_test():
    text = "## a\n`tests/test_x.py::test_y`\n## b\n```sh\n## no section, `tests/test_x.py`\n```\n### c\nadvice\n"
    found = list(check_promises.sections_without_test("a.md", text, ("c",)))
    assert found == ["a.md:3: section 'b' names no test"]
