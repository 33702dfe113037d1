"""Containers whose rows vary in size (docs/CONTAINERS.md): strings, and dimensions without buckets, over every protocol."""

import json
import queue
import shutil
import struct
import subprocess
import sys

import grpc
import numpy as np
import pytest
import tritonclient.grpc as grpc_client
import tritonclient.http as http_client
from tritonclient.grpc import service_pb2, service_pb2_grpc
from tritonclient.utils import InferenceServerException

from foliot_tools.cluster import Cluster
from foliot_tools.server import ROOT, foliot_binary
from foliot_tools.waiting import eventually

OPTIONS = {"page_size": "256KiB", "page_cache": "16MiB"}
# The words of a text, how many letters each has, and the text again.
WORDS = """import foliot, numpy

@foliot.model(inputs={"text": ("BYTES", [], 64)}, batch_size_max=8,
              outputs={"words": ("BYTES", [foliot.up_to(9)]), "letters": ("INT64", [foliot.up_to(9)]), "text": ("BYTES", [], 64)})
def predict(batch):
    words = [text.split() for text in batch["text"]]
    if any(word == b"raise" for row in words for word in row):
        raise ValueError(f"in {b' '.join(words[0]).decode()}")
    return {"words": words, "letters": [numpy.array([len(word) for word in row], int) for row in words], "text": batch["text"]}
"""
# Twice each number of a sequence.
SEQUENCES = """import foliot

@foliot.model(inputs={"x": ("FP32", [foliot.up_to(4), 2])}, outputs={"y": ("FP32", [foliot.up_to(4), 2])})
def predict(batch):
    return {"y": [2 * row for row in batch["x"]]}
"""


def write(folder, text, settings=""):
    (folder / "1").mkdir(parents=True)
    (folder / "1/model.py").write_text(text)
    (folder / "model.toml").write_text(f'{settings}\n[container]\npython = "{sys.executable}"\n')


@pytest.fixture
def repository(tmp_path):
    repository = tmp_path / "models"
    write(repository / "words", WORDS)
    write(repository / "cached", WORDS, "cache = true")
    write(repository / "sequences", SEQUENCES)
    return repository


def strings(module, texts, name="text", **options):
    array = np.array(texts, np.object_)
    tensor = module.InferInput(name, list(array.shape), "BYTES")
    tensor.set_data_from_numpy(array, **options)
    return tensor


def numbers(module, array):
    tensor = module.InferInput("x", list(array.shape), "FP32")
    tensor.set_data_from_numpy(array)
    return tensor


def check_words(result):
    assert result.as_numpy("text").tolist() == [b"one two", b"", b"gr\xc3\xbc\xc3\x9fe"]
    assert result.as_numpy("words").tolist() == [[b"one", b"two"], [b"", b""], [b"gr\xc3\xbc\xc3\x9fe", b""]]
    assert result.as_numpy("letters").tolist() == [[3, 3], [0, 0], [7, 0]], "short rows have zeros behind"


def test_strings_over_every_protocol(repository, serve):
    server = serve(repository, **OPTIONS)
    texts = ["one two", "", "gr\u00fc\u00dfe"]
    with http_client.InferenceServerClient(server.http) as client:
        for binary in (True, False):
            outputs = [http_client.InferRequestedOutput(name, binary_data=binary) for name in ("text", "words", "letters")]
            result = client.infer("words", [strings(http_client, texts, binary_data=binary)], outputs=outputs)
            if binary:
                check_words(result)
            else:
                assert result.as_numpy("text").tolist() == texts
                assert result.as_numpy("words").tolist() == [["one", "two"], ["", ""], ["gr\u00fc\u00dfe", ""]]
    with grpc_client.InferenceServerClient(server.grpc) as client:
        result = client.infer("words", [strings(grpc_client, texts)])
        check_words(result)
        assert result.get_output("words").parameters["padded"].bool_param
        assert not result.get_output("text").parameters["padded"].bool_param
    metadata = server.get("/v2/models/words")[1]
    assert metadata["inputs"] == [{"name": "text", "datatype": "BYTES", "shape": [-1]}]
    assert metadata["outputs"][0] == {"name": "words", "datatype": "BYTES", "shape": [-1, -1]}
    assert server.get("/v2/models/words/config")[1]["input"][0]["data_type"] == "TYPE_STRING"


