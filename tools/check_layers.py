#!/usr/bin/env python3
"""Checks the layers of src/: who includes whom, whose libraries, whose clocks and locks.

The rule is src/rooms.json (docs/ARCHITECTURE.md gives the reasons). Prints one line
per breach and exits with 1 if there is any.
"""

import argparse
import pathlib
import re
import sys

from rooms import Rooms, matches, wing_of

# What state machines, which take time as an argument, run on the caller's thread and draw
# from the Random passed to them, do not use.
FORBIDDEN = re.compile(
    r"\b(steady|system|high_resolution)_clock\b|\bclock_gettime\b|\bgettimeofday\b|\bsleep_(for|until)\b"
    r"|\bu?sleep\(|\bnanosleep\b|\bstd::j?thread\b|\bstd::async\b|\brandom_device\b|\bmt19937\b|\bs?rand\("
)

# What foundation/base/mutex.h has with annotations, which clang checks.
BARE_LOCK = re.compile(
    r"\bstd::((recursive_|timed_|recursive_timed_|shared_|shared_timed_)?mutex|condition_variable(_any)?"
    r"|(lock_guard|unique_lock|scoped_lock|shared_lock))\b"
)
LOCKS = pathlib.PurePosixPath("foundation/base/mutex.h")

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def includes(text):
    """(line number, is a quoted include, path) of every include in `text`."""
    for number, line in enumerate(text.splitlines(), 1):
        if match := INCLUDE.match(line):
            yield number, match[1] == '"', match[2]


def without_comments(text):
    """`text` with // comments blanked, the lines kept."""
    return re.sub(r"//[^\n]*", "", text)


def is_test_header(path):
    """test_x.h is part of its room's tests, and may include what they may."""
    return path.suffix == ".h" and path.stem.startswith("test_")


def check_file(src, path, rooms):
    """Yields 'src/path:line: what is wrong' for one file."""
    room = rooms.of(path)
    text = (src / path).read_text(encoding="utf-8")
    is_test = path.stem.endswith(("_test", "_bench", "_fuzz")) or is_test_header(path)

    entry = rooms.find(room)
    if entry is None:
        yield f"src/{path}:1: the room '{room}' is not in src/rooms.json"
        return
    allowed = [room, "foundation/base", *entry["may_include"]]
    if is_test:
        allowed += entry.get("tests_may_include", [])

    for number, quoted, target in includes(text):
        target_room = rooms.of(pathlib.PurePosixPath(target))
        if quoted and (src / target).exists():
            if target_room == "app" and room != "app":
                yield f"src/{path}:{number}: includes {target}: nobody includes app"
            elif not any(rooms.allows(pattern, target_room) for pattern in allowed):
                yield f"src/{path}:{number}: includes {target}: {room} may include only {', '.join(allowed)}"
            continue
        for library, headers in rooms.headers.items():
            if re.fullmatch(headers, target):
                owners = rooms.owners(library)
                if not any(matches(room, owner) for owner in owners):
                    yield f"src/{path}:{number}: includes {target}: only {', '.join(owners)} may"
                break

    if not is_test and rooms.is_state_machine(room):
        for number, line in enumerate(without_comments(text).splitlines(), 1):
            if match := FORBIDDEN.search(line):
                yield (f"src/{path}:{number}: uses {match[0]}: {room} takes time, threads and randomness "
                       "from its caller")

    if path != LOCKS and not path.stem.endswith("_test"):
        for number, line in enumerate(without_comments(text).splitlines(), 1):
            if match := BARE_LOCK.search(line):
                yield f"src/{path}:{number}: uses {match[0]}: take that of {LOCKS}, which clang checks"

    if path.suffix == ".h":
        guard = "FOLIOT_" + re.sub(r"[^A-Za-z0-9]", "_", path.as_posix()).upper() + "_"
        if f"#ifndef {guard}\n#define {guard}\n" not in text:
            yield f"src/{path}:1: the include guard must be {guard}"


def source_files(src):
    """Every C++ file under `src`, relative to it, in order."""
    return sorted(path.relative_to(src) for path in src.rglob("*") if path.suffix in (".h", ".cc"))


def check_table(rooms):
    """What includes a room or a wing that stands after it closes a circle, or will."""
    names = [entry["room"] for entry in rooms.rooms]
    wings = list(rooms.wings)
    for i, entry in enumerate(rooms.rooms):
        wing = wing_of(entry["room"])
        if wing not in wings:
            yield f"src/rooms.json: {entry['room']} is in no wing"
            continue
        for pattern in entry["may_include"]:
            is_wing = pattern in wings and pattern not in names
            below = wings[:wings.index(wing)]
            if pattern != "*" and (pattern not in below if is_wing else pattern not in names[:i]):
                yield f"src/rooms.json: {entry['room']} includes {pattern}, which does not stand before it"
            elif pattern != "*" and wing_of(pattern) not in [wing, *below]:
                yield f"src/rooms.json: {entry['room']} includes {pattern}, whose wing stands above {wing}"


def check_folders(src, rooms):
    """A folder of src/ that is no wing."""
    for folder in sorted(path.name for path in src.iterdir() if path.is_dir()):
        if folder not in rooms.wings:
            yield f"src/{folder}: is no wing of src/rooms.json"


def check(src, rooms):
    """All breaches under `src`."""
    return [*check_table(rooms), *check_folders(src, rooms), *(breach for path in source_files(src) for breach in check_file(src, path, rooms))]


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--src", type=pathlib.Path, default=root / "src", help="the folder of the rooms")
    breaches = check(parser.parse_args().src, Rooms.load())
    for breach in breaches:
        print(breach, file=sys.stderr)
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
