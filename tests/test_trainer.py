"""The trainer of personal models by itself: columns in, columns out. No server."""

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from foliot import trainer

PACKAGE = pathlib.Path(__file__).resolve().parent.parent / "python"


def observations(users, items, count, seed=1):
    random = np.random.default_rng(seed)
    weights = random.normal(size=(users, 3))
    features = random.normal(size=(items, 3))
    of_user = np.sort(random.integers(0, users, count))
    of_item = random.integers(0, items - 1, count)  # the last item has none
    values = 3 + np.einsum("ij,ij->i", weights[of_user], features[of_item]) + random.normal(0, 0.1, count)
    return of_user, of_item, values.astype(np.float32)


def test_ridge_is_that_of_single_solves(monkeypatch):
    monkeypatch.setattr(trainer, "BLOCK", 200)  # several blocks
    random = np.random.default_rng(2)
    groups, others, values = random.integers(0, 20, 300), random.integers(0, 30, 300), random.normal(size=300)
    groups[groups == 7] = 8  # a group without entries keeps its prior
    rows, prior = random.normal(size=(30, 4)).astype(np.float32), random.normal(size=(20, 4)).astype(np.float32)
    found = trainer.ridge(groups, 20, others, values, rows, 0.7, prior)
    for group in range(20):
        chosen = rows[others[groups == group]]
        right = chosen.T @ values[groups == group] + 0.7 * prior[group]
        expected = np.linalg.solve(chosen.T @ chosen + 0.7 * np.eye(4), right)
        np.testing.assert_allclose(found[group], expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(found[7], prior[7])


def write_folder(folder, features, probabilities=0.0):
    of_user, of_item, values = observations(200, 40, 20000)
    users, counts = np.unique(of_user, return_counts=True)
    arrays = {
        "users.u64": users + 1000,
        "numbers.u64": users,
        "counts.u64": counts,
        "ids.u64": np.arange(len(values)),
        "items.u64": of_item * 10,
        "known_items.u64": np.arange(40) * 10,
    }
    for name, array in arrays.items():
        array.astype("<u8").tofile(folder / name)
    values.astype("<f4").tofile(folder / "values.f32")
    np.broadcast_to(np.float32(probabilities), values.shape).astype("<f4").tofile(folder / "probabilities.f32")
    features.astype("<f4").tofile(folder / "known_features.f32")
    options = {"features": 5, "known_features": features.shape[1], "lambdas": [0.3, 3], "iterations": 8, "seed": 1}
    (folder / "options.json").write_text(json.dumps(options))
    return of_user, of_item, values


def run(folder, output):
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE), "FOLIOT_TRAINING_OUTPUT": str(output)}
    return subprocess.run(
        [sys.executable, "-m", "foliot.trainer", str(folder)], env=environment, capture_output=True, text=True, timeout=120
    )


@pytest.fixture
def folders(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "output").mkdir()
    return tmp_path / "data", tmp_path / "output"


def test_als_finds_what_made_the_ratings(folders):
    folder, output = folders
    of_user, of_item, values = write_folder(folder, np.zeros((40, 2)))
    done = run(folder, output)
    assert done.returncode == 0, done.stderr
    features = np.fromfile(output / "features.f32", "<f4").reshape(40, 5)
    weights = np.fromfile(output / "weights.f32", "<f4").reshape(-1, 5)
    assert (features[:, 0] == 1).all()
    assert (features[39, 1:] == 0).all()  # without observations: what it was drawn to
    index = np.unique(of_user, return_inverse=True)[1]
    errors = np.einsum("ij,ij->i", weights[index], features[of_item]) - values
    assert np.mean(errors**2) < 0.05 < np.var(values)
    training = json.loads((output / "training.json").read_text())
    assert training["lambda"] in (0.3, 3)
    losses = training["metrics"]["held_out_losses"]
    assert losses[f"{training['lambda']:g}"] == min(losses.values())
    assert "2 of 3: lambda 3: held out loss" in done.stdout


def test_items_keep_their_features_where_nothing_is_known(folders):
    folder, output = folders
    before = np.random.default_rng(3).normal(size=(40, 5))
    before[:, 0] = 1
    write_folder(folder, before)
    assert run(folder, output).returncode == 0
    features = np.fromfile(output / "features.f32", "<f4").reshape(40, 5)
    np.testing.assert_allclose(features[39], before[39], rtol=1e-6)
    assert np.abs(features[:39] - before[:39]).max() > 0.1


def test_the_validation_pool_is_not_trained_on(folders):
    folder, output = folders
    before = np.ones((40, 5))
    write_folder(folder, before, probabilities=0.01)
    assert run(folder, output).returncode == 0
    assert json.loads((output / "training.json").read_text())["metrics"]["observations"] == 0
    features = np.fromfile(output / "features.f32", "<f4").reshape(40, 5)
    np.testing.assert_array_equal(features, 1)


def test_another_trainer(folders):
    folder, output = folders
    write_folder(folder, np.zeros((40, 2)))
    (folder / "trainer.py").write_text(
        "import numpy as np\n"
        "class Trainer:\n"
        "    ridge_lambda, metrics = 7, {'name': 'means'}\n"
        "    def __init__(self, options): self.width = options['features']\n"
        "    def retrain(self, observations, features, weights):\n"
        "        return np.ones((observations.item_count, self.width)), np.ones((observations.user_count, self.width))\n"
    )
    assert run(folder, output).returncode == 0
    training = json.loads((output / "training.json").read_text())
    assert training["lambda"] == 7 and training["metrics"]["name"] == "means"
    (folder / "trainer.py").write_text("x = 1\n")
    assert "has no class Trainer" in run(folder, output).stderr
