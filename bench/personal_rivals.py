#!/usr/bin/env python3
"""What personal models and their rivals predict after 1 to 50 new ratings of a user, for new users and for known ones.

Ratings are those of bench/personal_learning.py, in the shape of MovieLens. All sides train on the same ones, get the same
new ones in the same order, and predict the same test ratings. Foliot is a server over HTTP: it observes the training, is
retrained by `foliot retrain`, takes the version, and observes what is new; once without another training, and once with one
at the checkpoints after ten, twenty and fifty. The rivals are Vowpal Wabbit and implicit (bench/recommenders.py), and the
trainer's ALS alone, retrained on everything at these checkpoints, or, which is as good as it can become, at each checkpoint.
Each side's numbers were chosen on a seed of their own (--tune), by the mean of its errors at all checkpoints.

    make bench-personal-rivals [FLAGS='--ratings 300000 --seeds 2 3 4']
"""

import argparse
import itertools
import json
import math
import os
import pathlib
import random
import subprocess
import sys
import tempfile

import numpy as np
from personal_learning import make_ratings
from personal_ratings import CHECKPOINTS, Means, split
from rivals import environment_of, install

from foliot import personal, trainer
from foliot_tools.server import ROOT, Server, foliot_binary

sys.path.insert(0, str(ROOT / "tests/figures"))
from figure import machine, say  # noqa: E402

ENVIRONMENT = "recommenders"
TUNING_SEED = 1
NOISE = 0.64  # variance of what no side can know
MODEL = "films"
CALL = 1000  # observations or predictions of an HTTP call; of one user a call has so many at most

# What --tune chose at 300,000 ratings.
CHOSEN = {
    "means": {"item_weight": 3, "user_weight": 5},
    "foliot": {"features": 12, "iterations": 10},
    "refit": {"features": 12, "iterations": 10, "lambdas": [10], "item_ridge": 0.2},
    "vowpal_wabbit": {
        "kind": "rank", "rank": 10, "passes": 30, "l2": 1e-2, "rate": 0.015, "decay": 0.97, "power_t": 0,
        "online_rate": 0.02, "repeats": 2,
    },
    "implicit": {
        "of": "rest", "factors": 20, "regularization": 1, "alpha": 30, "iterations": 15, "item_weight": 3, "user_weight": 5,
    },
}
# What it tries.
TRIED = {
    "means": {"item_weight": [1, 3, 10], "user_weight": [2, 5, 10]},
    "foliot": {"features": [6, 12, 20], "iterations": [10, 20]},
    "refit": {"features": [6, 12, 20], "iterations": [10, 20], "lambdas": [[3], [10], [20], [30]], "item_ridge": [0.1, 0.2, 1]},
    "vowpal_wabbit": {
        "kind": ["rank", "lrq"], "rank": [5, 10, 20], "passes": [10, 20, 30], "l2": [0, 1e-4, 1e-3, 1e-2, 3e-2],
        "rate": [0.005, 0.01, 0.015, 0.02, 0.04, 0.1], "decay": [0.9, 0.97, 1], "power_t": [0, 0.5],
        "online_rate": [0.005, 0.01, 0.02, 0.04, 0.1], "repeats": [1, 2, 4],
    },
    "implicit": {
        "of": ["rest", "rating"], "factors": [5, 10, 20, 40], "regularization": [0.1, 1, 10, 30], "alpha": [1, 3, 10, 30, 60],
        "iterations": [15], "item_weight": [1, 3], "user_weight": [2, 5, 10],
    },
}
TITLES = {
    "means": "means of users and items",
    "foliot": "Foliot",
    "foliot_10": "Foliot, retrained every 10",
    "refit_10": "ALS, retrained every 10",
    "refit": "ALS, retrained at each",
    "vowpal_wabbit": "Vowpal Wabbit",
    "implicit": "implicit",
}


def make_case(seed, ratings):
    users, items = ratings * 7 // 1000, ratings * 107 // 100_000
    source = np.random.default_rng(seed)
    return split(*make_ratings(source, ratings, items, users), users, items, np.random.default_rng(seed + 1000))


def means(case, options):
    made = Means(case.train, case.user_count, case.item_count, **options)
    return np.array([made.predict(case.known_at(checkpoint), case.test) for checkpoint in CHECKPOINTS])


def observations(case, ratings):
    is_held_out = np.random.default_rng(1).random(len(ratings.values)) < 0.1  # by the trainer, for its choices
    return trainer.Observations(ratings.users, ratings.items, ratings.values, is_held_out, case.user_count, case.item_count)


