"""Requests as tables: KServe's protocol v1 and MLflow's /invocations, answered as v2 answers the same rows."""

import http.client
import json
import os
import subprocess

import numpy as np
import pytest

from conftest import serving, write_pair
from foliot_tools.server import foliot_binary, free_ports

A = [[1, 2, 3, 4], [5, 6, 7, 8.5]]
B = [[0, 1, 0, 1], [2, 2, 2, 2]]
PREDICTIONS = [{"sum": [1, 3, 3, 5], "difference": [1, 1, 3, 3]}, {"sum": [7, 8, 9, 10.5], "difference": [3, 4, 5, 6.5]}]
ROWS = [{"a": a, "b": b} for a, b in zip(A, B, strict=True)]
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module", name="pair")
def server_of_one_model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    write_pair(folder / "models" / "pair" / "1" / "model.onnx")
    with serving(folder / "models", folder / "log", page_size="256KiB", page_cache="16MiB") as server:
        yield server


def ask(server, path, body=None, headers=JSON):
    """(status, answer) of a GET, or of a POST with a body."""
    connection = http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=60)
    text = body if body is None or isinstance(body, str) else json.dumps(body)
    connection.request("GET" if body is None else "POST", path, body=text, headers=headers)
    response = connection.getresponse()
    answer = response.read().decode()
    connection.close()
    return response.status, json.loads(answer) if response.getheader("Content-Type") == "application/json" else answer


def test_forms_of_one_table_have_one_answer(pair):
    tables = [{"instances": ROWS}, {"inputs": {"a": A, "b": B}}]
    frames = [{"dataframe_records": ROWS}, {"dataframe_split": {"columns": ["b", "a"], "data": list(zip(B, A, strict=True))}}]
    for body in tables:
        assert ask(pair, "/v1/models/pair:predict", body) == (200, {"predictions": PREDICTIONS})
    for body in tables + frames:
        assert ask(pair, "/invocations", body) == (200, {"predictions": PREDICTIONS})


def test_many_rows_are_those_of_v2(pair):
    values = np.random.default_rng(7).standard_normal((100, 4)).astype(np.float32)
    rows = values.tolist()
    inputs = [{"name": name, "datatype": "FP32", "shape": [100, 4], "data": rows} for name in "ab"]
    status, answer = ask(pair, "/v2/models/pair/infer", {"inputs": inputs, "outputs": [{"name": "sum"}]})
    assert status == 200
    status, table = ask(pair, "/v1/models/pair:predict", {"instances": [{"a": row, "b": row} for row in rows]})
    assert status == 200
    assert [row["sum"] for row in table["predictions"]] == np.reshape(answer["outputs"][0]["data"], (100, 4)).tolist()


def test_health_and_names(pair):
    assert ask(pair, "/v1/models") == (200, {"models": ["pair"]})
    assert ask(pair, "/v1/models/pair") == (200, {"name": "pair", "ready": True})
    assert ask(pair, "/v1/models/unknown_model")[0] == 404
    assert ask(pair, "/") == (200, {"status": "alive"})
    assert ask(pair, "/ping")[0] == ask(pair, "/health")[0] == ask(pair, "/version")[0] == 200


@pytest.mark.parametrize(("row", "words"), [
    ({"a": A[0]}, "dataframe_records[1] lacks the column 'b'"),
    ({**ROWS[0], "c": 1}, "dataframe_records[1] has the column 'c'"),
    ({**ROWS[0], "b": None}, "dataframe_records[1] has null in column 'b'"),
    ({**ROWS[0], "b": [1, 2, 3, "4"]}, "dataframe_records[1] has '4' in column 'b'"),
    ({**ROWS[0], "b": [1, 2, 3]}, "dataframe_records[1] has another shape in column 'b'"),
])
def test_a_wrong_column_is_named_with_its_row(pair, row, words):
    status, answer = ask(pair, "/invocations", {"dataframe_records": [ROWS[0], row]})
    assert status == 400
    assert words in answer["error"]


