"""Help is readable: flags in groups, and types and defaults as they are typed."""

import re
import subprocess

import pytest

from foliot_tools.server import foliot_binary


def help_of(*command):
    return subprocess.run([foliot_binary(), *command, "--help"], capture_output=True, text=True, check=True).stdout


def commands():
    listed = help_of().split("Subcommands:\n")[1].split("\n\n")[0]
    return re.findall(r"^  ([a-z-]+) ", listed, re.MULTILINE) + ["keys new", "trace export"]


def test_foliot_alone_prints_the_help():
    alone = subprocess.run([foliot_binary()], capture_output=True, text=True, check=True)
    assert alone.stdout == help_of() and alone.stderr == ""


@pytest.mark.parametrize("command", commands())
def test_every_command(command):
    text = help_of(*command.split())
    for unreadable in ("ENUM", "BOOLEAN", "UINT", "value in", "->", "Excludes", ".000", "REQUIRED", "\n\n\n"):
        assert unreadable not in text, f"{command}: {unreadable}"
    assert "The first five minutes" not in text, "that is the program's footer"


def test_groups_and_defaults_of_serve():
    text = help_of("serve")
    for shown in ("\nHTTP and gRPC:\n", "\nThreads and memory:\n", "\nLog lines:\n", "--weights-tier disk|memory", "[memory]",
                  "--compile-in-background true|false", "[true]", "[64MiB]", "[60s]", "[10m]", "(1 to 1024)"):
        assert shown in text, shown
