"""Packages that are damaged on disk while they are served: no wrong answer, and served again by itself.

FOLIOT_TEST_SEED is the seed of the places, which is printed; DAMAGED_PLACES and CUTS say how many."""

import os
import pathlib
import random

import numpy as np
import onnxruntime
import pytest

from foliot_tools import onnx_models
from foliot_tools.seeds import fresh_seed
from foliot_tools.waiting import eventually

# Two of the three models fit the pages, so that asking them in turn loads them again and again.
OPTIONS = {"page_size": "256KiB", "page_cache": "512KiB", "threads": 1}
MODELS = ["first", "second", "third"]
PIXELS = np.random.default_rng(1).random((1, 64), np.float32)
BODY = {"inputs": [{"name": "pixels", "shape": [1, 64], "datatype": "FP32", "data": PIXELS.ravel().tolist()}]}


@pytest.fixture(name="repository")
def models(tmp_path):
    for i, name in enumerate(MODELS):
        onnx_models.random_dense_network(tmp_path / "models" / name / "1/model.onnx", (64, 512 + 8 * i, 10), seed=i)
    return tmp_path / "models"


@pytest.fixture(name="draw")
def seeded():
    return random.Random(fresh_seed())


class Asker:
    def __init__(self, server, repository):
        self.server = server
        self.expected = {
            name: onnxruntime.InferenceSession(repository / name / "1/model.onnx").run(None, {"pixels": PIXELS})[0]
            for name in MODELS}

    def ask(self, name):
        """Whether it is served; what is served is right."""
        status, answer = self.server.post(f"/v2/models/{name}/infer", BODY)
        assert status in (200, 503), answer
        if status == 200:
            values = np.array(answer["outputs"][0]["data"], np.float32).reshape(1, 10)
            np.testing.assert_allclose(values, self.expected[name], rtol=1e-3, atol=1e-5)
        return status == 200

    def load_all(self):
        """A model that stayed loaded since its package was damaged has what was read before: `load` finds the damage."""
        for name in MODELS:
            assert self.server.post(f"/v2/repository/models/{name}/load")[0] == 200
        self.await_all()

    def await_all(self):
        """Each is served again by itself, whatever else is asked."""
        def all_served():
            return all([self.ask(name) for name in MODELS * 3])

        eventually(all_served, 120, self.server.output)
        for name in MODELS:
            assert self.server.get(f"/v2/models/{name}/ready")[0] == 200
        states = {entry["name"]: entry for entry in self.server.post("/v2/repository/index")[1]}
        assert all(states[name]["state"] == "READY" and not states[name].get("reason") for name in MODELS), states


def packages(cache):
    return sorted(path for path in pathlib.Path(cache).rglob("*.foliot"))


@pytest.fixture(name="asker")
def serving(repository, serve, tmp_path):
    asker = Asker(serve(repository, cache=tmp_path / "cache", **OPTIONS), repository)
    asker.await_all()
    assert len(packages(tmp_path / "cache")) == len(MODELS)
    return asker


def test_bytes_that_change_at_any_place(asker, tmp_path, draw):
    for _ in range(int(os.environ.get("DAMAGED_PLACES", 6))):
        package = draw.choice(packages(tmp_path / "cache"))
        at = draw.randrange(package.stat().st_size)
        with open(package, "r+b") as file:
            file.seek(at)
            before = file.read(1)
            file.seek(at)
            file.write(bytes([before[0] ^ draw.randrange(1, 256)]))
        asker.await_all()
    asker.load_all()


def test_files_that_are_cut(asker, tmp_path, draw):
    drawn = [draw.random() for _ in range(int(os.environ.get("CUTS", 6)) - 4)]
    for part in [0, 64, 4097, *drawn, -1]:
        # One that has nothing any more is that of a model that stayed loaded.
        package = draw.choice([path for path in packages(tmp_path / "cache") if path.stat().st_size > 0])
        size = package.stat().st_size
        os.truncate(package, int(size * part) if 0 < part < 1 else part % size)
        asker.await_all()
    asker.load_all()
    assert all(path.stat().st_size > 4097 for path in packages(tmp_path / "cache"))


def test_the_model_is_shown_as_it_is(asker, repository, tmp_path):
    """While it is compiled again it is not ready, and its entry and the log say why."""
    server = asker.server
    for package in packages(tmp_path / "cache"):
        with open(package, "r+b") as file:
            file.seek(-4096, os.SEEK_END)
            file.write(bytes(4096))
    asker.await_all()
    said = [line for line in server.output().splitlines() if "was damaged while in use" in line and "compiled again" in line]
    assert {name for name in MODELS if any(f"'{name}'" in line for line in said)}, server.output()
    assert len(packages(tmp_path / "cache")) == len(MODELS)


def test_a_load_that_is_asked_for_finds_it(asker, tmp_path):
    for package in packages(tmp_path / "cache"):
        os.truncate(package, package.stat().st_size - 1)
    asker.load_all()
    assert all(path.stat().st_size > 0 for path in packages(tmp_path / "cache"))
