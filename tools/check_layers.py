#!/usr/bin/env python3
"""Checks the layers of src/: who includes whom, whose libraries, whose clocks.

The tables below are the whole rule (docs/ARCHITECTURE.md gives the reasons).
Prints one line per breach and exits with 1 if there is any.
"""

import argparse
import fnmatch
import pathlib
import re
import sys

# Room -> the rooms that it may include, besides itself and base.
ROOMS = {
    "base": [],
    "logging": [],
    "core": [],
    "platform": [],
    "process": ["platform"],
    "trace": ["core", "platform"],
    "config": [],
    "access": ["config"],
    "device": ["core"],
    "device/cpu": ["device", "core"],
    "device/cuda": ["device", "core"],
    "program": ["device", "core"],
    "compiler": ["program", "device", "core"],
    "worker": ["program", "device", "core"],
    "controller": ["core"],
    "policies/common": ["controller", "core"],
    "policies/*": ["policies/common", "controller", "core"],
    "policies": ["policies/*", "controller", "core"],
    "transport": ["core", "platform", "access"],
    "metrics": ["core"],
    "frontend": ["core", "access", "metrics"],
    "repository": ["compiler", "program", "device", "core", "platform", "process", "config"],
    "workload": ["core", "config"],
    "client": ["workload", "core", "platform"],
    "sim": ["controller", "worker", "workload", "program", "device", "core"],
    "emulation": ["sim", "workload", "worker", "program", "device", "core", "transport"],
    "experiments": ["policies", "sim", "workload", "platform", "controller", "core"],
    "cluster": ["controller", "worker", "frontend", "transport", "logging", "platform", "core"],
    "serving": ["cluster", "controller", "policies", "worker", "program", "device", "device/cpu", "frontend", "metrics", "access", "transport",
                "trace", "repository", "process", "logging", "platform", "core"],
    "app": ["*"],
}

# Room -> what its tests may include besides.
TESTS = {
    "cluster": ["emulation", "policies"],
    "compiler": ["device/cpu"],
    "controller": [],
    "policies": ["sim", "workload", "worker", "program", "device"],
    "policies/*": ["sim", "workload", "worker", "program", "device"],
    "program": ["device/cpu"],
    "repository": ["device/cpu"],
    "serving": ["emulation", "workload"],
    "sim": ["policies", "policies/*", "workload", "device/cpu"],
    "worker": ["device/cpu", "platform"],
}

# Headers of a library -> the only rooms that may include them.
LIBRARIES = {
    r"(oneapi/)?dnnl.*|omp\.h": ["device/cpu"],
    r"cuda.*|cudnn.*|cublas.*|nvml.*": ["device/cuda"],
    r"onnx/.*": ["compiler"],
    r"grpc(pp)?/.*|.*\.grpc\.pb\.h": ["frontend", "transport", "client"],
    r"google/protobuf/.*|.*\.pb\.h": ["compiler", "program", "frontend", "transport", "client"],
    r"boost/(beast|asio).*": ["frontend", "transport", "client", "app"],
    r"prometheus/.*": ["metrics", "frontend"],
    r"simdjson.*": ["frontend", "client"],
    r"toml\+\+/.*|toml\.h.*": ["config", "repository", "workload", "app"],
    r"CLI/.*": ["app"],
    r"spdlog/.*": ["logging"],
    r"seccomp\.h": ["process"],
}

# State machines take time as an argument, run on the caller's thread and draw
# from the Random passed to them.
STATE_MACHINES = ["core", "controller", "policies", "policies/*", "worker"]
FORBIDDEN = re.compile(
    r"\b(steady|system|high_resolution)_clock\b|\bclock_gettime\b|\bgettimeofday\b|\bsleep_(for|until)\b"
    r"|\bu?sleep\(|\bnanosleep\b|\bstd::j?thread\b|\bstd::async\b|\brandom_device\b|\bmt19937\b|\bs?rand\("
)

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def includes(text):
    """(line number, is a quoted include, path) of every include in `text`."""
    for number, line in enumerate(text.splitlines(), 1):
        if match := INCLUDE.match(line):
            yield number, match[1] == '"', match[2]


def matches(room, pattern):
    """True if `room` is `pattern`, which may be x/* for any folder of x, or * for any."""
    return fnmatch.fnmatchcase(room, pattern) and room.count("/") == pattern.count("/") or pattern == "*"


def lookup(table, room):
    return next((value for pattern, value in table.items() if matches(room, pattern)), None)


def room_of(path):
    """The room that a path relative to src/ lies in: the innermost folder that is
    one (compiler/operators is a part of compiler), or else its own folder."""
    for folder in path.parents:
        if lookup(ROOMS, folder.as_posix()) is not None:
            return folder.as_posix()
    return path.parent.as_posix()


def without_comments(text):
    """`text` with // comments blanked, the lines kept."""
    return re.sub(r"//[^\n]*", "", text)


def check_file(src, path):
    """Yields 'src/path:line: what is wrong' for one file."""
    room = room_of(path)
    text = (src / path).read_text(encoding="utf-8")
    is_test = path.stem.endswith(("_test", "_bench", "_fuzz"))

    allowed = lookup(ROOMS, room)
    if allowed is None:
        yield f"src/{path}:1: the room '{room}' is not in the table of tools/check_layers.py"
        return
    allowed = [room, "base", *allowed]
    if is_test:
        allowed += lookup(TESTS, room) or []

    for number, quoted, target in includes(text):
        target_room = room_of(pathlib.PurePosixPath(target))
        if quoted and (src / target).exists():
            if target_room == "app" and room != "app":
                yield f"src/{path}:{number}: includes {target}: nobody includes app"
            elif not any(matches(target_room, pattern) for pattern in allowed):
                yield f"src/{path}:{number}: includes {target}: {room} may include only {', '.join(allowed)}"
            continue
        for library, owners in LIBRARIES.items():
            if re.fullmatch(library, target):
                if not any(matches(room, owner) for owner in owners):
                    yield f"src/{path}:{number}: includes {target}: only {', '.join(owners)} may"
                break

    if not is_test and any(matches(room, pattern) for pattern in STATE_MACHINES):
        for number, line in enumerate(without_comments(text).splitlines(), 1):
            if match := FORBIDDEN.search(line):
                yield (f"src/{path}:{number}: uses {match[0]}: {room} takes time, threads and randomness "
                       "from its caller")

    if path.suffix == ".h":
        guard = "FOLIOT_" + re.sub(r"[^A-Za-z0-9]", "_", path.as_posix()).upper() + "_"
        if f"#ifndef {guard}\n#define {guard}\n" not in text:
            yield f"src/{path}:1: the include guard must be {guard}"


def source_files(src):
    """Every C++ file under `src`, relative to it, in order."""
    return sorted(path.relative_to(src) for path in src.rglob("*") if path.suffix in (".h", ".cc"))


def check(src):
    """All breaches under `src`."""
    return [breach for path in source_files(src) for breach in check_file(src, path)]


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--src", type=pathlib.Path, default=root / "src", help="the folder of the rooms")
    breaches = check(parser.parse_args().src)
    for breach in breaches:
        print(breach, file=sys.stderr)
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
