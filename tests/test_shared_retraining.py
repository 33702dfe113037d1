"""Front ends that share the users of a personal model: one retrains it for all, and another one when that is killed."""

import re
import shlex
import tomllib

import numpy as np
import pytest

from foliot import personal
from foliot_tools.waiting import eventually
from test_retraining import ITEMS, LEARN, SEEN, USERS, WORSE, Movies, command, features_of
from test_shared_users import Homes


class Trained(Homes):
    """Three front ends; what their command prints is kept, and it waits until `released` is there."""

    def begin(self, when, *trainer):
        words = shlex.join(tomllib.loads(command(*trainer))["command"])
        words = words.replace("'{folder}'", "{folder}").replace("'{state}'", "{state}")
        script = f"echo began >> {self.printed}; while [ ! -e {self.released} ]; do sleep 0.1; done; {words} >> {self.printed}"
        (self.folder / "models/movies/personal.toml").write_text(LEARN + when + f"command = {['sh', '-c', script]}\n")
        self.printed.write_text("")
        for name in ("one", "two", "three"):
            self.add(name)
        self.await_named(3)
        return [Movies(frontend) for frontend in self.frontends]

    @property
    def printed(self):
        return self.folder / "printed"

    @property
    def released(self):
        return self.folder / "released"

    def outputs(self):
        return "\n".join(frontend.output() for frontend in self.frontends)

    def await_logged(self, frontend, text):
        eventually(lambda: text in frontend.output(), 300, self.outputs)

    def leads(self):
        return [frontend.output().count("is retrained: ") for frontend in self.frontends]


@pytest.fixture(name="homes")
def three_front_ends(tmp_path):
    personal.write_items(tmp_path / "models/movies/1/items.features", np.arange(ITEMS), features_of(1))
    with Trained(tmp_path) as homes:
        yield homes


def version(frontend):
    with personal.Client(frontend.http, "movies", timeout=10) as client:
        return {client.top_k(user, 1).version for user in range(1, 13)}


def test_drift_leads_to_a_version_for_all_front_ends(homes):
    homes.released.touch()
    users = homes.begin("on_drift = true\n")[1]
    users.observe(SEEN)
    assert homes.leads() == [0, 0, 0], "nothing has drifted"
    users.drift()
    before = users.error()
    for _ in range(3 * SEEN):
        users.observe(1)
        if "version 2 is better" in homes.frontends[0].output():
            break
    for frontend in homes.frontends:
        homes.await_logged(frontend, "personal model 'movies': version 2 ")
    assert all(version(frontend) == {"2"} for frontend in homes.frontends)
    assert homes.leads()[0] >= 1 and homes.leads()[1:] == [0, 0], "the first that is not better is tried again with more"
    observed, of_users = re.findall(r"(\d+) observations of (\d+) users", homes.printed.read_text())[-1]
    assert int(of_users) == USERS, "users of all front ends"
    assert int(observed) >= SEEN * USERS, "each observation once"
    assert users.error() < 0.8 * before
    assert not list((homes.folder / "models/movies").glob(".training*"))
    assert not list(homes.folder.glob("*/movies/gathered"))


def test_another_front_end_goes_on_when_the_one_that_retrains_is_killed(homes):
    users = homes.begin("after_observations = 1800\n")[1]
    one, two, three = homes.frontends
    users.drift()
    users.observe(SEEN)
    homes.await_logged(one, "is retrained: ")
    eventually(lambda: "began" in homes.printed.read_text())
    one.kill()
    homes.await_named(2)
    users.observe(SEEN)
    homes.await_logged(three, "is retrained: ")
    eventually(lambda: homes.printed.read_text().count("began") == 2)
    homes.released.touch()
    homes.await_logged(three, "version 2 is better on what is withheld from trainers, and is served")
    # Another retraining may be due at once, so that the others serve version 3 next.
    eventually(lambda: re.search(r"version [23] of another front end is served", two.output()), 60, homes.outputs)
    one.start()
    homes.await_named(3)
    eventually(lambda: set.union(*map(version, homes.frontends)) in ({"2"}, {"3"}), 60, homes.outputs)
    # It begins at once, with what the first one had, while more come.
    observations, seen = map(int, re.search(r"(\d+) observations of (\d+) users", homes.printed.read_text()).groups())
    assert SEEN * USERS <= observations <= 2 * SEEN * USERS and seen == USERS


def test_a_worse_version_is_served_by_none(homes, tmp_path):
    homes.released.touch()
    (tmp_path / "code.py").write_text(WORSE)
    users = homes.begin("after_observations = 1800\n", "--trainer", tmp_path / "code.py")[1]
    users.observe(SEEN)
    homes.await_logged(homes.frontends[0], "is not better on what is withheld from trainers")
    assert all(version(frontend) == {"1"} for frontend in homes.frontends)
    assert (homes.folder / "models/movies/.refused").is_dir()
