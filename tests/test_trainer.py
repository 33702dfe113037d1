"""The trainer of personal models by itself: columns in, columns out. No server."""

import json
import os
import pathlib
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from foliot import spark_trainer, trainer

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
    """Of 39 items there are observations."""
    of_user, of_item, values = observations(200, 40, 20000)
    users, counts = np.unique(of_user, return_counts=True)
    arrays = {
        "users.u64": users + 1000,
        "numbers.u64": users,
        "counts.u64": counts,
        "ids.u64": np.arange(len(values)),
        "items.u64": of_item * 10,
        "known_items.u64": np.arange(len(features)) * 10,
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
    # Without observations: as if all features but the first were 0, in any coordinates. All users' true means are 3.
    assert np.abs(weights @ features[39] - 3).mean() < 0.3
    index = np.unique(of_user, return_inverse=True)[1]
    errors = np.einsum("ij,ij->i", weights[index], features[of_item]) - values
    assert np.mean(errors**2) < 0.05 < np.var(values)
    training = json.loads((output / "training.json").read_text())
    assert 0 < training["lambda"] < np.inf
    losses = training["metrics"]["held_out_losses"]
    assert losses[f"{training['metrics']['als_lambda']:g}"] == min(losses.values())
    assert "2 of 3: lambda 3: held out loss" in done.stdout


def test_items_keep_their_features_where_nothing_is_known(folders):
    folder, output = folders
    before = np.random.default_rng(3).normal(size=(60, 5))
    before[:, 0] = 1
    write_folder(folder, before)
    assert run(folder, output).returncode == 0
    features = np.fromfile(output / "features.f32", "<f4").reshape(60, 5)
    # But for the coordinates, which are those of all items.
    to_new = np.linalg.lstsq(before[39:], features[39:], rcond=None)[0]
    np.testing.assert_allclose(before[39:] @ to_new, features[39:], atol=1e-4 * np.abs(features).max())
    np.testing.assert_allclose(np.tril(to_new, -1), 0, atol=1e-4 * np.abs(to_new).max())
    assert np.abs(features[:39] @ np.linalg.inv(to_new) - before[:39]).max() > 0.1


# Users' weights from N(mean, covariance), of each of them `count` observations.
MEAN, DEVIATIONS, NOISE = np.array([3, 1, 0]), np.array([[1, 0, 0], [0.3, 0.2, 0], [0, 0, 0.1]]), 0.3


def normal_users(features, users, count, seed):
    random = np.random.default_rng(seed)
    weights = MEAN + random.normal(size=(users, 3)) @ DEVIATIONS.T
    of_user, of_item = np.repeat(np.arange(users), count), random.integers(0, len(features), users * count)
    values = np.einsum("ij,ij->i", weights[of_user], features[of_item]) + random.normal(0, NOISE, len(of_user))
    return trainer.Observations(
        of_user, of_item, values.astype(np.float32), np.zeros(len(values), bool), users, len(features)), weights


def features_of(items):
    features = np.random.default_rng(5).normal(size=(items, 3)).astype(np.float32)
    features[:, 0] = 1
    return features


def test_calibration_finds_how_weights_vary():
    features = features_of(100)
    known, _ = normal_users(features, 1000, 20, 6)
    start = trainer.user_weights(known, features, 5, np.zeros(3, np.float32))
    calibrated, ridge_lambda, mean = trainer.calibrate(known, features, start, 5, 1)
    assert (calibrated[:, 0] == 1).all()
    to_new = np.linalg.lstsq(features, calibrated, rcond=None)[0]
    np.testing.assert_allclose(to_new @ mean, MEAN, atol=0.1)
    found = NOISE**2 / ridge_lambda * to_new @ to_new.T
    np.testing.assert_allclose(found, DEVIATIONS @ DEVIATIONS.T, atol=0.1)
    np.testing.assert_allclose(found[2, 2], 0.01, rtol=0.3)


def test_new_users_are_predicted_better_from_calibrated_features():
    features = features_of(100)
    known, _ = normal_users(features, 1000, 20, 6)
    few, weights = normal_users(features, 500, 3, 7)
    prior = np.zeros(3, np.float32)
    for _ in range(5):
        prior = trainer.user_weights(known, features, 1, prior).mean(axis=0)
    start = trainer.user_weights(known, features, 1, prior)
    calibrated, ridge_lambda, mean = trainer.calibrate(known, features, start, 1, 1)

    def error(rows, *options):
        return np.mean((trainer.user_weights(few, rows, *options) @ rows.T - weights @ features.T) ** 2)

    assert error(calibrated, ridge_lambda, mean) < 0.5 * error(features, 1, prior)


def test_trainings_that_follow_each_other_keep_the_scale():
    real = features_of(100)
    known, _ = normal_users(real, 300, 20, 6)
    few, weights = normal_users(real, 500, 3, 7)
    als = trainer.ALS({"features": 3, "lambdas": [], "seed": 1})
    features, errors = np.zeros((100, 0), np.float32), []
    for _ in range(4):
        features, of_users, ridge_lambda = als.fit(known, als.start(features, 100), 3, 10)
        predicted = trainer.user_weights(few, features, ridge_lambda, of_users.mean(axis=0)) @ features.T
        errors.append(np.mean((predicted - weights @ real.T) ** 2))
    assert max(errors) < 1.05 * errors[0] < 0.1


def test_calibration_needs_no_more_than_one_user():
    features = features_of(100)
    known, _ = normal_users(features, 1, 2, 6)
    start = trainer.user_weights(known, features, 5, MEAN.astype(np.float32))
    calibrated, ridge_lambda, mean = trainer.calibrate(known, features, start, 5, 1)
    assert np.isfinite(calibrated).all() and np.isfinite(mean).all() and 0 < ridge_lambda < np.inf
    # One user says nothing of how users vary, however much is known of it.
    known, _ = normal_users(features, 1, 500, 6)
    calibrated, ridge_lambda, mean = trainer.calibrate(known, features, start, 5, 1)
    to_new = np.linalg.lstsq(features, calibrated, rcond=None)[0]
    assert (np.diag(to_new @ to_new.T) / ridge_lambda > 0.5 / 5).all()
    for values in ([], [2, 2]):
        zeros = np.zeros(len(values), int)
        known = trainer.Observations(zeros, zeros, np.array(values, np.float32), zeros.astype(bool), 1, 100)
        calibrated, ridge_lambda, mean = trainer.calibrate(known, features, start, 5, 1)
        np.testing.assert_array_equal(calibrated, features)
        assert ridge_lambda == 5
        np.testing.assert_array_equal(mean, start[0])


def test_trained_features_do_not_choose_the_lambda():
    of_user, of_item, values = observations(200, 40, 4000)
    is_held_out = np.arange(len(values)) % 10 == 0
    known = trainer.Observations(of_user, of_item, values, is_held_out, 200, 40)

    def losses(features, log_number):
        options = {"features": 4, "lambdas": [0.3, 3], "iterations": 5, "seed": 1, "known_log_number": log_number}
        als = trainer.ALS(options, say=lambda _: None)
        als.retrain(known, features, None)
        return als.features(np.arange(40)), als.metrics["held_out_losses"]

    first, fresh = losses(np.zeros((40, 0), np.float32), 0)
    assert losses(first, 7)[1] == fresh
    assert losses(first, 0)[1] != fresh, "features from elsewhere are part of the model"


def test_noise_is_larger_where_items_have_few_observations():
    real = features_of(300)
    known, _ = normal_users(real, 100, 12, 6)
    later, weights = normal_users(real, 500, 3, 7)
    known.is_held_out[::10] = True
    als = trainer.ALS({"features": 3, "lambdas": [0.1], "iterations": 10, "seed": 1}, say=lambda _: None)

    def error(features, of_users):
        found = trainer.user_weights(later, features, als.ridge_lambda, of_users.mean(axis=0))
        return np.mean((found @ features.T - weights @ real.T) ** 2)

    chosen = error(*als.retrain(known, np.zeros((300, 0), np.float32), None))
    assert als.metrics["noise_factor"] > 1
    known.is_held_out[:] = False
    assert chosen < 0.9 * error(*als.retrain(known, np.zeros((300, 0), np.float32), None))
    assert als.metrics["noise_factor"] == 1


class Parts(spark_trainer.SparkObservations):
    """As Spark has them, here."""

    def __init__(self, folder):
        super().__init__(SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=7)), folder)

    def map(self, function, *arguments):
        return [function(trainer.read_observations(self.folder, *part), *arguments) for part in self.parts]


