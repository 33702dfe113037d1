#!/usr/bin/env python3
"""Checks that only tests that may be skipped were skipped.

    check_skips.py REPORT...

REPORT is JUnit's XML as ctest and pytest write it. tests/allowed_skips.toml names the tests
that may be skipped, each with the reason that it must give. Prints every skipped test, and
exits with 1 if there is one that the file does not allow.
"""

import argparse
import fnmatch
import pathlib
import re
import sys
import tomllib
import xml.etree.ElementTree

ALLOWED = pathlib.Path(__file__).resolve().parent.parent / "tests/allowed_skips.toml"


def reason_of(case, skipped):
    """What the test said: googletest in its output, pytest in the element's message."""
    said = re.search(r"Skipped\n(.+)", case.findtext("system-out") or "")
    if said:
        return said.group(1).strip()
    lines = ((skipped.get("message") if skipped is not None else None) or "").strip().splitlines()
    return lines[-1] if lines else ""


def skips(report):
    """(test, reason) of every skipped test of a report."""
    for case in xml.etree.ElementTree.parse(report).getroot().iter("testcase"):
        skipped = case.find("skipped")
        if skipped is None and case.get("status") not in ("disabled", "notrun"):
            continue
        name, of = case.get("name"), case.get("classname")
        yield name if of in (None, name) else f"{of}.{name}", reason_of(case, skipped)


def is_allowed(test, reason, allowed):
    return any(fnmatch.fnmatchcase(test, entry["test"]) and re.search(entry["reason"], reason) for entry in allowed)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("reports", nargs="+", type=pathlib.Path)
    parser.add_argument("--allowed", type=pathlib.Path, default=ALLOWED)
    arguments = parser.parse_args()
    allowed = tomllib.loads(arguments.allowed.read_text())["skips"]
    found = [skip for report in arguments.reports for skip in skips(report)]
    wrong = 0
    for test, reason in found:
        if is_allowed(test, reason, allowed):
            print(f"skipped: {test}: {reason}")
        else:
            wrong += 1
            print(f"SKIPPED, and {arguments.allowed.name} does not allow it: {test}: {reason or 'no reason given'}",
                  file=sys.stderr)
    print(f"{len(found)} tests skipped, {wrong} of them not allowed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
