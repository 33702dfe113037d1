"""The unmodified tritonclient against every part of the protocol that it speaks."""

import asyncio
import gzip
import json
import queue
import re
import urllib.request
import zlib

import grpc
import numpy as np
import pytest
import tritonclient.grpc as grpc_client
import tritonclient.grpc.aio as grpc_aio_client
import tritonclient.http as http_client
import tritonclient.http.aio as http_aio_client
from tritonclient.grpc import service_pb2, service_pb2_grpc
from tritonclient.utils import InferenceServerException

from foliot_tools.waiting import eventually

RANDOM = np.random.default_rng(5)
PIXELS = RANDOM.random((3, 64), np.float32)
A = RANDOM.random((2, 4), np.float32)
B = RANDOM.random((2, 4), np.float32)


@pytest.fixture
def http(small_server):
    with http_client.InferenceServerClient(small_server.http, concurrency=4) as client:
        yield client


@pytest.fixture
def rpc(small_server):
    with grpc_client.InferenceServerClient(small_server.grpc) as client:
        yield client


@pytest.fixture(params=["http", "grpc"])
def either(request, http, rpc):
    """(client, its module): what both must do alike."""
    return (http, http_client) if request.param == "http" else (rpc, grpc_client)


def tensor(module, name, array, datatype="FP32", **options):
    value = module.InferInput(name, list(array.shape), datatype)
    value.set_data_from_numpy(array, **options)
    return value


def infer_dense(client, module, pixels, **options):
    return client.infer("dense", [tensor(module, "pixels", pixels)], **options).as_numpy("probabilities")


# Health and metadata


def test_health(either):
    client, _ = either
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready("dense")
    assert client.is_model_ready("dense", "1")
    assert not client.is_model_ready("nobody")


def test_standard_grpc_health(small_server):
    with grpc.insecure_channel(small_server.grpc) as channel:
        check = channel.unary_unary("/grpc.health.v1.Health/Check")
        assert check(b"", timeout=10) == b"\x08\x01"  # status: SERVING


def test_server_metadata(http, rpc):
    over_http = http.get_server_metadata()
    over_grpc = rpc.get_server_metadata()
    assert over_http["name"] == over_grpc.name == "foliot"
    assert over_http["version"] == over_grpc.version
    assert over_http["extensions"] == list(over_grpc.extensions)
    assert "binary_tensor_data" in over_http["extensions"]
    assert "statistics" in over_http["extensions"]


def test_model_metadata(http, rpc):
    over_http = http.get_model_metadata("pair")
    over_grpc = rpc.get_model_metadata("pair", as_json=True)
    assert over_http["name"] == over_grpc["name"] == "pair"
    assert over_http["versions"] == over_grpc["versions"] == ["1"]
    assert {(i["name"], i["datatype"], tuple(map(int, i["shape"]))) for i in over_http["inputs"]} == {
        ("a", "FP32", (-1, 4)),
        ("b", "FP32", (-1, 4)),
    }
    assert [o["name"] for o in over_http["outputs"]] == [o["name"] for o in over_grpc["outputs"]]
    assert [int(extent) for extent in over_grpc["inputs"][0]["shape"]] == [-1, 4]


def test_metadata_of_a_model_without_batches(http):
    (fixed,) = http.get_model_metadata("fixed")["inputs"]
    assert fixed["shape"] == [2, 3]
    assert http.get_model_config("fixed")["max_batch_size"] == 0


def test_model_config(http, rpc):
    over_http = http.get_model_config("dense")
    over_grpc = rpc.get_model_config("dense").config
    assert over_http["max_batch_size"] == over_grpc.max_batch_size == 16
    assert over_http["input"][0]["name"] == over_grpc.input[0].name == "pixels"
    assert over_http["input"][0]["dims"] == list(over_grpc.input[0].dims) == [64]
    assert over_http["input"][0]["data_type"] == "TYPE_FP32"


# Inference


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_infer(either, dense_oracle, rows):
    client, module = either
    np.testing.assert_allclose(infer_dense(client, module, PIXELS[:rows]), dense_oracle(PIXELS[:rows]), 1e-3, 1e-6)


