"""The client that the protocol's working group generates from its OpenAPI description."""

import checks
from open_inference.openapi.client import OpenInferenceClient
from open_inference.openapi.types.inference_request import InferenceRequest


def client_of(server):
    return OpenInferenceClient(base_url=f"http://{server.http}")


def request(**parameters):
    inputs = [{"name": name, "shape": list(values.shape), "datatype": "FP32", "data": values.tolist()}
              for name, values in (("a", checks.A), ("b", checks.B))]
    return InferenceRequest.parse_obj({"inputs": inputs, "parameters": parameters})


def health(server):
    """REST: health and metadata"""
    client = client_of(server)
    client.check_server_liveness()
    client.check_server_readiness()
    client.check_model_readiness("pair")
    client.check_model_version_readiness("pair", "1")
    assert client.read_server_metadata().name == "foliot"
    assert [tensor.name for tensor in client.read_model_metadata("pair").inputs] == ["a", "b"]


def inference(server):
    """REST: inference, JSON"""
    response = client_of(server).model_infer("pair", request=request())
    checks.expect({output.name: output.data.dict()["__root__"] for output in response.outputs})


def refusal(server):
    """REST: a refusal names the deadline"""
    checks.expect_refusal(lambda: client_of(server).model_infer("pair", request=request(timeout=1)), "unmeetable",
                          "parameter 'timeout', in microseconds")


if __name__ == "__main__":
    checks.run([health, inference, refusal])
