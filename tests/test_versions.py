"""Several versions of a model are served side by side: each by its number, by a label, or by a split; labels, splits
and versions change under load, and no request is refused because of it."""

import collections
import concurrent.futures
import contextlib
import shutil
import sys
import threading

import numpy as np
import pytest
import tritonclient.grpc as triton_grpc
import tritonclient.http as triton_http
from tritonclient.utils import InferenceServerException

from foliot_tools import onnx_models
from foliot_tools.cluster import Cluster
from foliot_tools.waiting import eventually

OPTIONS = {"page_size": "256KiB", "page_cache": "16MiB", "compile_in_background": "false"}
PROTOCOLS = ["http", "grpc"]


def put(folder, version):
    """A version whose answers are its number; no reader sees half of it."""
    draft = folder.parent.parent / "draft" / str(version)
    onnx_models.constant(draft / "model.onnx", version)
    folder.mkdir(parents=True, exist_ok=True)
    draft.rename(folder / str(version))


def configure(folder, text):
    """Puts a model.toml in place at once."""
    draft = folder.parent.parent / "model.toml"
    draft.write_text(text)
    draft.rename(folder / "model.toml")


@contextlib.contextmanager
def client_of(server, protocol):
    module = {"http": triton_http, "grpc": triton_grpc}[protocol]
    with module.InferenceServerClient(getattr(server, protocol)) as client:
        yield module, client


def infer(module, client, version="", model="m", **parameters):
    request = module.InferInput("x", [1, 1], "FP32")
    request.set_data_from_numpy(np.ones((1, 1), np.float32))
    return client.infer(model, [request], model_version=version, parameters=parameters or None)


def answer(module, client, version="", **options):
    return int(infer(module, client, version, **options).as_numpy("y")[0, 0])


def versions_of(server):
    """What the index shows as ready, by model."""
    shown = collections.defaultdict(set)
    with client_of(server, "http") as (_, client):
        for entry in client.get_model_repository_index():
            if entry["state"] == "READY":
                shown[entry["name"]].add(entry["version"])
    return shown


@contextlib.contextmanager
def asking(server, *versions):
    """Yields what clients get that ask for each of these all the time; none of them is refused."""
    answers, stop = {version: [] for version in versions}, threading.Event()

    def run(version, protocol):
        with client_of(server, protocol) as (module, client):
            while not stop.is_set():
                answers[version].append(answer(module, client, version))

    with concurrent.futures.ThreadPoolExecutor() as threads:
        runs = [threads.submit(run, version, protocol) for version in versions for protocol in PROTOCOLS]
        try:
            yield answers
        finally:
            stop.set()
        for each in runs:
            each.result()


@pytest.fixture
def model(tmp_path):
    for version in (1, 3):
        put(tmp_path / "models/m", version)
    return tmp_path / "models/m"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_each_version_answers_for_itself(model, serve, protocol):
    configure(model, 'versions = "all"\n[labels]\nstable = 1\ncanary = 3\n')
    server = serve(model.parent, **OPTIONS)
    with client_of(server, protocol) as (module, client):
        assert [answer(module, client, version) for version in ("", "1", "3", "stable", "canary")] == [3, 1, 3, 1, 3]
        assert answer(module, client, label="stable") == 1
        result = infer(module, client, "stable").get_response()
        name, version = ((result["model_name"], result["model_version"]) if protocol == "http" else
                         (result.model_name, result.model_version))
        assert (name, version) == ("m", "1")
        for version, said in [("4", "version 4 of model 'm' is not served; served are 1 and 3"),
                              ("beta", "no label 'beta'; it has 'canary', 'stable'")]:
            with pytest.raises(InferenceServerException, match=said):
                infer(module, client, version)
        with pytest.raises(InferenceServerException, match="names version '1', and its parameter 'label' is 'canary'"):
            infer(module, client, "1", label="canary")
        assert client.is_model_ready("m", "1") and not client.is_model_ready("m", "4")
        options = {"as_json": True} if protocol == "grpc" else {}
        assert client.get_model_metadata("m", **options)["versions"] == ["1", "3"]
        statistics = client.get_inference_statistics("m", **options)["model_stats"]
        assert [each["version"] for each in statistics] == ["1", "3"]
        index = client.get_model_repository_index(**options)
        index = index["models"] if protocol == "grpc" else index
        assert sorted((each["name"], each["version"], each["state"]) for each in index) == [
            ("m", "1", "READY"), ("m", "3", "READY")]
    assert server.metrics()['nv_inference_request_success{model="m",version="1"}'] == 4


