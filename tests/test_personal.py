"""Personal models: weights for each user, which learn from the next request on and lose nothing that was acknowledged."""

import http.client
import signal
import subprocess
import threading

import grpc
import numpy as np
import pytest
import tritonclient.http as http_client

from foliot import personal
from foliot_tools.grpc_protocol import personal_protocol
from foliot_tools.server import Server, ServerFailed, foliot_binary
from foliot_tools.waiting import await_output, eventually
from test_access import new_key

OPTIONS = {"page_size": "256KiB", "page_cache": "16MiB"}
GREEDY = '[exploration]\nname = "greedy"\npool = 0\n'
IDS = np.arange(0, 500, 10)


def write_version(repository, version, features=8, ids=IDS):
    rows = np.random.default_rng(7).normal(0, features**-0.5, (len(ids), features))
    personal.write_items(repository / "movies" / version / "items.features", ids, rows)


@pytest.fixture(name="repository")
def movies(tmp_path):
    folder = tmp_path / "models"
    write_version(folder, "1")
    (folder / "movies/personal.toml").write_text(GREEDY)
    return folder


def start(serve, repository, **options):
    return serve(repository, **OPTIONS, **options)


def client(server, **options):
    return personal.Client(server.http, "movies", **options)


def post(server, method, body, headers=None):
    return server.post(f"/v2/personal/movies/{method}", body, headers)


def test_a_user_is_learned_from_the_next_request_on(serve, repository):
    server = start(serve, repository)
    with client(server) as movies:
        assert movies.predict("ada", 20) == 0
        movies.observe("ada", 20, 4.5)
        liked = movies.predict("ada", 20)
        assert liked > 0.5
        assert movies.predict(7, [20, 30]).shape == (2,)
        assert movies.predict("ada", [20]) == pytest.approx(liked)
        places = movies.top_k("ada", 3)
        assert places.version == "1"
        scores = [place.score for place in places.places]
        assert scores == sorted(scores, reverse=True) and len(scores) == 3
        assert movies.top_k("ada", 5, items=[30, 20]).items == sorted([20, 30], key=lambda i: -movies.predict("ada", i))
        movies.forget("ada")
        movies.forget("bob")
        assert movies.predict_pairs(["ada", "bob"], [20, 20]).tolist() == [0, 0]
    page = server.metrics()
    assert page['foliot_personal_observations_total{model="movies"}'] == 1
    assert page['foliot_personal_topk_total{model="movies"}'] == 2
    assert page['foliot_personal_topk_seconds_count{model="movies"}'] == 2


def test_grpc_does_the_same(serve, repository):
    messages, stub_of = personal_protocol()
    server = start(serve, repository)
    with grpc.insecure_channel(server.grpc) as channel:
        stub = stub_of(channel)
        observation = {"user_text": "ada", "item": 20, "value": 4.5, "id_number": 1}
        answer = stub.Observe(messages.ObserveRequest(model="movies", observations=[observation]), timeout=10)
        assert answer.version == "1"
        pair = {"user": {"text": "ada"}, "item": 20}
        predicted = stub.Predict(messages.PredictRequest(model="movies", pairs=[pair]), timeout=10).predictions[0]
        assert predicted == pytest.approx(client(server).predict("ada", 20))
        top = stub.TopK(messages.TopKRequest(model="movies", users=[{"text": "ada"}, {"number": 7}], k=2), timeout=10)
        assert [len(result.items) for result in top.results] == [2, 2]
        stub.Forget(messages.ForgetRequest(model="movies", users=[{"text": "ada"}]), timeout=10)
        assert client(server).predict("ada", 20) == 0
        for request, code in (
                (messages.TopKRequest(model="movies", users=[{"number": 7}], k=0), grpc.StatusCode.INVALID_ARGUMENT),
                (messages.TopKRequest(model="movies", k=3), grpc.StatusCode.INVALID_ARGUMENT),
                (messages.TopKRequest(model="books", users=[{"number": 7}], k=3), grpc.StatusCode.NOT_FOUND),
                (messages.TopKRequest(model="movies", users=[{"number": 7}], k=3, timeout=-1),
                 grpc.StatusCode.INVALID_ARGUMENT)):
            with pytest.raises(grpc.RpcError) as error:
                stub.TopK(request, timeout=10)
            assert error.value.code() == code
        with pytest.raises(grpc.RpcError) as error:
            stub.Observe(messages.ObserveRequest(model="movies", observations=[{**observation, "value": float("nan")}]))
        assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT and "finite" in error.value.details()


