#!/usr/bin/env python3
"""Figures: `kill -9` at random moments under load, starts included. Nothing that was acknowledged may be lost, and what
a killed process leaves in folders is removed by the next.

    tests/figures/kills.py [--rounds 200] [--seed 1] [--parts serve cluster]

serve: one server is killed up to a second and a half after each start. It has a network, a container, a personal model and jobs. After
each start all that it acknowledged must be there: an observation once, a job with the right output.
cluster: a worker, the controller or one of two front ends, by lot, under requests to both front ends, each of which
must end once.
"""

import argparse
import contextlib
import http.client
import pathlib
import random
import signal
import sys
import tempfile
import threading
import time

import numpy as np
import onnxruntime

import foliot.jobs
from figure import Figure, print_figures, say
from foliot import personal
from foliot_tools import onnx_models
from foliot_tools.cluster import Cluster
from foliot_tools.http_load import HttpLoad
from foliot_tools.link import RETRYABLE
from foliot_tools.server import Server
from foliot_tools.waiting import eventually

MOMENTS = 1.5  # seconds after a start, within which a server is killed
ROWS = 2000  # of a job
ITEMS = np.arange(0, 500, 10)
CONTAINER = """import foliot, os
open(os.environ['TMPDIR'] + '/file', 'w').write('x' * 1000)

@foliot.model(inputs={"x": ("FP32", [2])}, outputs={"y": ("FP32", [2])}, batch_size_max=1)
def predict(batch):
    return {"y": 2 * batch["x"]}
"""


def write_models(folder):
    onnx_models.random_dense_network(folder / "dense/model.onnx", (64, 256, 10))
    personal.write_items(folder / "movies/1/items.features", ITEMS, np.random.default_rng(7).normal(0, 0.3, (len(ITEMS), 8)))
    (folder / "movies/personal.toml").write_text('[exploration]\nname = "greedy"\npool = 0\n')
    (folder / "code/1").mkdir(parents=True)
    (folder / "code/1/model.py").write_text(CONTAINER)
    (folder / "code/model.toml").write_text(f'[container]\npython = "{sys.executable}"\nstart_timeout = "600s"\n')


class Acknowledged:
    """What the servers of all rounds have acknowledged."""

    def __init__(self, jobs_folder):
        self.pixels = np.random.default_rng(1).random((ROWS, 64), np.float32)
        np.save(jobs_folder / "rows.npy", self.pixels)
        self.jobs_folder = jobs_folder
        self.observations = {}  # by user
        self.jobs = {}  # output by id
        self.answers = 0


class Clients:
    """Of one round: they go on until the server is gone, and note what it acknowledges."""

    def __init__(self, server, kept, number):
        self._server, self._kept, self._number = server, kept, number
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._again, args=(work, i))
                         for i, work in enumerate((self._observe, self._observe, self._submit, self._infer))]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _again(self, work, i):
        while not self._over.is_set():
            with contextlib.suppress(OSError, http.client.HTTPException, RuntimeError, personal.PersonalError):
                work(i)
            time.sleep(0.02)

    def _observe(self, i):
        user = f"{self._number}.{i}"
        noted = self._kept.observations.setdefault(user, [])
        dice = random.Random(user)
        with personal.Client(self._server.http, "movies") as movies:
            while not self._over.is_set():
                number = len(noted) + 1
                each = personal.Observation(user, int(dice.choice(ITEMS)), dice.gauss(0, 3), id=number)
                movies.observe_all([each])
                noted.append(each)

    def _submit(self, _):
        output = f"out/{self._number}.{len(self._kept.jobs)}"
        job = foliot.jobs.Jobs(self._server.http, timeout=10).submit_offline({"pixels": "rows.npy"}, output, model="dense")
        self._kept.jobs[job["id"]] = output
        time.sleep(0.3)

    def _infer(self, _):
        status, _ = self._server.post("/v2/models/dense/infer", {
            "inputs": [{"name": "pixels", "shape": [1, 64], "datatype": "FP32", "data": [0.5] * 64}]})
        self._kept.answers += status == 200