@pytest.mark.parametrize(("setting", "served"), [
    ("", {"4"}), ('versions = "latest"', {"4"}), ("versions = {latest = 2}", {"3", "4"}), ("versions = [1, 3]", {"1", "3"}),
    ("versions = [2, 3]", {"3"}), ('versions = "all"', {"1", "3", "4"})])
def test_the_versions_that_are_served(model, serve, setting, served):
    put(model, 4)
    configure(model, setting)
    server = serve(model.parent, **OPTIONS)
    assert versions_of(server)["m"] == served
    with client_of(server, "http") as (module, client):
        assert answer(module, client) == max(map(int, served))


def test_a_version_policy_of_tritons_is_kept(model, serve):
    (model / "config.pbtxt").write_text("version_policy: { all { } }")
    server = serve(model.parent, **OPTIONS)
    assert versions_of(server)["m"] == {"1", "3"}
    assert "version_policy" not in server.output()


@pytest.mark.parametrize(("text", "said"), [
    ("versions = [1, 3]\n[labels]\nstable = 2\n", "label 'stable' is version 2, which is not served; served are 1 and 3"),
    ("versions = [1, 3]\n[split]\n1 = 90\n3 = 5\n", "[split] adds up to 95, and must to 100"),
    ("versions = [1, 3]\n[split]\n1 = 90\nbeta = 10\n", "'beta', which is no label and no version that is served"),
    ("versions = [1, 3]\n[labels]\n7 = 1\n", "'7' is no label"),
    ('versions = "newest"\n', "'versions' must be \"latest\""),
    ("versions = [0]\n", "'versions' must be"),
    ("versions = [2]\n", "version 2 is to be served, and there is a model of 1 and 3"),
    ("versions = {oldest = 1}\n", "'versions' must be"),
])
def test_what_is_wrong_is_named_and_others_go_on(model, serve, text, said):
    put(model.parent / "other", 1)
    configure(model, text)
    server = serve(model.parent, **OPTIONS)
    index = {entry["name"]: entry for entry in server.post("/v2/repository/index")[1]}
    assert index["m"]["state"] == "UNAVAILABLE"
    assert said in index["m"]["reason"] and str(model) in index["m"]["reason"]
    with client_of(server, "http") as (module, client):
        assert answer(module, client, model="other") == 1


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_split_of_20000_requests(model, serve, protocol):
    configure(model, "versions = [1, 3]\n[labels]\nstable = 1\ncanary = 3\n[split]\nstable = 95\ncanary = 5\n")
    server = serve(model.parent, **OPTIONS)

    def ask(count):
        with client_of(server, protocol) as (module, client):
            return collections.Counter(answer(module, client) for _ in range(count))

    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        counts = sum(threads.map(ask, [2500] * 8), collections.Counter())
    assert counts.total() == 20_000
    assert 0.045 <= counts[3] / counts.total() <= 0.055
    metrics = server.metrics()
    assert metrics['nv_inference_request_success{model="m",version="3"}'] == counts[3]
    with client_of(server, protocol) as (module, client):
        for user in range(20):
            assert len({answer(module, client, split_key=f"user {user}") for _ in range(5)}) == 1
        keyed = collections.Counter(answer(module, client, split_key=f"user {user}") for user in range(2000))
    assert 0.03 <= keyed[3] / keyed.total() <= 0.07


def test_tables_are_split_as_tensors_are(model, serve):
    configure(model, "versions = [1, 3]\n[labels]\nold = 1\n[split]\n1 = 50\n3 = 50\n")
    server = serve(model.parent, **OPTIONS)

    def predict(**parameters):
        status, got = server.post("/v1/models/m:predict", {"instances": [[1]], "parameters": parameters})
        assert status == 200, got
        return np.ravel(got["predictions"])[0]

    eventually(lambda: versions_of(server)["m"] == {"1", "3"})
    counts = collections.Counter(predict() for _ in range(20))
    assert set(counts) == {1, 3} and abs(counts[1] - counts[3]) <= 4, "they are spread evenly"
    assert {predict(label="old") for _ in range(5)} == {1}
    assert len({predict(split_key="a") for _ in range(5)}) == 1


