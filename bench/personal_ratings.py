"""The ratings of bench/personal_rivals.py, and what all sides make of them: no side's own code, and nothing but numpy.

Users are of three kinds. Those of most ratings only train. New users have no rating in training; known ones have all but
their last. Of both come NEW ratings, one after the other, all users in step, and then TEST ratings are predicted.
"""

import dataclasses

import numpy as np

CHECKPOINTS = (0, 1, 2, 5, 10, 20, 50)  # new ratings of each user, after which its test ratings are predicted
NEW = CHECKPOINTS[-1]
TEST = 20
TRAINED_MIN = 20  # of a known user


@dataclasses.dataclass
class Ratings:
    """Users and items are indexes."""

    users: np.ndarray
    items: np.ndarray
    values: np.ndarray

    def select(self, chosen):
        return Ratings(self.users[chosen], self.items[chosen], self.values[chosen])

    def __add__(self, other):
        pairs = zip(dataclasses.astuple(self), dataclasses.astuple(other))
        return Ratings(*(np.concatenate(pair) for pair in pairs))


@dataclasses.dataclass
class Case:
    """Ratings of one seed. `new` is ordered by `steps`, 0 to NEW - 1."""

    user_count: int
    item_count: int
    train: Ratings
    new: Ratings
    steps: np.ndarray
    test: Ratings
    new_users: np.ndarray  # those of them that have no rating in `train`

    def known_at(self, checkpoint):
        """All ratings that came up to it."""
        return self.train + self.new.select(self.steps < checkpoint)

    def save(self, path):
        arrays = {}
        for name in ("train", "new", "test"):
            ratings = getattr(self, name)
            arrays |= {f"{name}_users": ratings.users, f"{name}_items": ratings.items, f"{name}_values": ratings.values}
        counts = np.array([self.user_count, self.item_count])
        np.savez(path, counts=counts, steps=self.steps, without_training=self.new_users, **arrays)


def load(path):
    with np.load(path) as arrays:
        parts = [Ratings(*(arrays[f"{name}_{part}"] for part in ("users", "items", "values"))) for name in ("train", "new", "test")]
        return Case(*map(int, arrays["counts"]), parts[0], parts[1], arrays["steps"], parts[2], arrays["without_training"])


def split(of_user, of_item, values, user_count, item_count, random):
    """`of_user` is sorted, and the ratings of a user are in the order in which they came."""
    counts = np.bincount(of_user, minlength=user_count)
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    place = np.arange(len(of_user)) - starts[of_user]
    watched = random.permutation(np.flatnonzero(counts >= TRAINED_MIN + NEW + TEST))[: 2 * (user_count // 5)]
    new_users, known_users = np.sort(watched[::2]), np.sort(watched[1::2])
    first = np.full(user_count, np.iinfo(np.int64).max)  # place of the first new rating
    first[new_users] = 0
    first[known_users] = counts[known_users] - NEW - TEST
    step = place - first[of_user]
    everything = Ratings(of_user, of_item, values)
    new = np.flatnonzero((step >= 0) & (step < NEW))
    new = new[np.argsort(step[new], kind="stable")]
    test = (step >= NEW) & (step < NEW + TEST)
    return Case(
        user_count, item_count, everything.select(step < 0), everything.select(new), step[new], everything.select(test), new_users
    )


class Means:
    """The mean of all ratings, what items differ from it, and what users differ from both, each drawn to 0."""

    def __init__(self, train, user_count, item_count, item_weight, user_weight, rounds=5):
        self.user_weight = user_weight
        self.user_count = user_count
        self.overall = train.values.mean()
        self.of_item = np.zeros(item_count)
        counts = np.bincount(train.items, minlength=item_count)
        for _ in range(rounds):
            rest = train.values - self.overall - self.of_users(train)[train.users]
            self.of_item = np.bincount(train.items, rest, item_count) / (counts + item_weight)

    def of_users(self, known):
        rest = known.values - self.overall - self.of_item[known.items]
        counts = np.bincount(known.users, minlength=self.user_count)
        return np.bincount(known.users, rest, self.user_count) / (counts + self.user_weight)

    def predict(self, known, wanted):
        """For `wanted`, with users as `known` shows them."""
        return self.overall + self.of_item[wanted.items] + self.of_users(known)[wanted.users]
