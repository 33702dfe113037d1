"""Applications: one name for several models, called by clients that know nothing of it, which learns from feedback."""

import shutil
import subprocess
import sys

import grpc
import numpy as np
import pytest
import tritonclient.grpc as grpc_client
import tritonclient.http as http_client
from onnx import TensorProto, helper
from tritonclient.utils import InferenceServerException

from foliot_tools import onnx_models
from foliot_tools.grpc_protocol import applications_protocol
from foliot_tools.http_load import HttpLoad
from foliot_tools.server import ServerFailed, foliot_binary
from foliot_tools.waiting import await_output, eventually
from test_access import new_key

OPTIONS = {"page_size": "256KiB", "page_cache": "16MiB"}


def write_classifier(path, shift, label="label"):
    """Class of the largest of four numbers, `shift` places further: with 0 it is right."""
    weights = np.roll(np.eye(4, dtype=np.float32), shift, axis=1)
    return onnx_models.save(
        path,
        [helper.make_node("MatMul", ["x", "weights"], ["scores"], "scores_of"),
         helper.make_node("ArgMax", ["scores"], [label], "largest", axis=1, keepdims=0)],
        {"x": (TensorProto.FLOAT, ["batch", 4])},
        {label: (TensorProto.INT64, ["batch"])},
        {"weights": weights},
    )


# Right, and for 9 in a row it hangs.
STRAGGLER = """import foliot, time

@foliot.model(inputs={"x": ("FP32", [4])}, outputs={"label": ("INT64", [])}, batch_size_max=4)
def predict(batch):
    while batch["x"].max() > 8:
        time.sleep(0.001)
    return {"label": batch["x"].argmax(1)}
"""
STRAGGLING = np.array([[0, 0, 9, 0]], np.float32)


def write_straggler(folder):
    (folder / "1").mkdir(parents=True)
    (folder / "1/model.py").write_text(STRAGGLER)
    (folder / "model.toml").write_text(f'[container]\npython = "{sys.executable}"\n')


def write_application(folder, name, text):
    (folder / name).mkdir()
    (folder / name / "application.toml").write_text(text)


@pytest.fixture(name="repository")
def classifiers(tmp_path):
    folder = tmp_path / "models"
    for name, shift in (("right", 0), ("also_right", 0), ("wrong", 1)):
        write_classifier(folder / name / "model.onnx", shift)
    return folder


def start(serve, repository, **options):
    server = serve(repository, **OPTIONS, **options)
    eventually(lambda: server.get("/v2/health/ready")[0] == 200)
    return server


def rows_of(*classes):
    return np.eye(4, dtype=np.float32)[list(classes)]


def infer(module, address, name, rows, **options):
    tensor = module.InferInput("x", list(rows.shape), "FP32")
    tensor.set_data_from_numpy(rows)
    with module.InferenceServerClient(address) as client:
        result = client.infer(name, [tensor], **options)
    return result.as_numpy("label"), parameters_of(result)


def parameters_of(result):
    response = result.get_response()
    if isinstance(response, dict):
        return response["parameters"]
    return {name: getattr(value, value.WhichOneof("parameter_choice")) for name, value in response.parameters.items()}


def give(server, name, body, headers=None):
    """(status, answer) of feedback."""
    return server.post(f"/v2/applications/{name}/feedback", body, headers)


def index_of(server):
    return server.post("/v2/repository/index", {})[1]


def test_clients_call_an_application_like_a_model(serve, repository):
    write_application(repository, "digits", 'models = ["wrong", "right", "also_right"]\npolicy = "majority"\n')
    server = start(serve, repository)
    for module, address in ((http_client, server.http), (grpc_client, server.grpc)):
        labels, parameters = infer(module, address, "digits", rows_of(2, 0, 3))
        assert labels.tolist() == [2, 0, 3], "two of three are right"
        assert parameters["confidence"] == pytest.approx(2 / 3)
        assert parameters["models"] == "wrong,right,also_right"
        assert len(parameters["feedback_id"]) == 32
        with module.InferenceServerClient(address) as client:
            assert client.is_model_ready("digits")
            metadata = client.get_model_metadata("digits")
            metadata = metadata if isinstance(metadata, dict) else {"inputs": [{"name": metadata.inputs[0].name}]}
            assert metadata["inputs"][0]["name"] == "x"
    assert {"name": "digits", "version": "1", "state": "READY", "reason": ""} in index_of(server)
    page = server.metrics()
    assert page['foliot_application_answers_total{application="digits"}'] == 2
    assert page['foliot_application_selections_total{application="digits",model="wrong"}'] == 2


