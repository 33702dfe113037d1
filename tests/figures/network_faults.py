#!/usr/bin/env python3
"""Figures: what bad links and grey machines cost, and that no promise is broken by them.

A controller, four real workers and a front end, each in a network namespace of its own,
joined by a router in user space (foliot_tools/network.py) that loses, delays and cuts off
packets. Load over HTTP comes from the front end's namespace, so that what it says can be
checked against the client's clock (foliot_tools/http_load.py): an answer must not count as
good if it is late there. Every request must have one answer, the model's or a refusal
(503: the front end has no controller).

A worker is fenced when the controller says so in its log. Slowed down is an emulated worker
whose EXECs take ten times as long as those of the others, which must be fenced; and a real
one that has a tenth of a processor from then on (a control group's quota). With so little
to do that may only mean that it gets less: the only condition is that no request suffers.
"""

import argparse
import contextlib
import dataclasses
import os
import pathlib
import re
import signal
import sys
import tempfile
import time
from collections.abc import Callable

import numpy as np
import onnxruntime

from figure import Figure, print_figures, say
from foliot_tools import network, onnx_models
from foliot_tools.cluster import EmulatedCluster, Part
from foliot_tools.http_load import HttpLoad
from foliot_tools.link import REFUSALS, Link, await_devices, poisson_load
from foliot_tools.network import Network

WORKERS = 4
RATE = 100
DEADLINE = 0.2
# The client, eight other processes and whatever else is tested share the processors: the
# front end may wait this long for one before it sees a request, or writes its answer.
WAY = 0.02
FENCED_MAX = 2.0
QUOTA_ROOT = pathlib.Path("/sys/fs/cgroup/cpu")  # of the first version of control groups
MILLISECONDS = (7.71, 11.14, 16.21, 26.48, 44.60)  # a ResNet-152's, by batch size
EMULATED_RATE = 560  # half of what four such workers can carry


class SpreadCluster:
    """Each part on a host of its own."""

    def __init__(self, folder, hosts):
        self.folder = folder
        self.network = hosts
        self.pixels = np.random.default_rng(1).random((64, 64), np.float32)
        model = onnx_models.random_dense_network(folder / "models/net/model.onnx", (64, 3072, 3072, 10))
        self.expected = onnxruntime.InferenceSession(model).run(None, {"pixels": self.pixels})[0]
        self.workers = []
        self.controller = self.frontend = None

    def __enter__(self):
        controller = f"{self.network.address('controller')}:8100"
        self.controller = self._part("controller", "controller", listen="0.0.0.0:8100")
        self.controller.await_line("ready:")
        for i in range(WORKERS):
            name = f"worker{i}"
            self.workers.append(
                self._part(name, "worker", self.folder / "models", name=name, controller=controller, threads=1,
                           data_listen="0.0.0.0:8200", page_size="256KiB", page_cache="128MiB",
                           cache=self.folder / "cache"))
            self.workers[0].await_line("ready:", timeout=120)  # what it has compiled the others only read
        for worker in self.workers:
            worker.await_line("ready:")
        self.frontend = self._part("frontend", "frontend", controller=controller, http_port=8000)
        self.frontend.await_line("ready:")
        return self

    def __exit__(self, *_):
        for part in (*self.workers, self.frontend, self.controller):
            if part is not None and part.process.poll() is None:
                part.process.send_signal(signal.SIGCONT)
                part.kill()

    def _part(self, host, *arguments, **options):
        return Part(self.folder / f"{host}.log", *arguments, namespace=self.network.namespace(host), **options)

    def load(self, seed):
        return HttpLoad("127.0.0.1:8000", model="net", inputs=self.pixels, expected=[self.expected], rate=RATE,
                        deadline_seconds=DEADLINE, way_seconds=WAY, namespace=self.network.namespace("frontend"), seed=seed)

    def fenced_after(self, part, trouble):
        """Seconds until the controller gives up this worker for such a reason, from now."""
        number = self.workers.index(part)
        begin = time.monotonic()
        self.controller.await_line(f"of worker 'worker{number}' is lost: (?:{trouble})", timeout=30)
        return time.monotonic() - begin

    def back_after(self, part, action):
        """Does what heals this part, and returns after how many seconds it is ready again."""
        said = part.output().count("ready:")
        begin = time.monotonic()
        action()
        part.await_line("ready:", count=said + 1, timeout=90)
        return time.monotonic() - begin


