#!/usr/bin/env python3
"""Checks that every header of src/ compiles alone.

A header is compiled with the flags of its room's sources, as the build of
`--build` has them. One that passed is not compiled again until it, a header of
src/ that it includes, or its flags change.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

import check_layers
from rooms import Rooms

FALLBACK = ["-std=c++20", "-Wall", "-Wextra", "-Werror"]


def flags_by_room(build, src):
    """Room -> compiler flags, from the build's compile_commands.json."""
    flags, rooms = {}, Rooms.load()
    for entry in json.loads((build / "compile_commands.json").read_text()):
        file = pathlib.Path(entry["file"])
        # Sources that are compiled together are included by a file of the build's src/.
        # Generated code (.pb) is compiled with flags of its own.
        root = src if file.is_relative_to(src) else build / "src"
        if not file.is_relative_to(root) or re.search(r"_(test(_\d+)?|fuzz|bench|link)$|\.pb$", file.stem):
            continue
        words = iter(shlex.split(entry["command"]))
        kept = []
        for word in words:
            if word in ("-I", "-isystem", "-D"):
                kept += [word, next(words)]
            elif word.startswith(("-I", "-D", "-std", "-W", "-f")):
                kept.append(word)
        flags.setdefault(rooms.of(file.relative_to(root)), kept)
    return flags


def closure(src, header):
    """`header` and the headers of src/ that it includes, directly or not."""
    found, pending = set(), [header]
    while pending:
        path = pending.pop()
        if path in found:
            continue
        found.add(path)
        for _, quoted, target in check_layers.includes((src / path).read_text(encoding="utf-8")):
            if quoted and (src / target).exists():
                pending.append(pathlib.Path(target))
    return sorted(found)


def fingerprint(src, header, flags):
    digest = hashlib.sha256(" ".join(flags).encode())
    for path in closure(src, header):
        digest.update((src / path).read_bytes())
    return digest.hexdigest()


def compile_alone(compiler, src, header, flags):
    """None, or what the compiler said."""
    command = [compiler, *flags, f"-I{src}", "-fsyntax-only", "-x", "c++", "-"]
    result = subprocess.run(command, input=f'#include "{header}"\n', capture_output=True, text=True, check=False)
    return None if result.returncode == 0 else result.stderr


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=root / "build/release")
    parser.add_argument("--compiler", default="g++")
    arguments = parser.parse_args()
    src = root / "src"
    build = arguments.build.resolve()

    passed_file = build / "headers_that_compile_alone.json"
    passed = json.loads(passed_file.read_text()) if passed_file.exists() else {}
    room_flags = flags_by_room(build, src)
    pending, rooms = {}, Rooms.load()
    for header in (path for path in check_layers.source_files(src) if path.suffix == ".h"):
        flags = room_flags.get(rooms.of(header), FALLBACK)
        print_of_header = fingerprint(src, header, flags)
        if passed.get(str(header)) != print_of_header:
            pending[header] = (flags, print_of_header)

    failures = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = {header: pool.submit(compile_alone, arguments.compiler, src, header, flags)
                for header, (flags, _) in pending.items()}
        for header, job in jobs.items():
            if message := job.result():
                failures += 1
                print(f"src/{header}: does not compile alone\n{message}", file=sys.stderr)
            else:
                passed[str(header)] = pending[header][1]
    passed_file.write_text(json.dumps(passed, indent=1, sort_keys=True))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
