"""Trains the next version of a personal model: python -m foliot.trainer FOLDER, started by `foliot retrain`.

A trainer is a class Trainer with the functions of Listing 2.2 of Velox:

    retrain(observations, features, weights) -> (features, weights)
    features(items) -> rows
    loss(values, predictions, items, users) -> losses

ALS is the one that is used unless `foliot retrain --trainer FILE.py` names another. Arrays have no headers, and no file
holds code: nothing is unpickled.
"""

import dataclasses
import importlib.util
import json
import os
import pathlib
import sys
import time

import numpy as np

# Entries of the matrices that are gathered at a time.
BLOCK = 1 << 23
# Of the ridge of users' weights: what that of items' features is. More of it makes a retraining better by itself, and what
# users learn online from its features worse (bench/personal_learning.py --item-ridge).
ITEM_RIDGE = 0.2
# Of the matrices that calibrate() keeps: entries, and how many users there are at most.
CALIBRATION_ENTRIES = 1 << 25
CALIBRATION_USERS = 20_000
CALIBRATION_ROUNDS = 10
# Of the variance of values: the least noise that calibrate() finds.
NOISE_MIN = 1e-4
# By which the noise is taken to be larger than calibrate() finds it: where items have few observations, their features fit
# the noise of these.
NOISE_FACTORS = (1, 1.5, 2.5, 4, 6, 10)
# That are written at a time.
PARQUET_ROWS = 1 << 20
# An observation in ten is held out, as the server does (src/answer/personal/storage/weight_table.cc).
HASH = np.uint64(0x9E3779B97F4A7C15)


@dataclasses.dataclass
class Observations:
    """One entry for each observation. Users and items are indexes; none is one that the server withholds."""

    users: np.ndarray
    items: np.ndarray
    values: np.ndarray
    is_held_out: np.ndarray
    user_count: int
    item_count: int
    first_user: int = 0  # among all users, where these are the observations of some

    def select(self, mask):
        return dataclasses.replace(
            self,
            users=self.users[mask],
            items=self.items[mask],
            values=self.values[mask],
            is_held_out=self.is_held_out[mask],
        )


