#!/usr/bin/env python3
"""Mixed load with random faults in real time, for SOAK_SECONDS (default 600).

A controller, four workers and two front ends, each with open-loop load over HTTP, and
`foliot serve`, with a model whose content changes all the time. At random instants
(SOAK_SEED) workers, a front end and the controller are killed, stopped with SIGTERM, and
frozen for up to three seconds. Every request must have exactly one answer, right or a
refusal; none that is late may count as good: the client's clock runs from when it has
sent a request until its kernel has the answer, without exception, though it gives the
server 5 ms less than it has itself, for the way. Every process that lives long must stay
as large as it was.

Spared are worker 0 and front end 0, and in its second half the controller and the server:
their memory is watched. Growth is the median of VmRSS in the last fifth of a process's
life over that in the fifth after its first quarter, of processes that live for a quarter
of the soak. What freezes this whole machine, or all of these processes, is seen as a
gap in the samples, and said.
"""

import os
import pathlib
import random
import signal
import statistics
import sys
import tempfile
import threading
import time

import numpy as np
import onnxruntime

from figure import Figure, print_figures, say
from foliot_tools import onnx_models
from foliot_tools.cluster import Cluster
from foliot_tools.http_load import HttpLoad
from foliot_tools.link import REFUSALS
from foliot_tools.server import Server

RATE = 60  # requests/s at each front end and at the server
DEADLINE = 0.2
PATIENCE = 180  # until what was started again must serve, other people's freezes of the machine included
GROWTH_MAX = 0.01
# "503": the front end, or the model, is not ready.
ENDS = {*REFUSALS, "503"}


def write_version(path, seed, pixels):
    """A version of the model; returns its answers."""
    onnx_models.random_dense_network(path, (64, 256, 10), seed=seed)
    return onnxruntime.InferenceSession(path).run(None, {"pixels": pixels})[0]


