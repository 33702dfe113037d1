"""How much of a full retraining's gain learning online recovers (Velox, 2.4).

Synthetic ratings in the shape of MovieLens 10M: users, items and ratings in its proportions, a mean, biases, low rank,
noise, Zipf's popularity. Features are trained on the first half of each user's ratings. Then 70 % of the second half
come: online, users' weights follow and features stay; retraining makes both anew. The rest is what the error is measured
on. The share is (before - online) / (before - retrained), as parts of the mean squared error.

    make python && .venv/bin/python bench/personal_learning.py [--ratings 10000000]
"""

import argparse
import pathlib
import sys
import time

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "python"))

from foliot import trainer  # noqa: E402

RANK = 10


def make_ratings(random, ratings, items, users):
    """Users and items of each rating, those of a user in the order in which they came; and its value."""
    popularity = 1 / np.arange(1, items + 1) ** 0.8
    of_user = np.repeat(np.arange(users), random.multinomial(ratings, random.dirichlet(np.full(users, 2.0))))
    of_item = random.choice(items, len(of_user), p=popularity / popularity.sum())
    taste = random.normal(0, 0.5 / np.sqrt(RANK), (users, RANK)).astype(np.float32)
    kind = random.normal(0, 1, (items, RANK)).astype(np.float32)
    values = 3.5 + random.normal(0, 0.4, users)[of_user] + random.normal(0, 0.4, items)[of_item]
    values += np.einsum("ij,ij->i", taste[of_user], kind[of_item]) + random.normal(0, 0.8, len(of_user))
    return of_user, of_item, values.astype(np.float32)


def parts(of_user, users):
    """Of each user's ratings: 0 the first half, 1 the 70 % of the rest that come then, 2 held out."""
    counts = np.bincount(of_user, minlength=users)
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    place = (np.arange(len(of_user)) - starts[of_user]) / counts[of_user]
    return np.where(place < 0.5, 0, np.where(place < 0.85, 1, 2))


def measure(ratings, items, users, ridge_lambda, item_ridge, iterations, seed):
    random = np.random.default_rng(seed)
    of_user, of_item, values = make_ratings(random, ratings, items, users)
    part = parts(of_user, users)
    everything = trainer.Observations(of_user, of_item, values, random.random(len(values)) < 0.1, users, items)
    first, known, held_out = (everything.select(mask) for mask in (part == 0, part <= 1, part == 2))
    options = {"features": RANK + 2, "lambdas": [ridge_lambda], "iterations": iterations, "seed": seed, "item_ridge": item_ridge}
    als = trainer.ALS(options, say=lambda _: None)
    nothing = np.zeros((items, 0), np.float32)

    def error(features, weights):
        return float(np.mean((held_out.values - trainer.predict(held_out, features, weights)) ** 2))

    features, weights = als.retrain(first, nothing, None)
    before = error(features, weights)
    mean = weights.mean(axis=0)
    online = error(features, trainer.user_weights(known, features, als.ridge_lambda, mean))
    began = time.monotonic()
    retrained = error(*als.retrain(known, nothing, None))
    return before, online, retrained, time.monotonic() - began


def report(name, result):
    before, online, retrained, seconds = result
    gain = before - retrained
    share = (before - online) / gain if gain > 0 else float("nan")
    print(
        f"| {name} | {before:.4f} | {1 - online / before:.1%} | {1 - retrained / before:.1%} | {share:.0%} | {seconds:.0f} s |",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ratings", type=int, default=1_000_000)
    parser.add_argument("--iterations", type=int, default=10)
    parser.add_argument("--lambda", type=float, default=10, dest="ridge_lambda")
    parser.add_argument("--item-ridge", type=float, default=trainer.ITEM_RIDGE, help="as a part of lambda")
    parser.add_argument("--quick", action="store_true", help="no curves")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    users = arguments.ratings * 7 // 1000  # 70,000 users and 10,700 items for 10 M
    items = arguments.ratings * 107 // 100_000

    def run(name, ratings=arguments.ratings, items=items, users=users, **changed):
        options = {"ridge_lambda": arguments.ridge_lambda, "item_ridge": arguments.item_ridge, **changed}
        report(name, measure(ratings, items, users, iterations=arguments.iterations, seed=arguments.seed, **options))

    print("| | error before | online | retrained | share | retraining took |\n|---|---|---|---|---|---|")
    run(f"{arguments.ratings} ratings, {users} users, {items} items, lambda {arguments.ridge_lambda:g}")
    if arguments.quick:
        return
    for ridge_lambda in (1, 3, 10, 30):
        run(f"lambda {ridge_lambda}", ridge_lambda=ridge_lambda)
    for item_ridge in (1, 0.3, 0.1):
        run(f"items' ridge {item_ridge:g} lambda", item_ridge=item_ridge)
    for per_item in (100, 300, 1000, 3000):
        run(f"{per_item} ratings per item", items=arguments.ratings // per_item)
    for per_user in (20, 50, 143, 400):
        run(f"{per_user} ratings per user", users=arguments.ratings // per_user)


if __name__ == "__main__":
    main()
