#!/usr/bin/env python3
"""What hostile users of a personal model change for the others, online and retrained, and what kills change at all.

Two models learn from the same users; one has ten hostile ones, too. Then the server is killed again and again, at once after
what was acknowledged or a little later, and predictions are compared with those before.
"""

import argparse
import contextlib
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np
from figure import Figure, print_figures

from foliot import personal
from foliot_tools.server import Server, foliot_binary
from foliot_tools.waiting import eventually

ITEMS, FEATURES, NOISE, SAMPLE, BATCH = 200, 8, 0.3, 300, 1000
HOSTILE = [1e9, -1e9, 1e6, 1000, -3e38]
MODELS = ("honest", "attacked")


class Users:
    """Ratings around 3, of tastes that vary."""

    def __init__(self, count, seed):
        self.random = np.random.default_rng(seed)
        self.features = self.random.normal(0, 0.4, (ITEMS, FEATURES)).astype(np.float32)
        self.features[:, 0] = 1
        self.rough = self.features + self.random.normal(0, 0.3, self.features.shape).astype(np.float32)  # of version 1
        self.rough[:, 0] = 1
        self.weights = self.random.normal(0, 0.5, (2 * count, FEATURES))  # the second half has no ratings
        self.weights[:, 0] += 3
        self.count = count
        self.next_id = 1

    def ratings(self, each):
        """So many of each user, interleaved."""
        users = np.tile(np.arange(self.count), each)
        items = self.random.integers(0, ITEMS, len(users))
        values = np.einsum("ij,ij->i", self.weights[users], self.features[items]) + self.random.normal(0, NOISE, len(users))
        return users, items, values

    def hostile(self, number):
        """Of the first one as many as a user may have: more of them are refused."""
        size = 4096 if number == 0 else 40
        users = np.full(size, 10_000_000 + number)
        return users, self.random.integers(0, ITEMS, size), np.full(size, HOSTILE[number % len(HOSTILE)])

    def observe(self, clients, users, items, values):
        for begin in range(0, len(users), BATCH):
            part = slice(begin, begin + BATCH)
            some = [personal.Observation(int(user), int(item), float(value), id=self.next_id + i)
                    for i, (user, item, value) in enumerate(zip(users[part], items[part], values[part]))]
            self.next_id += len(some)
            for client in clients:
                eventually(lambda client=client, some=some: is_observed(client, some), 300)

    def sample(self):
        chosen = np.linspace(0, self.count - 1, min(SAMPLE, self.count)).astype(int)
        return chosen, np.random.default_rng(3).integers(0, ITEMS, (len(chosen), 10))

    def errors(self, client):
        """Of those with ratings, and of those without any."""
        users, items = self.sample()
        pairs = [np.repeat(users, 10), np.repeat(users + self.count, 10)]
        found = []
        for of_users in pairs:
            predicted = client.predict_pairs(of_users.tolist(), items.reshape(-1))
            truth = np.einsum("ij,ij->i", self.weights[of_users], self.features[items.reshape(-1)])
            found.append(float(np.mean((predicted - truth) ** 2)))
        return np.array(found)

    def predictions(self, client):
        users, items = self.sample()
        everyone = np.concatenate([np.repeat(users, 10), np.repeat(users + self.count, 10)])
        return client.predict_pairs(everyone.tolist(), np.tile(items.reshape(-1), 2))


def is_observed(client, some):
    try:
        client.observe_all(some)
        return True
    except personal.PersonalError as error:
        if error.status not in (429, 503, 504):
            raise
        return False  # again, with the same ids


def clients_of(server):
    return [personal.Client(server.http, model, timeout=600) for model in MODELS]


def retrain(folder, clients, users):
    """What retrained versions change: the error of the attacked model in that of the other."""
    for model in MODELS:
        state = folder / "models/.observations" / model
        done = subprocess.run(
            [foliot_binary(), "retrain", folder / "models" / model, "--state", state, "--python", sys.executable, "--background",
             "false"], capture_output=True, text=True, timeout=3600, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    for client in clients:
        eventually(lambda client=client: client.top_k(0, 1).version == "2", 120)
    honest, attacked = (users.errors(client) for client in clients)
    return attacked / honest


def kill(server, users, clients, kills):
    """The largest change of a prediction, in its size above 1."""
    largest = 0.0
    for number in range(kills):
        users.observe(clients, *(each[:50] for each in users.ratings(1)))
        before = [users.predictions(client) for client in clients]
        time.sleep(users.random.uniform(0, 0.2) if number % 2 else 0)  # the moment is a part of what is measured
        server.stop(signal.SIGKILL if number % 5 else signal.SIGTERM)
        server.start()
        clients = clients_of(server)
        for client, known in zip(clients, before):
            change = np.abs(users.predictions(client) - known) / np.maximum(1, np.abs(known))
            largest = max(largest, float(change.max()))
    return largest


def measure(count, each, kills, seed):
    users = Users(count, seed)
    with contextlib.ExitStack() as stack:
        temporary = stack.enter_context(tempfile.TemporaryDirectory())
        folder = pathlib.Path(temporary)
        for model in MODELS:
            (folder / "models" / model / "1").mkdir(parents=True)
            (folder / "models" / model / "personal.toml").write_text("")
            personal.write_items(folder / "models" / model / "1/items.features", range(ITEMS), users.rough)
        server = stack.enter_context(Server(folder / "models", folder / "server.log", watch="200ms"))
        clients = clients_of(server)
        users.observe(clients, *users.ratings(each))
        worst = np.zeros(2)
        for number in range(10):
            users.observe(clients[1:], *users.hostile(number))
            users.observe(clients, *(part[:1000] for part in users.ratings(1)))
            honest, attacked = (users.errors(client) for client in clients)
            worst = np.maximum(worst, attacked / honest)
        retrained = retrain(folder, clients, users)
        changed = kill(server, users, clients, kills)
    where = f"{count} users of {each} ratings, seed {seed}"
    return [
        Figure(f"{where}: error of others and of new users, in that without hostile ones", "1.05",
               "{:.3f}, {:.3f}".format(*worst), bool(worst.max() <= 1.05)),
        Figure(f"{where}: the same of retrained versions", "1.05", "{:.3f}, {:.3f}".format(*retrained),
               bool(retrained.max() <= 1.05)),
        Figure(f"{where}: change of predictions by {kills} kills and stops", "1e-6", f"{changed:.1e}", changed <= 1e-6),
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, nargs="+", default=[80, 2000])
    parser.add_argument("--ratings", type=int, default=40)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    options = parser.parse_args()
    sys.exit(print_figures([figure for seed in options.seeds for count in options.users
                            for figure in measure(count, options.ratings, options.kills, seed)]))