def test_spark_reads_each_observation_in_one_part(folders):
    folder, _ = folders
    write_folder(folder, np.zeros((40, 2)))
    parts, whole = Parts(folder), trainer.read_observations(folder)
    assert len(parts.parts) == 7 and parts.user_count == whole.user_count and parts.item_count == whole.item_count
    columns = parts.map(spark_trainer.all_columns)
    for name, expected in spark_trainer.all_columns(whole).items():
        np.testing.assert_array_equal(np.concatenate([part[name] for part in columns]), expected)


def test_parts_are_cut_between_users(folders):
    folder, _ = folders
    write_folder(folder, np.zeros((40, 2)))
    for counts in ([5], [0, 0, 3], [1, 900, 1, 0], [1] * 50):
        np.array(counts, "<u8").tofile(folder / "counts.u64")
        parts = Parts(folder).parts
        ends = np.cumsum(counts)
        assert [part[0] for part in parts] == [0, *np.cumsum([part[1] for part in parts])[:-1]]
        assert sum(part[1] for part in parts) == len(counts)
        assert all(begin == ends[first] - counts[first] for first, _, begin in parts)


def test_features_that_spark_found_are_calibrated(folders):
    folder, _ = folders
    of_user, of_item, values = write_folder(folder, np.zeros((40, 2)))
    index = np.unique(of_user, return_inverse=True)[1]
    whole = trainer.ALS({"seed": 1, "features": 4, "lambdas": [3], "iterations": 8}, say=lambda _: None)
    known, _ = whole.retrain(trainer.read_observations(folder), np.zeros((40, 0), np.float32), None)

    class Found(spark_trainer.SparkALS):
        def item_factors(self, *_):
            return np.arange(40), known[:, 1:] / 7

    als = Found({"seed": 1, "features": 4, "lambdas": [3], "iterations": 8}, say=lambda _: None)
    found, of_users = als.retrain(Parts(folder), np.zeros((40, 0), np.float32), None)
    assert (found[:, 0] == 1).all() and als.metrics["observations"] == len(values)
    errors = np.einsum("ij,ij->i", of_users[index], found[of_item]) - values
    assert np.mean(errors**2) < 0.02
    np.testing.assert_allclose(als.metrics["loss"], np.mean(errors**2), rtol=1e-3)
    np.testing.assert_allclose(als.metrics["held_out_losses"]["3"], whole.metrics["held_out_losses"]["3"], rtol=0.2)


def test_weights_that_a_trainer_leaves_to_spark_are_the_servers(folders):
    folder, _ = folders
    write_folder(folder, np.zeros((40, 2)))
    features = np.random.default_rng(4).normal(size=(40, 3)).astype(np.float32)
    found, mean = Parts(folder).weights(features, 2)
    np.testing.assert_allclose(found, trainer.user_weights(trainer.read_observations(folder), features, 2, mean), atol=1e-5)


def test_what_the_server_hides_is_not_trained_on(folders):
    folder, output = folders
    of_user, _, values = write_folder(folder, np.zeros((40, 2)))
    hidden = np.random.default_rng(4).random(len(values)) < 0.1
    hidden[of_user == 3] = True  # a user of whom all is hidden
    np.where(hidden, np.nan, values).astype("<f4").tofile(folder / "values.f32")
    np.where(hidden, -1, 0).astype("<f4").tofile(folder / "probabilities.f32")
    done = run(folder, output)
    assert done.returncode == 0, done.stderr
    metrics = json.loads((output / "training.json").read_text())["metrics"]
    assert metrics["observations"] == np.count_nonzero(~hidden) and metrics["loss"] < 0.05
    assert np.isfinite(np.fromfile(output / "weights.f32", "<f4")).all()


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
