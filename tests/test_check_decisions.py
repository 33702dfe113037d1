"""The check of decisions finds a decision without a status, and a list that is not complete."""

import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import check_decisions  # noqa: E402: needs the path

LIST = "- [0001. A](0001-a.md)\n- [0002. B](0002-b.md)\n"


@pytest.fixture
def folder(tmp_path):
    """Two decisions, of which the second amends the first."""
    (tmp_path / "0001-a.md").write_text("# 0001. A\n\nStatus: amended by [0002](0002-b.md).\n\n## Context\n")
    (tmp_path / "0002-b.md").write_text("# 0002. B\n\nStatus: current.\n\n## Context\n")
    (tmp_path / "README.md").write_text(LIST)
    return tmp_path


def test_the_project_itself_passes():
    assert list(check_decisions.findings(ROOT / "docs/decisions")) == []


def test_decisions_with_a_status_pass(folder):
    assert list(check_decisions.findings(folder)) == []


@pytest.mark.parametrize("name, text, complaint", [
    ("0002-b.md", "# 0002. B\n\n## Context\n", "0002-b.md:3: no status"),
    ("0002-b.md", "# 0002. B\n\nStatus: obsolete.\n", "0002-b.md:3: no status"),
    ("0002-b.md", "# 0003. B\n\nStatus: current.\n", "0002-b.md:1: the title"),
    ("0002-b.md", "# 0002. B\n\nStatus: superseded by [0001](0001-a.md).\n", "'0001' (0001-a.md) is no later decision"),
    ("0001-a.md", "# 0001. A\n\nStatus: amended by [0003](0003-c.md).\n", "'0003' (0003-c.md) is no later decision"),
    ("README.md", LIST.splitlines()[0] + "\n", "README.md: lists 0002-b.md 0 times"),
    ("README.md", LIST + "- [0003. C](0003-c.md)\n", "README.md: there is no 0003-c.md"),
])
def test_a_fault_is_found(folder, name, text, complaint):
    (folder / name).write_text(text)
    found = list(check_decisions.findings(folder))
    assert len(found) == 1 and complaint in found[0], found
