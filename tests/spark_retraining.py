"""Retraining a personal model on Spark, in its local mode: `make test-spark`, not a part of `make test`.

FOLIOT_SPARK_RATINGS says of how many ratings (200,000); the memory that the command gives is that of its driver in any case.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import threading

import numpy as np
import pytest

from foliot import personal
from foliot_tools.server import Server, foliot_binary
from foliot_tools.waiting import eventually
from test_shared_users import Homes

RATINGS = int(os.environ.get("FOLIOT_SPARK_RATINGS", "200000"))
USERS, ITEMS, FEATURES = RATINGS // 100, 500, 8
NOISE = 0.5
MEMORY = 2 << 30
SPARK = ["--spark", "local[2]", "--python", sys.executable, "--memory", "2GiB", "--background", "false"]


class DriverMemory:
    """The most memory that Spark's driver had: Foliot's process of it, and the JVM, which has the executors, too."""

    def __init__(self):
        self.most = {}  # bytes, by process
        self.over = threading.Event()

    def __enter__(self):
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()
        print(f"\ndriver: {', '.join(f'{name} {size >> 20} MiB' for name, size in self.most.values())}")

    def watch(self):
        while not self.over.wait(0.2):
            for process in pathlib.Path("/proc").glob("[0-9]*"):
                try:
                    words = (process / "cmdline").read_bytes().split(b"\0")
                    peak = re.search(r"VmHWM:\s+(\d+) kB", (process / "status").read_text())
                except OSError:
                    continue
                is_python = b"foliot.spark_trainer" in words
                if peak and (is_python or b"org.apache.spark.deploy.SparkSubmit" in words):
                    self.most[process.name] = "Python" if is_python else "JVM", int(peak[1]) << 10

    def bytes(self):
        return sum(size for _, size in self.most.values())


@pytest.fixture(scope="module")
def ratings():
    random = np.random.default_rng(1)
    users, items = random.integers(0, USERS, RATINGS), random.integers(0, ITEMS, RATINGS)
    weights, features = random.normal(0, 0.5, (USERS, 5)), random.normal(0, 1, (ITEMS, 5))
    values = 3 + random.normal(0, 0.5, USERS)[users] + np.einsum("ij,ij->i", weights[users], features[items])
    return users, items, values + random.normal(0, NOISE, RATINGS)


def batches(count, size=5000):
    return [slice(begin, begin + size) for begin in range(0, count, size)]


def observe(client, users, items, values):
    """Each once: what is refused is sent again with the same ids."""
    for part in batches(len(values)):
        observations = [personal.Observation(int(user), item, value, id=part.start + i + 1) for i, (user, item, value)
                        in enumerate(zip(users[part], items[part], values[part]))]
        eventually(lambda observations=observations: is_observed(client, observations), 300)


def is_observed(client, observations):
    try:
        client.observe_all(observations)
        return True
    except personal.PersonalError:
        return False


def error_of(client, users, items, values):
    predictions = [client.predict_pairs(users[part].tolist(), items[part]) for part in batches(len(values))]
    return float(np.mean((np.concatenate(predictions) - values) ** 2))


def write_films(folder, toml=""):
    (folder / "1").mkdir(parents=True)
    (folder / "personal.toml").write_text(toml)
    features = np.random.default_rng(2).normal(0, 0.5, (ITEMS, FEATURES)).astype(np.float32)
    features[:, 0] = 1
    personal.write_items(folder / "1/items.features", range(ITEMS), features)
    return folder


def test_spark_finds_features_that_predict(ratings, tmp_path):
    users, items, values = ratings
    seen, later = slice(0, RATINGS - 20_000), slice(RATINGS - 20_000, RATINGS)
    folder = write_films(tmp_path / "models/films")
    with Server(tmp_path / "models", tmp_path / "server.log", watch="200ms") as server:
        with personal.Client(server.http, "films", timeout=60) as client:
            observe(client, users[seen], items[seen], values[seen])
            before = error_of(client, users[later], items[later], values[later])
            with DriverMemory() as driver:
                result = subprocess.run(
                    [foliot_binary(), "retrain", folder, "--state", tmp_path / "models/.observations/films", *SPARK],
                    capture_output=True, text=True, timeout=1800, check=False)
            assert result.returncode == 0, result.stdout + result.stderr
            assert 0 < driver.bytes() < MEMORY
            metrics = json.loads((folder / "2/training.json").read_text())["metrics"]
            assert metrics["parquet"] and (folder / "observations.parquet").stat().st_size > 0
            eventually(lambda: client.top_k(0, 1).version == "2")
            after = error_of(client, users[later], items[later], values[later])
    print(f"\n{metrics['observations']} observations, {metrics['seconds']} s: mean squared error {before:.3f} with random "
          f"features, {after:.3f} with Spark's; {NOISE ** 2} is noise")
    assert after < 1.5 * NOISE ** 2 < before


# The means of items, by Spark's own functions and by Foliot's; weights follow from them.
OWN = """
import numpy as np