class Memory:
    """VmRSS of each process, once a second, from a thread."""

    def __init__(self, parts):
        self._parts = parts  # {name: () -> subprocess.Popen}
        self.samples = {}  # (name, pid) -> MiB
        self.gaps = []  # seconds, when nothing was sampled
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stopping.set()
        self._thread.join()

    def _run(self):
        before = time.monotonic()
        while not self._stopping.wait(1):
            now = time.monotonic()
            if now - before > 2.5:
                self.gaps.append(now - before - 1)
            before = now
            for name, process in self._parts.items():
                self._sample(name, process())

    def _sample(self, name, process):
        try:
            status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
        except OSError:
            return
        if "VmRSS:" in status:
            self.samples.setdefault((name, process.pid), []).append(
                int(status.split("VmRSS:")[1].split()[0]) / 1024)

    def growths(self, seconds):
        """{name: (MiB after its warm-up, growth)} of processes that lived for `seconds`."""
        found = {}
        for (name, _), mebibytes in self.samples.items():
            count = len(mebibytes)
            if count < max(seconds, 20):
                continue
            before = statistics.median(mebibytes[count // 4 : count // 4 + count // 5])
            found[name] = before, statistics.median(mebibytes[-(count // 5) :]) / before - 1
        return found


class Trouble:
    """Faults at random, each healed before the next one."""

    def __init__(self, cluster, server, seed, seconds):
        self._draw = random.Random(seed)
        self._cluster, self._server = cluster, server
        self._begin, self._seconds = time.monotonic(), seconds
        self.counts = {}
        self.failures = []
        self.frontend_away = []  # (begin, end) of each time that front end 1 was frozen or gone

    def go_on(self):
        """One fault, healed."""
        cluster = self._cluster
        early = time.monotonic() < self._begin + self._seconds / 2
        kinds = ["kill", "stop", "freeze"]
        victims = [("worker", part) for part in cluster.workers[1:]] + [("frontend", cluster.frontends[1])]
        if early:
            victims += [("controller", cluster.controller), ("server", self._server)]
        role, part = self._draw.choice(victims)
        kind = self._draw.choice(kinds)
        if not early and self._draw.random() < 0.3:
            role, part = self._draw.choice([("worker", cluster.workers[0]), ("controller", cluster.controller)])
            kind = "freeze"
        self.counts[f"{role} {kind}"] = self.counts.get(f"{role} {kind}", 0) + 1
        begin = time.monotonic()
        try:
            getattr(self, "_" + kind)(role, part)
        except AssertionError as error:  # it did not come back in time
            self.failures.append(f"{role} {kind}: {str(error)[-500:]}")
        if role == "frontend":
            self.frontend_away.append((begin, time.monotonic()))

    def _kill(self, role, part):
        if role == "server":
            part.process.kill()
            part.process.wait()
            part.start()
            return
        part.kill()
        self._start(role, part)

    def _stop(self, role, part):
        exit_code = part.stop(timeout=PATIENCE)
        if exit_code != 0:
            self.failures.append(f"{role} ended with {exit_code}: {part.output()[-500:]}")
        if role == "server":
            part.start()
            part.stopped = False
        else:
            self._start(role, part)

    def _freeze(self, role, part):
        part.process.send_signal(signal.SIGSTOP)
        time.sleep(self._draw.choice([0.1, 0.3, 1, 3]))
        part.process.send_signal(signal.SIGCONT)
        self._await_whole()

    def _start(self, role, part):
        said = part.output().count("ready:")
        time.sleep(self._draw.choice([0, 0.2, 1]))
        part.start()
        if role == "worker":
            part.await_line("ready:", count=said + 1, timeout=PATIENCE)
        self._await_whole()

    def _await_whole(self):
        for frontend in self._cluster.frontends:
            frontend.await_ready(timeout=PATIENCE)


def change_versions(folder, server, pixels, stop, count):
    """A version after another; what each answers is known before it serves. The server gets a
    load request, the workers of the cluster watch."""
    number = 1
    while not stop.wait(5):
        number = 3 - number  # 1 and 2 by turns
        for models in ("served", "models"):
            staged = folder / "staged.onnx"
            write_version(staged, number, pixels)
            staged.replace(folder / models / "model/1/model.onnx")
        try:
            status, _ = server.post("/v2/repository/models/model/load")
            count["versions"] += status == 200
        except OSError:
            pass  # it is being started again


def measure(seconds, seed):
    with tempfile.TemporaryDirectory(prefix="foliot-soak-") as folder:
        folder = pathlib.Path(folder)
        pixels = np.random.default_rng(seed).random((64, 64), np.float32)
        write_version(folder / "models/model/1/model.onnx", 1, pixels)
        versions = [write_version(folder / "other.onnx", 2, pixels)]
        versions.append(write_version(folder / "served/model/1/model.onnx", 1, pixels))
        load = dict(model="model", inputs=pixels, rate=RATE, deadline_seconds=DEADLINE, expected=versions)
        count = {"versions": 0}
        stop = threading.Event()
        with (
            Cluster(folder, folder / "models", workers=4, frontends=2, watch="200ms") as cluster,
            Server(folder / "served", folder / "server.log", page_size="256KiB", page_cache="16MiB", threads=1) as server,
        ):
            parts = {"controller": lambda: cluster.controller.process, "server": lambda: server.process}
            parts |= {f"worker {i}": lambda part=part: part.process for i, part in enumerate(cluster.workers)}
            parts |= {f"front end {i}": lambda part=part: part.process for i, part in enumerate(cluster.frontends)}
            updates = threading.Thread(target=change_versions, args=(folder, server, pixels, stop, count))
            trouble = Trouble(cluster, server, seed, seconds)
            draw = random.Random(seed + 1)
            with (
                HttpLoad(cluster.frontends[0].http, seed=seed + 2, **load) as first,
                HttpLoad(cluster.frontends[1].http, seed=seed + 3, **load) as second,
                HttpLoad(server.http, seed=seed + 4, **load) as third,
                Memory(parts) as memory,
            ):
                updates.start()
                end, said = time.monotonic() + seconds, time.monotonic()
                try:
                    while time.monotonic() < end:
                        time.sleep(draw.uniform(0.5, 5))
                        trouble.go_on()
                        if time.monotonic() - said > 60:
                            said = time.monotonic()
                            say(f"{end - said:.0f} s left, {trouble.counts}")
                finally:
                    stop.set()
                    updates.join()
            count["in the cluster"] = cluster.controller.output().count("in place of version")
        reports = [load.report for load in (first, second, third)]
        return figures_of(seconds, reports, trouble, memory, count)


def broken_without_reason(reports, trouble):
    """Connections that broke though the front end at the other end was there; the server
    has no front end of its own to spare."""
    first, second, _ = reports
    away = [(begin, end + DEADLINE) for begin, end in trouble.frontend_away]
    return [request for request in first.requests if request.outcome == "broken"] + [
        request for request in second.requests
        if request.outcome == "broken" and not any(begin <= request.answered and request.at <= end
                                                   for begin, end in away)]


def figures_of(seconds, reports, trouble, memory, count):
    requests = [request for report in reports for request in report.requests]
    ends = {}
    for request in requests:
        ends[request.outcome] = ends.get(request.outcome, 0) + 1
    strange = {end: number for end, number in ends.items() if end not in ENDS | {"broken"}}
    unanswered = sum(len(report.unanswered()) for report in reports)
    stray = sum(report.stray for report in reports)
    late = [request for report in reports for request in report.late_as_good()]
    undecided = sum(len(report.undecided()) for report in reports)
    for request in late:
        say(f"late as good: asked at {request.at:.6f}, sent {request.sent - request.at:+.6f}, "
            f"answered {request.answered - request.at:+.6f} s")
    broken = broken_without_reason(reports, trouble)
    growths = memory.growths(seconds / 4)
    for name, (mebibytes, growth) in growths.items():
        say(f"{name}: {mebibytes:.1f} MiB, {growth:+.2%}")
    for failure in [*trouble.failures, *sorted({f"{r.outcome}: {r.detail}" for r in requests if r.outcome in strange})]:
        say(failure)
    say(f"{len(memory.gaps)} gaps in the samples, {sum(memory.gaps):.0f} s in all, {max(memory.gaps, default=0):.1f} s the longest")
    say(", ".join(f"{end}: {number}" for end, number in sorted(ends.items())))
    check = f"soak of processes, {seconds} s"
    good = sum(request.good for request in requests)
    return [
        Figure(check, "faults", ", ".join(f"{number} x {what}" for what, number in sorted(trouble.counts.items())),
               not trouble.failures),
        Figure(check, "each request has one answer, right or a refusal",
               f"{unanswered} without, {stray} too many, {sum(strange.values())} strange, {len(broken)} connections "
               f"broken, of {len(requests)}; {good} good; {count['versions']} changes of version by the server, {count['in the cluster']} by the cluster",
               unanswered == stray == len(broken) == 0 and not strange and min(count.values()) > 0),
        Figure(check, "none that is late counts as good",
               f"{len(late)} did; of {undecided} the client does not know when it had sent them", not late),
        Figure(check, f"memory grows < {GROWTH_MAX:.0%}",
               "; ".join(f"{name} {growth:+.2%} of {mebibytes:.0f} MiB" for name, (mebibytes, growth) in growths.items()),
               bool(growths) and all(growth < GROWTH_MAX for _, growth in growths.values())),
    ]


if __name__ == "__main__":
    sys.exit(print_figures(measure(int(os.environ.get("SOAK_SECONDS", "600")), int(os.environ.get("SOAK_SEED", "1")))))