def test_typed_contents_over_grpc(repository, serve):
    server = serve(repository, **OPTIONS)
    with grpc.insecure_channel(server.grpc) as channel:
        request = service_pb2.ModelInferRequest(model_name="words")
        tensor = request.inputs.add(name="text", datatype="BYTES", shape=[2])
        tensor.contents.bytes_contents.extend([b"a b", b"\xff\x00"])
        response = service_pb2_grpc.GRPCInferenceServiceStub(channel).ModelInfer(request)
    assert response.raw_output_contents[2] == struct.pack("<I", 3) + b"a b" + struct.pack("<I", 2) + b"\xff\x00"


def test_dimensions_that_vary(repository, serve):
    server = serve(repository, **OPTIONS)
    for module, address in ((http_client, server.http), (grpc_client, server.grpc)):
        with module.InferenceServerClient(address) as client:
            for extent in (4, 1, 0):
                x = np.arange(3 * extent * 2, dtype=np.float32).reshape(3, extent, 2)
                np.testing.assert_array_equal(client.infer("sequences", [numbers(module, x)]).as_numpy("y"), 2 * x)
            with pytest.raises(InferenceServerException, match=r"input 'x': expected shape \[rows,0\.\.4,2\], got \[1,5,2\]"):
                client.infer("sequences", [numbers(module, np.zeros((1, 5, 2), np.float32))])
    assert server.get("/v2/models/sequences")[1]["inputs"] == [{"name": "x", "datatype": "FP32", "shape": [-1, -1, 2]}]


def test_clients_of_different_sizes_share_batches(repository, serve):
    server = serve(repository, **OPTIONS)
    with grpc_client.InferenceServerClient(server.grpc) as client:
        texts = [" ".join(["word"] * (1 + i % 9)) for i in range(200)]
        done = queue.Queue()
        for number, text in enumerate(texts):
            client.async_infer("words", [strings(grpc_client, [text])],
                               callback=lambda result, error, number=number: done.put((number, result, error)))
        for _ in texts:
            number, result, error = done.get(timeout=60)
            assert error is None
            assert result.as_numpy("words").tolist() == [[b"word"] * (1 + number % 9)]


def test_wrong_strings_are_named_with_their_limit(repository, serve):
    server = serve(repository, **OPTIONS)

    def refused(tensors, binary=b""):
        body = json.dumps({"inputs": tensors}).encode()
        status, answer = server.request("POST", "/v2/models/words/infer", body + binary,
                                        {"Inference-Header-Content-Length": str(len(body))})
        assert status == 400, answer
        return answer["error"]

    tensor = {"name": "text", "datatype": "BYTES", "shape": [1]}
    assert "row 0 has strings of 65 bytes; its model takes up to 64 in a row" in refused([{**tensor, "data": ["x" * 65]}])
    assert "'data' holds something that is not a string" in refused([{**tensor, "data": [1]}])
    assert "expected 1 strings, got 5 bytes more than these take" in refused([{**tensor, "data": ["a", "b"]}])
    assert "expected 2 strings" in refused([{**tensor, "shape": [2], "data": ["a"]}])
    assert "expected datatype BYTES, got 'FP32'" in refused([{**tensor, "datatype": "FP32", "data": [1]}])
    for binary in (b"", b"\1\0\0", b"\xff\xff\xff\xff", struct.pack("<I", 2) + b"a"):
        cut = refused([{**tensor, "parameters": {"binary_data_size": len(binary)}}], binary)
        assert "end before row 0 does" in cut


def test_an_exception_is_told_to_the_client_whose_row_it_was(repository, serve):
    server = serve(repository, **OPTIONS)
    with grpc_client.InferenceServerClient(server.grpc) as client:
        with pytest.raises(InferenceServerException) as error:
            client.infer("words", [strings(grpc_client, ["good", "raise this"])])
        assert "predict raised ValueError: in raise this (model.py, line 8)" in error.value.message()
        with pytest.raises(InferenceServerException) as error:
            client.infer("words", [strings(grpc_client, ["raise\nlines"])])
        assert "ValueError: in raise lines" in error.value.message()


