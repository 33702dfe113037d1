"""A row of the table of promised figures."""

import dataclasses
import platform
import subprocess
import sys

from foliot_tools.server import ROOT


@dataclasses.dataclass
class Figure:
    """What is promised, what was measured, and whether that keeps it."""

    check: str
    promised: str
    measured: str
    ok: bool


def print_figures(figures):
    """Prints the table; returns the process's exit status."""
    print("\n| check | figure | measured | ok |\n|---|---|---|---|")
    for figure in figures:
        print(f"| {figure.check} | {figure.promised} | {figure.measured} | {'yes' if figure.ok else 'NO'} |")
    print(f"\n{machine()}", flush=True)
    return 0 if all(figure.ok for figure in figures) else 1


def machine():
    """Where and on what commit it was measured."""
    with open("/proc/cpuinfo") as cpuinfo:
        lines = [line.split(":")[1].strip() for line in cpuinfo if line.startswith("model name")]
    commit = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], capture_output=True, text=True,
                            check=False).stdout.strip()
    return f"{len(lines)} x {lines[0]}, Linux {platform.release()}, commit {commit or 'unknown'}"


def say(text):
    print(f"-- {text}", file=sys.stderr, flush=True)
