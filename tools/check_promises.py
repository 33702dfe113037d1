#!/usr/bin/env python3
"""Checks that the tests that documents name exist, and that the rows of SECURITY.md that promise something name one.

A test is named as `FILE::NAME`, or as `NAME` after one of the same file; FILE is a path of the repository or of src/. Rows
are those of tables whose last column is `test`, or that begin with `against`.

    tools/check_promises.py [DOCUMENT ...]
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FILE = r"[\w./-]+(?:_test\.cc|_fuzz\.cc|\.py)"
NAMED = re.compile(rf"`({FILE})(?:::(\w+))?`((?:[,;]?\s+(?:and\s+)?`\w+`)*)")
IS_TEST = re.compile(r"`(tests/[\w./-]+\.py|[\w./-]+_(test|fuzz)\.cc)(::\w+)?`|`test_\w+`")
ROWS_OF = ("SECURITY.md",)  # documents whose tables of promises are checked row by row


def path_of(name):
    """The file that a document means; None if there is none."""
    return next((path for path in (ROOT / name, ROOT / "src" / name) if path.is_file()), None)


def has_test(text, name, is_python):
    pattern = rf"^def {name}\(" if is_python else rf"TEST\w*\(\w+,\s*{name}\)"
    return re.search(pattern, text, re.MULTILINE) is not None


def missing_tests(document, text):
    for found in NAMED.finditer(text):
        file, first, others = found.groups()
        line = text.count("\n", 0, found.start()) + 1
        is_test = (file.startswith("tests/") or not file.endswith(".py")) and not file.startswith("x_")
        path = path_of(file)
        if is_test and path is None:
            yield f"{document}:{line}: there is no file {file}"
        elif first:
            content = path.read_text() if path else ""
            for name in [first, *re.findall(r"`(\w+)`", others)]:
                if not has_test(content, name, file.endswith(".py")):
                    yield f"{document}:{line}: {file} has no test {name}"


def rows_without_test(document, text):
    header = None
    for number, line in enumerate(text.splitlines(), 1):
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else None
        if cells is None:
            header = None
        elif header is None:
            header = cells
        elif set(line) <= set("|- "):
            continue
        elif header[-1] == "test" and not cells[-1] or header[0] == "against" and not IS_TEST.search(line):
            yield f"{document}:{number}: this row names no test: {line[:100]}"


def main(names):
    documents = [pathlib.Path(name) for name in names] or sorted((ROOT / "docs").glob("*.md"))
    errors = []
    for document in documents:
        text = document.read_text()
        errors += missing_tests(document, text)
        if document.name in ROWS_OF:
            errors += rows_without_test(document, text)
    print("\n".join(errors), end="\n" if errors else "")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
