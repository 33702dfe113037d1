"""What a client says beside its tensors is honoured, refused or named: nothing is misunderstood in silence. By the
unmodified tritonclient, over HTTP, gRPC and gRPC streams."""

import queue

import grpc
import numpy as np
import pytest
import tritonclient.grpc as grpc_client
import tritonclient.http as http_client
from tritonclient.grpc import service_pb2, service_pb2_grpc
from tritonclient.utils import InferenceServerException

PIXELS = np.random.default_rng(3).random((1, 64), np.float32)


def tensor(module):
    value = module.InferInput("pixels", [1, 64], "FP32")
    value.set_data_from_numpy(PIXELS)
    return value


def over_http(server, **options):
    with http_client.InferenceServerClient(server.http) as client:
        return client.infer("dense", [tensor(http_client)], **options).as_numpy("probabilities")


def over_grpc(server, **options):
    with grpc_client.InferenceServerClient(server.grpc) as client:
        return client.infer("dense", [tensor(grpc_client)], **options).as_numpy("probabilities")


def over_a_stream(server, **options):
    done = queue.Queue()
    with grpc_client.InferenceServerClient(server.grpc) as client:
        client.start_stream(lambda result, error: done.put((result, error)))
        client.async_stream_infer("dense", [tensor(grpc_client)], **options)
        result, error = done.get(timeout=30)
        if error is not None:
            # The stream goes on.
            client.async_stream_infer("dense", [tensor(grpc_client)])
            assert done.get(timeout=30)[1] is None
            raise error
        return result.as_numpy("probabilities")


@pytest.fixture(params=[over_http, over_grpc, over_a_stream], ids=["http", "grpc", "stream"])
def infer(request, small_server):
    return lambda **options: request.param(small_server, **options)


@pytest.mark.parametrize("sequence", [
    {"sequence_id": 7, "sequence_start": True},
    {"sequence_id": 7, "sequence_end": True},
    {"sequence_id": 7},
    {"sequence_id": "seven", "sequence_start": True},
])
def test_sequences_are_refused(infer, sequence):
    with pytest.raises(InferenceServerException, match="sequences are not supported") as caught:
        infer(**sequence)
    assert "sequence_" in str(caught.value)


@pytest.mark.parametrize("none", [0, ""])
def test_no_sequence_is_no_sequence(infer, none):
    assert infer(sequence_id=none).shape == (1, 10)


@pytest.mark.parametrize("request_class", ["deadline", "best_effort", "offline"])
def test_a_class_is_served(infer, request_class):
    assert infer(parameters={"class": request_class}).shape == (1, 10)


def test_a_class_that_does_not_exist_is_refused_with_the_list(infer):
    with pytest.raises(InferenceServerException, match="'deadline' .*'best_effort' or 'offline', got 'urgent'"):
        infer(parameters={"class": "urgent"})


def test_a_class_without_a_deadline_excludes_a_timeout(infer):
    with pytest.raises(InferenceServerException, match="'offline', which has no deadline, and 'timeout' is 50000 us"):
        infer(parameters={"class": "offline"}, timeout=50_000)


def test_the_default_priority_is_honoured_and_others_are_refused(infer):
    assert infer(priority=0).shape == (1, 10)
    for priority in (1, 2**64 - 1):
        with pytest.raises(InferenceServerException, match=f"'priority' is {priority}: .* by their deadlines"):
            infer(priority=priority)


def test_the_status_says_that_it_is_not_supported(small_server):
    for options in ({"sequence_id": 7}, {"priority": 1}):
        for call, status in ((over_http, "501"), (over_grpc, "StatusCode.UNIMPLEMENTED")):
            with pytest.raises(InferenceServerException) as caught:
                call(small_server, **options)
            assert caught.value.status() == status