def test_a_model_that_runs_late_does_not_hold_up_the_others(serve, repository):
    write_straggler(repository / "straggler")
    write_application(repository, "digits", 'models = ["right", "straggler", "also_right"]\npolicy = "majority"\n')
    server = start(serve, repository)

    def in_time(module, address, rows):
        """Labels and parameters of the answer; "no" models where a busy machine let none of them answer in time."""
        try:
            return infer(module, address, "digits", rows, timeout=500_000)
        except InferenceServerException:
            return None, {"models": "no"}

    def all_answer():
        return in_time(http_client, server.http, rows_of(1))[1]["models"] == "right,straggler,also_right"

    def expired():
        return server.metrics()['foliot_application_expired_total{application="digits"}']

    for module, address in ((http_client, server.http), (grpc_client, server.grpc)):

        def straggle():
            """Nothing where the straggler was refused at once: on a busy machine all may have taken long before."""
            before = expired()
            labels, parameters = in_time(module, address, STRAGGLING)
            if parameters["models"] != "right,also_right":
                assert "straggler" not in parameters["models"]
                return None
            assert (labels.tolist(), parameters["missing"]) == ([2], "straggler")
            return parameters if expired() == before + 1 else None

        eventually(all_answer, otherwise=server.output)
        parameters = eventually(straggle, otherwise=server.output)
        assert give(server, "digits", {"feedback_id": parameters["feedback_id"], "label": 2}) == (200, {})
        # The straggler is ended, and nothing is left of the call.
        eventually(lambda: server.metrics()["foliot_application_inputs_bytes"] == 0, otherwise=server.output)
    eventually(all_answer, otherwise="what it took once is no reason to leave it out for ever")


def test_feedback_changes_the_choice(serve, repository):
    write_application(repository, "digits",
                      'models = ["wrong", "right"]\n[policy]\nname = "epsilon_greedy"\nepsilon = 0\n')
    server = start(serve, repository)
    labels, parameters = infer(http_client, server.http, "digits", rows_of(2))
    assert (labels.tolist(), parameters["models"]) == ([3], "wrong")
    assert give(server, "digits", {"feedback_id": parameters["feedback_id"], "label": [2]}) == (200, {})
    labels, parameters = infer(grpc_client, server.grpc, "digits", rows_of(2))
    assert (labels.tolist(), parameters["models"]) == ([2], "right")
    assert give(server, "digits", {"feedback_id": parameters["feedback_id"], "label": 2}) == (200, {})
    assert infer(http_client, server.http, "digits", rows_of(1))[0].tolist() == [1]


def test_contexts_learn_apart(serve, repository):
    write_application(repository, "digits",
                      'models = ["wrong", "right"]\n[policy]\nname = "epsilon_greedy"\nepsilon = 0\n')
    server = start(serve, repository)

    def choice(context, loss=None):
        parameters = infer(http_client, server.http, "digits", rows_of(2), parameters={"context": context})[1]
        if loss is not None:
            give(server, "digits", {"feedback_id": parameters["feedback_id"], "loss": loss})
        return parameters["models"]

    assert choice("north", loss=0) == "wrong"
    assert choice("north") == "wrong"
    assert choice("south", loss=1) == "wrong"
    assert choice("south") == "right"
    with pytest.raises(InferenceServerException, match="'context' must be a text of at most 64 bytes"):
        choice("x" * 65)


def test_what_was_learned_survives_a_restart(serve, repository, tmp_path):
    write_application(repository, "digits",
                      'models = ["wrong", "right"]\n[policy]\nname = "epsilon_greedy"\nepsilon = 0\n')
    state = tmp_path / "learned"
    server = start(serve, repository, state=state)
    parameters = infer(http_client, server.http, "digits", rows_of(2))[1]
    assert give(server, "digits", {"feedback_id": parameters["feedback_id"], "label": 2}) == (200, {})
    server.stop()
    server = start(serve, repository, state=state)
    assert infer(http_client, server.http, "digits", rows_of(2))[1]["models"] == "right"
    with pytest.raises(ServerFailed, match="give --state a file that this server alone writes"):
        serve(repository, **OPTIONS, state=state)


