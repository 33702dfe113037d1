#!/usr/bin/env python3
"""The wings and rooms of src/, as src/rooms.json has them: for the tools, and as tables of a document.

    rooms.py                    prints the table in Markdown
    rooms.py --check FILE...    fails if a table between <!-- rooms --> and <!-- /rooms --> differs
    rooms.py --write FILE...    renews those tables
    rooms.py --lines            prints the lines of each room, and fails if one is too large
"""

import argparse
import fnmatch
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Of production code: a room that is larger is to be divided.
LINES_MAX = 9000
LARGE = ("engine/device", "engine/device/*", "engine/compiler")
TEST = re.compile(r"test_.*|.*_(test|fuzz|bench)")
BLOCK = re.compile(r"(<!-- rooms -->\n).*?(<!-- /rooms -->)", re.DOTALL)


def matches(room, pattern):
    """True if `room` is `pattern`, which may be x/* for any folder of x, or * for any."""
    return fnmatch.fnmatchcase(room, pattern) and room.count("/") == pattern.count("/") or pattern == "*"


def wing_of(room):
    """The wing that a room, or a pattern of rooms, lies in: its first folder."""
    return room.split("/")[0]


class Rooms:
    """The table, with its questions answered."""

    def __init__(self, table):
        self.wings = table["wings"]
        self.rooms = table["rooms"]
        self.headers = table["headers"]
        self.state_machines = table["state_machines"]

    @staticmethod
    def load(path=ROOT / "src/rooms.json"):
        return Rooms(json.loads(path.read_text(encoding="utf-8")))

    def find(self, room):
        """The entry of a room, by its name or a pattern that it matches; None if there is none."""
        return next((entry for entry in self.rooms if matches(room, entry["room"])), None)

    def allows(self, pattern, room):
        """True if a rule that names `pattern`, which may be a wing, names `room`. Rooms for tests only
        (conformance) are not meant by the name of their wing."""
        if pattern in self.wings and self.find(pattern) is None:
            return wing_of(room) == pattern and not room.endswith("/conformance")
        return matches(room, pattern)

    def of(self, path):
        """The room that a path relative to src/ lies in: the innermost folder that is one
        (engine/compiler/operators is a part of engine/compiler), or else its own folder."""
        for folder in path.parents:
            if self.find(folder.as_posix()) is not None:
                return folder.as_posix()
        return path.parent.as_posix()

    def owners(self, library):
        """The rooms that use a library."""
        return [entry["room"] for entry in self.rooms
                if library in entry.get("libraries", []) + entry.get("public_libraries", [])]

    def is_state_machine(self, room):
        return any(matches(room, pattern) for pattern in self.state_machines)


def markdown(rooms):
    """A heading and a table for each wing, the highest first."""
    parts = []
    for wing, holds in reversed(rooms.wings.items()):
        parts += [f"## {wing}", "", f"{holds[0].upper()}{holds[1:]}.", "",
                  "| room | what is in it | may include, besides foundation/base |", "|---|---|---|"]
        for entry in rooms.rooms:
            if wing_of(entry["room"]) == wing:
                name = entry["room"].removeprefix(wing + "/")
                included = ", ".join(entry["may_include"]) or "-"
                parts.append(f"| {name} | {entry['holds']} | {included} |".replace("*", "\\*"))
        parts.append("")
    return "\n".join(parts)


def lines_of_rooms(rooms, source):
    """{room: [lines of production code, lines of tests, fuzzers and benchmarks]}"""
    lines = {}
    for path in sorted(source.rglob("*")):
        if path.suffix in (".h", ".cc"):
            room = rooms.of(path.relative_to(source))
            is_test = TEST.fullmatch(path.stem) is not None or "conformance" in path.parts
            lines.setdefault(room, [0, 0])[is_test] += path.read_text(encoding="utf-8").count("\n")
    return lines


def check_lines(rooms, source):
    """The number of rooms that are too large."""
    too_large = 0
    for room, (production, tests) in sorted(lines_of_rooms(rooms, source).items(), key=lambda each: -each[1][0]):
        print(f"{production:6} {tests:6}  {room}")
        if production > LINES_MAX and not any(matches(room, pattern) for pattern in LARGE):
            too_large += 1
            print(f"src/{room} has {production} lines of production code, limit {LINES_MAX}: divide the room", file=sys.stderr)
    return too_large


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", nargs="+", type=pathlib.Path, metavar="FILE")
    what.add_argument("--write", nargs="+", type=pathlib.Path, metavar="FILE")
    what.add_argument("--lines", action="store_true")
    arguments = parser.parse_args()
    rooms = Rooms.load()
    if arguments.lines:
        return 1 if check_lines(rooms, ROOT / "src") else 0
    table = markdown(rooms)
    if not arguments.check and not arguments.write:
        print(table, end="")
        return 0
    stale = 0
    for path in arguments.check or arguments.write:
        text = path.read_text(encoding="utf-8")
        renewed = BLOCK.sub(lambda block: block[1] + table + block[2], text)
        if arguments.write:
            path.write_text(renewed, encoding="utf-8")
        elif renewed != text:
            stale += 1
            print(f"{path}: its table of rooms is not that of src/rooms.json: tools/rooms.py --write {path}",
                  file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