def refit(case, options, every=1):
    """The trainer's ALS on all ratings so far, beginning with the features before, as `foliot retrain` does."""
    als = trainer.ALS({"seed": 1, **options}, say=lambda _: None)
    features = np.zeros((case.item_count, 0), np.float32)
    test = observations(case, case.test)
    result = []
    fitted = None
    for checkpoint in CHECKPOINTS:
        until = checkpoint - checkpoint % every
        if until != fitted:
            known = observations(case, case.known_at(until))
            als.options["known_log_number"] = features.shape[1]
            features, weights = als.retrain(known, features, None)
            fitted = until
        result.append(trainer.predict(test, features, weights))
    return np.array(result)


class Films:
    """The model of a server, by batches of ratings."""

    def __init__(self, server):
        self.client = personal.Client(server.http, MODEL)
        self.next_id = 0

    def observe(self, ratings):
        for begin in range(0, len(ratings.values), CALL):
            part = ratings.select(slice(begin, begin + CALL))
            rows = zip(part.users.tolist(), part.items.tolist(), part.values.tolist())
            batch = [personal.Observation(*row, id=self.next_id + i) for i, row in enumerate(rows)]
            self.next_id += len(batch)
            self.client.observe_all(batch)

    def predict(self, ratings):
        result = np.empty(len(ratings.values))
        for begin in range(0, len(result), CALL):
            chosen = slice(begin, begin + CALL)
            result[chosen] = self.client.predict_pairs(ratings.users[chosen].tolist(), ratings.items[chosen].tolist())
        return result


def retrain(server, models, state, options):
    flags = [part for name, value in options.items() for part in (f"--{name}", str(value))]
    command = [foliot_binary(), "retrain", str(models / MODEL), "--state", str(state / MODEL), "--python", sys.executable]
    done = subprocess.run([*command, *flags], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"foliot retrain failed:\n{done.stdout}{done.stderr}")
    status, answer = server.post(f"/v2/repository/models/{MODEL}/load", {})
    if status != 200:
        raise SystemExit(f"the server does not take the version: {answer}")


def foliot(case, options, every=None):
    with tempfile.TemporaryDirectory(prefix="foliot-bench-") as folder:
        folder = pathlib.Path(folder)
        models, state = folder / "models", folder / "state"
        personal.write_items(models / MODEL / "1/items.features", np.arange(case.item_count), np.ones((case.item_count, 1)))
        (models / MODEL / "personal.toml").write_text("[limits]\nobservations_per_user = 1000000\nfactors = 10000\n")
        with Server(models, folder / "console", page_size="256KiB", page_cache="16MiB", observations=state) as server:
            films = Films(server)
            order = np.random.default_rng(1).permutation(len(case.train.values))
            films.observe(case.train.select(order))
            retrain(server, models, state, options)
            result = []
            learned = 0
            for checkpoint in CHECKPOINTS:
                end = int(np.searchsorted(case.steps, checkpoint))
                films.observe(case.new.select(slice(learned, end)))
                learned = end
                if every and checkpoint and checkpoint % every == 0:
                    retrain(server, models, state, options)
                result.append(films.predict(case.test))
            films.client.close()
            return np.array(result)


def recommender(name, case, options):
    """In the rivals' environment."""
    with tempfile.TemporaryDirectory(prefix="foliot-bench-") as folder:
        path, output = pathlib.Path(folder) / "case.npz", pathlib.Path(folder) / "predictions.npy"
        case.save(path)
        python = environment_of(ENVIRONMENT) / "bin/python"
        # Not the project's environment, nor its path.
        environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
        subprocess.run(
            [python, ROOT / "bench/recommenders.py", name, json.dumps(options), path, output], check=True, env=environment
        )
        return np.load(output)


SIDES = {
    "means": means,
    "foliot": foliot,
    "foliot_10": lambda case, options: foliot(case, options, every=10),
    "refit_10": lambda case, options: refit(case, options, every=10),
    "refit": refit,
    "vowpal_wabbit": lambda case, options: recommender("vowpal_wabbit", case, options),
    "implicit": lambda case, options: recommender("implicit", case, options),
}


def errors(case, predictions):
    """Mean squared ones, {is of new users: an entry for each checkpoint}; not a number where a side diverged."""
    is_new = np.isin(case.test.users, case.new_users)
    squares = (predictions - case.test.values) ** 2
    return {True: squares[:, is_new].mean(axis=1), False: squares[:, ~is_new].mean(axis=1)}


def in_order(case, predictions):
    """The share of pairs of a new user's test ratings that are in the right order, for each checkpoint."""
    right, pairs = np.zeros(len(predictions)), 0
    for user in case.new_users:
        chosen = np.flatnonzero(case.test.users == user)
        differences = np.subtract.outer(case.test.values[chosen], case.test.values[chosen])
        above = differences > 0
        pairs += above.sum()
        for checkpoint, row in enumerate(predictions):
            predicted = np.subtract.outer(row[chosen], row[chosen])[above]
            right[checkpoint] += (predicted > 0).sum() + 0.5 * (predicted == 0).sum()
    return right / pairs