def test_more_rows_than_the_largest_batch(either, dense_oracle):
    client, module = either
    pixels = np.random.default_rng(1).random((16, 64), np.float32)
    np.testing.assert_allclose(infer_dense(client, module, pixels), dense_oracle(pixels), 1e-3, 1e-6)


def test_two_inputs_and_outputs_and_the_id(either):
    client, module = either
    inputs = [tensor(module, "b", B), tensor(module, "a", A)]
    result = client.infer("pair", inputs, request_id="seven")
    np.testing.assert_allclose(result.as_numpy("sum"), A + B, 1e-6)
    np.testing.assert_allclose(result.as_numpy("difference"), A - B, 1e-6)
    response = result.get_response()
    assert (response["id"] if isinstance(response, dict) else response.id) == "seven"


def test_only_the_requested_output(either):
    client, module = either
    inputs = [tensor(module, "a", A), tensor(module, "b", B)]
    result = client.infer("pair", inputs, outputs=[module.InferRequestedOutput("difference")])
    np.testing.assert_allclose(result.as_numpy("difference"), A - B, 1e-6)
    assert result.as_numpy("sum") is None


@pytest.mark.parametrize("binary_input", [False, True])
@pytest.mark.parametrize("binary_output", [False, True])
def test_json_and_binary_tensors(http, binary_input, binary_output):
    inputs = [
        tensor(http_client, "a", A, binary_data=binary_input),
        tensor(http_client, "b", B, binary_data=not binary_input),
    ]
    outputs = [
        http_client.InferRequestedOutput("sum", binary_data=binary_output),
        http_client.InferRequestedOutput("difference", binary_data=not binary_output),
    ]
    result = http.infer("pair", inputs, outputs=outputs)
    np.testing.assert_allclose(result.as_numpy("sum"), A + B, 1e-6)
    np.testing.assert_allclose(result.as_numpy("difference"), A - B, 1e-6)


def test_typed_grpc_contents(small_server):
    request = service_pb2.ModelInferRequest(model_name="pair")
    for name, array in (("a", A), ("b", B)):
        value = request.inputs.add(name=name, datatype="FP32", shape=array.shape)
        value.contents.fp32_contents.extend(array.ravel().tolist())
    with grpc.insecure_channel(small_server.grpc) as channel:
        response = service_pb2_grpc.GRPCInferenceServiceStub(channel).ModelInfer(request, timeout=10)
    assert len(response.raw_output_contents) == len(response.outputs) == 2
    answers = {o.name: np.frombuffer(raw, np.float32) for o, raw in zip(response.outputs, response.raw_output_contents)}
    np.testing.assert_allclose(answers["sum"], (A + B).ravel(), 1e-6)


@pytest.mark.parametrize("algorithm", ["gzip", "deflate"])
def test_compressed_bodies(http, dense_oracle, algorithm):
    options = {"request_compression_algorithm": algorithm, "response_compression_algorithm": algorithm}
    np.testing.assert_allclose(infer_dense(http, http_client, PIXELS, **options), dense_oracle(PIXELS), 1e-3, 1e-6)


@pytest.mark.parametrize("algorithm", ["gzip", "deflate"])
def test_compressed_messages(rpc, dense_oracle, algorithm):
    pixels = np.repeat(PIXELS, 200, axis=0)
    answer = infer_dense(rpc, grpc_client, pixels, compression_algorithm=algorithm)
    np.testing.assert_allclose(answer, dense_oracle(pixels), 1e-3, 1e-6)


@pytest.mark.parametrize("algorithm, inflate", [("gzip", gzip.decompress), ("deflate", zlib.decompress)])
def test_compressed_answers(small_server, algorithm, inflate):
    rows = [[1.5, 2.5, 3.5, 4.5]] * 100
    body = json.dumps({"inputs": [{"name": name, "shape": [100, 4], "datatype": "FP32", "data": rows} for name in "ab"]})
    answers = {}
    for accepted in ("identity", algorithm):
        request = urllib.request.Request(f"http://{small_server.http}/v2/models/pair/infer", body.encode(),
                                         {"Accept-Encoding": accepted})
        with urllib.request.urlopen(request, timeout=30) as response:
            answers[accepted] = response.headers["Content-Encoding"], response.read()
    assert answers["identity"][0] is None
    encoding, compressed = answers[algorithm]
    assert encoding == algorithm and len(compressed) < len(answers["identity"][1]) / 4
    assert json.loads(inflate(compressed))["outputs"] == json.loads(answers["identity"][1])["outputs"]


