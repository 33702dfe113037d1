#!/usr/bin/env python3
"""What a policy in Python costs a call: two applications over the same models, called by turns, with feedback for each call.

    tests/figures/policy_cost.py [--calls 6000]
"""

import argparse
import pathlib
import sys
import tempfile
import time

import numpy as np
import tritonclient.http as http_client
from figure import Figure, print_figures

from foliot_tools.server import ROOT, Server
from foliot_tools.waiting import eventually

sys.path.insert(0, str(ROOT / "tests"))
from test_applications import OPTIONS, give, parameters_of, rows_of, write_classifier

COST_MOST = 100e-6  # seconds


def write_applications(repository):
    for name, shift in (("right", 0), ("wrong", 1)):
        write_classifier(repository / name / "model.onnx", shift)
    policies = {"own": f'name = "policy.py"\npython = "{sys.executable}"\nfallback = "exp3"', "compiled": 'name = "exp3"'}
    for name, policy in policies.items():
        (repository / name).mkdir()
        (repository / name / "application.toml").write_text(f'models = ["wrong", "right"]\n[policy]\n{policy}\n')
    (repository / "own/policy.py").write_text((ROOT / "examples/policies/policy.py").read_text())
    return list(policies)


def measure(calls):
    with tempfile.TemporaryDirectory() as folder:
        applications = write_applications(pathlib.Path(folder) / "models")
        with Server(pathlib.Path(folder) / "models", pathlib.Path(folder) / "log", **OPTIONS) as server:
            eventually(lambda: server.metrics()['foliot_application_policy_in_force{application="own"}'] == 1)
            client = http_client.InferenceServerClient(server.http)
            tensor = http_client.InferInput("x", [1, 4], "FP32")
            tensor.set_data_from_numpy(rows_of(2))
            seconds = {name: [] for name in applications}
            for _ in range(calls):
                for name in applications:
                    began = time.perf_counter()
                    given = parameters_of(client.infer(name, [tensor]))
                    seconds[name].append(time.perf_counter() - began)
                    assert give(server, name, {"feedback_id": given["feedback_id"], "label": 2})[0] == 200
    own, compiled = (np.median(seconds[name]) for name in applications)
    return [Figure(f"a policy in Python beside exp3, median of {calls} calls with feedback", f"{COST_MOST * 1e6:.0f} us more",
                   f"{(own - compiled) * 1e6:.0f} us more ({own * 1e6:.0f} and {compiled * 1e6:.0f} us)",
                   own - compiled <= COST_MOST)]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=6000)
    sys.exit(print_figures(measure(parser.parse_args().calls)))
