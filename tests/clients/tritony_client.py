"""tritony, over gRPC and HTTP, with time enough: it sends its timeout of 30 s as 30 microseconds."""

import os

os.environ.update(TRITON_CLIENT_TIMEOUT="60000000", TRITON_RETRIES="1")

import checks  # noqa: E402: read when it is imported
import numpy as np  # noqa: E402
from tritony import InferenceClient  # noqa: E402


def outputs_of(address, protocol):
    client = InferenceClient.create_with("pair", address, protocol=protocol)
    outputs = client({"a": checks.A, "b": checks.B})
    return dict(zip(("sum", "difference"), (np.asarray(output) for output in outputs), strict=True))


def over_grpc(server):
    """gRPC: configuration and inference"""
    checks.expect(outputs_of(server.grpc, "grpc"))


def over_http(server):
    """HTTP: configuration and inference"""
    checks.expect(outputs_of(server.http, "http"))


def refusal(server):
    """a refusal names the deadline"""
    client = InferenceClient.create_with("pair", server.grpc, protocol="grpc")
    client.client_timeout = 30
    checks.expect_refusal(lambda: client({"a": checks.A, "b": checks.B}), "its deadline was 0.030 ms after arrival")


if __name__ == "__main__":
    checks.run([over_grpc, over_http, refusal])