def lost_observations(server, kept, users):
    """How many users know less, or other things, than was acknowledged: what is sent again changes nothing that is there."""
    lost = 0
    with personal.Client(server.http, "movies") as movies:
        for user in users:
            if not kept.observations[user]:
                continue
            before = movies.predict_pairs([user] * len(ITEMS), ITEMS)
            for begin in range(0, len(kept.observations[user]), 500):
                movies.observe_all(kept.observations[user][begin:begin + 500])
            lost += not np.allclose(movies.predict_pairs([user] * len(ITEMS), ITEMS), before, atol=1e-5)
    return lost


def lost_jobs(server, kept, expected, ids):
    """How many jobs are not there, or did not end with the right output."""
    jobs, lost = foliot.jobs.Jobs(server.http), 0
    for job in jobs.list():  # one may have been taken and not acknowledged yet
        if job["state"] not in foliot.jobs.ENDED:
            jobs.wait(job["id"], interval=0.05)
    for job_id in ids:
        try:
            job = jobs.wait(job_id, interval=0.05)
            right = np.allclose(np.load(kept.jobs_folder / kept.jobs[job_id] / "probabilities.npy"), expected, atol=1e-5)
            lost += job["state"] != "succeeded" or not right
        except (foliot.jobs.JobError, OSError, ValueError) as error:
            say(f"job {job_id}: {error!r}")
            lost += 1
    return lost


def strays(kept, folder, before):
    """Files without a use: folders of killed servers' containers, parts of outputs, and drafts."""
    temporary = [path for path in before if path.exists()]
    written = [path for path in kept.jobs_folder.glob("out/*/*") if path.name != "probabilities.npy"]
    drafts = [path for name in ("cache", "observations", "models") for path in (folder / name).rglob("*")
              if path.name.endswith((".new", ".tmp", ".part", ".draft"))]
    return temporary, written, drafts


def kill_servers(folder, rounds, seed):
    dice = random.Random(seed)
    for name in ("jobs", "temporary"):
        (folder / name).mkdir()
    write_models(folder / "models")
    kept = Acknowledged(folder / "jobs")
    expected = onnxruntime.InferenceSession(folder / "models/dense/model.onnx").run(None, {"pixels": kept.pixels})[0]
    lost, left, starts = [0, 0], set(), []

    def started(number):
        return Server(folder / "models", folder / f"log{number % 2}", prefix=("env", f"TMPDIR={folder / 'temporary'}"),
                      page_cache="16MiB", page_size="256KiB", cache=folder / "cache", jobs=folder / "jobs",
                      observations=folder / "observations", threads=1)

    for number in range(rounds + 1):
        server = started(number)
        checked_users, checked_jobs = list(kept.observations)[-4:], list(kept.jobs)[-8:]
        if number == rounds:  # at the end everything
            checked_users, checked_jobs = list(kept.observations), list(kept.jobs)[-1000:]
        if number in (0, rounds) or dice.random() < 0.5:  # else it is killed as it starts
            temporary = list((folder / "temporary").iterdir())
            server.start()
            starts.append(server.seconds_to_ready)
            eventually(lambda: server.get("/v2/health/ready")[0] == 200)  # noqa: B023
            eventually(lambda: server.get("/v2/models/code/ready")[0] == 200, 600, server.output)  # noqa: B023
            lost[0] += lost_observations(server, kept, checked_users)
            lost[1] += lost_jobs(server, kept, expected, checked_jobs)
            left |= {path for paths in strays(kept, folder, temporary) for path in paths}
        else:
            threading.Thread(target=ignore, args=(server.start,)).start()
            eventually(lambda: server.process)  # noqa: B023
        if number < rounds:
            with Clients(server, kept, number):
                time.sleep(dice.uniform(0, MOMENTS))  # the random moment
                server.process.send_signal(signal.SIGKILL)
                server.process.wait()
        if number % 10 == 0:
            observed = sum(len(noted) for noted in kept.observations.values())
            say(f"{number}: {observed} observations, {len(kept.jobs)} jobs, {kept.answers} answers; lost {lost}, left {left}")
    exit_code = server.stop()
    left |= set((folder / "temporary").iterdir())
    observed = sum(len(noted) for noted in kept.observations.values())
    check = f"kill -9 of serve, {rounds} times, seed {seed}"
    return [
        Figure(check, "no acknowledged observation is lost, none counts twice", f"{lost[0]} users of {observed} observations",
               lost[0] == 0 < observed),
        Figure(check, "each acknowledged job ends with the right output", f"{lost[1]} of {len(kept.jobs)} did not",
               lost[1] == 0 < len(kept.jobs)),
        Figure(check, "folders are cleaned", ", ".join(str(path) for path in sorted(left)[:5]) or "nothing is left", not left),
        Figure(check, "it starts again, and stops cleanly", f"after {max(starts):.2f} s at most, exit code {exit_code}",
               exit_code == 0),
    ]


