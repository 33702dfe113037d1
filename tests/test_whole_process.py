"""What is set for a whole process (docs/OPERATIONS.md), as the kernel shows it."""

import pathlib
import re
import signal
import subprocess

import pytest

from foliot import personal
from foliot_tools.cluster import Part
from foliot_tools.server import foliot_binary
from foliot_tools.waiting import eventually
from test_personal import GREEDY, IDS, write_version

ROOT = pathlib.Path(__file__).resolve().parents[1]


def limits_of(pid, name):
    """The soft and the hard one."""
    text = pathlib.Path(f"/proc/{pid}/limits").read_text()
    return re.search(rf"^{name} +(\S+) +(\S+)", text, re.MULTILINE).groups()


def test_limits_are_the_most_that_is_allowed(serve, small_models):
    pid = serve(small_models, page_cache="16MiB", prefix=("prlimit", "--nofile=100:5000")).process.pid
    assert limits_of(pid, "Max open files") == ("5000", "5000")
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    assert int(re.search(r"FDSize:\s*(\d+)", status)[1]) >= 5000, "no thread waits for the kernel to make room for a connection"
    soft, hard = limits_of(pid, "Max locked memory")
    assert soft == hard


@pytest.mark.parametrize("given", [None, "glibc.malloc.check=0"])
def test_a_controller_begins_anew_with_huge_pages_for_its_heap(tmp_path, monkeypatch, given):
    monkeypatch.delenv("GLIBC_TUNABLES", raising=False)
    if given:
        monkeypatch.setenv("GLIBC_TUNABLES", given)
    controller = Part(tmp_path / "controller.log", "controller", listen="127.0.0.1:0")
    try:
        controller.await_line("ready:")
        environment = pathlib.Path(f"/proc/{controller.process.pid}/environ").read_text().split("\0")
        assert f"GLIBC_TUNABLES={given or 'glibc.malloc.hugetlb=1'}" in environment
    finally:
        controller.kill()


def nices_of(pid, name):
    """Of the threads whose names begin so."""
    found = {}
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        comm, rest = (task / "stat").read_text().split("(", 1)[1].rsplit(") ", 1)
        if comm.startswith(name):
            found[task.name] = int(rest.split()[16])
    return list(found.values())


def test_a_store_of_users_has_two_threads_of_low_priority(serve, tmp_path):
    write_version(tmp_path / "models", "1")
    (tmp_path / "models/movies/personal.toml").write_text(GREEDY)
    without = serve(tmp_path / "models", page_cache="16MiB", observations=tmp_path / "without")
    assert nices_of(without.process.pid, "rocksdb") == []
    (tmp_path / "models/movies/personal.toml").write_text(GREEDY + '[limits]\nusers_memory = "32MiB"\n')
    server = serve(tmp_path / "models", page_cache="16MiB", observations=tmp_path / "with")
    with personal.Client(server.http, "movies") as movies:
        for first in range(0, 90_000, 1000):  # more than memory holds; a thread has its priority from its first work on
            movies.observe_all([personal.Observation(user, int(IDS[user % len(IDS)]), 1, id=user)
                                for user in range(first, first + 1000)])
    eventually(lambda: max(nices_of(server.process.pid, "rocksdb")) == 19, otherwise=server.output)
    assert len(nices_of(server.process.pid, "rocksdb")) == 2


def test_a_simulation_that_aborts_prints_its_seed():
    command = [foliot_binary(), "simulate", ROOT / "examples/simulate/links.toml", "--seeds", "1000000", "--seed", "7"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        try:
            eventually(lambda: is_handled(process.pid, signal.SIGABRT))
            process.send_signal(signal.SIGABRT)  # from outside it goes on afterwards; abort() ends it
            said = next(line for line in process.stderr if "--seed" in line)
        finally:
            process.kill()
    assert re.search(r"foliot simulate: in the run with --seed \d+", said), said


def is_handled(pid, number):
    """Whether the process handles the signal."""
    caught = re.search(r"^SigCgt:\s*(\w+)", pathlib.Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)[1]
    return int(caught, 16) >> (number - 1) & 1