def test_bad_input_is_named(serve, repository):
    (repository / "movies/personal.toml").write_text(
        GREEDY + "[limits]\nobservations_per_user = 3\nusers = 2\nvalue_min = 0\nvalue_max = 5\n")
    server = start(serve, repository)
    good = {"user": 7, "item": 20, "value": 1, "id": 1}
    for method, body, status, words in (
            ("predict", {"user": 7, "item": 21}, 404, "item 21 is unknown"),
            ("observe", {**good, "item": 21}, 404, "item 21 is unknown"),
            ("observe", b'{"user": 7, "item": 20, "value": NaN, "id": 1}', 400, "NaN"),
            ("observe", {**good, "value": "five"}, 400, "'value' must be a number"),
            ("observe", {"user": 7, "item": 20, "value": 1}, 400, "'id' is missing"),
            ("topk", {"user": 7, "k": 0}, 400, "k = 0"),
            ("topk", {"user": 7, "k": 10001}, 400, "10000"),
            ("topk", {"user": 7, "k": 2, "items": [20, 20]}, 400, "item 20 is named twice"),
            ("topk", {"user": 7, "k": -1}, 400, "'k' must be a whole number"),
            ("observe", {"observations": [{**good, "id": i} for i in range(4)]}, 507, "over the limit of 3"),
            ("guess", {"user": 7}, 404, "no such path"),
    ):
        got, answer = post(server, method, body)
        assert (got, words in answer["error"]) == (status, True), (method, body, answer)
    assert server.post("/v2/personal/books/predict", {"user": 7, "item": 20})[0] == 404
    assert server.get("/v2/personal/movies/predict")[0] == 405
    assert post(server, "observe", {**good, "value": 1e300})[0] == 200
    with client(server) as movies:
        assert 0 < movies.predict(7, 20) <= 5, "the value was clipped to 5"
        movies.observe(8, 20, 1)
        with pytest.raises(personal.PersonalError, match="limit of 2 users reached") as error:
            movies.observe(9, 20, 1)
        assert error.value.status == 507


def test_a_deadline_that_cannot_be_met_is_refused(serve, repository):
    server = start(serve, repository)
    status, answer = post(server, "topk", {"user": 7, "k": 3, "parameters": {"timeout": 1}})
    assert status == 503 and answer["reason"] == "unmeetable"
    with client(server, timeout=10) as movies:
        assert len(movies.top_k(7, 3).items) == 3
    assert server.metrics()['foliot_personal_refused_total{model="movies",reason="unmeetable"}'] == 1


def test_a_retry_is_harmless_and_a_restart_keeps_all(serve, repository, tmp_path):
    kept = tmp_path / "kept"
    server = start(serve, repository, observations=kept)
    with client(server) as movies:
        movies.observe("ada", 20, 4.5, id="once")
        before = movies.predict("ada", 20)
        movies.observe("ada", 20, 4.5, id="once")
        assert movies.predict("ada", 20) == before
    server.stop()
    server = start(serve, repository, observations=kept)
    with client(server) as movies:
        assert movies.predict("ada", 20) == pytest.approx(before)
    with pytest.raises(ServerFailed, match="movies' cannot be served: .*kept/movies"):
        start(serve, repository, observations=kept, cache=tmp_path / "cache", ready_timeout=5)
    (tmp_path / "file").touch()
    with pytest.raises(ServerFailed, match="--observations"):
        start(serve, repository, observations=tmp_path / "file", cache=tmp_path / "cache")


def test_a_killed_server_keeps_what_it_acknowledged(serve, repository, tmp_path):
    server = Server(repository, tmp_path / "killed.log", **OPTIONS).start()
    acknowledged = []

    def send(user):
        with client(server) as movies:
            try:
                for number in range(10000):
                    movies.observe(user, int(IDS[number % len(IDS)]), 3, id=number)
                    acknowledged.append((user, number))
            except (OSError, http.client.HTTPException):
                pass  # it was killed

    threads = [threading.Thread(target=send, args=(user,)) for user in range(4)]
    for thread in threads:
        thread.start()
    eventually(lambda: len(acknowledged) > 200)
    server.stop(signal.SIGKILL)
    for thread in threads:
        thread.join()
    again = start(serve, repository)
    before = again.metrics()['foliot_personal_users{model="movies"}']
    assert before == 4
    with client(again) as movies:
        kept = {user: movies.predict(user, 20) for user in range(4)}
        movies.observe_all([personal.Observation(user, int(IDS[number % len(IDS)]), 3, id=number)
                            for user, number in acknowledged])
        for user, prediction in kept.items():
            assert movies.predict(user, 20) == pytest.approx(prediction, abs=1e-3), "all of them were there already"