def test_a_label_moves_under_load(model, serve):
    configure(model, "versions = [1, 3]\n[labels]\nstable = 1\n[split]\nstable = 100\n")
    server = serve(model.parent, watch="100ms", **OPTIONS)
    with asking(server, "", "stable") as answers:
        eventually(lambda: all(len(each) > 50 for each in answers.values()))
        configure(model, "versions = [1, 3]\n[labels]\nstable = 3\n[split]\nstable = 100\n")
        eventually(lambda: all(each[-1] == 3 for each in answers.values()))
        # What is wrong changes nothing.
        configure(model, "versions = [1, 3]\n[labels]\nstable = 9\n")
        eventually(lambda: "label 'stable' is version 9" in server.output())
        configure(model, "versions = [3, 4]\n[labels]\nstable = 4\n[split]\nstable = 50\n3 = 50\n")
        eventually(lambda: "there is no model of version 4" in server.output() or "version 4" in server.output())
        put(model, 4)
        eventually(lambda: answers["stable"] and answers["stable"][-1] == 4)
        eventually(lambda: {"3", "4"} == versions_of(server)["m"])
        count = len(answers[""])
        eventually(lambda: len(answers[""]) > count + 200)
        assert {3, 4} == set(answers[""][count + 100:])
    assert set(answers["stable"]) == {1, 3, 4}


def test_one_version_becomes_several_and_one_again(model, serve):
    server = serve(model.parent, watch="100ms", **OPTIONS)
    assert versions_of(server)["m"] == {"3"}
    with asking(server, "") as answers:
        configure(model, 'versions = "all"\n')
        eventually(lambda: versions_of(server)["m"] == {"1", "3"})
        put(model, 4)
        eventually(lambda: answers[""] and answers[""][-1] == 4)
        configure(model, 'versions = {latest = 2}\n')
        eventually(lambda: versions_of(server)["m"] == {"3", "4"})
        shutil.rmtree(model / "4")
        eventually(lambda: versions_of(server)["m"] == {"1", "3"} and answers[""][-1] == 3)
        configure(model, 'versions = "latest"\n')
        eventually(lambda: versions_of(server)["m"] == {"3"})
        count = len(answers[""])
        eventually(lambda: len(answers[""]) > count + 100, timeout=5)
    assert set(answers[""]) == {3, 4}


def test_the_newest_choice_wins_while_an_older_one_still_compiles(model, serve):
    configure(model, "versions = [1]\n")
    shutil.rmtree(model / "3")
    server = serve(model.parent, **OPTIONS | {"page_cache": "256MiB"})
    for round in range(3):
        onnx_models.random_dense_network(model / f"{3 + round}/model.onnx", (700 + round,) * 20)
        with concurrent.futures.ThreadPoolExecutor() as pool:
            configure(model, f"versions = [1, {3 + round}]\n")
            older = pool.submit(server.post, "/v2/repository/models/m/load")
            eventually(lambda: any(entry["state"] == "LOADING" for entry in server.post("/v2/repository/index")[1]))
            configure(model, "versions = [1]\n")
            assert server.post("/v2/repository/models/m/load")[0] == 200
            older.result()
        eventually(lambda: versions_of(server)["m"] == {"1"} and len(server.post("/v2/repository/index")[1]) == 1)
        for protocol in PROTOCOLS:
            with client_of(server, protocol) as (module, client):
                assert [answer(module, client, version) for version in ["", "1"] * 20] == [1] * 40
        assert versions_of(server)["m"] == {"1"}


def test_clients_load_and_unload_all_versions_or_one(model, serve):
    configure(model, 'versions = "all"\n')
    server = serve(model.parent, **OPTIONS)
    put(model, 4)
    with client_of(server, "http") as (module, client):
        client.load_model("m")
        assert answer(module, client) == 4
        assert server.post("/v2/repository/models/m%2F4/unload")[0] == 200
        assert answer(module, client) == 3
        client.unload_model("m")
        with pytest.raises(InferenceServerException, match="not ready"):
            answer(module, client)
        client.load_model("m")
        assert versions_of(server)["m"] == {"1", "3", "4"}


def test_a_cluster_serves_the_versions_of_its_workers(model, tmp_path):
    configure(model, 'versions = "all"\n')
    with Cluster(tmp_path, lambda worker: model.parent, frontends=1, watch="100ms") as cluster:
        frontend = cluster.frontends[0]
        eventually(lambda: versions_of(frontend)["m"] == {"1", "3"})
        for protocol in PROTOCOLS:
            with client_of(frontend, protocol) as (module, client):
                assert [answer(module, client, version) for version in ("", "1", "3")] == [3, 1, 3]
                with pytest.raises(InferenceServerException, match="served are 1 and 3"):
                    answer(module, client, "4")
        with asking(frontend, "", "3") as answers:
            put(model, 4)
            eventually(lambda: answers[""] and answers[""][-1] == 4)
            shutil.rmtree(model / "1")
            eventually(lambda: versions_of(frontend)["m"] == {"3", "4"})


