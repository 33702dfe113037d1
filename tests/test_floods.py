"""A client that asks for more than there is room for does not shut out those whose
requests are urgent: the unmodified tritonclient against the front end's limit."""

import contextlib
import queue

import numpy as np
import pytest
import tritonclient.grpc as grpc_client
import tritonclient.http as http_client

from foliot_tools import onnx_models
from foliot_tools.server import frozen
from foliot_tools.waiting import eventually

IN_FLIGHT_MAX = 1024
FLOOD = 2000
CONNECTIONS = 4
FEATURES = 1536


@pytest.fixture
def server(serve, tmp_path):
    """Takes some milliseconds for four rows: so many that wait take seconds."""
    folder = tmp_path / "models"
    onnx_models.random_dense_network(folder / "slow/1/model.onnx", (FEATURES,) * 17 + (2,))
    (folder / "slow/model.toml").write_text("batch_sizes = [1, 2, 4]\n")
    # One thread: with all cores it might be faster than the client that floods it.
    server = serve(folder, page_cache="256MiB", requests_in_flight_max=IN_FLIGHT_MAX, threads=1)
    with http_client.InferenceServerClient(server.http) as client:
        eventually(lambda: client.get_model_config("slow")["max_batch_size"] == 4, timeout=300,
                   otherwise="the larger batch sizes are not compiled")
    return server


def connect(server):
    """With a connection of its own: on one connection there are never more calls at once than the server's limit."""
    return grpc_client.InferenceServerClient(server.grpc, channel_args=[("grpc.use_local_subchannel_pool", 1)])


def ask(client, count, answers, **options):
    pixels = grpc_client.InferInput("pixels", [1, FEATURES], "FP32")
    pixels.set_data_from_numpy(np.zeros((1, FEATURES), np.float32))
    for _ in range(count):
        client.async_infer("slow", [pixels], lambda result, error: answers.put(error), **options)


@pytest.mark.parametrize("flood", [{}, {"timeout": 3_600_000_000}], ids=["best effort", "an hour's time"])
def test_what_can_wait_is_evicted(server, flood):
    flooded, urgent = queue.Queue(), queue.Queue()
    with contextlib.ExitStack() as clients:
        flooding = [clients.enter_context(connect(server)) for _ in range(CONNECTIONS)]
        with frozen(server.process):  # it would answer some while the clients still write the others
            for client in flooding:
                ask(client, FLOOD // CONNECTIONS, flooded, **flood)
        rest = [flooded.get(timeout=180)]
        while rest[-1] is None:
            rest.append(flooded.get(timeout=180))
        assert "overload" in str(rest[-1]), "the queue is full"
        ask(clients.enter_context(connect(server)), 100, urgent, timeout=5_000_000)
        errors = [urgent.get(timeout=180) for _ in range(100)]
        assert errors == [None] * 100
        rest += [flooded.get(timeout=180) for _ in range(FLOOD - len(rest))]
    assert all(error is None or "overload" in str(error) for error in rest)
    assert sum(error is None for error in rest) > IN_FLIGHT_MAX / 2