def test_tensors_in_shared_memory_and_classes_are_refused(small_server):
    for module, address in ((http_client, small_server.http), (grpc_client, small_server.grpc)):
        shared = module.InferInput("pixels", [1, 64], "FP32")
        shared.set_shared_memory("region", 256)
        classes = module.InferRequestedOutput("probabilities", class_count=3)
        elsewhere = module.InferRequestedOutput("probabilities")
        elsewhere.set_shared_memory("region", 40)
        with module.InferenceServerClient(address) as client:
            with pytest.raises(InferenceServerException, match="shared memory is not supported"):
                client.infer("dense", [shared])
            with pytest.raises(InferenceServerException, match="shared memory is not supported"):
                client.infer("dense", [tensor(module)], outputs=[elsewhere])
            with pytest.raises(InferenceServerException, match="classification is not supported"):
                client.infer("dense", [tensor(module)], outputs=[classes])


def test_models_are_loaded_as_the_repository_has_them(small_server):
    for module, address in ((http_client, small_server.http), (grpc_client, small_server.grpc)):
        with module.InferenceServerClient(address) as client:
            with pytest.raises(InferenceServerException, match="'config' is not supported"):
                client.load_model("dense", config="{}")
            client.load_model("dense")  # which is there already
            assert client.is_model_ready("dense")


def count(server, name, place):
    return server.metrics().get(f'foliot_unknown_names_total{{name="{name}",place="{place}"}}', 0)


def logged(server, text):
    return sum(text in line for line in server.output().splitlines())


def test_what_is_unknown_is_answered_logged_once_and_counted(infer, small_server, request):
    name = f"urgency of {request.node.callspec.id}"
    for expected in (1, 2, 3):
        assert infer(parameters={name: "high"}).shape == (1, 10)
        assert count(small_server, name, "request parameter") == expected
    assert logged(small_server, f"request parameter '{name}' is unknown and ignored") == 1


def test_every_place_for_a_name_is_looked_at(small_server):
    body = {
        "modelname": "dense",
        "inputs": [{"name": "pixels", "shape": [1, 64], "datatype": "FP32", "data": PIXELS.tolist(), "size": 1,
                    "parameters": {"colour": "red"}}],
        "outputs": [{"name": "probabilities", "kind": 1, "parameters": {"taste": "sweet"}}],
    }
    assert small_server.post("/v2/models/dense/infer", body)[0] == 200
    for name, place in (("modelname", "request member"), ("size", "input member"), ("colour", "input parameter"),
                        ("kind", "output member"), ("taste", "output parameter")):
        assert count(small_server, name, place) == 1, name
        assert logged(small_server, f"{place} '{name}' is unknown") == 1, name


def test_what_clients_send_by_themselves_is_known(small_server):
    """tritonclient: binary_data_output, binary_data_size, timeout, the mark of a final response."""
    before = {name: value for name, value in small_server.metrics().items() if "unknown_names" in name}
    over_http(small_server, timeout=5_000_000)
    over_grpc(small_server, timeout=5_000_000)
    over_a_stream(small_server, enable_empty_final_response=True)
    outputs = [http_client.InferRequestedOutput("probabilities", binary_data=False)]
    over_http(small_server, outputs=outputs)
    assert {name: value for name, value in small_server.metrics().items() if "unknown_names" in name} == before


def test_hostile_names_stay_on_their_line_and_are_bounded(small_server):
    request = service_pb2.ModelInferRequest(model_name="dense")
    request.inputs.add(name="pixels", datatype="FP32", shape=[1, 64]).contents.fp32_contents.extend(PIXELS[0].tolist())
    with grpc.insecure_channel(small_server.grpc) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        for i in range(300):
            request.parameters.clear()
            request.parameters[f"\n2026-01-01T00:00:00Z error forged {i} \x1b[31m" + "x" * 10_000].bool_param = True
            stub.ModelInfer(request, timeout=10)
    assert not any(line.startswith("2026-01-01T00:00:00Z error forged") for line in small_server.output().splitlines())
    names = [name for name in small_server.metrics() if name.startswith("foliot_unknown_names_total")]
    assert len(names) <= 120
    assert max(map(len, names)) < 300
    assert any("(others)" in name for name in names)
