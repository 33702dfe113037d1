"""Retraining a personal model on Spark, in its local mode: `make test-spark`, not a part of `make test`."""

import json
import subprocess
import sys

import numpy as np
import pytest

from foliot import personal
from foliot_tools.server import Server, foliot_binary
from foliot_tools.waiting import eventually

USERS, ITEMS, RATINGS, FEATURES = 2000, 500, 200_000, 8
NOISE = 0.5


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
    for part in batches(len(values)):
        client.observe_all([
            personal.Observation(int(user), item, value) for user, item, value in zip(users[part], items[part], values[part])
        ])


def error_of(client, users, items, values):
    predictions = [client.predict_pairs(users[part].tolist(), items[part]) for part in batches(len(values))]
    return float(np.mean((np.concatenate(predictions) - values) ** 2))


def test_spark_finds_features_that_predict(ratings, tmp_path):
    users, items, values = ratings
    seen, later = slice(0, RATINGS - 20_000), slice(RATINGS - 20_000, RATINGS)
    folder = tmp_path / "models/films"
    (folder / "1").mkdir(parents=True)
    (folder / "personal.toml").write_text("")
    features = np.random.default_rng(2).normal(0, 0.5, (ITEMS, FEATURES)).astype(np.float32)
    features[:, 0] = 1
    personal.write_items(folder / "1/items.features", range(ITEMS), features)
    with Server(tmp_path / "models", tmp_path / "server.log", watch="200ms") as server:
        with personal.Client(server.http, "films", timeout=60) as client:
            observe(client, users[seen], items[seen], values[seen])
            before = error_of(client, users[later], items[later], values[later])
            result = subprocess.run(
                [foliot_binary(), "retrain", folder, "--state", tmp_path / "models/.observations/films",
                 "--spark", "local[2]", "--python", sys.executable, "--memory", "2GiB"],
                capture_output=True, text=True, timeout=600, check=False)
            assert result.returncode == 0, result.stdout + result.stderr
            metrics = json.loads((folder / "2/training.json").read_text())["metrics"]
            assert metrics["parquet"] and (folder / "observations.parquet").stat().st_size > 0
            eventually(lambda: client.top_k(0, 1).version == "2")
            after = error_of(client, users[later], items[later], values[later])
    print(f"\nmean squared error {before:.3f} with random features, {after:.3f} with Spark's; {NOISE ** 2} is noise")
    assert after < 1.5 * NOISE ** 2 < before
