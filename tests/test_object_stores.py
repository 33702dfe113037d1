"""Models and compiled packages in an object store, which a stand-in is that checks signatures."""

import datetime
import os
import re
import shutil
import subprocess

import numpy as np
import pytest
import tritonclient.http as triton

from conftest import serving, write_pair
from foliot_tools.cluster import Part
from foliot_tools.disk import small_disk
from foliot_tools.object_store import ObjectStore
from foliot_tools.server import foliot_binary
from foliot_tools.waiting import await_output, eventually

OPTIONS = {"page_size": "256KiB", "page_cache": "16MiB", "watch": "200ms"}
VISION = "s3://models/vision"


@pytest.fixture
def store(tmp_path):
    write_pair(tmp_path / "made/model.onnx")
    with ObjectStore() as store:
        store.graph = (tmp_path / "made/model.onnx").read_bytes()
        yield store


def put(store, name, graph=None, bucket="models"):
    store.buckets[bucket][f"vision/{name}"] = store.graph if graph is None else graph


def answers(server, model="pair"):
    with triton.InferenceServerClient(server.http) as client:
        inputs = [triton.InferInput(name, [1, 4], "FP32") for name in ("a", "b")]
        for tensor in inputs:
            tensor.set_data_from_numpy(np.full((1, 4), 2, np.float32))
        return client.infer(model, inputs).as_numpy("sum").tolist() == [[4.0] * 4]


def served(server):
    status, models = server.post("/v2/repository/index", {})
    assert status == 200
    return {model["name"] for model in models if model["state"] == "READY"}


def ends_with(repository, mirror, *flags, **environment):
    """(exit code, output) of a server that cannot start."""
    command = [foliot_binary(), "serve", repository, "--http-port", "0", "--grpc-port", "0", "--metrics-port", "0"]
    command += ["--mirror", str(mirror)] if mirror else []
    variables = {name: value for name, value in {**os.environ, **environment}.items() if value is not None}
    ended = subprocess.run([*command, *flags], env=variables, capture_output=True, text=True, timeout=60, check=False)
    return ended.returncode, ended.stdout + ended.stderr


def test_models_come_change_and_leave_with_their_objects(store, serve, tmp_path):
    put(store, "pair/1/model.onnx")
    put(store, "other pair/model.onnx")
    store.buckets["models"]["elsewhere/third/model.onnx"] = store.graph
    server = serve(VISION, mirror=tmp_path / "mirror", **OPTIONS)
    assert served(server) == {"pair", "other pair"}
    assert answers(server)
    put(store, "third/model.onnx")
    eventually(lambda: served(server) == {"pair", "other pair", "third"}, otherwise=server.output)
    del store.buckets["models"]["vision/other pair/model.onnx"]
    eventually(lambda: served(server) == {"pair", "third"}, otherwise=server.output)
    put(store, "pair/2/model.onnx")
    eventually(lambda: server.get("/v2/models/pair")[1]["versions"] == ["2"], otherwise=server.output)
    assert answers(server)


def test_looks_at_what_has_not_changed_are_lists_alone(store, serve, tmp_path):
    store.page = 10
    for i in range(30):
        put(store, f"folder{i}/notes.txt", b"no model, and mirrored as well")
    put(store, "pair/model.onnx")
    server = serve(VISION, mirror=tmp_path / "mirror", **OPTIONS)
    gets, lists = store.count("GET", "any"), store.count("GET")
    assert gets == 31
    eventually(lambda: store.count("GET") > lists + 12, otherwise=server.output)
    assert store.count("GET", "any") == gets
    assert server.stop() == 0
    server = serve(VISION, mirror=tmp_path / "mirror", **OPTIONS)
    assert store.count("GET", "any") == gets, "a restart reads nothing again"
    assert answers(server)