def hosts():
    return ["controller", "frontend", *(f"worker{i}" for i in range(WORKERS))]


# ---- What happens; each returns what else was seen, and whether that is right. ----


def lose_packets(cluster, seconds):
    for host in hosts():
        cluster.network.weather(host, loss=0.01)
    time.sleep(seconds)
    return "1 % of the packets at each of six hosts", True


def delay_packets(cluster, seconds):
    for host in hosts():
        cluster.network.weather(host, delay_seconds=0.05)
    time.sleep(seconds)
    return "50 ms at each of six hosts, for 0.2 s of each second", True


def cut_worker(cluster, seconds):
    cluster.network.weather("worker1", cut=True)
    fenced = cluster.fenced_after(cluster.workers[1], "silent|overdue")
    time.sleep(seconds)
    back = cluster.back_after(cluster.workers[1], lambda: cluster.network.weather("worker1"))
    return f"fenced after {fenced:.2f} s, back {back:.2f} s after it healed", fenced < FENCED_MAX


def cut_frontend(cluster, seconds):
    cluster.network.weather("frontend", cut=True)
    time.sleep(seconds + 2)
    back = cluster.back_after(cluster.frontend, lambda: cluster.network.weather("frontend"))
    return f"serving {back:.2f} s after it healed", True


def cut_controller(cluster, seconds):
    cluster.network.weather("controller", cut=True)
    time.sleep(seconds + 2)
    back = cluster.back_after(cluster.frontend, lambda: cluster.network.weather("controller"))
    return f"serving {back:.2f} s after it healed", True


def freeze_worker(cluster, seconds):
    worker = cluster.workers[2]
    worker.process.send_signal(signal.SIGSTOP)
    fenced = cluster.fenced_after(worker, "silent|overdue")
    time.sleep(seconds)
    back = cluster.back_after(worker, lambda: worker.process.send_signal(signal.SIGCONT))
    return f"fenced after {fenced:.2f} s, back {back:.2f} s after it went on", fenced < FENCED_MAX


