#!/usr/bin/env python3
"""Checks that the tests that documents name exist, that the rows of CONTAINERS.md, SECURITY.md and OPERATIONS.md that promise something name one, and so
does each section of SERVING.md and OPERATIONS.md but those that only give advice.

A test is named as `FILE::NAME`, or as `NAME` after one of the same file; FILE is a path of the repository or of src/. Rows
are those of tables whose last column is `test`, or that begin with `against`.

    tools/check_promises.py [DOCUMENT ...]
"""

import fnmatch
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FILE = r"[\w./-]+(?:_test\.cc|_fuzz\.cc|\.py)"
NAMED = re.compile(rf"`({FILE})(?:::(\w+))?`((?:[,;]?\s+(?:and\s+)?`\w+`)*)")
IS_TEST = re.compile(r"`(tests/[\w./-]+\.py|[\w./-]+_(test|fuzz)\.cc)(::\w+)?`|`test_\w+`")
ROWS_OF = ("CONTAINERS.md", "SECURITY.md", "OPERATIONS.md")  # documents whose tables of promises are checked row by row
ADVICE = {"SERVING.md": (), "OPERATIONS.md": ("Foliot*",)}  # sections that promise nothing


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


def sections_without_test(document, text, advice):
    text = re.sub(r"^```.*?^```", lambda code: "\n" * code[0].count("\n"), text, flags=re.MULTILINE | re.DOTALL)
    heads = list(re.finditer(r"^##+ (.*)", text, re.MULTILINE))
    for head, after in zip(heads, [*heads[1:], None]):
        section = text[head.end() : after.start() if after else None]
        if not any(fnmatch.fnmatch(head[1], each) for each in advice) and not IS_TEST.search(section):
            yield f"{document}:{text.count(chr(10), 0, head.start()) + 1}: section '{head[1]}' names no test"


def main(names):
    documents = [pathlib.Path(name) for name in names] or sorted((ROOT / "docs").glob("*.md"))
    errors = []
    for document in documents:
        text = document.read_text()
        errors += missing_tests(document, text)
        if document.name in ROWS_OF:
            errors += rows_without_test(document, text)
        if document.name in ADVICE:
            errors += sections_without_test(document, text, ADVICE[document.name])
    print("\n".join(errors), end="\n" if errors else "")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