def test_more_users_than_memory_are_in_a_store(serve, repository, tmp_path):
    """Each learns and predicts as if all were in memory, also after the server was killed, and after it was stopped."""
    (repository / "movies/personal.toml").write_text(GREEDY + '[limits]\nusers_memory = "32MiB"\n')
    users = 90000
    server = Server(repository, tmp_path / "killed.log", **OPTIONS).start()
    with client(server) as movies:
        for first in range(0, users, 1000):
            movies.observe_all([personal.Observation(user, int(IDS[user % len(IDS)]), 1 + user % 4, id=user)
                                for user in range(first, first + 1000)])
        some = list(range(0, users, 901))  # of all items and values
        items = [int(IDS[user % len(IDS)]) for user in some]
        movies.observe_all([personal.Observation(user, item, 1 + user % 4, id=user) for user, item in zip(some, items)])
        page = server.metrics()
        assert page['foliot_personal_users{model="movies"}'] == users
        assert page['foliot_personal_users_in_store{model="movies"}'] > 10000
        assert page['foliot_personal_users_in_memory{model="movies"}'] < users - 10000
        assert page['foliot_personal_user_misses_total{model="movies"}'] > 0
        predictions = movies.predict_pairs(some, items)
    assert len({round(float(each), 2) for each in predictions}) > 10
    server.stop(signal.SIGKILL)
    killed = Server(repository, tmp_path / "again.log", **OPTIONS).start()
    await_output(killed, "the store of users is filled anew from the log: it was not closed")
    with client(killed) as movies:
        np.testing.assert_allclose(movies.predict_pairs(some, items), predictions, atol=1e-3)
        movies.forget(some[0])
    killed.stop()
    stopped = start(serve, repository)
    page = stopped.metrics()
    assert page['foliot_personal_users{model="movies"}'] == users - 1
    assert page['foliot_personal_users_in_memory{model="movies"}'] == 0, "nothing was read"
    with client(stopped) as movies:
        np.testing.assert_allclose(movies.predict_pairs(some[1:], items[1:]), predictions[1:], atol=1e-3)


def test_observing_needs_its_scope(serve, repository, tmp_path):
    keys = tmp_path / "keys.toml"
    reader = new_key(keys, "reader", "infer")
    teacher = new_key(keys, "teacher", "observe")
    server = start(serve, repository, keys=keys)
    with client(server, key=teacher) as movies:
        movies.observe("ada", 20, 4.5)
        with pytest.raises(personal.PersonalError, match="no scope 'infer'"):
            movies.predict("ada", 20)
    with client(server, key=reader) as movies:
        assert movies.predict("ada", 20) > 0
        for call in (lambda: movies.observe("ada", 20, 4.5), lambda: movies.forget("ada")):
            with pytest.raises(personal.PersonalError, match="no scope 'observe'") as error:
                call()
            assert error.value.status == 403
    assert "ada" not in server.output()


def test_it_is_listed_and_a_newer_version_is_taken(serve, repository):
    server = start(serve, repository)
    with http_client.InferenceServerClient(server.http) as triton:
        assert triton.is_model_ready("movies")
        assert triton.get_model_metadata("movies")["platform"] == "foliot_personal"
        assert triton.get_model_repository_index() == [
            {"name": "movies", "version": "1", "state": "READY", "reason": ""}]
        status, answer = server.post("/v2/models/movies/infer", {"inputs": []})
        assert status == 400, answer
        write_version(repository, "2")
        triton.load_model("movies")
        assert triton.get_model_repository_index()[0]["version"] == "2"
        with client(server) as movies:
            assert movies.top_k("ada", 1).version == "2"
        (repository / "movies/3").mkdir()
        with pytest.raises(Exception, match="version 3 is not taken"):
            triton.load_model("movies")
        with client(server) as movies:
            assert movies.top_k("ada", 1).version == "2"


def listed(repository):
    """(exit code, output) of `foliot models`."""
    done = subprocess.run([foliot_binary(), "models", str(repository)], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(("items", "features"), [(1, 1), (1, 20), (5, 3), (100, 7), (1000, 33)])
def test_tables_that_numpy_writes_are_read(repository, items, features):
    write_version(repository, "4", features, np.arange(items))
    code, output = listed(repository)
    assert code == 0 and "personal" in output and "movies/4" in output, output
    table = repository / "movies/4/items.features"
    content = bytearray(table.read_bytes())
    content[-1] ^= 1
    table.write_bytes(content)
    code, output = listed(repository)
    assert code == 1 and "its checksum differs" in output, output


def test_tables_that_cannot_be_are_refused(tmp_path):
    for ids, rows, words in (
            ([1, 1], [[1], [2]], "id 1 is named twice"),
            ([1, -1], [[1], [2]], "id -1: must be 0 or more"),
            ([1, 2], [[1], [np.nan]], "feature 0 of item 2 is nan"),
            ([1, 2], [[1]], "for each of 2 ids"),
            ([1.5], [[1]], "whole numbers"),
    ):
        with pytest.raises(ValueError, match=words):
            personal.write_items(tmp_path / "items.features", ids, rows)
    assert not list(tmp_path.iterdir())


def test_a_broken_file_is_named_at_the_start(serve, repository):
    (repository / "movies/personal.toml").write_text("lambda = 0\n")
    with pytest.raises(ServerFailed, match=r"'movies' cannot be served: .*personal.toml:1: .*lambda"):
        start(serve, repository, ready_timeout=5)
