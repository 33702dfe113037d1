"""Requests that are equals are served in the order in which they came, whatever
the protocol: the unmodified tritonclient sends no deadlines, 400 at once."""

import concurrent.futures
import queue
import threading

import numpy as np
import pytest
import tritonclient.grpc as grpc_client
import tritonclient.http as http_client

from foliot_tools import onnx_models
from foliot_tools.log import read_log

REQUESTS = 400
LARGEST_BATCH = 4
# A lane has been given no more batches than these when the next one is chosen.
COMMITTED_MAX = 4
FEATURES = 1536


@pytest.fixture(scope="module")
def slow_models(tmp_path_factory):
    """A model that takes longer than a client needs to send it a batch."""
    folder = tmp_path_factory.mktemp("slow_models")
    onnx_models.random_dense_network(folder / "slow/1/model.onnx", (FEATURES,) * 17 + (2,))
    (folder / "slow/model.toml").write_text(f"batch_sizes = [1, 2, {LARGEST_BATCH}]\n")
    return folder


@pytest.fixture
def logging_server(serve, slow_models, tmp_path):
    return serve(slow_models, log=tmp_path / "log", cache=slow_models / ".cache", page_cache="256MiB")


def ask_on_a_stream(server):
    """Returns the requests in the order of their answers."""
    done = queue.Queue()
    with grpc_client.InferenceServerClient(server.grpc) as client:
        client.start_stream(lambda result, error: done.put((result, error)))
        for i in range(REQUESTS):
            client.async_stream_infer("slow", [pixels(grpc_client)], request_id=str(i))
        answers = [done.get(timeout=60) for _ in range(REQUESTS)]
        client.stop_stream()
    assert all(error is None for _, error in answers)
    return [int(result.get_response().id) for result, _ in answers]


def ask_by_calls(server):
    done = queue.Queue()
    with grpc_client.InferenceServerClient(server.grpc) as client:
        for i in range(REQUESTS):
            client.async_infer("slow", [pixels(grpc_client)], lambda result, error: done.put(error), request_id=str(i))
        assert all(done.get(timeout=60) is None for _ in range(REQUESTS))


def ask_over_http(server):
    all_there = threading.Barrier(REQUESTS)

    def ask(_):
        with http_client.InferenceServerClient(server.http, network_timeout=60) as client:
            value = [pixels(http_client)]
            all_there.wait()
            client.infer("slow", value)

    with concurrent.futures.ThreadPoolExecutor(REQUESTS) as threads:
        list(threads.map(ask, range(REQUESTS)))


def pixels(module):
    value = module.InferInput("pixels", [1, FEATURES], "FP32")
    value.set_data_from_numpy(np.zeros((1, FEATURES), np.float32))
    return value


def test_a_stream_is_answered_in_its_order(logging_server):
    answered = ask_on_a_stream(logging_server)
    assert answered == list(range(REQUESTS))


@pytest.mark.parametrize("ask", [ask_on_a_stream, ask_by_calls, ask_over_http])
def test_none_is_overtaken_by_more_than_one_batch(ask, logging_server, tmp_path):
    ask(logging_server)
    assert logging_server.stop() == 0
    log = read_log(tmp_path / "log")
    lanes = max(action.lane + action.lanes for action in log.actions)
    requests = sorted(log.requests, key=lambda request: request.arrival_us)
    assert len(requests) == REQUESTS and all(request.status == "served" for request in requests)
    assert max(request.queue_length for request in requests) > 2 * COMMITTED_MAX * lanes * LARGEST_BATCH, "nothing had to wait"
    for i, request in enumerate(requests):
        # Chosen before it. Of several lanes one may be slower than was expected when a batch was given to it.
        ahead = {later.action for later in requests[i + 1:] if later.action < request.action}
        # Requests are ordered by when they reached the machine. Where no more wait than the device has been given, one that
        # the server's threads came to read after others may find those given to it.
        given_max = COMMITTED_MAX * lanes
        limit = 1 if request.queue_length > given_max * LARGEST_BATCH else given_max
        assert len(ahead) <= limit, f"{request} was overtaken by {ahead}"