def totals(observations):
    items, count = observations.items, observations.item_count
    return np.bincount(items, observations.values, count), np.bincount(items, minlength=count)

class Trainer:
    ridge_lambda = 1.0
    def __init__(self, options): self.metrics = {}
    def retrain(self, observations, features, weights):
        sums, counts = (sum(each) for each in zip(*observations.map(totals)))
        rows = observations.frame().groupBy("item").avg("value").collect()
        for item, mean in rows:
            assert abs(mean - sums[item] / counts[item]) < 1e-3
        self.metrics = {"observations": int(counts.sum()), "items": len(rows)}
        return np.stack([np.ones(len(sums)), sums / np.maximum(counts, 1)], axis=1), None
"""


def test_a_trainer_of_ones_own_is_run_by_spark(ratings, tmp_path):
    users, items, values = (each[:100_000] for each in ratings)
    folder = write_films(tmp_path / "models/films")
    (tmp_path / "own.py").write_text(OWN)
    with Server(tmp_path / "models", tmp_path / "server.log") as server:
        with personal.Client(server.http, "films", timeout=60) as client:
            observe(client, users, items, values)
            result = subprocess.run(
                [foliot_binary(), "retrain", folder, "--state", tmp_path / "models/.observations/films", "--features", "2",
                 "--trainer", tmp_path / "own.py", *SPARK],
                capture_output=True, text=True, timeout=600, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    metrics = json.loads((folder / "2/training.json").read_text())["metrics"]
    assert metrics["items"] == ITEMS and 0.9 * len(values) < metrics["observations"] < len(values)


def test_front_ends_retrain_on_spark_by_themselves(ratings, tmp_path):
    users, items, values = ratings
    command = [str(foliot_binary()), "retrain", "{folder}", "--state", "{state}", *SPARK]
    write_films(tmp_path / "models/films", f"[retrain]\nafter_observations = {RATINGS}\ncommand = {json.dumps(command)}\n")
    with Homes(tmp_path) as homes, DriverMemory() as driver:
        for name in ("one", "two", "three"):
            homes.add(name)
        homes.await_named(3)
        with personal.Client(homes.frontends[1].http, "films", timeout=60) as client:
            observe(client, users, items, values)
        outputs = [frontend.output for frontend in homes.frontends]
        eventually(lambda: "version 2 is better on what is withheld from trainers" in outputs[0](), 1800, outputs[0])
        for output in outputs[1:]:
            eventually(lambda output=output: "version 2 of another front end is served" in output(), 60, output)
    assert 0 < driver.bytes() < MEMORY
    trained = json.loads((tmp_path / "models/films/2/training.json").read_text())["metrics"]["observations"]
    assert 0.94 * RATINGS < trained < 0.96 * RATINGS, "of the users of all, what is not withheld"