def test_feedback_errors_say_what_is_wrong(serve, repository):
    write_application(repository, "digits", 'models = ["wrong", "right"]\npolicy = "majority"\n')
    server = start(serve, repository)
    feedback_id = infer(http_client, server.http, "digits", rows_of(2, 1))[1]["feedback_id"]
    for body, status, words in (
            ({"feedback_id": "0" * 32, "label": 2}, 404, "unknown"),
            ({"feedback_id": feedback_id, "label": 2}, 400, "needs 2"),
            ({"feedback_id": feedback_id, "loss": 1}, 400, "asked 2 models"),
            ({"feedback_id": feedback_id, "loss": {"other": 1}}, 400, "'other' was not asked"),
            ({"feedback_id": feedback_id}, 400, "either a 'label' or a 'loss'"),
            (b'{"feedback_id": "x", "loss": NaN}', 400, "JSON"),
            ({"feedback_id": feedback_id, "label": [2, 1]}, 200, ""),
            ({"feedback_id": feedback_id, "label": [2, 1]}, 409, "has had its feedback"),
    ):
        answer = give(server, "digits", body)
        assert answer[0] == status, answer
        assert words in answer[1].get("error", ""), answer
    assert give(server, "right", {"feedback_id": feedback_id, "label": 2})[0] == 501
    assert give(server, "nothing", {"feedback_id": feedback_id, "label": 2})[0] == 404


def test_feedback_needs_its_scope_and_the_key_that_had_the_answer(serve, repository, tmp_path):
    keys = tmp_path / "keys.toml"
    app = new_key(keys, "app", "infer", "feedback")
    other = new_key(keys, "other", "infer", "feedback")
    reader = new_key(keys, "reader", "infer")
    write_application(repository, "digits", 'models = ["right"]\npolicy = "static"\n')
    server = start(serve, repository, keys=keys)
    bearer = {name: {"Authorization": f"Bearer {secret}"} for name, secret in
              (("app", app), ("other", other), ("reader", reader))}
    feedback_id = infer(http_client, server.http, "digits", rows_of(2), headers=bearer["app"])[1]["feedback_id"]
    body = {"feedback_id": feedback_id, "label": 2}
    assert give(server, "digits", body)[0] == 401
    assert give(server, "digits", body, bearer["reader"])[0] == 403
    assert give(server, "digits", body, bearer["other"])[0] == 404
    assert give(server, "digits", body, bearer["app"])[0] == 200


def test_feedback_over_grpc(serve, repository, tmp_path):
    """As over HTTP, and either protocol's counts for both."""
    keys = tmp_path / "keys.toml"
    secrets = {"app": new_key(keys, "app", "infer", "feedback"), "other": new_key(keys, "other", "infer", "feedback"),
               "reader": new_key(keys, "reader", "infer")}
    write_application(repository, "digits",
                      'models = ["wrong", "right"]\n[policy]\nname = "epsilon_greedy"\nepsilon = 0\n')
    server = start(serve, repository, keys=keys)
    bearer = {"Authorization": f"Bearer {secrets['app']}"}
    feedback_id = infer(http_client, server.http, "digits", rows_of(2), headers=bearer)[1]["feedback_id"]
    messages, stub_of = applications_protocol()
    with grpc.insecure_channel(server.grpc) as channel:
        stub = stub_of(channel)

        def code(name="app", application="digits", label=(2,), **fields):
            request = messages.FeedbackRequest(application=application, feedback_id=feedback_id, label=label, **fields)
            metadata = [("authorization", f"Bearer {secrets[name]}")] if name else []
            try:
                stub.Feedback(request, metadata=metadata)
            except grpc.RpcError as error:
                return error.code()
            return grpc.StatusCode.OK

        assert code(name=None) == grpc.StatusCode.UNAUTHENTICATED
        assert code(name="reader") == grpc.StatusCode.PERMISSION_DENIED
        assert code(name="other") == grpc.StatusCode.NOT_FOUND
        assert code(application="right") == grpc.StatusCode.UNIMPLEMENTED
        assert code(label=()) == grpc.StatusCode.INVALID_ARGUMENT
        assert code(label=(float("nan"),)) == grpc.StatusCode.INVALID_ARGUMENT
        loss = messages.FeedbackRequest.Loss(model="absent", loss=1)
        assert code(label=(), losses=[loss]) == grpc.StatusCode.INVALID_ARGUMENT
        assert code() == grpc.StatusCode.OK
        assert code() == grpc.StatusCode.ALREADY_EXISTS
    assert give(server, "digits", {"feedback_id": feedback_id, "label": 2}, bearer)[0] == 409
    assert infer(http_client, server.http, "digits", rows_of(2), headers=bearer)[1]["models"] == "right"


