"""Trains the next version of a personal model on Spark: python -m foliot.spark_trainer FOLDER MASTER.

Started by `foliot retrain --spark MASTER`, where MASTER is Spark's, such as local[2] or spark://host:7077. Spark's ALS
finds the features of items; users' weights then follow from them as the server computes them. Needs pyspark, pyarrow and
Java 17 or later. On a cluster, TMPDIR must be a folder that all of its workers see: the observations are given to them as
Parquet.
"""

import os
import pathlib
import sys

import numpy as np
from foliot.trainer import ALS, ITEM_RIDGE, train, user_weights

# Each round moves the mean of all users less than the one before.
MEAN_ROUNDS = 3


class SparkALS(ALS):
    """ALS whose features of items are found by Spark, in what each user's mean leaves over.

    The first feature of all items is 1. Items without observations have no other: Spark knows nothing of them.
    """

    def __init__(self, options, spark, ratings):
        super().__init__(options, lambda line: print(line, flush=True))
        self.spark = spark
        self.ratings = ratings  # a folder for Parquet

    def fit(self, observations, start, ridge_lambda, iterations):
        width = start[0].shape[1]
        features = np.zeros((observations.item_count, width), dtype=np.float32)
        features[:, 0] = 1
        mean = np.zeros(width, dtype=np.float32)
        mean[0] = observations.values.mean()
        offsets = user_weights(observations, features[:, :1], ridge_lambda, mean[:1])[:, 0]
        items, factors = self.item_factors(observations, offsets, width - 1, ridge_lambda, iterations)
        features[items, 1:] = factors
        seen = np.bincount(observations.users, minlength=observations.user_count) > 0
        for _ in range(MEAN_ROUNDS):
            weights = user_weights(observations, features, ridge_lambda, mean)
            mean = weights[seen].mean(axis=0)
        return self.calibrated(observations, features, weights, ridge_lambda)

    def item_factors(self, observations, offsets, rank, ridge_lambda, iterations):
        import pyarrow
        import pyarrow.parquet
        from pyspark.ml.recommendation import ALS as Factorization

        table = pyarrow.table(
            {
                "user": observations.users.astype(np.int32),
                "item": observations.items.astype(np.int32),
                "value": (observations.values - offsets[observations.users]).astype(np.float32),
            }
        )
        pyarrow.parquet.write_table(table, self.ratings)
        # Spark multiplies the ridge by the number of an item's values; ours is one for all items.
        per_item = len(observations.values) / max(1, len(np.unique(observations.items)))
        factorization = Factorization(
            rank=rank,
            maxIter=iterations,
            regParam=self.options.get("item_ridge", ITEM_RIDGE) * ridge_lambda / per_item,
            userCol="user",
            itemCol="item",
            ratingCol="value",
            seed=self.options["seed"],
        )
        rows = factorization.fit(self.spark.read.parquet(str(self.ratings))).itemFactors.collect()
        items = np.array([row.id for row in rows])
        return items, np.array([row.features for row in rows], dtype=np.float32)


def session(master, memory_bytes):
    from pyspark.sql import SparkSession

    return (
        SparkSession.builder.master(master)
        .appName("foliot retrain")
        .config("spark.ui.enabled", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.driver.memory", f"{max(1, memory_bytes >> 20)}m")
        .getOrCreate()
    )


def main():
    folder, master = pathlib.Path(sys.argv[1]), sys.argv[2]
    output = pathlib.Path(os.environ["FOLIOT_TRAINING_OUTPUT"])
    try:
        import pyarrow.parquet  # noqa: F401
        import pyspark  # noqa: F401
    except ImportError as error:
        raise SystemExit(f"{sys.executable} has no {error.name}: pip install pyspark pyarrow, or name another with --python")
    spark = None

    def make(options, _):
        nonlocal spark
        if options["features"] < 2:
            raise SystemExit(f"--features {options['features']}: must be 2 or more; the first is 1 for all items")
        spark = session(master, options["memory_bytes"])
        return SparkALS(options, spark, output / "ratings.parquet")

    try:
        train(folder, output, make)
    finally:
        if spark is not None:
            spark.stop()


if __name__ == "__main__":
    main()
