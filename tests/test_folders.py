"""Folders in the layouts of Triton (config.pbtxt) and MLServer (model-settings.json): served with what these say, to the
client of Triton."""

import json
import subprocess
import sys

import numpy as np
import pytest
import tritonclient.grpc as grpc_client
import tritonclient.http as http_client

from conftest import serving, write_pair, write_tokens
from foliot_tools.server import foliot_binary

CONFIG = """
name: "pair"
platform: "onnxruntime_onnx"
max_batch_size: 6
input [ { name: "a" data_type: TYPE_FP32 dims: [ 4 ] }, { name: "b" data_type: TYPE_FP32 dims: [ 4 ] } ]
output [ { name: "sum" data_type: TYPE_FP32 dims: [ 4 ] } ]
dynamic_batching { preferred_batch_size: [ 4 ]
  default_queue_policy { timeout_action: REJECT default_timeout_microseconds: 2000000 } }
instance_group [ { count: 2 kind: KIND_CPU } ]
version_policy { all { } }
"""

CODE = """import foliot

@foliot.model(inputs={"x": ("FP32", [2])}, outputs={"y": ("FP32", [2])}, batch_size_max=8)
def predict(batch):
    return {"y": 2 * batch["x"]}
"""


@pytest.fixture(scope="module", name="repository")
def repository_of_triton(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model_repository")
    for name, config in {
        "pair": CONFIG,
        "broken": "max_batch_size: 8\ninput [ {",
        "mismatch": CONFIG.replace('"pair"', '"mismatch"').replace("dims: [ 4 ] }, {", "dims: [ 5 ] }, {"),
        "hurried": CONFIG.replace('"pair"', '"hurried"').replace("2000000", "1"),
        "trees": 'name: "trees"\nbackend: "fil"\n',
    }.items():
        for version in "1", "2":
            write_pair(folder / name / version / "model.onnx")
        (folder / name / "config.pbtxt").write_text(config)
    mlserver = {"name": "of-mlserver", "parameters": {"uri": "./net.onnx", "version": "7"}, "max_batch_size": 4,
                "inputs": [{"name": name, "datatype": "FP32", "shape": [-1, 4]} for name in "ab"]}
    write_pair(folder / "ml" / "net.onnx")
    (folder / "ml" / "model-settings.json").write_text(json.dumps(mlserver))
    (folder / "iris").mkdir()
    (folder / "iris" / "model-settings.json").write_text(json.dumps(
        {"name": "iris", "implementation": "mlserver_mlflow.MLflowRuntime", "parameters": {"uri": "./model"}}))
    write_tokens(folder / "tokens" / "1" / "model.onnx")
    (folder / "tokens" / "config.pbtxt").write_text(
        'max_batch_size: 4\ninput { name: "tokens" data_type: TYPE_INT64 dims: [ 8 ] }\n')
    (folder / "code" / "1").mkdir(parents=True)
    (folder / "code" / "1" / "model.py").write_text(CODE)
    (folder / "code" / "model.toml").write_text(f'[container]\npython = "{sys.executable}"\n')
    (folder / "code" / "config.pbtxt").write_text("max_batch_size: 3\nmetric_tags { key: 'a' value: 'b' }\n")
    return folder


def run(*arguments):
    return subprocess.run([foliot_binary(), *map(str, arguments)], capture_output=True, text=True, check=False)


@pytest.fixture(scope="module", name="server")
def server_of_triton_folders(repository, tmp_path_factory):
    folder = tmp_path_factory.mktemp("server")
    with serving(repository, folder / "log", cache=folder / "cache", page_size="256KiB", page_cache="16MiB") as server:
        yield server


def test_the_client_finds_what_config_pbtxt_says(server):
    for library, address in (http_client, server.http), (grpc_client, server.grpc):
        client = library.InferenceServerClient(address)
        config = client.get_model_config("pair")
        config = config if isinstance(config, dict) else {
            "max_batch_size": config.config.max_batch_size,
            "input": [{"name": each.name, "dims": list(each.dims)} for each in config.config.input],
            "dynamic_batching": {"preferred_batch_size": list(config.config.dynamic_batching.preferred_batch_size)}}
        assert config["max_batch_size"] == 6
        assert list(config["dynamic_batching"]["preferred_batch_size"]) == [1, 4, 6]
        assert [(each["name"], list(each["dims"])) for each in config["input"]] == [("a", [4]), ("b", [4])]
        inputs = [library.InferInput(name, [6, 4], "FP32") for name in "ab"]
        values = np.arange(24, dtype=np.float32).reshape(6, 4)
        for each in inputs:
            each.set_data_from_numpy(values)
        answer = client.infer("pair", inputs)
        np.testing.assert_array_equal(answer.as_numpy("sum"), values * 2)
        version = answer.get_response()
        assert (version["model_version"] if isinstance(version, dict) else version.model_version) == "2"


def test_the_default_timeout_is_a_deadline(server):
    client = http_client.InferenceServerClient(server.http)
    inputs = [http_client.InferInput(name, [1, 4], "FP32") for name in "ab"]
    for each in inputs:
        each.set_data_from_numpy(np.zeros((1, 4), np.float32))
    with pytest.raises(http_client.InferenceServerException):
        client.infer("hurried", inputs)
    client.infer("pair", inputs)


def test_a_model_that_cannot_be_served_says_file_and_line(server):
    client = http_client.InferenceServerClient(server.http)
    reasons = {each["name"]: each.get("reason", "") for each in client.get_model_repository_index()}
    assert "config.pbtxt:2:" in reasons["broken"]
    assert "config.pbtxt:5: input 'a' is declared with the shape [-1,5]" in reasons["mismatch"]
    assert "[-1,4]" in reasons["mismatch"]
    assert "backend 'fil' is none that is served" in reasons["trees"]
    assert reasons["pair"] == "" and client.is_model_ready("pair")


def test_what_is_not_heeded_is_said_once_with_its_line(server):
    said = server.output()
    assert said.count("config.pbtxt:9: 'instance_group' is not read") == said.count("model 'pair/2': config.pbtxt:9") + \
        said.count("model 'hurried/2': config.pbtxt:9") == 2, said


def test_foliot_models_shows_what_was_understood(repository):
    listed = run("models", repository)
    assert listed.returncode == 1
    pair = next(line for line in listed.stdout.splitlines() if line.startswith("pair"))
    assert "1,4,6" in pair and "2.000 s" in pair, pair
    assert "read: default_slo = \"2s\"  # config.pbtxt:8: default_timeout_microseconds" in listed.stdout
    assert "note: config.pbtxt:9: 'instance_group' is not read" in listed.stdout
    assert "declared with the shape [-1,5]" in listed.stdout


def test_dimensions_that_vary_have_the_sizes_of_config_pbtxt(server):
    client = http_client.InferenceServerClient(server.http)
    assert [each["shape"] for each in client.get_model_metadata("tokens")["inputs"]] == [[-1, 8]]
    tokens = http_client.InferInput("tokens", [2, 8], "INT64")
    tokens.set_data_from_numpy(np.full((2, 8), 3, np.int64))
    np.testing.assert_array_equal(client.infer("tokens", [tokens]).as_numpy("embedded"), np.full((2, 8, 3), [9, 10, 11]))


def test_a_container_has_the_batches_of_config_pbtxt(server):
    client = http_client.InferenceServerClient(server.http)
    assert client.get_model_config("code")["max_batch_size"] == 3
    assert server.output().count("model 'code': config.pbtxt:2: 'metric_tags' is not read") == 1


def test_what_mlserver_would_serve(server):
    client = http_client.InferenceServerClient(server.http)
    assert client.get_model_config("of-mlserver")["max_batch_size"] == 4
    assert client.get_model_metadata("of-mlserver")["versions"] == ["7"]
    reasons = {each["name"]: each.get("reason", "") for each in client.get_model_repository_index()}
    assert "mlserver_mlflow" in reasons["iris"]


def test_import_writes_what_was_understood_and_overwrites_nothing(tmp_path):
    model = tmp_path / "models" / "pair"
    write_pair(model / "1" / "model.onnx")
    (model / "config.pbtxt").write_text(CONFIG)
    made = run("import", tmp_path / "models")
    assert made.returncode == 0 and made.stdout == f"{model}/model.toml\n", made.stderr
    assert "config.pbtxt:9: 'instance_group' is not read" in made.stderr
    written = (model / "model.toml").read_text()
    assert 'default_slo = "2s"  # config.pbtxt:8' in written and "batch_sizes = [1, 4, 6]  # config.pbtxt:7" in written
    listed = run("models", tmp_path / "models")
    assert listed.returncode == 0 and "not heeded" not in listed.stdout, listed.stdout
    (model / "model.toml").write_text(written.replace("2s", "3s"))
    assert "default_timeout_microseconds is not heeded: model.toml sets default_slo" in run(
        "models", tmp_path / "models").stdout
    refused = run("import", model)
    assert refused.returncode == 1 and "--force overwrites it" in refused.stderr
    assert "3s" in (model / "model.toml").read_text()
    assert run("import", model, "--force").returncode == 0
    assert (model / "model.toml").read_text() == written
    assert run("import", model / "1").returncode == 1, "there is nothing to import"
