"""Operators list, compare and take versions of a personal model, and roll back, by `foliot versions` and over HTTP."""

import json
import subprocess

import numpy as np
import pytest

from foliot import personal
from foliot_tools.server import Server, foliot_binary
from foliot_tools.waiting import eventually
from test_retraining import ITEMS, LEARN, OPTIONS, Movies, features_of
from test_shared_users import Homes


def versions(server, *flags, code=0):
    command = [foliot_binary(), "versions", "movies", "--url", server.http, *flags]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == code, result.stdout + result.stderr
    return result.stdout if code == 0 else result.stdout + result.stderr


def listed(server):
    return json.loads(versions(server, "--json"))


def served(server):
    with personal.Client(server.http, "movies", timeout=10) as client:
        return {client.top_k(user, 1).version for user in range(1, 13)}


def write_versions(models):
    """The second has features that say nothing; the third is as good as the first."""
    for name, seed in (("1", 1), ("2", 7), ("3", 1)):
        personal.write_items(models / "movies" / name / "items.features", np.arange(ITEMS), features_of(seed))
    (models / "movies/personal.toml").write_text(LEARN.removesuffix("[retrain]\n"))
    (models / "movies/2").rename(models / "2")
    (models / "movies/3").rename(models / "3")
    return models


def test_versions_are_listed_compared_taken_and_rolled_back(tmp_path):
    models = write_versions(tmp_path / "models")
    options = {**OPTIONS, "watch": "100ms", "observations": tmp_path / "observations"}
    with Server(models, tmp_path / "server.log", **options) as server:
        Movies(server).observe(60)
        (models / "2").rename(models / "movies/2")
        eventually(lambda: listed(server)["versions"][1:] and listed(server)["versions"][1]["reason"])
        second = listed(server)["versions"][1]
        assert second["state"] == "kept_aside" and "is not better on what is withheld" in second["reason"]
        compared = second["comparison"]
        assert compared["with"] == "1" and compared["observations"] > 100 and compared["users"] > 30
        assert compared["loss"] > compared["loss_with"] > 0
        assert f"{compared['observations']} observations of {compared['users']} users" in second["reason"]
        assert "kept_aside" in versions(server, "--compare", "2", code=1)
        assert "is not better" in versions(server, "--take", "2", code=1)
        assert served(server) == {"1"}
        versions(server, "--take", "2", "--force")
        assert served(server) == {"2"}
        assert "1  before" in versions(server) and "taken by an operator" in versions(server)
        assert " idle " not in versions(server, "--compare", "1")
        versions(server, "--roll-back")
        assert served(server) == {"1"}
        assert "no version to go back to" in versions(server, "--roll-back", code=1)
        assert all(served(server) == {"1"} for _ in range(100)), "--watch does not undo it"
    with Server(models, tmp_path / "again.log", **options) as server:
        assert served(server) == {"1"}
        assert listed(server)["chosen"] and not listed(server)["before"]
        (models / "3").rename(models / "movies/3")
        eventually(lambda: served(server) == {"3"}, 30, server.output)
        assert not listed(server)["chosen"]
        status, answer = post(server, {"version": "2", "take": "no"})
        assert status == 400 and "'take' must be true or false" in answer
        status, answer = post(server, {"rollback": True})
        assert status == 400 and "'rollback' is unknown: a load of a personal model has 'version'" in answer
        status, answer = post(server, {"version": 9})
        assert status == 404 and "it has: 1, 2, 3" in answer
        assert post(server, {"version": 1, "compare": False})[0] == 200
        assert served(server) == {"1"}


def post(server, parameters):
    status, answer = server.post("/v2/repository/models/movies/load", {"parameters": parameters})
    return status, (answer or {}).get("error")


@pytest.fixture(name="homes")
def three_front_ends(tmp_path):
    write_versions(tmp_path / "models")
    with Homes(tmp_path) as homes:
        for name in ("one", "two", "three"):
            homes.add(name)
        homes.await_named(3)
        yield homes


def test_front_ends_take_what_one_of_them_was_asked_to_take(homes):
    one, two, three = homes.frontends
    models = homes.folder / "models"
    (models / "2").rename(models / "movies/2")
    versions(two, "--take", "2", "--force")
    eventually(lambda: all(served(frontend) == {"2"} for frontend in homes.frontends), 30)
    three.kill()
    homes.await_named(2)
    versions(one, "--roll-back")
    eventually(lambda: served(one) == served(two) == {"1"}, 30)
    three.start()
    homes.await_named(3)
    eventually(lambda: all(served(frontend) == {"1"} for frontend in homes.frontends), 30)
    assert "no version to go back to" in versions(two, "--roll-back", code=1)