def test_compressed_metrics(small_server):
    request = urllib.request.Request(f"http://127.0.0.1:{small_server.metrics_port}/metrics",
                                     headers={"Accept-Encoding": "gzip"})
    with urllib.request.urlopen(request, timeout=30) as response:
        assert response.headers["Content-Encoding"] == "gzip"
        assert b"foliot_requests_total" in gzip.decompress(response.read())


def test_a_model_without_batches(either):
    client, module = either
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(client.infer("fixed", [tensor(module, "x", x)]).as_numpy("y"), x.T)


@pytest.mark.parametrize("length", [8, 16])
def test_buckets(either, length):
    client, module = either
    tokens = np.arange(length, dtype=np.int64).reshape(1, length) % 10
    answer = client.infer("tokens", [tensor(module, "tokens", tokens, "INT64")]).as_numpy("embedded")
    np.testing.assert_array_equal(answer, np.arange(30, dtype=np.float32).reshape(10, 3)[tokens])


def test_a_length_between_buckets_is_padded(either):
    client, module = either
    tokens = np.array([[3, 1, 4, 1, 5]], np.int64)
    answer = client.infer("tokens", [tensor(module, "tokens", tokens, "INT64")]).as_numpy("embedded")
    np.testing.assert_array_equal(answer[:, :5], np.arange(30, dtype=np.float32).reshape(10, 3)[tokens])


def test_async_http(http, dense_oracle):
    pending = [http.async_infer("dense", [tensor(http_client, "pixels", PIXELS[i : i + 1])]) for i in range(3)]
    answers = np.concatenate([each.get_result().as_numpy("probabilities") for each in pending])
    np.testing.assert_allclose(answers, dense_oracle(PIXELS), 1e-3, 1e-6)


def test_async_grpc(rpc, dense_oracle):
    done = queue.Queue()
    for _ in range(8):
        pixels = tensor(grpc_client, "pixels", PIXELS)
        rpc.async_infer("dense", [pixels], lambda result, error: done.put((result, error)))
    for _ in range(8):
        result, error = done.get(timeout=30)
        assert error is None
        np.testing.assert_allclose(result.as_numpy("probabilities"), dense_oracle(PIXELS), 1e-3, 1e-6)


def test_grpc_stream(rpc, dense_oracle):
    done = queue.Queue()
    rpc.start_stream(lambda result, error: done.put((result, error)))
    for i in range(20):
        rpc.async_stream_infer("dense", [tensor(grpc_client, "pixels", PIXELS[i % 3 : i % 3 + 1])], request_id=str(i))
    answers = {}
    for _ in range(20):
        result, error = done.get(timeout=30)
        assert error is None
        answers[int(result.get_response().id)] = result.as_numpy("probabilities")
    rpc.stop_stream()
    expected = dense_oracle(PIXELS)
    assert sorted(answers) == list(range(20))
    for i, answer in answers.items():
        np.testing.assert_allclose(answer[0], expected[i % 3], 1e-3, 1e-6)


def test_an_error_does_not_end_a_grpc_stream(rpc):
    done = queue.Queue()
    rpc.start_stream(lambda result, error: done.put((result, error)))
    rpc.async_stream_infer("nobody", [tensor(grpc_client, "pixels", PIXELS)])
    result, error = done.get(timeout=30)
    assert result is None
    assert "nobody" in str(error)
    rpc.async_stream_infer("dense", [tensor(grpc_client, "pixels", PIXELS)])
    result, error = done.get(timeout=30)
    assert error is None and result.as_numpy("probabilities").shape == (3, 10)
    rpc.stop_stream()


@pytest.mark.parametrize("module", [http_aio_client, grpc_aio_client], ids=["http", "grpc"])
def test_asyncio(small_server, dense_oracle, module):
    async def run():
        address = small_server.http if module is http_aio_client else small_server.grpc
        async with module.InferenceServerClient(address) as client:
            assert await client.is_server_ready()
            answers = await asyncio.gather(
                *(client.infer("dense", [tensor(module, "pixels", PIXELS[i % 3 : i % 3 + 1])]) for i in range(30))
            )
            return [answer.as_numpy("probabilities")[0] for answer in answers]

    expected = dense_oracle(PIXELS)
    for i, answer in enumerate(asyncio.run(run())):
        np.testing.assert_allclose(answer, expected[i % 3], 1e-3, 1e-6)