def blocks(groups, group_count, others, values, rows):
    """Of some groups at a time that have entries: which they are, and F'F and F'y of each; F are the rows of its entries."""
    order = np.argsort(groups, kind="stable")
    counts = np.bincount(groups, minlength=group_count)
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    others, values = others[order], values[order]
    by_size = np.argsort(counts, kind="stable")
    by_size = by_size[counts[by_size] > 0]
    width = rows.shape[1]
    end = len(by_size)
    while end > 0:
        longest = int(counts[by_size[end - 1]])
        begin = max(0, end - max(1, BLOCK // max(longest * width, width * width)))
        chosen = by_size[begin:end]
        at = starts[chosen][:, None] + np.arange(longest)
        mask = np.arange(longest) < counts[chosen][:, None]
        at[~mask] = 0
        block = rows[others[at]] * mask[:, :, None]
        target = values[at] * mask
        matrix = np.matmul(block.transpose(0, 2, 1), block).astype(np.float64)
        yield chosen, matrix, np.matmul(block.transpose(0, 2, 1), target[:, :, None])[:, :, 0]
        end = begin


def ridge(groups, group_count, others, values, rows, ridge_lambda, prior):
    """For each group g: argmin |values - rows[others] w|^2 + lambda |w - prior[g]|^2, over its entries."""
    solution = np.array(prior, dtype=np.float32)
    diagonal = ridge_lambda * np.eye(rows.shape[1])
    for chosen, matrix, right in blocks(groups, group_count, others, values, rows):
        right = right + ridge_lambda * prior[chosen]
        solution[chosen] = np.linalg.solve(matrix + diagonal, right[:, :, None])[:, :, 0]
    return solution


def user_weights(observations, features, ridge_lambda, prior):
    """The weights that the server gives users with these observations: a ridge towards the prior."""
    priors = np.broadcast_to(prior, (observations.user_count, features.shape[1]))
    return ridge(
        observations.users, observations.user_count, observations.items, observations.values, features, ridge_lambda, priors
    )


def calibrate(observations, features, weights, ridge_lambda, seed):
    """(features, lambda, mean): the same model in coordinates in which users' weights vary as the server's ridge assumes.

    A ridge towards the mean is right where weights w are from N(mean, noise / lambda I). ALS does not make them so: users'
    means vary more than their tastes, and what moves from weights to features, whose ridge is another, costs it little. So
    noise, mean and covariance C of the weights are estimated: empirical Bayes, by EM over a sample of users, with features as
    they are. C is drawn to what ALS assumed as if by as many users as there are features. With C = U U', features f become
    U'f, and weights U^-1 w. U is an upper triangle, and all is divided by its first entry: the first feature stays 1.
    """
    seen = np.flatnonzero(np.bincount(observations.users, minlength=observations.user_count))
    variance = float(observations.values.var()) if len(observations.values) else 0.0
    if variance == 0:
        return features, ridge_lambda, weights.mean(axis=0) if len(weights) else np.zeros(features.shape[1], np.float32)
    sample = sample_of(seen, features.shape[1], seed)
    return calibrate_by([moments(observations, sample, features, weights)], features, ridge_lambda, variance)


def sample_of(seen, width, seed):
    size = min(CALIBRATION_USERS, max(1, CALIBRATION_ENTRIES // width**2))
    return np.random.default_rng(seed).permutation(seen)[:size]


@dataclasses.dataclass
class Moments:
    """What calibrate() needs to know of some users. F are the features of a user's items, y its values."""

    matrices: np.ndarray  # F'F of each
    sides: np.ndarray  # F'y of each
    weights: np.ndarray  # their sum
    squares: float  # of all values
    errors: float  # squares of what the weights leave over
    count: int  # of values


def moments(observations, sample, features, weights):
    width = features.shape[1]
    part = observations.select(np.isin(observations.users, sample))
    matrices, sides = np.zeros((len(sample), width, width)), np.zeros((len(sample), width))
    done = 0
    for chosen, matrix, right in blocks(part.users, part.user_count, part.items, part.values, features):
        matrices[done : done + len(chosen)], sides[done : done + len(chosen)] = matrix, right
        done += len(chosen)
    return Moments(
        matrices=matrices,
        sides=sides,
        weights=weights[sample].sum(axis=0, dtype=np.float64),
        squares=float(np.sum(part.values.astype(np.float64) ** 2)),
        errors=float(np.sum((part.values - predict(part, features, weights)).astype(np.float64) ** 2)),
        count=len(part.values),
    )


def calibrate_by(parts, features, ridge_lambda, variance):
    """calibrate(), by the moments of a sample of users."""
    width = features.shape[1]
    matrices = np.concatenate([part.matrices for part in parts])
    sides = np.concatenate([part.sides for part in parts])
    users, count = len(sides), sum(part.count for part in parts)
    squares = sum(part.squares for part in parts)
    mean = sum(part.weights for part in parts) / users
    noise = max(sum(part.errors for part in parts) / count, NOISE_MIN * variance)
    assumed = np.eye(width) / ridge_lambda
    covariance = noise * assumed
    for _ in range(CALIBRATION_ROUNDS):
        precision = np.linalg.inv(covariance)
        spreads = np.linalg.inv(matrices / noise + precision)
        means = np.matmul(spreads, (sides / noise + precision @ mean)[:, :, None])[:, :, 0]
        mean = means.mean(axis=0)
        around = means - mean
        covariance = (around.T @ around + spreads.sum(axis=0) + width * noise * assumed) / (users + width)
        left = squares - 2 * np.sum(sides * means) + np.einsum("ui,uij,uj->", means, matrices, means, optimize=True)
        noise = max(float(left + np.sum(matrices * spreads)) / count, NOISE_MIN * variance)
    upper = np.linalg.cholesky(covariance[::-1, ::-1])[::-1, ::-1]
    first = upper[0, 0]
    features = (features @ upper / first).astype(np.float32)
    return features, noise / first**2, (np.linalg.solve(upper, mean) * first).astype(np.float32)


def predict(observations, features, weights):
    result = np.empty(len(observations.values), dtype=np.float32)
    for begin in range(0, len(result), BLOCK // features.shape[1]):
        part = slice(begin, begin + BLOCK // features.shape[1])
        result[part] = np.einsum("ij,ij->i", features[observations.items[part]], weights[observations.users[part]])
    return result


class ALS:
    """Alternating least squares. The first feature of all items is 1, so that users have means.

    Weights are drawn to the mean of all users', as the server does, and features to those that they had: items that
    have no observations keep them, and the others stay in one coordinate system with them. calibrate() then finds the
    coordinates and the lambda for the server.
    """

    def __init__(self, options, say=print):
        self.options = options
        self.say = say
        self.ridge_lambda = None
        self.metrics = {}
        self._features = None

    def features(self, items):
        return self._features[items]

    def loss(self, values, predictions, items, users):
        return (values - predictions) ** 2

    def fit(self, observations, start, ridge_lambda, iterations):
        """(features, weights, lambda that the server is to use with them)."""
        features, prior = (np.array(each, dtype=np.float32) for each in start)
        mean = np.zeros(features.shape[1], dtype=np.float32)
        mean[0] = observations.values.mean() if len(observations.values) else 0
        seen = np.bincount(observations.users, minlength=observations.user_count) > 0
        for _ in range(iterations):
            weights = user_weights(observations, features, ridge_lambda, mean)
            if seen.any():
                mean = weights[seen].mean(axis=0)
            features[:, 1:] = ridge(
                observations.items,
                observations.item_count,
                observations.users,
                observations.values - weights[observations.users, 0],
                weights[:, 1:],
                self.options.get("item_ridge", ITEM_RIDGE) * ridge_lambda,
                prior[:, 1:],
            )
        weights = user_weights(observations, features, ridge_lambda, mean)
        return self.calibrated(observations, features, weights, ridge_lambda)

    def calibrated(self, observations, features, weights, ridge_lambda):
        features, ridge_lambda, mean = calibrate(observations, features, weights, ridge_lambda, self.options["seed"])
        weights = user_weights(observations, features, ridge_lambda, mean)
        return features, weights, ridge_lambda

    def start(self, features, count):
        """The features to begin with, and those that they are drawn to: both are the version's before, if it has as many."""
        width = self.options["features"]
        if features.shape[1] == width and features[:, 1:].any():
            first = prior = np.array(features, dtype=np.float32)
        else:
            random = np.random.default_rng(self.options["seed"])
            first = random.normal(0, 0.5, (count, width)).astype(np.float32)
            prior = np.zeros_like(first)
        first[:, 0] = prior[:, 0] = 1
        return first, prior

    def with_noise(self, observations, features, weights, ridge_lambda):
        """Weights by another lambda, towards the same mean."""
        seen = np.bincount(observations.users, minlength=observations.user_count) > 0
        return user_weights(observations, features, ridge_lambda, weights[seen].mean(axis=0))

    def retrain(self, observations, features, weights):
        start = self.start(features, observations.item_count)
        rest = observations.select(~observations.is_held_out)
        held_out = observations.select(observations.is_held_out)
        iterations = self.options["iterations"]
        # Features that were trained on this log have seen what is held out, and would choose the lambda that keeps them.
        is_trained = self.options.get("known_log_number", 0) > 0
        trial = self.start(features[:, :0], observations.item_count) if is_trained else start
        lambdas = self.options["lambdas"]
        losses = {}  # by lambda and factor
        for number, ridge_lambda in enumerate(lambdas):
            if len(held_out.values) == 0 or len(rest.values) == 0:
                losses[ridge_lambda, 1] = 0.0
                continue
            features, weights, served = self.fit(rest, trial, ridge_lambda, min(iterations, 5))
            for factor in NOISE_FACTORS:
                if factor != 1:
                    weights = self.with_noise(rest, features, weights, factor * served)
                loss = self.loss(held_out.values, predict(held_out, features, weights), held_out.items, held_out.users)
                losses[ridge_lambda, factor] = float(np.mean(loss))
            least = min(losses[ridge_lambda, factor] for factor in NOISE_FACTORS)
            self.say(f"{number + 1} of {len(lambdas) + 1}: lambda {ridge_lambda}: held out loss {least:.5g}")
        chosen, factor = min(losses, key=losses.get)
        self._features, weights, served = self.fit(observations, start, chosen, iterations)
        self.ridge_lambda = factor * served
        if factor != 1:
            weights = self.with_noise(observations, self._features, weights, self.ridge_lambda)
        loss = self.loss(
            observations.values, predict(observations, self._features, weights), observations.items, observations.users
        )
        self.metrics = {
            "observations": len(observations.values),
            "held_out_losses": {str(each): min(loss for key, loss in losses.items() if key[0] == each) for each in lambdas},
            "loss": float(np.mean(loss)) if len(loss) else 0.0,
            "als_lambda": float(chosen),
            "noise_factor": float(factor),
        }
        self.say(f"{len(lambdas) + 1} of {len(lambdas) + 1}: lambda {chosen}: loss {self.metrics['loss']:.5g}")
        return self._features, weights


def column(folder, name, begin=0, count=-1):
    kind = np.dtype("<u8" if name.endswith("u64") else "<f4")
    return np.fromfile(folder / name, dtype=kind, count=count, offset=begin * kind.itemsize)


def read(folder):
    """The options, and the features of the version before."""
    options = json.loads((folder / "options.json").read_text())
    return options, column(folder, "known_features.f32").reshape(-1, options["known_features"])


def read_observations(folder, first_user=0, user_count=-1, begin=0):
    """Those of so many users (-1: all), of which the first one has this index, and its first observation is at `begin`."""
    counts = column(folder, "counts.u64", first_user, user_count).astype(np.int64)
    size = int(counts.sum())
    ids, items = (column(folder, name, begin, size) for name in ("ids.u64", "items.u64"))
    values, probabilities = (column(folder, name, begin, size) for name in ("values.f32", "probabilities.f32"))
    known_items = column(folder, "known_items.u64")
    at = np.searchsorted(known_items, items)
    at[at == len(known_items)] = 0
    # Not items that left, nor the validation pool, nor what is hidden (-1): the server judges the version by these.
    is_used = (known_items[at] == items) & (probabilities == 0)
    with np.errstate(over="ignore"):
        is_held_out = ((ids * HASH) >> np.uint64(32)) % np.uint64(10) == 0
    of_user = np.repeat(np.arange(len(counts)), counts)
    return Observations(of_user, at, values, is_held_out, len(counts), len(known_items), first_user).select(is_used)


def write_parquet(folder, path):
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        return False
    users = column(folder, "users.u64")
    ends = np.cumsum(column(folder, "counts.u64")).astype(np.int64)
    writer = None
    for begin in range(0, max(1, int(ends[-1])), PARQUET_ROWS):
        size = min(PARQUET_ROWS, int(ends[-1]) - begin)
        table = pyarrow.table(
            {
                "user": users[np.searchsorted(ends, np.arange(begin, begin + size), side="right")],
                "item": column(folder, "items.u64", begin, size),
                "id": column(folder, "ids.u64", begin, size),
                "value": column(folder, "values.f32", begin, size),
                "probability": column(folder, "probabilities.f32", begin, size),
            }
        )
        writer = writer or pyarrow.parquet.ParquetWriter(path, table.schema)
        writer.write_table(table)
    writer.close()
    return True


def make_trainer(folder, options, default):
    file = folder / "trainer.py"
    if not file.exists():
        return default(options)
    spec = importlib.util.spec_from_file_location("foliot_custom_trainer", file)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if not hasattr(module, "Trainer"):
        raise SystemExit("the trainer's file has no class Trainer; see docs/LEARNING.md")
    return module.Trainer(options)


def train(folder, output, make, read_all=read_observations):
    """Trains with the trainer that make(options) returns, on the observations that read_all(folder) gives it."""
    began = time.monotonic()
    options, features = read(folder)
    trainer = make(options)
    features, weights = trainer.retrain(read_all(folder), features, None)
    np.ascontiguousarray(features, dtype="<f4").tofile(output / "features.f32")
    np.ascontiguousarray(weights, dtype="<f4").tofile(output / "weights.f32")
    metrics = dict(getattr(trainer, "metrics", {}))
    if write_parquet(folder, output / "observations.parquet"):
        metrics["parquet"] = True
    metrics["seconds"] = round(time.monotonic() - began, 1)
    training = {"lambda": float(trainer.ridge_lambda or 1), "metrics": metrics}
    (output / "training.json").write_text(json.dumps(training, allow_nan=False))


def main():
    folder = pathlib.Path(sys.argv[1])
    output = pathlib.Path(os.environ["FOLIOT_TRAINING_OUTPUT"])
    train(folder, output, lambda options: make_trainer(folder, options, ALS))


if __name__ == "__main__":
    main()