def test_a_version_that_cannot_be_had_leaves_the_one_that_is_served(store, serve, tmp_path):
    put(store, "pair/1/model.onnx")
    server = serve(VISION, mirror=tmp_path / "mirror", **OPTIONS)
    store.denied.add("vision/pair/2/weights.bin")
    put(store, "pair/2/model.onnx")
    put(store, "pair/2/weights.bin", b"weights")
    put(store, "pair/2/a/../../../../escaped", b"x")
    await_output(server, "a/../../../../escaped' is no path of a file")
    del store.buckets["models"]["vision/pair/2/a/../../../../escaped"]
    await_output(server, "'pair' stays as it is here: s3://models/vision/pair/2/weights.bin: the store answered 403 to GET "
                         "(AccessDenied: Access Denied); give these credentials the rights s3:ListBucket, s3:GetObject")
    assert server.get("/v2/models/pair")[1]["versions"] == ["1"] and answers(server)
    store.denied.clear()
    eventually(lambda: server.get("/v2/models/pair")[1]["versions"] == ["2"], otherwise=server.output)
    assert not list(tmp_path.rglob("escaped"))


def test_cut_and_damaged_answers_give_the_same_bytes(store, serve, tmp_path):
    content = os.urandom(3_000_000)
    store.part_bytes = 1 << 20  # an ETag of parts
    put(store, "pair/model.onnx")
    put(store, "pair/weights.bin", content)
    store.cuts, store.cut_after, store.damages = 50, 50_000, 2
    server = serve(VISION, mirror=tmp_path / "mirror", **OPTIONS)
    assert (tmp_path / "mirror/models/pair/weights.bin").read_bytes() == content
    assert store.cuts == 0 and store.damages == 0
    assert answers(server)


def test_an_object_that_is_damaged_in_the_store_is_not_served(store, tmp_path):
    put(store, "pair/model.onnx")
    store.damages = 1000
    code, output = ends_with(VISION, tmp_path / "mirror")
    assert code == 3 and "do not match its ETag" in output and "vision/pair/model.onnx" in output, output


def test_an_object_that_changes_while_it_is_read_is_read_anew(store, serve, tmp_path):
    put(store, "pair/1/model.onnx")
    changed = []

    def change(key):
        if key.endswith("late.bin") and not changed:
            changed.append(key)
            put(store, "pair/1/late.bin", b"second")

    put(store, "pair/1/late.bin", b"first")
    put(store, "other/model.onnx")
    store.on_get = change
    server = serve(VISION, mirror=tmp_path / "mirror", **OPTIONS)
    eventually(lambda: served(server) == {"other", "pair"}, otherwise=server.output)
    await_output(server, "the object was changed after it was listed")
    assert (tmp_path / "mirror/models/pair/1/late.bin").read_bytes() == b"second"


