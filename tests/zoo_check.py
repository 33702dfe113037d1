#!/usr/bin/env python3
"""Checks the networks of tools/models, all or those named, against onnxruntime:
every batch size, every bucket, plans cut in two, and the planner's workspace
against the least possible. Takes about an hour for all; results are kept as they
come: Ctrl-C stops, and --resume goes on from there."""

import argparse
import dataclasses
import datetime
import json
import os
import pathlib
import sys
import tempfile

from foliot_tools.model_check import BATCH_SIZES, ModelCheck, RELATIVE_ERROR_MAX, check_model, models
from foliot_tools.server import ROOT

sys.path.insert(0, str(ROOT / "tests/figures"))
from figure import machine  # noqa: E402

HEADER = "| model | error | workspace / least | seconds | commit | |\n|---|---|---|---|---|---|"


@dataclasses.dataclass
class Checked(ModelCheck):
    """With what was checked, since a resumed run may have been another's."""

    commit: str = ""
    threads: int = 1
    batch_sizes: list = dataclasses.field(default_factory=list)


def row(check):
    warning = f"; on reference kernels: {', '.join(check.slow)}" if check.slow else ""
    return (f"| {check.name} | {check.error:.1e} | {check.workspace_ratio:.3f} | {check.seconds:.0f} | {check.commit} "
            f"| {check.failure or 'ok'}{warning} |")


def read(path):
    """{name: result} of an earlier run."""
    if not path.exists():
        return {}
    return {result["name"]: Checked(**result) for result in json.loads(path.read_text())}


def write(path, results):
    """All or nothing: a run may be stopped at any time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps([dataclasses.asdict(result) for result in results], indent=1))
    partial.replace(path)


def summary(names, results):
    passed = [name for name in names if name in results and not results[name].failure]
    failed = [name for name in names if name in results and results[name].failure]
    missing = [name for name in names if name not in results]
    return (f"{len(passed)} of {len(names)} pass"
            + (f"; these do not: {', '.join(failed)}" if failed else "")
            + (f"; these were not run: {', '.join(missing)}" if missing else "")
            + f". {datetime.date.today()}, {machine()}")


def document(names, results):
    return f"""# The zoo

Every network of `tools/models`, with seeded random weights: compiled, run at batch sizes
{', '.join(map(str, BATCH_SIZES))} and every sequence bucket, at batch size 2 also in two parts at many cuts, and compared
with onnxruntime. It passes if the largest difference is within {RELATIVE_ERROR_MAX:g} of the output's largest value, rows
differ by ten times as much, and the planned workspace is within a tenth of the least possible.
Written by `make zoo ZOO="--resume --write docs/ZOO.md"`, which runs what is missing.

{HEADER}
{chr(10).join(row(results[name]) for name in names if name in results)}

{summary(names, results)}
"""


def progress(done, total, name):
    if sys.stderr.isatty():
        width = 30
        filled = width * done // total
        print(f"\r\033[K[{'#' * filled}{'.' * (width - filled)}] {done}/{total} {name}", end="", file=sys.stderr)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="models, e.g. resnet50_v1b (default: all)")
    parser.add_argument("--batch-sizes", default=BATCH_SIZES, type=lambda text: [int(size) for size in text.split(",")])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=pathlib.Path, default=pathlib.Path("out/zoo.json"), help="where results are kept")
    parser.add_argument("--resume", action="store_true", help="do not check again what passed at these batch sizes")
    parser.add_argument("--write", type=pathlib.Path, metavar="FILE", help="write the table of all results here")
    return parser.parse_args()


def check_all(names, arguments, results):
    """Adds to the results, and to their file."""
    commit = machine().split("commit ")[-1].split()[0]
    with tempfile.TemporaryDirectory(prefix="foliot-zoo-") as folder:
        for done, name in enumerate(names):
            progress(done, len(names), name)
            check = check_model(name, pathlib.Path(folder) / name, arguments.batch_sizes, arguments.threads)
            results[name] = Checked(**dataclasses.asdict(check), commit=commit, threads=arguments.threads,
                                    batch_sizes=list(arguments.batch_sizes))
            write(arguments.json, results.values())
            progress(done + 1, len(names), name)
            print(("\r\033[K" if sys.stderr.isatty() else "") + row(results[name]), flush=True)


def main():
    arguments = parse_arguments()
    names = arguments.names or list(models.MODELS)
    sizes = list(arguments.batch_sizes)
    results = read(arguments.json)
    passed = {name for name, result in results.items()
              if not result.failure and (result.threads, result.batch_sizes) == (arguments.threads, sizes)}
    todo = [name for name in names if not (arguments.resume and name in passed)]
    os.nice(19)
    print(HEADER)
    try:
        check_all(todo, arguments, results)
    except KeyboardInterrupt:
        print()
    print(f"\n{summary(names, results)}")
    if arguments.write:
        arguments.write.write_text(document(names, results))
    return 0 if all(name in results and not results[name].failure for name in names) else 1


if __name__ == "__main__":
    sys.exit(main())
