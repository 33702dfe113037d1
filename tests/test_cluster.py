"""Controller, emulated workers and load as processes of their own, and what they
say when something is wrong."""

import collections
import os
import re
import signal
import socket
import struct
import subprocess
import time

import pytest

from foliot_tools.cluster import EmulatedCluster
from foliot_tools.link import RETRYABLE, Link, await_devices, greeting, poisson_load
from foliot_tools.waiting import eventually

FOLIOT = os.environ.get("FOLIOT", "build/release/bin/foliot")


def foliot(*arguments, timeout=30):
    return subprocess.run([FOLIOT, *arguments], capture_output=True, text=True, timeout=timeout)


@pytest.fixture(name="controller")
def running_controller():
    """The address of a controller, and its process."""
    with subprocess.Popen(
        [FOLIOT, "controller", "--listen", "127.0.0.1:0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        port = int(re.search(r"port (\d+)", process.stdout.readline())[1])
        yield f"127.0.0.1:{port}", process
        process.send_signal(signal.SIGINT)


def test_requests_are_served_by_emulated_workers(controller):
    address, _ = controller
    command = [FOLIOT, "worker", "--emulate", "resnet18:3", "--count", "4", "--controller", address]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as workers:
        assert workers.stdout.readline() == "ready: 4 workers\n"
        load = foliot("bench-controller", address, "--rate", "500", "--deadline", "2s", "--duration", "1s")
        workers.send_signal(signal.SIGINT)
    assert load.returncode == 0, load.stderr
    assert "controller   4 devices" in load.stdout
    assert workers.returncode == 0


@pytest.fixture
def start():
    """Starts a process, which ends with the test; its first line must be as expected."""
    processes = []

    def run(*arguments, prints):
        process = subprocess.Popen([FOLIOT, *arguments], stdout=subprocess.PIPE, text=True)
        processes.append(process)
        line = process.stdout.readline()
        assert re.match(prints, line), line
        return process

    yield run
    for process in processes:
        process.kill()
        process.wait()


@pytest.fixture
def emulated(start):
    """Starts a worker as a process of its own, taken in when this returns."""

    def run(address, name):
        return start("worker", "--emulate", "resnet18:3", "--controller", address, "--name", name,
                     prints="ready: 1 workers$")

    return run


def wait_for_devices(address, count):
    """A load on the controller, once so many serve: one that the machine leaves no time may be lost for a while."""
    last = []

    def served():
        last[:] = [foliot("bench-controller", address, "--rate", "100", "--deadline", "2s", "--duration", "200ms")]
        return f"controller   {count} devices" in last[0].stdout

    eventually(served, otherwise=lambda: last[0].stdout + last[0].stderr)
    return last[0]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_a_lost_worker_is_replaced_by_the_others(controller, emulated, how):
    address, _ = controller
    workers = [emulated(address, f"w{i}") for i in range(4)]
    link = Link(address)
    await_devices(link, 4)
    lost_at = []

    def lose_one(_):
        if not lost_at and len(link.requests) >= 100:  # some are answered, others under way
            workers[1].send_signal(how)
            lost_at.append(time.monotonic())

    def served_by_others():
        poisson_load(link, rate=300, seconds=1, deadline_seconds=10, seed=1, each_turn=lose_one)
        return lost_at and sum(request.outcome == "served" and request.at > lost_at[0] for request in link.requests) >= 100

    # How many are refused meanwhile depends on the machine: a worker that gets no time is suspected, too.
    eventually(served_by_others, otherwise=lambda: collections.Counter(request.outcome for request in link.requests))
    await_devices(link, 3)
    assert {request.outcome for request in link.requests} <= {"served"} | RETRYABLE
    assert all(request.answers == 1 for request in link.requests)
    link.close()
    workers[1].send_signal(signal.SIGCONT)
    if how == signal.SIGSTOP:  # it finds out that it was given up, and comes back
        wait_for_devices(address, 4)


def test_workers_find_a_controller_that_was_restarted(start, emulated):
    with socket.create_server(("127.0.0.1", 0)) as probe:
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    first = start("controller", "--listen", address, prints="")
    for i in range(3):
        emulated(address, f"w{i}")
    wait_for_devices(address, 3)
    first.kill()
    first.wait()
    start("controller", "--listen", address, prints="")
    load = wait_for_devices(address, 3)
    assert load.returncode == 0, load.stderr


def test_a_controller_that_is_stopped_finishes_what_runs(tmp_path):
    with EmulatedCluster(tmp_path, "resnet152", workers=2) as cluster:
        link = Link(cluster.address)
        await_devices(link, 2)
        for _ in range(200):  # half a second of work
            link.ask(5, 0)
        eventually(lambda: link.turn(0.01) or any(request.outcome == "served" for request in link.requests))
        assert cluster.controller.stop() == 0, cluster.controller.output()
        while link.connected():
            link.turn(0.01)
        outcomes = {request.outcome for request in link.requests}
        assert outcomes == {"served", "draining"} and all(request.answers == 1 for request in link.requests)
        assert link.goodbyes == ["it has stopped"]
        for worker in cluster.workers:
            assert worker.process.poll() is None, "workers look for the next one"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["worker", "--emulate", "resnet51"], "there is no profile 'resnet51'; there are: densenet169"),
        (["worker", "--emulate", "resnet50:none"], "write PROFILE:COPIES"),
        (["worker", "--emulate", "no/such.csv"], "no/such.csv"),
        (["worker", "--emulate", "resnet50", "--controller", "127.0.0.1:1"], "cannot connect to 127.0.0.1:1"),
        (["worker", "--emulate", "resnet50", "--controller", "here"], "write HOST:PORT"),
        (["bench-controller", "127.0.0.1:1"], "cannot connect to 127.0.0.1:1"),
        (["controller", "--scheduler", "best"], "there is no scheduler 'best'; there are:"),
        (["controller", "--listen", "127.0.0.1:66000"], "write HOST:PORT"),
        (["controller", "--keys", "keys.toml"], "give --metrics-port"),
        (["worker", "models", "--metrics-address", "::1"], "give --metrics-port"),
        (["controller", "--metrics-port", "0", "--keys", "no/such.toml"], "no/such.toml"),
        (["controller", "--metrics-port", "0", "--tls-key", "key.pem"], "need --tls-certificate"),
        (["controller", "--metrics-port", "0", "--metrics-address", "here"], "'here' is not an IP address"),
        (["controller", "--log", "/dev/null/log"], "cannot make the folder /dev/null/log of the log"),
        (["worker", "--emulate", "resnet50", "--metrics-port", "0"], "an emulated worker has no metrics"),
        (["worker", "--emulate", "resnet50", "--log", "log"], "an emulated worker has no metrics"),
    ],
)
def test_says_what_is_wrong(arguments, complaint):
    result = foliot(*arguments)
    assert result.returncode == 1
    assert complaint in result.stderr


