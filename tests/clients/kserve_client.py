"""KServe's own clients, over REST and gRPC."""

import asyncio
import pathlib

import checks
import kserve
import kubernetes
import yaml
from kserve import InferenceGRPCClient, InferenceRESTClient, InferInput, InferRequest
from kserve.inference_client import RESTConfig


def request(binary, **parameters):
    inputs = []
    for name, values in (("a", checks.A), ("b", checks.B)):
        tensor = InferInput(name, list(values.shape), "FP32")
        tensor.set_data_from_numpy(values, binary_data=binary)
        inputs.append(tensor)
    return InferRequest("pair", inputs, parameters=parameters or None)


def outputs_of(response):
    return {output.name: output.as_numpy() for output in response.outputs}


def over_rest(server, call, protocol="v2"):
    async def asked():
        async with InferenceRESTClient(RESTConfig(protocol=protocol)) as client:
            return await call(client, f"http://{server.http}")

    return asyncio.run(asked())


def over_grpc(server, call):
    async def asked():
        async with InferenceGRPCClient(server.grpc) as client:
            return await call(client)

    return asyncio.run(asked())


def rest_health(server):
    """REST: health of server and model"""
    assert over_rest(server, lambda client, url: client.is_server_live(url)) is True
    assert over_rest(server, lambda client, url: client.is_server_ready(url)) is True
    assert over_rest(server, lambda client, url: client.is_model_ready(url, "pair")) is True
    assert over_rest(server, lambda client, url: client.is_model_ready(url, "nobody")) is False


def rest_json(server):
    """REST: inference, JSON"""
    checks.expect(outputs_of(over_rest(server, lambda client, url: client.infer(url, request(False), "pair"))))


def rest_binary(server):
    """REST: inference, binary tensors"""
    checks.expect(outputs_of(over_rest(server, lambda client, url: client.infer(url, request(True), "pair"))))


def rest_refusal(server):
    """REST: a refusal names the deadline"""
    late = request(False, timeout=1)
    checks.expect_refusal(lambda: over_rest(server, lambda client, url: client.infer(url, late, "pair")), "unmeetable",
                          "parameter 'timeout', in microseconds")


def over_v1(server, call):
    return over_rest(server, call, "v1")


def v1_health(server):
    """REST, v1: health of server and model"""
    assert over_v1(server, lambda client, url: client.is_server_live(url)) is True
    assert over_v1(server, lambda client, url: client.is_model_ready(url, "pair")) is True
    checks.expect_refusal(lambda: over_v1(server, lambda client, url: client.is_model_ready(url, "unknown_model")), "unknown_model")


def v1_predictions(server):
    """REST, v1: predictions of rows by names"""
    rows = [{"a": a, "b": b} for a, b in zip(checks.A.tolist(), checks.B.tolist(), strict=True)]
    for body in {"instances": rows}, {"inputs": rows}:
        answer = over_v1(server, lambda client, url: client.infer(url, body, "pair"))  # noqa: B023
        assert set(answer) == {"predictions"}
        checks.expect({name: [row[name] for row in answer["predictions"]] for name in ("sum", "difference")})


def v1_refusal(server):
    """REST, v1: a refusal names the deadline, an error the row"""
    row = {"a": checks.A[0].tolist(), "b": checks.B[0].tolist()}
    late = {"instances": [row], "parameters": {"timeout": 1}}
    checks.expect_refusal(lambda: over_v1(server, lambda client, url: client.infer(url, late, "pair")), "unmeetable",
                          "parameter 'timeout', in microseconds")
    wrong = {"instances": [row, {**row, "b": None}]}
    checks.expect_refusal(lambda: over_v1(server, lambda client, url: client.infer(url, wrong, "pair")),
                          "instances[1] has null in column 'b'")


def grpc_health(server):
    """gRPC: health of server and model"""
    assert over_grpc(server, lambda client: client.is_server_live()) is True
    assert over_grpc(server, lambda client: client.is_server_ready()) is True
    assert over_grpc(server, lambda client: client.is_model_ready("pair")) is True


def grpc_inference(server):
    """gRPC: inference, raw and typed tensors"""
    for binary in (True, False):
        checks.expect(outputs_of(over_grpc(server, lambda client: client.infer(request(binary)))))  # noqa: B023


def grpc_refusal(server):
    """gRPC: what cannot be met is not tried again"""
    before = checks.refused_as_unmeetable(server)
    late = request(True, timeout=1)
    checks.expect_refusal(lambda: over_grpc(server, lambda client: client.infer(late)), "unmeetable")
    rows = checks.refused_as_unmeetable(server) - before
    assert rows == len(checks.A), f"{rows} rows were refused of {len(checks.A)} sent"


def fields(value, kind):
    """Checks that a document has no fields but those of KServe's or Kubernetes' own class of it."""
    if kind.startswith("list["):
        return [fields(each, kind[5:-1]) for each in value]
    known = getattr(kserve.models, kind, None) or getattr(kubernetes.client, kind, None)
    if known is None:
        return value
    types = {known.attribute_map[name]: known.openapi_types[name] for name in known.attribute_map}
    assert set(value) <= set(types), f"{kind} has no {set(value) - set(types)}"
    return {name: fields(each, types[name]) for name, each in value.items()}


def documents(name):
    return list(yaml.safe_load_all((pathlib.Path(__file__).parents[2] / "deploy/kserve" / name).read_text()))


def deployment(server):
    """deploy/kserve has the fields of KServe's schema, and gives the server no rights"""
    del server
    [runtime], services = documents("runtime.yaml"), documents("inference-service.yaml")
    fields(runtime, "V1alpha1ClusterServingRuntime")
    spec = runtime["spec"]
    [container] = spec["containers"]
    rights = container["securityContext"]
    assert rights["runAsNonRoot"] and rights["readOnlyRootFilesystem"] and not rights["allowPrivilegeEscalation"]
    assert rights["capabilities"] == {"drop": ["ALL"]}
    assert {each["name"] for each in container["volumeMounts"]} == {each["name"] for each in spec["volumes"]}
    for service in services:
        fields(service, "V1beta1InferenceService")
        model = service["spec"]["predictor"]["model"]
        assert model["runtime"] == runtime["metadata"]["name"]
        assert model["modelFormat"]["name"] in {each["name"] for each in spec["supportedModelFormats"]}
        assert model["protocolVersion"] in spec["protocolVersions"]


if __name__ == "__main__":
    checks.run([rest_health, rest_json, rest_binary, rest_refusal, v1_health, v1_predictions, v1_refusal, grpc_health,
                grpc_inference, grpc_refusal, deployment])
