"""Trains the next version of a personal model on Spark: python -m foliot.spark_trainer FOLDER MASTER.

Started by `foliot retrain --spark MASTER`, where MASTER is Spark's, such as local[2] or spark://host:7077. The executors
read the observations, each some users at a time, from the files that the command wrote; the driver never has them. Spark's
ALS finds the features of items, or the class Trainer of trainer.py does; users' weights then follow from them as the server
computes them. Needs pyspark, pyarrow and Java 17 or later. On a cluster, TMPDIR must be a folder that all of its workers
see.
"""

import json
import os
import pathlib
import shutil
import sys

import numpy as np
from foliot.trainer import (ALS, ITEM_RIDGE, NOISE_FACTORS, calibrate_by, column, make_trainer, moments, predict,
                            read_observations, sample_of, train, user_weights)

# Each round moves the mean of all users less than the one before.
MEAN_ROUNDS = 3
# That one task reads, if no single user has more.
OBSERVATIONS_PER_TASK = 1 << 18
# Of the memory that the command gives: the JVM's heap. The rest is for what it needs beside that, and for this process.
HEAP_SHARE = 0.5


class SparkObservations:
    """All observations, on the executors: what a trainer is given on Spark in place of Observations."""

    def __init__(self, spark, folder):
        self.spark = spark
        self.folder = folder
        counts = column(folder, "counts.u64").astype(np.int64)
        self.user_count = len(counts)
        self.item_count = (folder / "known_items.u64").stat().st_size // 8
        ends = np.cumsum(counts)
        tasks = max(1, -(-int(counts.sum()) // OBSERVATIONS_PER_TASK), spark.sparkContext.defaultParallelism)
        cuts = np.searchsorted(ends, np.linspace(0, ends[-1], tasks + 1)[1:-1], side="left") + 1
        cuts = np.unique(np.concatenate([[0], cuts, [len(counts)]]))
        # Of each task: its first user, how many users, and the place of its first observation.
        self.parts = [(int(first), int(end - first), int(ends[first] - counts[first])) for first, end in zip(cuts, cuts[1:])]

    def map(self, function, *arguments):
        """What function(observations, *arguments) returns for the users of each task, in their order: a list.

        It runs on the executors. `observations` are Observations whose users count from observations.first_user on.
        """
        folder, context = self.folder, self.spark.sparkContext
        given = context.broadcast(arguments)

        def run(part):
            return function(read_observations(folder, *part), *given.value)

        results = context.parallelize(self.parts, len(self.parts)).map(run).collect()
        given.destroy()
        return results

    def frame(self, function=None, *arguments, name="frame"):
        """A DataFrame of the arrays by name that function(observations, *arguments) returns, which each task writes as Parquet
        beside the observations, in place of the frame of this name before. Without a function: users and items (indexes
        among all), values and is_held_out."""
        folder, function = self.folder.parent / name, function or all_columns
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        self.map(lambda observations, *given: write_part(folder, observations, function(observations, *given)), *arguments)
        return self.spark.read.parquet(str(folder))

    def weights(self, features, ridge_lambda):
        """(weights, mean): of all users, as the server computes them from these features."""
        mean = np.zeros(features.shape[1], np.float32)
        for _ in range(MEAN_ROUNDS):
            sums, counts = zip(*self.map(weight_sums, features, ridge_lambda, mean))
            mean = (sum(sums) / max(1, sum(counts))).astype(np.float32)
        return np.concatenate(self.map(user_weights, features, ridge_lambda, mean)), mean


# ---- On the executors


def write_part(folder, observations, columns):
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.table(columns), folder / f"{observations.first_user}.parquet")


def all_columns(observations):
    return {
        "user": (observations.users + observations.first_user).astype(np.int32),
        "item": observations.items.astype(np.int32),
        "value": observations.values,
        "is_held_out": observations.is_held_out,
    }


def rest_of(observations, is_trial):
    """What is trained on: in a trial, not what is held out."""
    return observations.select(~observations.is_held_out) if is_trial else observations


def sums(observations, is_trial):
    """Of values: sum, sum of squares; of each user: how many."""
    part = rest_of(observations, is_trial)
    values = part.values.astype(np.float64)
    return values.sum(), np.square(values).sum(), np.bincount(part.users, minlength=part.user_count).astype(np.int32)


def ratings(observations, is_trial, ridge_lambda, mean):
    """What each user's mean leaves over."""
    part = rest_of(observations, is_trial)
    ones = np.ones((part.item_count, 1), np.float32)
    offsets = user_weights(part, ones, ridge_lambda, np.array([mean], np.float32))[:, 0]
    return {**all_columns(part), "value": (part.values - offsets[part.users]).astype(np.float32)}


def weight_sums(observations, features, ridge_lambda, mean, is_trial=False):
    """The sum of the weights of users with observations, and how many these are."""
    part = rest_of(observations, is_trial)
    seen = np.bincount(part.users, minlength=part.user_count) > 0
    return user_weights(part, features, ridge_lambda, mean)[seen].sum(axis=0, dtype=np.float64), int(seen.sum())


def moments_of(observations, sample, features, ridge_lambda, mean, is_trial):
    part = rest_of(observations, is_trial)
    own = sample[(sample >= part.first_user) & (sample < part.first_user + part.user_count)] - part.first_user
    return moments(part, own, features, user_weights(part, features, ridge_lambda, mean))


def losses_of(observations, features, ridge_lambdas, mean):
    """By lambda: the sum of losses of what is held out, from the rest; and of how many."""
    rest, held_out = rest_of(observations, True), observations.select(observations.is_held_out)
    found = []
    for ridge_lambda in ridge_lambdas:
        weights = user_weights(rest, features, ridge_lambda, mean)
        found.append(np.square((held_out.values - predict(held_out, features, weights)).astype(np.float64)).sum())
    return np.array(found), len(held_out.values)


def weights_of(observations, features, ridge_lambda, mean):
    """Weights, the sum of losses, and of how many."""
    weights = user_weights(observations, features, ridge_lambda, mean)
    errors = (observations.values - predict(observations, features, weights)).astype(np.float64)
    return weights, np.square(errors).sum(), len(errors)


# ---- On the driver


class SparkALS(ALS):
    """ALS whose features of items are found by Spark, in what each user's mean leaves over.

    The first feature of all items is 1. Items without observations have no other: Spark knows nothing of them.
    """

    def __init__(self, options, say=lambda line: print(line, flush=True)):
        super().__init__(options, say)
        if options["features"] < 2:
            raise SystemExit(f"--features {options['features']}: must be 2 or more; the first is 1 for all items")

    def fit_on(self, observations, is_trial, ridge_lambda, iterations):
        """(features, mean of the weights, lambda that the server is to use with them)."""
        totals, squares, counts = zip(*observations.map(sums, is_trial))
        seen = np.concatenate(counts)
        count = max(1, int(seen.sum()))
        mean = np.zeros(self.options["features"], np.float32)
        mean[0] = sum(totals) / count
        variance = max(0.0, sum(squares) / count - float(mean[0]) ** 2)
        features = np.zeros((observations.item_count, len(mean)), np.float32)
        features[:, 0] = 1
        if variance == 0:
            return features, mean, ridge_lambda
        items, factors = self.item_factors(observations, is_trial, float(mean[0]), count, ridge_lambda, iterations)
        features[items, 1:] = factors
        for _ in range(MEAN_ROUNDS):
            found, users = zip(*observations.map(weight_sums, features, ridge_lambda, mean, is_trial))
            mean = (sum(found) / max(1, sum(users))).astype(np.float32)
        sample = sample_of(np.flatnonzero(seen), len(mean), self.options["seed"])
        parts = observations.map(moments_of, sample, features, ridge_lambda, mean, is_trial)
        features, ridge_lambda, mean = calibrate_by(parts, features, ridge_lambda, variance)
        return features, mean, ridge_lambda

    def item_factors(self, observations, is_trial, mean, count, ridge_lambda, iterations):
        from pyspark.ml.recommendation import ALS as Factorization

        # Spark multiplies the ridge by the number of an item's values; ours is one for all items.
        per_item = count / max(1, observations.item_count)
        factorization = Factorization(
            rank=self.options["features"] - 1,
            maxIter=iterations,
            regParam=self.options.get("item_ridge", ITEM_RIDGE) * ridge_lambda / per_item,
            userCol="user",
            itemCol="item",
            ratingCol="value",
            seed=self.options["seed"],
        )
        table = factorization.fit(observations.frame(ratings, is_trial, ridge_lambda, mean, name="ratings")).itemFactors.toArrow()
        factors = table.column("features").combine_chunks().values.to_numpy().reshape(len(table), -1)
        return table.column("id").to_numpy(), factors

    def retrain(self, observations, features, weights):
        lambdas, iterations = self.options["lambdas"], self.options["iterations"]
        losses = {}  # by lambda and factor
        for number, ridge_lambda in enumerate(lambdas):
            found, mean, served = self.fit_on(observations, True, ridge_lambda, min(iterations, 5))
            served = [factor * served for factor in NOISE_FACTORS]
            of_parts, counts = zip(*observations.map(losses_of, found, served, mean))
            of_factors = sum(of_parts) / max(1, sum(counts))
            losses.update({(ridge_lambda, factor): float(loss) for factor, loss in zip(NOISE_FACTORS, of_factors)})
            self.say(f"{number + 1} of {len(lambdas) + 1}: lambda {ridge_lambda}: held out loss {of_factors.min():.5g}")
        chosen, factor = min(losses, key=losses.get)
        self._features, mean, served = self.fit_on(observations, False, chosen, iterations)
        self.ridge_lambda = factor * served
        of_users, errors, counts = zip(*observations.map(weights_of, self._features, self.ridge_lambda, mean))
        self.metrics = {
            "observations": sum(counts),
            "held_out_losses": {str(each): min(loss for key, loss in losses.items() if key[0] == each) for each in lambdas},
            "loss": float(sum(errors) / max(1, sum(counts))),
            "als_lambda": float(chosen),
            "noise_factor": float(factor),
        }
        self.say(f"{len(lambdas) + 1} of {len(lambdas) + 1}: lambda {chosen}: loss {self.metrics['loss']:.5g}")
        return self._features, np.concatenate(of_users)


class WithWeights:
    """A trainer of one's own on Spark; where it gives no weights, they follow from its features as on the server."""

    def __init__(self, trainer):
        self.trainer = trainer

    def retrain(self, observations, features, weights):
        features, weights = self.trainer.retrain(observations, features, weights)
        if weights is None:
            weights, _ = observations.weights(np.asarray(features, np.float32), self.ridge_lambda or 1)
        return features, weights

    @property
    def ridge_lambda(self):
        return self.trainer.ridge_lambda

    @property
    def metrics(self):
        return getattr(self.trainer, "metrics", {})


def session(master, memory_bytes, output):
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # of the executors
    spark = (
        SparkSession.builder.master(master)
        .appName("foliot retrain")
        .config("spark.ui.enabled", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.driver.memory", f"{max(512, int(HEAP_SHARE * memory_bytes) >> 20)}m")
        .config("spark.sql.execution.arrow.pyspark.enabled", "true")
        .getOrCreate()
    )
    if not master.startswith("local"):  # its workers may not have this package
        package = pathlib.Path(__file__).parent
        spark.sparkContext.addPyFile(shutil.make_archive(str(output / "package"), "zip", package.parent, package.name))
    return spark


def make(folder, options):
    from pyspark import cloudpickle

    trainer = make_trainer(folder, options, SparkALS)
    if isinstance(trainer, SparkALS):
        return trainer
    cloudpickle.register_pickle_by_value(sys.modules[type(trainer).__module__])
    return WithWeights(trainer)


def main():
    folder, master = pathlib.Path(sys.argv[1]), sys.argv[2]
    output = pathlib.Path(os.environ["FOLIOT_TRAINING_OUTPUT"])
    try:
        import pyarrow.parquet  # noqa: F401
        import pyspark  # noqa: F401
    except ImportError as error:
        raise SystemExit(f"{sys.executable} has no {error.name}: pip install pyspark pyarrow, or name another with --python")
    memory_bytes = json.loads((folder / "options.json").read_text())["memory_bytes"]
    spark = session(master, memory_bytes, output)
    try:
        train(folder, output, lambda options: make(folder, options), lambda _: SparkObservations(spark, folder))
    finally:
        spark.stop()


if __name__ == "__main__":
    # The executors find what they run by the module's name.
    from foliot import spark_trainer

    spark_trainer.main()
