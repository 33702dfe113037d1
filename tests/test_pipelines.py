"""Pipelines: one name for several models, with one deadline, called by clients that know nothing of it."""

import numpy as np
import pytest
import tritonclient.grpc as grpc_client
import tritonclient.http as http_client
from onnx import TensorProto, helper
from tritonclient.utils import InferenceServerException

from foliot_tools import onnx_models
from foliot_tools.generated import models as models_of
from foliot_tools.model_check import open_session
from foliot_tools.waiting import eventually
from test_steps import photo

OPTIONS = {"page_size": "256KiB", "page_cache": "16MiB"}
WEIGHTS = np.array([[1, 2, 0, 0], [0, 1, 2, 0], [0, 0, 1, 2], [2, 0, 0, 1]], dtype=np.float32)
CASCADE = """
[[stage]]
name = "cheap"
model = "cheap"
inputs = { x = "x" }

[[stage]]
name = "fine"
model = "fine"
inputs = { x = "x" }
when = [{ output = "cheap.scores", value = "maximum", below = 2.5 }]

[[stage]]
name = "last"
model = "doubling"
inputs = { x = ["fine.scores", "cheap.scores"] }

[[output]]
name = "scores"
from = "last.scores"

[[output]]
name = "fine"
from = "fine.scores"
fill = -1
"""


def write_linear(path, weights):
    return onnx_models.save(path, [helper.make_node("MatMul", ["x", "weights"], ["scores"], "product")],
                            {"x": (TensorProto.FLOAT, ["batch", 4])}, {"scores": (TensorProto.FLOAT, ["batch", 4])},
                            {"weights": weights})


def write_pipeline(folder, name, text):
    (folder / name).mkdir()
    (folder / name / "pipeline.toml").write_text(text)


@pytest.fixture(name="repository")
def models(tmp_path):
    folder = tmp_path / "models"
    for name, weights in (("cheap", WEIGHTS), ("fine", -WEIGHTS), ("doubling", 2 * np.eye(4, dtype=np.float32))):
        write_linear(folder / name / "model.onnx", weights)
    return folder


def start(serve, repository, **options):
    server = serve(repository, **OPTIONS, **options)
    eventually(lambda: server.get("/v2/health/ready")[0] == 200)
    return server


def infer(module, address, name, rows, **options):
    tensor = module.InferInput("x", list(rows.shape), "FP32")
    tensor.set_data_from_numpy(rows)
    with module.InferenceServerClient(address) as client:
        return client.infer(name, [tensor], **options)


def expected(rows):
    """What the cascade makes of each row: (scores, fine)."""
    cheap = rows @ WEIGHTS
    fine = -cheap
    unsure = cheap.max(axis=1, keepdims=True) < 2.5
    return 2 * np.where(unsure, fine, cheap), np.where(unsure, fine, -1)