def test_front_ends_of_a_cluster_have_labels_and_splits(model, tmp_path):
    configure(model, "versions = [1, 3]\n[labels]\nstable = 1\n")
    labels = tmp_path / "front/m"
    labels.mkdir(parents=True)
    configure(labels, "[labels]\nstable = 1\n[split]\nstable = 95\n3 = 5\n")
    with Cluster(tmp_path, lambda worker: model.parent, frontends=0, watch="100ms") as cluster:
        frontend = cluster.add_frontend(applications=labels.parent, watch="100ms")
        eventually(lambda: versions_of(frontend)["m"] == {"1", "3"})
        with client_of(frontend, "grpc") as (module, client):
            counts = collections.Counter(answer(module, client) for _ in range(200))
            assert counts == {1: 190, 3: 10}
        with asking(frontend, "stable") as answers:
            eventually(lambda: answers["stable"])
            configure(labels, "[labels]\nstable = 3\n")
            eventually(lambda: answers["stable"][-1] == 3)
        assert set(answers["stable"]) == {1, 3}
    assert "put the model.toml in the folder of each front end's --applications" in cluster.workers[0].output()


CODE = """import foliot
calls = 0

@foliot.model(inputs={{"x": ("FP32", [1])}}, outputs={{"y": ("FP32", [1])}}, batch_size_max=1)
def predict(batch):
    global calls
    calls += 1
    if {fails} and calls > 50 and calls % 20 == 0:
        raise ValueError("a canary that fails")
    return {{"y": batch["x"] * 0 + {version}}}
"""


def ends_of(server, count):
    """Of so many requests that name no version: {answer or "failed": how many}."""
    ends = collections.Counter()
    with client_of(server, "http") as (module, client):
        for _ in range(count):
            try:
                ends[answer(module, client)] += 1
            except InferenceServerException:
                ends["failed"] += 1
    return ends


def reasons_of(server):
    with client_of(server, "http") as (_, client):
        return {entry["version"]: entry.get("reason", "") for entry in client.get_model_repository_index()}


@pytest.mark.parametrize("fails", [True, False])
def test_a_canary_that_fails_is_taken_out_and_an_equal_one_is_not(tmp_path, serve, fails):
    folder = tmp_path / "models/m"
    for version in (1, 3):
        (folder / str(version)).mkdir(parents=True)
        (folder / str(version) / "model.py").write_text(CODE.format(version=version, fails=fails and version == 3))
    configure(folder, 'versions = "all"\nrollback = true\n[labels]\ncanary = 3\n[split]\n1 = 70\ncanary = 30\n'
                      f'[container]\npython = "{sys.executable}"\n')
    server = serve(folder.parent, **OPTIONS)
    ends = ends_of(server, 1000)
    if not fails:
        assert ends["failed"] == 0 and ends[1] + ends[3] == 1000
        assert "errors" not in reasons_of(server)["3"]  # of slow answers a machine under load may have some
        return
    assert 0 < ends["failed"] < 15 and ends[3] < 300
    assert reasons_of(server)["3"].startswith("taken out of the split: errors: ")
    assert server.output().count("version 3 of model 'm' is taken out of its split") == 1
    assert server.metrics()['foliot_canary_rollbacks_total{model="m",version="3"}'] == 1
    assert ends_of(server, 100) == {1: 100}
    with client_of(server, "http") as (module, client):
        assert answer(module, client, "canary") == 3


def test_a_shadow_gets_copies_and_answers_nobody(model, serve):
    configure(model, 'versions = "all"\nshadow = "canary"\n[labels]\ncanary = 3\n[split]\n1 = 100\n')
    server = serve(model.parent, **OPTIONS)
    assert ends_of(server, 50) == {1: 50}
    copied = 'foliot_shadow_calls_total{model="m",version="3",result="%s"}'
    eventually(lambda: server.metrics()[copied % "disagree"] == 50)
    assert server.metrics()[copied % "agree"] == 0


def test_front_ends_of_a_cluster_have_shadows(model, tmp_path):
    configure(model, "versions = [1, 3]\n[labels]\ncanary = 3\n")
    rules = tmp_path / "front/m"
    rules.mkdir(parents=True)
    configure(rules, 'shadow = "3"\n[split]\n1 = 100\n')
    with Cluster(tmp_path, lambda worker: model.parent, frontends=0, watch="100ms") as cluster:
        frontend = cluster.add_frontend(applications=rules.parent, watch="100ms")
        eventually(lambda: versions_of(frontend)["m"] == {"1", "3"})
        assert ends_of(frontend, 50) == {1: 50}
        copied = 'foliot_shadow_calls_total{model="m",version="3",result="disagree"}'
        eventually(lambda: frontend.metrics()[copied] == 50)