# Deadlines


def test_a_deadline_that_can_be_met(either, dense_oracle):
    client, module = either
    answer = infer_dense(client, module, PIXELS[:1], timeout=2_000_000)
    np.testing.assert_allclose(answer, dense_oracle(PIXELS[:1]), 1e-3, 1e-6)


def test_an_impossible_deadline_is_refused_with_the_reason(either):
    client, module = either
    with pytest.raises(InferenceServerException, match="unmeetable|expired") as caught:
        infer_dense(client, module, PIXELS[:1], timeout=1)
    assert "dense" in str(caught.value)
    infer_dense(client, module, PIXELS[:1])


def test_the_grpc_deadline_counts(rpc):
    """50 us arrive as about a millisecond, within which a fast machine answers some of the calls
    (166 of 300 on a Sapphire Rapids, the slowest after 0.81 ms): not each is refused."""
    refused = 0
    for _ in range(100):
        try:
            infer_dense(rpc, grpc_client, PIXELS[:1], client_timeout=0.00005)
        except InferenceServerException as error:
            assert re.search("(?i)deadline|unmeetable|expired", str(error))
            refused += 1
    assert refused > 0
    infer_dense(rpc, grpc_client, PIXELS[:1], client_timeout=5)


def test_a_models_own_deadline(small_models, tmp_path, serve):
    """Without any deadline in the request, model.toml's default_slo counts."""
    folder = tmp_path / "models/dense"
    (folder / "1").mkdir(parents=True)
    (folder / "1/model.onnx").write_bytes((small_models / "dense/1/model.onnx").read_bytes())
    (folder / "model.toml").write_text('default_slo = "2us"\n')
    server = serve(tmp_path / "models", page_cache="16MiB")
    with http_client.InferenceServerClient(server.http) as client:
        with pytest.raises(InferenceServerException, match="unmeetable|expired"):
            infer_dense(client, http_client, PIXELS[:1])


# Statistics, repository, metrics


def inference_count(client, model):
    statistics = client.get_inference_statistics(model)
    if isinstance(statistics, dict):
        return statistics["model_stats"][0]["inference_count"]
    return statistics.model_stats[0].inference_count


def test_statistics_count(either):
    client, module = either
    before = inference_count(client, "dense")
    infer_dense(client, module, PIXELS)
    infer_dense(client, module, PIXELS[:1])
    eventually(lambda: inference_count(client, "dense") == before + 4)  # statistics may trail an answer


def test_statistics_are_complete(http):
    infer_dense(http, http_client, PIXELS)
    (statistics,) = http.get_inference_statistics("dense")["model_stats"]
    assert statistics["version"] == "1"
    assert set(statistics["inference_stats"]) >= {
        "success", "fail", "queue", "compute_input", "compute_infer", "compute_output", "cache_hit", "cache_miss"
    }
    assert statistics["inference_stats"]["success"]["count"] > 0
    assert statistics["inference_stats"]["compute_infer"]["ns"] > 0
    assert any(batch["batch_size"] >= 1 for batch in statistics["batch_stats"])
    everything = http.get_inference_statistics()["model_stats"]
    assert {each["name"] for each in everything} == {"dense", "pair", "tokens", "fixed"}


def states(client):
    index = client.get_model_repository_index()
    if isinstance(index, list):
        return {each["name"]: each["state"] for each in index}
    return {each.name: each.state for each in index.models}


def test_unload_and_load(either):
    client, module = either
    assert states(client)["dense"] == "READY"
    client.unload_model("dense")
    assert states(client)["dense"] == "UNAVAILABLE"
    assert not client.is_model_ready("dense")
    with pytest.raises(InferenceServerException, match="dense"):
        infer_dense(client, module, PIXELS)
    assert infer_pair_sum(client, module) is not None
    client.load_model("dense")
    assert states(client)["dense"] == "READY"
    assert infer_dense(client, module, PIXELS).shape == (3, 10)


