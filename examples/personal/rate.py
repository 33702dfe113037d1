"""Synthetic users rate the films that they are shown; prints how well the model knows them."""

import sys

import numpy as np

from foliot import personal
from make_items import FEATURES, features_of_items

USERS, ROUNDS, PLACES = 20, 10, 5


def main(address):
    random = np.random.default_rng(2)
    items = features_of_items()
    tastes = random.normal(0, 1, (USERS, FEATURES))
    with personal.Client(address, "films", timeout=1) as films:
        for turn in range(ROUNDS):
            errors, ratings = [], []
            for user, taste in enumerate(tastes):
                shown = films.top_k(f"user-{user}", PLACES)
                values = items[shown.items] @ taste + random.normal(0, 0.1, PLACES)
                errors.append(films.predict(f"user-{user}", shown.items) - values)
                ratings.append(values)
                films.observe_all([
                    personal.Observation(f"user-{user}", item, value, query=shown.query)
                    for item, value in zip(shown.items, values)
                ])
            print(f"round {turn + 1}: mean rating {np.mean(ratings):5.2f}, error {np.sqrt(np.mean(np.square(errors))):.2f}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "localhost:8000")