def processor_seconds(part):
    fields = pathlib.Path(f"/proc/{part.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def throttle_worker(cluster, seconds):
    """The one that has most to do: an idle one delays no request."""
    before = [processor_seconds(worker) for worker in cluster.workers]
    time.sleep(1)
    worker = max(cluster.workers, key=lambda w: processor_seconds(w) - before[cluster.workers.index(w)])
    number = cluster.workers.index(worker)
    group = QUOTA_ROOT / f"foliot-{worker.process.pid}"
    group.mkdir()
    (group / "cpu.cfs_period_us").write_text("10000")
    (group / "cpu.cfs_quota_us").write_text("1000")
    (group / "cgroup.procs").write_text(str(worker.process.pid))
    time.sleep(FENCED_MAX)
    used = processor_seconds(worker)
    time.sleep(seconds)
    used = (processor_seconds(worker) - used) / seconds
    lost = re.findall(f"of worker 'worker{number}' is lost: (.*)", cluster.controller.output())
    worker.kill()
    with contextlib.suppress(OSError):
        group.rmdir()
    return f"{'fenced as ' + lost[0] if lost else 'not fenced'}; uses {used:.1%} of a processor from 2 s on", True


@dataclasses.dataclass
class Scenario:
    name: str
    act: Callable
    share_min: float = 0  # of those from 2 s after its begin on that are served in time
    missing: Callable = lambda: None


SCENARIOS = [
    Scenario("1 % packet loss", lose_packets),
    Scenario("50 ms delay spikes", delay_packets),
    Scenario("a worker cut off, and healed", cut_worker),
    Scenario("the front end cut off, and healed", cut_frontend),
    Scenario("the controller cut off, and healed", cut_controller),
    Scenario("a worker stopped by SIGSTOP, and gone on", freeze_worker),
    Scenario("a worker with a tenth of a processor", throttle_worker, 0.9,
             lambda: None if (QUOTA_ROOT / "cgroup.procs").exists() else f"{QUOTA_ROOT} is no control group"),
]


def play(scenario, folder, seconds, seed=1):
    """The figures of one scenario of so long a fault."""
    with Network(hosts(), seed) as joined, SpreadCluster(folder, joined) as cluster, cluster.load(seed) as load:
        time.sleep(1)
        begin = time.monotonic()
        seen, right = scenario.act(cluster, seconds)
        end = time.monotonic()
        for host in hosts():
            cluster.network.weather(host)
        time.sleep(2)
    report = load.report
    during = [request for request in report.requests if begin <= request.at <= end]
    ends = {request.outcome for request in report.requests} - {*REFUSALS, "503"}
    broken = len(report.unanswered()) + report.stray
    late = report.late_as_good()
    say(f"{scenario.name}: {seen}; {len(report.requests)} requests, {len(report.undecided())} of unknown lateness")
    settled = [request for request in during if request.at > begin + FENCED_MAX]
    right = right and sum(request.good for request in settled) >= scenario.share_min * len(settled)
    after = [request for request in report.requests if request.at > end + 1]
    return [
        Figure(scenario.name, "one answer each, right or a refusal; no late one counts as good",
               f"{broken} without or twice, {len(late)} late as good, other ends: {', '.join(sorted(ends)) or 'none'}",
               broken == 0 and not late and not ends),
        Figure(scenario.name, "fenced in < 2 s when silent",
               f"{seen}; {good_share(during)} in time meanwhile, {good_share(after)} afterwards", right),
    ]


def good_share(requests):
    return f"{sum(request.good for request in requests) / max(len(requests), 1):.1%} of {len(requests)}"


def write_profiles(path, factor):
    """Eight models, each EXEC of which takes `factor` times as long as it should."""
    times = ",".join(f"{factor * milliseconds:.2f}" for milliseconds in MILLISECONDS)
    rows = [f"net{i},602000,4000,240900000,19.58,{times}\n" for i in range(8)]
    path.write_text("model,input_bytes,output_bytes,weights_bytes,load_ms,b1_ms,b2_ms,b4_ms,b8_ms,b16_ms\n" + "".join(rows))
    return path


def slow_worker(folder, rounds):
    """An emulated worker that comes back ten times as slow."""
    normal, slow = (write_profiles(folder / f"{factor}.csv", factor) for factor in (1, 10))
    fenced, asked = [], []
    for number in range(rounds):
        own = folder / f"round{number}"
        own.mkdir()
        with EmulatedCluster(own, normal) as cluster:
            link = Link(cluster.address)
            await_devices(link, 4)
            asked += poisson_load(link, rate=EMULATED_RATE, seconds=1, deadline_seconds=DEADLINE, seed=number)
            cluster.workers[1].kill()
            cluster.profiles = slow
            said = len(cluster.controller.output())
            back = cluster.worker_part("worker1")
            cluster.workers.append(back)
            back.await_line("ready:")
            begin = time.monotonic()
            gone = []

            def look(now):
                if not gone and "is lost: slow" in cluster.controller.output()[said:]:
                    gone.append(now - begin)

            asked += poisson_load(link, rate=EMULATED_RATE, seconds=3, deadline_seconds=DEADLINE, seed=number, each_turn=look)
            fenced.append(gone[0] if gone else float("inf"))
            say(f"slow worker {number + 1}: fenced after {fenced[-1]:.2f} s")
    name = f"an emulated worker ten times as slow, {rounds} times"
    wrong = sum(request.answers != 1 for request in asked)
    late = sum(request.outcome == "served" and request.finished > request.deadline for request in asked)
    return [
        Figure(name, "one answer each; no late one counts as good", f"{wrong} without or twice, {late} late as good, of "
               f"{len(asked)}; {good_share(asked)} in time", wrong == late == 0),
        Figure(name, "fenced in < 2 s", f"{max(fenced):.2f} s at most", max(fenced) < FENCED_MAX),
    ]


def measure(seconds, rounds, scenarios=tuple(SCENARIOS)):
    figures = []
    for scenario in scenarios:
        if reason := network.missing() or scenario.missing():
            figures.append(Figure(scenario.name, "-", f"not measured: {reason}", False))
            continue
        with tempfile.TemporaryDirectory(prefix="foliot-network-") as folder:
            figures += play(scenario, pathlib.Path(folder), seconds)
    with tempfile.TemporaryDirectory(prefix="foliot-network-") as folder:
        return figures + slow_worker(pathlib.Path(folder), rounds)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seconds", type=float, default=10, help="how long each fault lasts")
    parser.add_argument("--rounds", type=int, default=5, help="of the slow emulated worker")
    parser.add_argument("--only", default="", help="faults with this in their name")
    options = parser.parse_args()
    chosen = tuple(scenario for scenario in SCENARIOS if options.only in scenario.name)
    sys.exit(print_figures(measure(options.seconds, options.rounds, chosen)))
