"""Help is readable: flags in groups, and types and defaults as they are typed."""

import re
import subprocess

import pytest

from foliot_tools.server import foliot_binary


def help_of(*command, flag="--help"):
    return subprocess.run([foliot_binary(), *command, flag], capture_output=True, text=True, check=True).stdout


def commands():
    listed = subprocess.run([foliot_binary(), "completion", "words", "--", ""], capture_output=True, text=True, check=True)
    return [line.split("\t")[0] for line in listed.stdout.splitlines()] + ["keys new", "trace export"]


def test_foliot_alone_prints_the_help():
    alone = subprocess.run([foliot_binary()], capture_output=True, text=True, check=True)
    assert alone.stdout == help_of() and alone.stderr == ""


@pytest.mark.parametrize("command", commands())
def test_every_command(command):
    text = help_of(*command.split())
    for unreadable in ("ENUM", "BOOLEAN", "UINT", "value in", "->", "Excludes", ".000", "REQUIRED", "\n\n\n"):
        assert unreadable not in text, f"{command}: {unreadable}"
    assert "The first five minutes" not in text, "that is the program's footer"


def flags_in(text):
    return re.findall(r"^  (?:-h,)?--([a-z-]+)", text, re.MULTILINE)


def test_flags_that_are_rarely_set_stand_in_help_all():
    text, everything = help_of("serve"), help_of("serve", flag="--help-all")
    usual, rare = set(flags_in(text)), set(flags_in(everything)) - set(flags_in(text))
    assert usual < set(flags_in(everything))
    assert len(usual) <= 35
    assert f"{len(rare)} more flags are rarely set: --help-all shows them." in text
    assert {"tensors-max", "deadline-margin"} <= rare and {"page-cache", "scheduler", "keys"} <= usual
    assert "Threads and memory, rarely set:\n" in everything and "more flags" not in everything


def test_groups_and_defaults_of_serve():
    text = help_of("serve", flag="--help-all")
    for shown in ("\nHTTP and gRPC:\n", "\nThreads and memory:\n", "\nLog lines:\n", "--weights-tier disk|memory", "[memory]",
                  "--compile-in-background true|false", "[true]", "[64MiB]", "[60s]", "[10m]", "(1 to 1024)"):
        assert shown in text, shown


@pytest.mark.parametrize("command", ["simulate x.toml", "experiment figure_5", "bench", "worker models"])
@pytest.mark.parametrize("seed", ["-1", "1.5", "18446744073709551616", "x"])
def test_a_seed_is_a_whole_number_from_0_on(command, seed):
    result = subprocess.run([foliot_binary(), *command.split(), f"--seed={seed}"],
                            capture_output=True, text=True, check=False)
    assert result.returncode != 0
    assert f"'{seed}' is no seed: give a whole number from 0 to 18446744073709551615" in result.stderr