def test_predictions_of_strings_are_kept(repository, serve):
    server = serve(repository, **OPTIONS)
    with grpc_client.InferenceServerClient(server.grpc) as client:
        for text in ("ab c", "a bc"):  # the same letters, other words
            first, again = (client.infer("cached", [strings(grpc_client, [text])]) for _ in range(2))
            assert "cached" not in first.get_response().parameters and again.get_response().parameters["cached"].bool_param
            for result in (first, again):
                assert result.as_numpy("words").tolist() == [text.encode().split()]


def test_the_example(tmp_path, serve):
    folder = tmp_path / "models/topics"
    shutil.copytree(ROOT / "examples/containers/topics", folder)
    settings = (folder / "model.toml").read_text().replace("[container]", f'[container]\npython = "{sys.executable}"')
    (folder / "model.toml").write_text(settings)
    subprocess.run([sys.executable, folder / "train.py"], check=True)
    checked = subprocess.run([foliot_binary(), "container", "check", folder], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr
    assert "BYTES [] of up to 8192 bytes" in checked.stdout
    server = serve(tmp_path / "models", **OPTIONS)
    with http_client.InferenceServerClient(server.http) as client:
        result = client.infer("topics", [strings(http_client, ["my parcel is late", "I want my money back"])])
    assert result.as_numpy("topic").tolist() == [b"delivery", b"billing"]
    assert result.as_numpy("score").shape == (2,)


def answered(client, texts):
    try:
        return client.infer("words", [strings(grpc_client, texts)])
    except InferenceServerException:
        return None


def test_in_a_cluster(repository, tmp_path):
    """Rows travel between processes."""
    with Cluster(tmp_path, repository, workers=1, frontends=1) as cluster:
        frontend = cluster.frontends[0]
        eventually(frontend.ready)
        with grpc_client.InferenceServerClient(frontend.grpc) as client:
            eventually(lambda: client.is_model_ready("words"))
            # The front end may still be connecting to the replica.
            check_words(eventually(lambda: answered(client, ["one two", "", "gr\u00fc\u00dfe"])))


def test_applications(repository, serve):
    """One model at a time is asked; answers of several cannot be combined, which is said."""
    for policy in ("exp3", "majority"):
        (repository / policy).mkdir()
        (repository / policy / "application.toml").write_text(f'models = ["words", "cached"]\npolicy = "{policy}"\n')
    server = serve(repository, **OPTIONS)
    with grpc_client.InferenceServerClient(server.grpc) as client:
        result = client.infer("exp3", [strings(grpc_client, ["one two"])])
        assert result.as_numpy("words").tolist() == [[b"one", b"two"]]
        feedback = {"feedback_id": result.get_response().parameters["feedback_id"].string_param, "label": 3}
        status, answer = server.post("/v2/applications/exp3/feedback", feedback)
        assert status == 400 and "BYTES, which no label is compared with; send a loss" in answer["error"]
        assert server.post("/v2/applications/exp3/feedback", {"feedback_id": feedback["feedback_id"], "loss": 0})[0] == 200
    entry = {entry["name"]: entry for entry in server.post("/v2/repository/index")[1]}["majority"]
    assert "output 'words' is BYTES, of which answers cannot be combined" in entry["reason"]


def test_a_pipeline_refuses_them_by_name(repository, serve):
    (repository / "pipe").mkdir()
    (repository / "pipe/pipeline.toml").write_text(
        '[[stage]]\nname = "split"\nmodel = "words"\ninputs = { text = "text" }\n[[output]]\nname = "text"\nfrom = "split.text"\n')
    server = serve(repository, **OPTIONS)
    entry = {entry["name"]: entry for entry in server.post("/v2/repository/index")[1]}["pipe"]
    assert "'text' of model 'words' is BYTES []" in entry["reason"], entry