def tune(case, name, tries):
    """A random sample, and then each number by itself. Prints what is better than all before."""
    axes = TRIED[name]
    best, found = math.inf, {}

    def attempt(options):
        nonlocal best, found
        of_kinds = errors(case, SIDES[name](case, options))
        error = float(np.mean([of_kinds[True].mean(), of_kinds[False].mean()]))
        if error < best:  # not if it is no number
            best, found = error, options
            print(f"{name}: {error:.4f} {json.dumps(options)}", flush=True)

    attempt(CHOSEN[name])
    everything = [dict(zip(axes, values)) for values in itertools.product(*axes.values())]
    for options in everything if len(everything) <= tries else random.Random(1).sample(everything, tries):
        attempt(options)
    if len(everything) <= tries:
        return
    for axis, values in axes.items():
        for value in values:
            if value != found[axis]:
                attempt({**found, axis: value})


def cells(values):
    return " | ".join(f"{value:.4f}" for value in values)


def report(results, sides):
    """`results`: of each seed and side, errors and orders."""
    head = "| " + " | ".join(f"after {checkpoint}" for checkpoint in CHECKPOINTS) + " |\n" + "|---" * (len(CHECKPOINTS) + 1) + "|"
    for is_new, title in ((True, "new users"), (False, "known users")):
        print(f"\n| mean squared error, {title} {head}")
        for side in sides:
            print(f"| {TITLES[side]} | {cells(np.mean([result[side][0][is_new] for result in results], axis=0))} |")
    print(f"\n| pairs in the right order, new users {head}")
    for side in sides:
        print(f"| {TITLES[side]} | {cells(np.mean([result[side][1] for result in results], axis=0))} |")
    for own in ("foliot", "foliot_10"):
        if own not in sides:
            continue
        print(f"\n{TITLES[own]}: seeds of {len(results)} in which its error is lower at each checkpoint, new users and known ones\n")
        for side in sides:
            if not side.startswith("foliot"):
                wins = [sum(result[own][0][kind] < result[side][0][kind] for result in results) for kind in (True, False)]
                print(f"- than that of {TITLES[side]}: {wins[0].tolist()}, {wins[1].tolist()}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ratings", type=int, default=300_000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[2, 3, 4])
    parser.add_argument("--sides", nargs="+", choices=SIDES, default=list(SIDES))
    parser.add_argument("--results", type=pathlib.Path, help="JSON file to go on with: what it has is not measured again")
    parser.add_argument("--tune", nargs="+", choices=CHOSEN, metavar="SIDE", help=f"on seed {TUNING_SEED}, in place of measuring")
    parser.add_argument("--tries", type=int, default=30, help="of each side")
    arguments = parser.parse_args()
    if failed := install(ENVIRONMENT):
        say(f"the rivals cannot be installed and are left out: {failed}")
        arguments.sides = [side for side in arguments.sides if side not in ("vowpal_wabbit", "implicit")]
    if arguments.tune:
        case = make_case(TUNING_SEED, arguments.ratings)
        for name in arguments.tune:
            tune(case, name, arguments.tries)
        return
    if TUNING_SEED in arguments.seeds:
        parser.error(f"seed {TUNING_SEED} is the one that numbers were chosen on: name others")
    kept = json.loads(arguments.results.read_text()) if arguments.results and arguments.results.exists() else {}
    results = []
    for seed in arguments.seeds:
        case = make_case(seed, arguments.ratings)
        results.append({})
        for side in arguments.sides:
            options = CHOSEN[side.removesuffix("_10")]
            key = f"{arguments.ratings} ratings, seed {seed}, {side}: {json.dumps(options)}"
            if key not in kept:
                say(f"seed {seed}: {TITLES[side]}")
                predictions = SIDES[side](case, options)
                of_kinds = errors(case, predictions)
                kept[key] = [of_kinds[True].tolist(), of_kinds[False].tolist(), in_order(case, predictions).tolist()]
                if arguments.results:
                    arguments.results.write_text(json.dumps(kept, indent=1))
            new, known, order = map(np.array, kept[key])
            results[-1][side] = ({True: new, False: known}, order)
    print(f"{arguments.ratings} ratings, seeds {arguments.seeds}, {len(case.new_users)} new users and as many known ones; "
          f"variance of the noise {NOISE}")
    report(results, arguments.sides)
    print(f"\n{machine()}")


if __name__ == "__main__":
    main()