def test_mistakes_name_the_remedy(store, tmp_path):
    put(store, "pair/model.onnx")
    mirror = tmp_path / "mirror"
    for expected, repository, folder, environment in [
        ("name a folder for it by --mirror", VISION, None, {}),
        ("--mirror is for a repository s3://", str(tmp_path), mirror, {}),
        ("'s3://m' has a bucket of 1 bytes", "s3://m", mirror, {}),
        ("404 to GET (NoSuchBucket", "s3://nothing/vision", mirror, {}),
        ("compare AWS_SECRET_ACCESS_KEY", VISION, mirror, {"AWS_SECRET_ACCESS_KEY": "wrong"}),
        ("compare AWS_ACCESS_KEY_ID", VISION, mirror, {"AWS_ACCESS_KEY_ID": "wrong"}),
        ("there are no credentials", VISION, mirror,
         {"AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None, "HOME": str(tmp_path)}),
        ("there is no model in s3://models/empty", "s3://models/empty", tmp_path / "empty", {}),
        ("http://127.0.0.1:9/", VISION, mirror, {"AWS_ENDPOINT_URL": "http://127.0.0.1:9"}),
        ("'ftp://store/models' must begin with http", VISION, mirror, {"AWS_ENDPOINT_URL": "ftp://store"}),
    ]:
        code, output = ends_with(repository, folder, **environment)
        assert code == 3 and expected in output, (expected, code, output)
    store.skew = datetime.timedelta(hours=1)
    code, output = ends_with(VISION, mirror)
    assert code == 3 and re.search(r"this machine's clock is 3\d\d\d s behind the store's; set it \(NTP\)", output), output


def test_a_full_disk_and_a_limit_are_named(store, serve, tmp_path):
    put(store, "pair/model.onnx")
    put(store, "pair/weights.bin", os.urandom(200_000))
    code, output = ends_with(VISION, tmp_path / "limited", "--mirror-limit", "100kB")
    assert code == 3 and "of at most 97.7 KiB; raise --mirror-limit" in output, output
    prefix, preexec = small_disk(tmp_path)
    ended = subprocess.run([*prefix, foliot_binary(), "serve", VISION, "--mirror", str(tmp_path / "small"),
                            "--http-port", "0", "--grpc-port", "0", "--metrics-port", "0"],
                           preexec_fn=preexec, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 3 and "vision/pair/weights.bin" in ended.stderr, ended.stderr
    assert "make room, or choose another folder" in ended.stderr, ended.stderr


def test_a_store_that_is_gone_stops_neither_a_server_nor_its_restart(store, serve, tmp_path):
    put(store, "pair/model.onnx")
    server = serve(VISION, mirror=tmp_path / "mirror", **OPTIONS)
    store.server.shutdown()
    store.server.server_close()
    await_output(server, "the mirror stays as it is here: listing: s3://models/vision")
    assert answers(server)
    assert server.stop() == 0
    server = serve(VISION, mirror=tmp_path / "mirror", **OPTIONS)
    assert answers(server)


def compiled_by(part):
    return [line for line in part.output().splitlines() if '"compiling ' in line or "compiling " in line]


@pytest.mark.parametrize("kind", ["folder", "bucket"])
def test_a_second_worker_compiles_nothing(store, tmp_path, kind):
    for i in range(5):
        write_pair(tmp_path / f"models/pair{i}/model.onnx")
        (tmp_path / f"models/pair{i}/model.toml").write_text(f"batch_sizes = [1, {2 + i}]\n")
    shutil.copytree(tmp_path / "models", tmp_path / "copy")
    cache = "s3://models/packages" if kind == "bucket" else tmp_path / "shared"
    controller = Part(tmp_path / "controller.log", "controller", listen="127.0.0.1:0")
    try:
        port = controller.await_line(r"listening: .*?:(\d+)|port (\d+)")
        port = port[1] or port[2]
        options = {"controller": f"127.0.0.1:{port}", "cache": cache, "log_format": "json", "data_listen": "127.0.0.1:0"}
        first = Part(tmp_path / "first.log", "worker", tmp_path / "models", name="first", **options)
        first.await_line("ready: 5 models")
        assert len(compiled_by(first)) == 5
        if kind == "bucket":
            eventually(lambda: len([key for key in store.buckets["models"] if key.startswith("packages/")]) == 5,
                       otherwise=first.output)
        assert first.stop() == 0
        second = Part(tmp_path / "second.log", "worker", tmp_path / "copy", name="second", **options)
        second.await_line("ready: 5 models")
        assert compiled_by(second) == []
        assert second.stop() == 0
    finally:
        controller.kill()


def test_packages_that_are_damaged_or_denied_are_compiled(store, serve, tmp_path):
    put(store, "pair/model.onnx")
    options = {**OPTIONS, "cache": "s3://models/packages"}
    server = serve(VISION, mirror=tmp_path / "first", **options)
    eventually(lambda: any(key.startswith("packages/") for key in store.buckets["models"]), otherwise=server.output)
    (key,) = [key for key in store.buckets["models"] if key.startswith("packages/")]
    whole = store.buckets["models"][key]
    damaged = store.buckets["models"][key] = whole[:-1000]
    assert answers(serve(VISION, mirror=tmp_path / "second", **options))
    eventually(lambda: store.buckets["models"][key] != damaged, otherwise="the package is not mended")
    store.denied.add(key)
    server = serve(VISION, mirror=tmp_path / "third", **options)
    assert answers(server)
    await_output(server, "the store answered 403 to")