def test_clients_call_a_pipeline_like_a_model(serve, repository):
    write_pipeline(repository, "cascade", CASCADE)
    server = start(serve, repository)
    rows = np.random.default_rng(1).uniform(-1, 2, (40, 4)).astype(np.float32)
    scores, fine = expected(rows)
    assert 0 < (fine[:, 0] == -1).sum() < 40, "some rows visit the stage, and some do not"
    for module, address in ((http_client, server.http), (grpc_client, server.grpc)):
        result = infer(module, address, "cascade", rows)
        np.testing.assert_allclose(result.as_numpy("scores"), scores, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(result.as_numpy("fine"), fine, rtol=1e-5, atol=1e-6)
        with module.InferenceServerClient(address) as client:
            assert client.is_model_ready("cascade")
    assert server.get("/v2/models/cascade")[1]["inputs"] == [{"name": "x", "datatype": "FP32", "shape": [-1, 4]}]


def test_many_calls_at_once_get_their_own_answers(serve, repository):
    write_pipeline(repository, "cascade", CASCADE)
    server = start(serve, repository)
    random = np.random.default_rng(2)
    calls = [random.uniform(-1, 2, (random.integers(1, 9), 4)).astype(np.float32) for _ in range(200)]
    with http_client.InferenceServerClient(server.http, concurrency=16) as client:
        pending = []
        for rows in calls:
            tensor = http_client.InferInput("x", list(rows.shape), "FP32")
            tensor.set_data_from_numpy(rows)
            pending.append(client.async_infer("cascade", [tensor]))
        for rows, answer in zip(calls, pending, strict=True):
            np.testing.assert_allclose(answer.get_result().as_numpy("scores"), expected(rows)[0], rtol=1e-5, atol=1e-6)


def test_a_deadline_that_cannot_be_met_is_refused_by_name(serve, repository):
    write_pipeline(repository, "cascade", CASCADE)
    server = start(serve, repository)
    with pytest.raises(InferenceServerException) as refused:
        infer(http_client, server.http, "cascade", np.zeros((1, 4), np.float32), timeout=1)
    assert "cascade" in str(refused.value)
    assert "unmeetable" in str(refused.value) or "expired" in str(refused.value)
    # The next one is answered.
    infer(http_client, server.http, "cascade", np.zeros((1, 4), np.float32), timeout=10_000_000)


def test_a_pipeline_is_served_while_its_models_are(serve, repository):
    write_pipeline(repository, "cascade", CASCADE)
    server = start(serve, repository)
    rows = np.ones((1, 4), np.float32)
    infer(http_client, server.http, "cascade", rows)
    with http_client.InferenceServerClient(server.http) as client:
        client.unload_model("fine")
        assert not client.is_model_ready("cascade")
        with pytest.raises(InferenceServerException, match="fine"):
            infer(http_client, server.http, "cascade", rows)
        client.load_model("fine")
        eventually(lambda: client.is_model_ready("cascade"))
    np.testing.assert_allclose(infer(http_client, server.http, "cascade", rows).as_numpy("scores"), expected(rows)[0])
    with http_client.InferenceServerClient(server.http) as client:
        with pytest.raises(InferenceServerException, match="pipeline"):
            client.unload_model("cascade")


def test_a_model_is_replaced_under_its_pipeline(serve, repository):
    write_pipeline(repository, "cascade", CASCADE)
    server = start(serve, repository)
    rows = np.ones((1, 4), np.float32)
    before = infer(http_client, server.http, "cascade", rows).as_numpy("scores")
    write_linear(repository / "doubling" / "2" / "model.onnx", 3 * np.eye(4, dtype=np.float32))
    (repository / "doubling" / "1").mkdir()
    (repository / "doubling" / "model.onnx").rename(repository / "doubling" / "1" / "model.onnx")
    with http_client.InferenceServerClient(server.http) as client:
        client.load_model("doubling")

    def replaced():
        after = infer(http_client, server.http, "cascade", rows).as_numpy("scores")
        return np.allclose(after, before * 1.5)

    eventually(replaced)


@pytest.mark.parametrize("text, message", [
    ("", "stage"),
    (CASCADE.replace('model = "fine"', 'model = "none"'), "none"),
    (CASCADE.replace('inputs = { x = "x" }\nwhen', 'inputs = { x = "last.scores" }\nwhen'), "cycle"),
    (CASCADE.replace('cheap.scores", value', 'cheap.labels", value'), "labels"),
    (CASCADE.replace("fill = -1", ""), "fill"),
], ids=["empty", "unknown model", "cycle", "condition on a missing output", "no fill"])
def test_what_is_wrong_is_named_and_the_rest_is_served(serve, repository, text, message):
    write_pipeline(repository, "broken", text)
    write_pipeline(repository, "cascade", CASCADE)
    server = start(serve, repository)
    index = {entry["name"]: entry for entry in server.post("/v2/repository/index", {})[1]}
    assert index["broken"]["state"] == "UNAVAILABLE"
    assert message in index["broken"]["reason"]
    infer(http_client, server.http, "cascade", np.zeros((1, 4), np.float32))


PHOTOS = """
[[stage]]
name = "decode"
step = "decode"
width = 64
height = 64
fit = "crop"
bytes = [65536, 262144]
inputs = { bytes = "photo" }

[[stage]]
name = "normalise"
step = "normalise"
mean = [0.485, 0.456, 0.406]
std = [0.229, 0.224, 0.225]
inputs = { image = "decode.image" }

[[stage]]
name = "mobilenet"
model = "mobilenet"
inputs = { INPUT = "normalise.tensor" }

[[stage]]
name = "resnet"
model = "resnet"
inputs = { RESNET_INPUT = "normalise.tensor" }
when = [{ output = "mobilenet.OUTPUT", value = "argmax", equal = CLASS }]

[[output]]
name = "tensor"
from = "normalise.tensor"

[[output]]
name = "scores"
from = ["resnet.RESNET_OUTPUT", "mobilenet.OUTPUT"]
"""


@pytest.fixture(name="photos", scope="module")
def photo_models(tmp_path_factory):
    """(repository, sessions by name): MobileNetV2 and a ResNet-50 of a quarter's width, of 64 x 64 pixels."""
    folder = tmp_path_factory.mktemp("photos") / "models"
    sessions = {}
    for name, network, changes in (("mobilenet", "mobilenet_v2", {}), ("resnet", "resnet50_v1b", {"width": 0.25})):
        (folder / name).mkdir(parents=True)
        model = models_of.write(models_of.build(network, resolution=64, **changes), folder / name / "model.onnx")
        sessions[name] = open_session(model)
    return folder, sessions


def test_photos_are_decoded_classified_and_looked_at_again_where_that_is_needed(serve, photos):
    folder, sessions = photos
    jpegs = [photo(seed, 200 + 10 * seed, 150) for seed in range(12)]
    cheap, fine = sessions["mobilenet"], sessions["resnet"]

    def of(session, tensor):
        return session.run(None, {session.get_inputs()[0].name: tensor})[0]

    text = PHOTOS
    for model, session in (("RESNET_", fine), ("", cheap)):
        text = text.replace(model + "INPUT", session.get_inputs()[0].name)
        text = text.replace(model + "OUTPUT", session.get_outputs()[0].name)
    write_pipeline(folder, "plain", text.replace("equal = CLASS", "above = 999"))
    server = serve(folder, page_cache="128MiB")
    eventually(lambda: server.get("/v2/health/ready")[0] == 200)

    def classify(name, jpeg):
        given = http_client.InferInput("photo", [1, len(jpeg)], "UINT8")
        given.set_data_from_numpy(np.frombuffer(jpeg, np.uint8)[None])
        with http_client.InferenceServerClient(server.http) as client:
            answer = client.infer(name, [given])
        return answer.as_numpy("tensor"), answer.as_numpy("scores")

    classes = []
    for jpeg in jpegs:
        tensor, scores = classify("plain", jpeg)
        np.testing.assert_allclose(scores, of(cheap, tensor), rtol=1e-3, atol=1e-4 * np.abs(scores).max())
        classes.append(int(scores.argmax()))
    server.stop()
    write_pipeline(folder, "again", text.replace("CLASS", str(classes[0])))
    server = serve(folder, page_cache="128MiB")
    eventually(lambda: server.get("/v2/health/ready")[0] == 200)
    looked_again = 0
    for jpeg in jpegs:
        tensor, scores = classify("again", jpeg)
        again = int(of(cheap, tensor).argmax()) == classes[0]
        looked_again += again
        expected_scores = of(fine if again else cheap, tensor)
        np.testing.assert_allclose(scores, expected_scores, rtol=1e-3, atol=1e-4 * np.abs(scores).max())
    assert looked_again > 0
    with pytest.raises(InferenceServerException, match="decode"):
        classify("again", jpegs[0][:200])
    classify("again", jpegs[1])
