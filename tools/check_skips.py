#!/usr/bin/env python3
"""Checks that only tests that may be skipped were skipped.

    check_skips.py REPORT...

REPORT is JUnit's XML as googletest and pytest write it; a case of googletest is named after its
report, ROOM/Suite.Case. tests/allowed_skips.toml names the tests
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


def reason_of(skipped):
    """The last line of what the test said, which googletest and pytest put into the element's message."""
    lines = (skipped.get("message") or "").strip().splitlines()
    return lines[-1] if lines else ""


def skips(report):
    """(test, reason) of every skipped test of a report."""
    root = xml.etree.ElementTree.parse(report).getroot()
    prefix = f"{report.stem}/" if root.get("name") == "AllTests" else ""  # so googletest calls it
    for case in root.iter("testcase"):
        skipped = case.find("skipped")
        if skipped is not None:
            yield f"{prefix}{case.get('classname')}.{case.get('name')}", reason_of(skipped)
        elif case.get("status") == "notrun":
            yield f"{prefix}{case.get('classname')}.{case.get('name')}", "disabled"


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