def ignore(work):
    with contextlib.suppress(Exception):
        work()


def kill_parts(folder, rounds, seed):
    dice = random.Random(seed)
    model = folder / "models/dense/model.onnx"
    onnx_models.random_dense_network(model, (64, 256, 10))
    pixels = np.random.default_rng(1).random((64, 64), np.float32)
    expected = onnxruntime.InferenceSession(model).run(None, {"pixels": pixels})[0]
    killed = dict.fromkeys(("worker0", "worker1", "controller", "frontend1"), 0)
    with Cluster(folder, folder / "models", workers=2, frontends=2) as cluster, contextlib.ExitStack() as stack:
        loads = [stack.enter_context(HttpLoad(frontend.http, model="dense", inputs=pixels, expected=[expected], rate=100,
                                              deadline_seconds=0.1, seed=i)) for i, frontend in enumerate(cluster.frontends)]
        for number in range(rounds):
            name = dice.choice(list(killed))
            victim = {"worker0": cluster.workers[0], "worker1": cluster.workers[1], "controller": cluster.controller,
                      "frontend1": cluster.frontends[1]}[name]
            time.sleep(dice.uniform(0, 1))  # the random moment
            victim.kill()
            killed[name] += 1
            victim.start()
            if number % 20 == 0:
                say(f"{number}: {killed}")
        for frontend in cluster.frontends:
            frontend.await_ready()
        time.sleep(2)
        cluster_lives = all(part.process.poll() is None for part in (cluster.controller, *cluster.workers, *cluster.frontends))
        for load in loads:
            load.stop()
        stack.pop_all()
    check = f"kill -9 of {', '.join(f'{name} {times}' for name, times in killed.items())} times, seed {seed}"
    figures = [Figure(check, "all are there in the end", "yes" if cluster_lives else "no", cluster_lives)]
    for name, load in zip(("front end 0", "front end 1, which is killed"), loads):
        requests = load.report.requests
        ends = {}
        for request in requests:
            ends[request.outcome] = ends.get(request.outcome, 0) + 1
        allowed = RETRYABLE | {"served", "503", "unmeetable"} | ({"broken"} if "killed" in name else set())
        figures.append(Figure(f"{check}: {name}", "each request ends once, rightly or to be tried again",
                              ", ".join(f"{outcome} {count}" for outcome, count in sorted(ends.items())),
                              set(ends) <= allowed and not load.report.stray))
    return figures


def measure(options):
    figures = []
    for part in options.parts:
        with tempfile.TemporaryDirectory(prefix="foliot-kills-") as folder:
            work = {"serve": kill_servers, "cluster": kill_parts}[part]
            figures += work(pathlib.Path(folder), options.rounds, options.seed)
    return figures


def read_options(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--parts", nargs="+", choices=("serve", "cluster"), default=("serve", "cluster"))
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(print_figures(measure(read_options(sys.argv[1:]))))
