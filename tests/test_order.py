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


def last_before_reading(request, batches):
    """The id of the last batch that may have been sent before the server's threads had read this request, -1 if there is none:
    from that batch to the next the queue came to be longer than the request found it."""
    for previous, batch in reversed(list(zip([None] + batches, batches))):
        found = previous.queue_length if previous else 0
        if batch.id <= request.action and found <= request.queue_length < batch.queue_length + batch.rows:
            return previous.id if previous else -1
    raise AssertionError(f"{request} never came to wait")


@pytest.mark.parametrize("ask", [ask_on_a_stream, ask_by_calls, ask_over_http])
def test_none_is_overtaken_by_more_than_one_batch(ask, logging_server, tmp_path):
    ask(logging_server)
    assert logging_server.stop() == 0
    log = read_log(tmp_path / "log")
    lanes = max(action.lane + action.lanes for action in log.actions)
    batches = [action for action in log.actions if action.type == "INFER"]
    requests = sorted(log.requests, key=lambda request: request.arrival_us)
    assert len(requests) == REQUESTS and all(request.status == "served" for request in requests)
    assert max(request.queue_length for request in requests) > 4 * LARGEST_BATCH, "nothing had to wait"
    for i, request in enumerate(requests):
        # Chosen before it. Requests are ordered by when they reached the machine: one that the server's threads came to
        # read after others may find those in batches that the device has been given.
        ahead = {later.action for later in requests[i + 1:] if later.action < request.action}
        assert len(ahead) <= COMMITTED_MAX * lanes, f"{request} was overtaken by {ahead}"
        # Of several lanes one may be slower than was expected when a batch was given to it.
        read_after = last_before_reading(request, batches)
        overtakers = {batch for batch in ahead if batch > read_after}
        assert len(overtakers) <= 1, f"{request} was overtaken by {overtakers}, and had been read"