def infer_pair_sum(client, module):
    return client.infer("pair", [tensor(module, "a", A), tensor(module, "b", B)]).as_numpy("sum")


def test_loading_what_does_not_exist(either):
    client, _ = either
    with pytest.raises(InferenceServerException, match="nobody"):
        client.load_model("nobody")


def test_metrics(small_server, http):
    def served():
        return sum(value for name, value in small_server.metrics().items()
                   if name.startswith("nv_inference_request_success") and 'model="dense"' in name)

    before = served()
    infer_dense(http, http_client, PIXELS)
    eventually(lambda: served() > before)
    names = {name.split("{")[0] for name in small_server.metrics()}
    for ending in ("_request_duration_seconds_bucket", "_deadline_missed_total", "_page_cache_pages"):
        assert any(name.startswith("foliot_") and name.endswith(ending) for name in names), ending


def test_shared_memory_is_answered(http):
    """perf_analyzer unregisters everything before it begins."""
    http.unregister_system_shared_memory()
    http.unregister_cuda_shared_memory()
    assert http.get_system_shared_memory_status() == []


def test_more_rows_than_a_batch(either):
    client, module = either
    pixels = RANDOM.random((700, 64), np.float32)
    answers = infer_dense(client, module, pixels)
    some = np.concatenate([infer_dense(client, module, pixels[i : i + 1]) for i in (0, 350, 699)])
    np.testing.assert_allclose(answers[[0, 350, 699]], some, rtol=1e-4)
    # All of them have one deadline: none is answered alone.
    with pytest.raises(InferenceServerException, match="overload|unmeetable|expired|late"):
        infer_dense(client, module, RANDOM.random((8000, 64), np.float32), timeout=1)
    with pytest.raises(InferenceServerException, match="1 to 8192 rows.*--requests-in-flight-max.*got 8193"):
        infer_dense(client, module, np.zeros((8193, 64), np.float32))


def test_numbers_that_are_not_finite_in_json(http):
    a = np.array([[np.inf, -np.inf, np.nan, 3e38]], np.float32)
    inputs = [tensor(http_client, "a", a, binary_data=False), tensor(http_client, "b", a, binary_data=False)]
    outputs = [http_client.InferRequestedOutput(name, binary_data=False) for name in ("sum", "difference")]
    result = http.infer("pair", inputs, outputs=outputs)
    np.testing.assert_array_equal(result.as_numpy("sum"), [[np.inf, -np.inf, np.nan, np.inf]])
    np.testing.assert_array_equal(result.as_numpy("difference"), [[np.nan, np.nan, np.nan, 0]])


@pytest.mark.parametrize("binary", [False, True])
def test_strings_are_refused_as_such(either, binary):
    client, module = either
    options = {"binary_data": binary} if module is http_client else {}
    value = tensor(module, "pixels", np.array([["a"]], np.object_), "BYTES", **options)
    with pytest.raises(InferenceServerException, match="input 'pixels': expected datatype FP32, got 'BYTES'"):
        client.infer("dense", [value])


def test_settings_are_shown_and_kept(either):
    client, module = either
    options = {} if module is http_client else {"as_json": True}

    def value(settings, name):
        setting = settings[name] if module is http_client else settings["settings"][name]
        return setting if module is http_client else setting["value"] if "value" in setting else next(iter(setting.values()))

    assert value(client.get_log_settings(**options), "log_info") is True
    assert value(client.update_log_settings({"log_info": True}, **options), "log_error") is True
    with pytest.raises(InferenceServerException, match="'log_verbose_level' is 0 and cannot be changed to 2"):
        client.update_log_settings({"log_verbose_level": 2})
    for model in (None, "dense"):
        assert value(client.get_trace_settings(model, **options), "trace_level") == ["OFF"]
        client.update_trace_settings(model, {"trace_level": ["OFF"], "trace_rate": None})
        with pytest.raises(InferenceServerException, match="'trace_level' is 'OFF' and cannot be changed"):
            client.update_trace_settings(model, {"trace_level": ["TIMESTAMPS"]})
    with pytest.raises(InferenceServerException, match="unknown model 'nobody'"):
        client.get_trace_settings("nobody")
