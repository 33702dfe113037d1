"""OpenVINO's Model API, whose adapter for its model server asks this one."""

import checks
from model_api.adapters import OVMSAdapter


def inference(server):
    """HTTP: readiness, metadata, inference"""
    adapter = OVMSAdapter(f"{server.http}/v2/models/pair")
    assert sorted(adapter.get_input_layers()) == ["a", "b"]
    assert sorted(adapter.get_output_layers()) == ["difference", "sum"]
    checks.expect(adapter.infer_sync({"a": checks.A, "b": checks.B}))


def version(server):
    """HTTP: a version by its number"""
    checks.expect(OVMSAdapter(f"{server.http}/v2/models/pair/versions/1").infer_sync({"a": checks.A, "b": checks.B}))


if __name__ == "__main__":
    checks.run([inference, version])
