"""A server that retrains its personal models by itself: after drift, and never to a version that is worse."""

import sys

import numpy as np
import pytest

from foliot import personal
from foliot_tools.server import ServerFailed, foliot_binary
from foliot_tools.waiting import await_output, eventually

OPTIONS = {"page_size": "256KiB", "page_cache": "16MiB"}
ITEMS, FEATURES, USERS, SEEN = 60, 4, 60, 60
LEARN = '[exploration]\nname = "greedy"\npool = 0\n[limits]\nvalue_min = -100\nvalue_max = 100\n[retrain]\n'


def command(*trainer):
    words = [foliot_binary(), "retrain", "{folder}", "--state", "{state}", "--python", sys.executable, *trainer]
    return f"command = {[str(word) for word in words]}\n"


class Movies:
    """Users whose ratings follow from features of items, which change when `drift` is called."""

    def __init__(self, server):
        self.client = personal.Client(server.http, "movies", timeout=10)
        self.random = np.random.default_rng(1)
        self.weights = self.random.normal(size=(USERS, FEATURES))
        self.features = features_of(1)
        self.ids = iter(range(1, 1 << 32))

    def drift(self):
        self.features = features_of(2)

    def observe(self, count):
        """So many of each user, interleaved."""
        for _ in range(count):
            users, items = np.arange(USERS), self.random.integers(0, ITEMS, USERS)
            values = np.einsum("ij,ij->i", self.weights, self.features[items]) + self.random.normal(0, 0.3, USERS)
            self.client.observe_all([
                personal.Observation(int(user) + 1, item, value, id=next(self.ids))
                for user, item, value in zip(users, items, values)])

    def error(self):
        """The mean squared error of predictions of all users and items."""
        predicted = np.array([self.client.predict(user + 1, range(ITEMS)) for user in range(USERS)])
        return np.mean((predicted - self.weights @ self.features.T) ** 2)


def features_of(seed):
    return np.random.default_rng(seed).normal(size=(ITEMS, FEATURES))


@pytest.fixture(name="repository")
def movies(tmp_path):
    folder = tmp_path / "models"
    personal.write_items(folder / "movies/1/items.features", np.arange(ITEMS), features_of(1))
    return folder


def versions(repository):
    return sorted(path.name for path in (repository / "movies").iterdir() if path.is_dir())


def total(server, outcome):
    return server.metrics()[f'foliot_retrain_total{{model="movies",outcome="{outcome}"}}']


def test_drift_by_itself_leads_to_a_version_that_is_taken(serve, repository):
    (repository / "movies/personal.toml").write_text(LEARN + "on_drift = true\n" + command())
    server = serve(repository, **OPTIONS)
    users = Movies(server)
    users.observe(SEEN)
    assert server.metrics()['foliot_personal_finds_drift{model="movies"}'] == 1
    assert total(server, "taken") == 0, "nothing has drifted"
    users.drift()
    before = users.error()
    for _ in range(3 * SEEN):
        users.observe(1)
        if total(server, "taken") > 0:
            break
    else:
        eventually(lambda: total(server, "taken") > 0, 300, server.output)
    await_output(server, "movies': is retrained: items have drifted")
    await_output(server, "version 2 is better on what is withheld from trainers, and is served")
    assert users.client.top_k(1, 1).version == "2"
    assert users.error() < 0.8 * before
    assert server.metrics()['foliot_retrain_failing{model="movies"}'] == 0


# Features that say nothing; NaN; of another shape; and one that never ends.
WORSE = """
import numpy as np
class Trainer:
    ridge_lambda = 1.0
    def __init__(self, options): self.width = options["features"]
    def retrain(self, observations, features, weights):
        return np.random.default_rng(7).normal(size=(observations.item_count, self.width)), \\
            np.zeros((observations.user_count, self.width))
"""
TRAINERS = {
    "worse": (WORSE, "not_taken", "is not better on what is withheld from trainers"),
    "nan": (WORSE.replace("np.zeros(", "np.nan * np.zeros("), "failed", "has nan at"),
    "shape": (WORSE.replace("observations.user_count", "1"), "failed", "retraining failed: exit code 1"),
    "endless": (WORSE.replace("        return", "        while True: pass\n        return"), "failed",
                "the trainer did not end within 3.000 s"),
}


@pytest.mark.parametrize("trainer", TRAINERS)
def test_what_is_worse_or_wrong_is_never_served(serve, repository, tmp_path, trainer):
    code, outcome, words = TRAINERS[trainer]
    limit = ("--time-limit", "3s") if trainer == "endless" else ()
    (tmp_path / "code.py").write_text(code)
    (repository / "movies/personal.toml").write_text(
        LEARN + "after_observations = 1800\n" + command("--trainer", tmp_path / "code.py", *limit))
    server = serve(repository, **OPTIONS)
    users = Movies(server)
    users.observe(SEEN)
    eventually(lambda: total(server, outcome) > 0, 300, server.output)
    await_output(server, words)
    assert users.client.top_k(1, 1).version == "1"
    assert [name for name in versions(repository) if name != ".refused"] == ["1"]
    assert server.metrics()['foliot_retrain_failing{model="movies"}'] == (outcome == "failed")
    assert total(server, "taken") == 0


@pytest.mark.parametrize(("text", "words"), [
    ('every = "0s"', r"'every' is 0 us: must be 60.000 s or more"),
    ("after_observations = 0", "'after_observations' must be a whole number from 1"),
    ('command = "train"', "'command' is never used: say when, by on_drift, every, after_observations"),
])
def test_a_schedule_that_cannot_be_is_refused_at_the_start(serve, repository, text, words):
    (repository / "movies/personal.toml").write_text(LEARN + text + "\n")
    with pytest.raises(ServerFailed, match=words):
        serve(repository, **OPTIONS, ready_timeout=5)