def test_ports_of_metrics_that_are_in_use_are_named():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for command in (["controller", "--listen", "127.0.0.1:0"], ["worker", "models"]):
            result = foliot(*command, "--metrics-port", port)
            assert result.returncode == 1
            assert f"port {port} of 127.0.0.1 is in use; choose another with --metrics-port" in result.stderr


def test_other_versions_and_protocols_are_refused(controller):
    address, process = controller
    host, port = address.split(":")
    greetings = {
        greeting(1, version=999): "it speaks version 999",
        b"GET / HTTP/1.1\r\n\r\n": "not Foliot's protocol",
        greeting(1) + struct.pack("<I", 2**31): "a frame of 2147483648 bytes",
    }
    for speech, complaint in [*greetings.items(), *greetings.items()]:  # it survives each
        with socket.create_connection((host, int(port))) as peer:
            peer.sendall(speech)
            peer.settimeout(10)
            while peer.recv(4096):  # until the controller closes
                pass
        assert complaint in process.stderr.readline()


def test_a_tenants_share_is_one_over_all_front_ends(tmp_path):
    with EmulatedCluster(tmp_path, "resnet152", workers=1) as cluster:
        greedy, also_greedy, modest = (Link(cluster.address) for _ in range(3))
        links = (greedy, also_greedy, modest)
        for link in links:
            await_devices(link, 1)
        for _ in range(10):  # each time more than a second of work
            for link in (greedy, also_greedy):
                for _ in range(300):
                    link.ask(5, 0, tenant=1)
            for _ in range(5):
                modest.ask(5, 0, tenant=2)
            end = time.monotonic() + 0.1
            while time.monotonic() < end:
                for link in links:
                    link.turn(0.005)
        end = time.monotonic() + 20
        while not all(request.answers for link in links for request in link.requests):
            assert time.monotonic() < end
            for link in links:
                link.turn(0.005)
        outcomes = [{request.outcome for request in link.requests} for link in links]
        assert "over_share" in outcomes[0] and "over_share" in outcomes[1], outcomes
        assert "over_share" not in outcomes[2], outcomes
        for link in links:
            link.close()
