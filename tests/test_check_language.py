"""The language check finds listed words where text is, and long sentences."""

import importlib.util
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
SPEC = importlib.util.spec_from_file_location("check_language", ROOT / "tools/check_language.py")
check_language = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(check_language)

WORDS = "# A comment.\nnobody -> no client\ntold|nobody home {names} -> sent\nhosts? [src/transport] -> server\n"


@pytest.fixture
def findings(tmp_path):
    """Checks a project of one file of this name and text."""
    (tmp_path / "words.txt").write_text(WORDS)
    words = check_language.read_words(tmp_path / "words.txt")

    def check(name, text):
        path = tmp_path / "project" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        (tmp_path / "project/README.md").touch()
        return [finding.split(":")[1] for finding in check_language.check(tmp_path / "project", words)]

    return check


def test_the_project_itself_passes():
    words = check_language.read_words(ROOT / "tools/words.txt")
    assert list(check_language.check(ROOT, words)) == []


@pytest.mark.parametrize("text", [
    "int x;  // for nobody\n",
    "// Nobody's.\n",
    'log("there is nobody");\n',
    "/* one\n two nobody */\n",
    'R"(nobody)"\n',
])
def test_words_in_comments_and_strings(findings, text):
    assert len(findings("src/core/a.cc", text)) == 1


@pytest.mark.parametrize("text", [
    "int nobody = 0;\n",
    '#include "core/nobody.h"\n',
    "// The variable `nobody`, and NOBODY.\n",
    "// nobodyelse\n",
    "// the host\n",
])
def test_code_names_and_other_folders_are_not_text(findings, text):
    assert findings("src/core/a.cc", text) == []


@pytest.mark.parametrize("name", ["told", "told_", "on_told", "kToldTime", "NotTold", "kNobodyHome"])
def test_marked_words_in_identifiers(findings, name):
    assert findings("src/core/a.cc", f'// One.\nint a = 0, {name}(1);  /* two\n */ "told"\n') == ["3", "2"]
    assert findings("src/core/a.cc", "int untold = foretold;\n") == []


def test_a_word_may_be_limited_to_folders(findings):
    assert findings("src/transport/a.h", "// the host\n") == ["1"]


def test_docstrings_and_comments_of_python(findings):
    text = '"""For nobody."""\n\nname = "nobody"\n\n\ndef f():\n    """Nobody."""  # nobody\n    return "nobody"\n'
    assert findings("tests/a.py", text) == ["1", "7", "7"]


def test_long_sentences_of_documents(findings):
    long = " ".join(["word"] * 36)
    assert findings("docs/SERVING.md", f"{long}.\n") == ["1"]
    assert findings("docs/SERVING.md", f"{long[:-5]}. Another one.\n\n- {long[:-5]}\n") == []
    assert findings("docs/SERVING.md", f"```\n{long}\n```\n") == []