def test_deadlines_limits_and_types_hold(pair):
    status, answer = ask(pair, "/v1/models/pair:predict", {"instances": ROWS, "parameters": {"timeout": 1}})
    assert status == 503 and "unmeetable" in answer["error"]
    deep = "[" * 100 + "]" * 100
    assert ask(pair, "/v1/models/pair:predict", '{"instances":' + deep + "}")[0] == 400
    assert ask(pair, "/invocations", "1,2", {"Content-Type": "text/csv"})[0] == 415
    assert ask(pair, "/invocations", {"instances": ROWS, "inputs": ROWS})[0] == 400


def test_invocations_of_several_models_name_the_paths(small_server):
    status, answer = ask(small_server, "/invocations", {"inputs": [[1]]})
    assert status == 400
    assert "/v1/models/dense:predict" in answer["error"]


def started_as_mlserver(folder, environment, *arguments):
    """Runs `foliot serve` with this environment until it is ready or ends; (exit code or None, output)."""
    process = subprocess.Popen(
        [foliot_binary(), "serve", *map(str, arguments), "--cache", str(folder / "cache"), "--metrics-port", "0"],
        env={**os.environ, **environment}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    said = []
    try:
        for line in process.stdout:
            said.append(line)
            if line.startswith("ready:"):
                return None, "".join(said)
        return process.wait(60), "".join(said)
    finally:
        process.terminate()
        process.wait(60)


def test_the_environment_of_mlserver_is_heeded_and_said(tmp_path):
    write_pair(tmp_path / "mnt" / "model.onnx")
    http_port, grpc_port = free_ports(2)
    environment = {"MLSERVER_HTTP_PORT": str(http_port), "MLSERVER_GRPC_PORT": str(grpc_port), "MLSERVER_MODEL_NAME": "named",
                   "MLSERVER_MODEL_URI": f"file://{tmp_path}/mnt", "MLSERVER_MODEL_IMPLEMENTATION": "a.Model"}
    code, said = started_as_mlserver(tmp_path, environment)
    assert code is None, said
    for heeded in (f"MLSERVER_HTTP_PORT={http_port} is heeded as --http-port", "MLSERVER_MODEL_NAME=named is heeded",
                   f"MLSERVER_MODEL_URI=file://{tmp_path}/mnt is heeded as repository",
                   "MLSERVER_MODEL_IMPLEMENTATION=a.Model says how a file of a framework is read"):
        assert heeded in said
    assert f":{http_port}" in said and f":{grpc_port}" in said and "named" in said
    [other] = free_ports(1)
    code, said = started_as_mlserver(tmp_path, environment, "--http-port", other)
    assert code is None and f":{other}" in said, said
    assert f"MLSERVER_HTTP_PORT={http_port} is not heeded, since --http-port is given" in said


@pytest.mark.parametrize(("environment", "words"), [
    ({"MLSERVER_HTTP_PORT": "http"}, "MLSERVER_HTTP_PORT is 'http'; it must be a port from 0 to 65535"),
    ({"MLSERVER_MODEL_URI": "s3://models"}, "MLSERVER_MODEL_URI is 's3://models', which is no path"),
    ({"MLSERVER_MODEL_NAME": "named"}, "the model name 'named' is for a model alone"),
    ({"MLSERVER_MODEL_URI": ""}, "repository is required"),
])
def test_an_environment_that_cannot_be_heeded_ends_the_start(tmp_path, environment, words):
    (tmp_path / "models").mkdir()
    code, said = started_as_mlserver(tmp_path, {"MLSERVER_MODEL_URI": str(tmp_path / "models"), **environment})
    assert code and words in said, said


@pytest.mark.parametrize("columns", [["a"], ["a", "b", "c"], ["a", "a"], [], "ab", None])
def test_columns_are_as_many_names_as_values(pair, columns):
    body = {"dataframe_split": {"columns": columns, "data": [[[1, 2, 3, 4], [0, 1, 0, 1]]]}}
    status, error = ask(pair, "/invocations", body)
    assert status == 400, error
