"""NVIDIA's client for Triton, over HTTP and gRPC; of several releases."""

import queue
import time

import checks
import numpy as np
import tritonclient.grpc as rpc
import tritonclient.http as http


def inputs_of(module, **options):
    inputs = []
    for name, values in (("a", checks.A), ("b", checks.B)):
        tensor = module.InferInput(name, list(values.shape), "FP32")
        tensor.set_data_from_numpy(values, **options)
        inputs.append(tensor)
    return inputs


def arrays(result):
    return {name: result.as_numpy(name) for name in ("sum", "difference")}


def health(server):
    """health, metadata, configuration, statistics"""
    for module, address in ((http, server.http), (rpc, server.grpc)):
        client = module.InferenceServerClient(address)
        assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("pair")
        assert not client.is_model_ready("nobody")
        assert client.get_model_metadata("pair") and client.get_model_config("pair")
        assert client.get_inference_statistics("pair")
        client.close()


def inference(server):
    """inference, JSON and binary tensors"""
    with http.InferenceServerClient(server.http) as client:
        checks.expect(arrays(client.infer("pair", inputs_of(http, binary_data=True))))
        checks.expect(arrays(client.infer("pair", inputs_of(http, binary_data=False))))
    with rpc.InferenceServerClient(server.grpc) as client:
        checks.expect(arrays(client.infer("pair", inputs_of(rpc))))


def compression(server):
    """compressed requests and answers"""
    with http.InferenceServerClient(server.http) as client:
        values = np.ones((512, 4), np.float32)
        for algorithm in ("gzip", "deflate"):
            both = []
            for name in ("a", "b"):
                tensor = http.InferInput(name, list(values.shape), "FP32")
                tensor.set_data_from_numpy(values)
                both.append(tensor)
            result = client.infer("pair", both, request_compression_algorithm=algorithm,
                                  response_compression_algorithm=algorithm)
            np.testing.assert_array_equal(result.as_numpy("sum"), 2 * values)


def refusal(server):
    """a refusal names the deadline"""
    with http.InferenceServerClient(server.http) as client:
        checks.expect_refusal(lambda: client.infer("pair", inputs_of(http), timeout=1), "unmeetable",
                              "parameter 'timeout', in microseconds")
    with rpc.InferenceServerClient(server.grpc) as client:
        checks.expect_refusal(lambda: client.infer("pair", inputs_of(rpc), timeout=1), "unmeetable",
                              "parameter 'timeout', in microseconds")


def keepalive(server):
    """gRPC: pings each 10 s end no stream"""
    done = queue.Queue()
    every_ten_seconds = rpc.KeepAliveOptions(keepalive_time_ms=10_000, keepalive_timeout_ms=5_000,
                                             keepalive_permit_without_calls=True, http2_max_pings_without_data=0)
    with rpc.InferenceServerClient(server.grpc, keepalive_options=every_ten_seconds) as client:
        client.start_stream(lambda result, error: done.put((result, error)))
        time.sleep(55)  # five pings: gRPC's default ends a connection at the third that comes too early
        client.async_stream_infer("pair", inputs_of(rpc))
        result, error = done.get(timeout=30)
        client.stop_stream()
    assert error is None, error
    checks.expect(arrays(result))


if __name__ == "__main__":
    checks.run([health, inference, compression, refusal, keepalive])