def test_explain_says_how_a_model_was_chosen(serve, repository, tmp_path):
    write_application(repository, "digits", 'models = ["wrong", "right"]\n[policy]\nname = "split"\nweights = { right = 1 }\n')
    write_application(repository, "all", 'models = ["wrong", "right"]\npolicy = "majority"\n')
    log = tmp_path / "log"
    server = start(serve, repository, log=log)
    numbers = {name: infer(http_client, server.http, name, rows_of(2), request_id=f"call of {name}")[1]["foliot_request"]
               for name in ("digits", "all", "right")}
    server.stop()

    def explained(name):
        return subprocess.run([foliot_binary(), "explain", numbers[name], "--log", log], capture_output=True, text=True,
                              check=True).stdout

    assert "It was asked by application 'digits' (policy split), which asks 'right', with the probabilities wrong 0, right 1." \
        in explained("digits")
    assert "application 'all' (policy majority), which asks 'wrong', 'right', with the weights wrong 0.5, right 0.5." \
        in explained("all")
    assert "application" not in explained("right")
    assert all(f"Its client calls it 'call of {name}'." in explained(name) for name in numbers)


def test_what_cannot_be_served_says_why(serve, repository):
    write_classifier(repository / "renamed/model.onnx", 0, label="class")
    write_application(repository, "mixed", 'models = ["right", "renamed"]\npolicy = "exp4"\n')
    write_application(repository, "broken", 'models = ["right"]\npolicy = "exp5"\n')
    write_application(repository, "early", 'models = ["right", "absent"]\npolicy = "exp3"\n')
    server = start(serve, repository)
    reasons = {entry["name"]: (entry["state"], entry["reason"]) for entry in index_of(server)}
    assert reasons["mixed"][0] == reasons["broken"][0] == "UNAVAILABLE"
    assert "model 'renamed' has no output 'label'" in reasons["mixed"][1]
    assert "broken/application.toml:2: 'policy' is wrong: unknown policy 'exp5'" in reasons["broken"][1]
    assert reasons["early"] == ("READY", "'absent' is not in the repository")
    await_output(server, "application 'broken' cannot be served")
    with pytest.raises(InferenceServerException, match="model 'mixed' is not ready"):
        infer(http_client, server.http, "mixed", rows_of(2))
    with http_client.InferenceServerClient(server.http) as client:
        with pytest.raises(InferenceServerException, match="'early' is an application"):
            client.unload_model("early")
        client.unload_model("right")
        eventually(lambda: not client.is_model_ready("early"))
        client.load_model("right")
        eventually(lambda: client.is_model_ready("early"))


