#!/usr/bin/env python3
"""Checks that each decision says whether it still holds, and that the list names each once.

The line after the title of a file of docs/decisions is one of
    Status: current.
    Status: amended by [NNNN](file), [NNNN](file).
    Status: superseded by [NNNN](file).
A decision may be amended or superseded only by later ones. Prints one line per finding and exits with 1
if there is any.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
STATUS = re.compile(r"Status: (current|(amended|superseded) by (\[\d{4}\]\([^)]+\)(, )?)+)\.")


def findings(folder):
    files = {path.name[:4]: path for path in sorted(folder.glob("[0-9]*.md"))}
    listed = (folder / "README.md").read_text(encoding="utf-8")
    for number, path in files.items():
        lines = path.read_text(encoding="utf-8").splitlines()
        status = next((line for line in lines[1:4] if line), "")
        if not lines[0].startswith(f"# {number}. "):
            yield f"{path.name}:1: the title is not '# {number}. ...'"
        if not STATUS.fullmatch(status):
            yield f"{path.name}:3: no status: 'Status: current.' or 'Status: amended by [NNNN](file).'"
        for successor, target in re.findall(r"\[(\d{4})\]\(([^)]+)\)", status):
            if successor <= number or files.get(successor, path).name != target:
                yield f"{path.name}:3: '{successor}' ({target}) is no later decision"
        if listed.count(f"]({path.name})") != 1:
            yield f"README.md: lists {path.name} {listed.count(f']({path.name})')} times, not once"
    for target in re.findall(r"\]\((\d{4}[^)#]*)\)", listed):
        if not (folder / target).exists():
            yield f"README.md: there is no {target}"


def main():
    found = list(findings(ROOT / "docs/decisions"))
    for finding in found:
        print(f"docs/decisions/{finding}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