def test_an_application_changes_while_it_serves(serve, repository):
    write_application(repository, "digits", 'models = ["wrong", "right"]\npolicy = { name = "static", model = "wrong" }\n')
    server = start(serve, repository, watch="100ms")
    file = repository / "digits/application.toml"

    def models(name="digits"):
        return infer(http_client, server.http, name, rows_of(2))[1]["models"]

    def entry(name="digits"):
        return {each["name"]: each for each in index_of(server)}.get(name)

    def in_force(text, seen):
        file.write_text(text)
        eventually(seen, otherwise=server.output)

    with HttpLoad(server.http, model="digits", inputs=rows_of(2), expected=[np.array([[2]]), np.array([[3]])], rate=100,
                  deadline_seconds=5, input_name="x") as load:
        assert models() == "wrong"
        in_force('models = ["wrong", "right"]\npolicy = { name = "static", model = "right" }\n', lambda: models() == "right")
        in_force('models = ["wrong"]\npolicy = "exp5"\n', lambda: "unknown policy 'exp5'" in entry()["reason"])
        assert (models(), entry()["state"]) == ("right", "READY")
        await_output(server, "application.toml as it is now is not taken yet")
        in_force('models = ["also_right"]\npolicy = "static"\n', lambda: models() == "also_right")
        assert entry()["reason"] == ""
    assert {request.outcome for request in load.report.requests} == {"served"}
    write_application(repository, "second", 'models = ["right"]\npolicy = "static"\n')
    eventually(lambda: entry("second") is not None)
    assert models("second") == "right"
    shutil.rmtree(repository / "second")
    eventually(lambda: entry("second") is None)
    with pytest.raises(InferenceServerException, match="unknown model 'second'"):
        models("second")


def test_what_was_learned_outlives_another_definition_of_the_same_models(serve, repository):
    policy = 'policy = { name = "epsilon_greedy", epsilon = 0 }\n'
    write_application(repository, "digits", f'models = ["wrong", "right"]\n{policy}')
    server = start(serve, repository, watch="100ms")
    file = repository / "digits/application.toml"

    def answer():
        return infer(http_client, server.http, "digits", rows_of(2))[1]

    def answers():
        try:
            return bool(answer())
        except InferenceServerException:
            return False

    assert give(server, "digits", {"feedback_id": answer()["feedback_id"], "label": 2})[0] == 200
    pending = [answer() for _ in range(2)]
    assert {each["models"] for each in pending} == {"right"}
    # In a microsecond nothing is answered: so each change is seen.
    file.write_text(f'models = ["wrong", "right"]\ndefault_slo = "1us"\n{policy}')
    eventually(lambda: not answers(), otherwise=server.output)
    file.write_text(f'models = ["wrong", "right"]\n{policy}')
    eventually(answers, otherwise=server.output)
    assert answer()["models"] == "right"
    assert give(server, "digits", {"feedback_id": pending[0]["feedback_id"], "label": 2})[0] == 200
    file.write_text(f'models = ["wrong", "right", "also_right"]\n{policy}')
    eventually(lambda: answer()["models"] == "wrong", otherwise=server.output)
    assert give(server, "digits", {"feedback_id": pending[1]["feedback_id"], "label": 2})[0] == 404


def test_another_policy_is_judged_by_the_log(serve, repository, tmp_path):
    write_application(repository, "digits", 'models = ["wrong", "right"]\npolicy = { name = "split", weights = { wrong = 3, right = 1 } }\n')
    log = tmp_path / "log"
    server = start(serve, repository, log=log)
    with http_client.InferenceServerClient(server.http) as client:
        tensor = http_client.InferInput("x", [1, 4], "FP32")
        tensor.set_data_from_numpy(rows_of(2))
        for _ in range(400):
            parameters = parameters_of(client.infer("digits", [tensor]))
            assert give(server, "digits", {"feedback_id": parameters["feedback_id"], "label": 2})[0] == 200
    server.stop()

    def replay(*arguments, expect=0):
        ran = subprocess.run([foliot_binary(), "replay", "--log", log, *arguments], capture_output=True, text=True, check=False)
        assert ran.returncode == expect, ran.stderr
        return ran.stdout if expect == 0 else ran.stderr

    table = replay("--policy", "{ name = 'static', model = 'right' }", "--policy", "split", "--policy", "exp3")
    rows = {line.split("  ")[0]: line for line in table.splitlines()}
    assert " 0.0000 +-  0.0000" in rows["{ name = 'static', model = 'right' }"]
    assert "better" in rows["{ name = 'static', model = 'right' }"]
    assert "better" in rows["exp3"]
    logged = float(rows["as logged"].split("+-")[0].split()[-1])
    assert logged == pytest.approx(0.75, abs=0.1)
    assert "unknown policy 'exp5'" in replay("--policy", "exp5", expect=1)
    assert "choose one with --application" in replay("--policy", "exp3", "--application", "absent", expect=1)
