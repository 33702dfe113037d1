"""Policies of applications in Python: they learn and select, and where their code fails a compiled-in one does, while each call
is answered."""

import os
import pathlib
import signal
import subprocess
import sys

import numpy as np
import pytest
import tritonclient.http as http_client

from foliot_tools.cluster import Cluster
from foliot_tools.server import ROOT, foliot_binary
from foliot_tools.waiting import eventually
from test_applications import OPTIONS, give, parameters_of, rows_of, write_classifier
from test_cluster_applications import add_frontend, chosen, observe

EXAMPLE = ROOT / "examples/policies/policy.py"
IN_FORCE = 'foliot_application_policy_in_force{application="digits"}'
FAILURES = 'foliot_application_policy_failures_total{application="digits"}'

# Asks `right` alone, until an observation comes, on which it does this. Its fallback asks `wrong` alone, so that calls show
# which of them selects.
FAILING = """import os, time
import numpy as np

class Policy:
    def init(self, models):
        print("begins", os.getpid(), flush=True)
        return [0]
    def select(self, state):
        return {"right": 1} if state[0] == 0 else {"absent": 1}
    def observe(self, state, weights, losses):
        if losses[1] == 0:
            return state
        OBSERVE
"""
FAILURE_OF = {"raises": 'raise ValueError("out of luck")', "sleeps": "time.sleep(1000)", "ends": "os._exit(3)",
              "unknown model": "return [1]", "no numbers": "return [np.nan]"}


def write_policy(repository, code, fallback='{ name = "static", model = "wrong" }'):
    folder = repository / "digits"
    folder.mkdir(exist_ok=True)
    (folder / "policy.py").write_text(code)
    (folder / "application.toml").write_text(
        f'models = ["wrong", "right"]\n[policy]\nname = "policy.py"\npython = "{sys.executable}"\nfallback = {fallback}\n')


@pytest.fixture(name="repository")
def classifiers(tmp_path):
    folder = tmp_path / "models"
    for name, shift in (("right", 0), ("wrong", 1)):
        write_classifier(folder / name / "model.onnx", shift)
    return folder


class Calls:
    def __init__(self, server):
        self.server = server
        self.client = http_client.InferenceServerClient(server.http)
        self.tensor = http_client.InferInput("x", [1, 4], "FP32")
        self.tensor.set_data_from_numpy(rows_of(2))

    def __call__(self, **feedback):
        """The model that answered."""
        given = parameters_of(self.client.infer("digits", [self.tensor]))
        if feedback:
            assert give(self.server, "digits", {"feedback_id": given["feedback_id"], **feedback})[0] == 200
        return given["models"]

    def in_force(self):
        return self.server.metrics()[IN_FORCE] == 1


def start(serve, repository, **options):
    server = serve(repository, **OPTIONS, **options)
    calls = Calls(server)
    eventually(lambda: server.get("/v2/health/ready")[0] == 200 and calls.in_force(), otherwise=server.console.read_text)
    return server, calls


def replay(log, *policies):
    return subprocess.run([foliot_binary(), "replay", "--log", log, *(part for policy in policies for part in ("--policy", policy))],
                          capture_output=True, text=True, check=False)


def in_toml(file):
    return f'{{ name = "{file}", python = "{sys.executable}" }}'


def test_the_example_learns_and_is_judged_by_the_log(serve, repository, tmp_path):
    write_policy(repository, EXAMPLE.read_text(), '"exp3"')
    log, state = tmp_path / "log", tmp_path / "learned"
    server, calls = start(serve, repository, log=log, state=state)
    for _ in range(300):
        calls(label=2)
    weight = 'foliot_application_weight{application="digits",model="right"}'
    eventually(lambda: server.metrics()[weight] > 0.9)
    assert server.metrics()[FAILURES] == 0
    server.stop()
    judged = replay(log, in_toml(EXAMPLE), "static")
    assert judged.returncode == 0, judged.stderr
    rows = {line.split("  ")[0]: line for line in judged.stdout.splitlines()}
    assert "worse" in rows["static"], "which asks the first model, that is wrong"
    assert "worse" not in rows[in_toml(EXAMPLE)]
    # After a restart it goes on from there.
    server, calls = start(serve, repository, state=state)
    assert server.metrics()[weight] > 0.9


@pytest.mark.parametrize("failure", FAILURE_OF)
def test_a_policy_that_fails_is_replaced_by_its_fallback_and_started_again(serve, repository, failure):
    write_policy(repository, FAILING.replace("OBSERVE", FAILURE_OF[failure]))
    server, calls = start(serve, repository)
    assert calls(loss=0) == "right"
    assert calls(loss=1) == "right"
    asked = []
    # The calls of the meantime are all answered.
    eventually(lambda: asked.append(calls()) or server.metrics()[FAILURES] > 0)
    eventually(lambda: asked.append(calls()) or calls.in_force())
    assert set(asked) <= {"right", "wrong"}
    assert calls(loss=0) == "right"
    console = server.console.read_text()
    assert "its fallback 'static' selects, and it is started again in" in console
    reason = {"raises": "ValueError: out of luck", "sleeps": "it did not answer within 1", "ends": "ended", "no numbers": "no list of at most",
              "unknown model": "unknown model 'absent'; the application has wrong, right"}[failure]
    assert reason in console
    assert "selects again" in console
    assert server.metrics()['foliot_application_policy_unlearned_total{application="digits"}'] > 0


def test_a_policy_that_is_killed_is_started_again(serve, repository):
    write_policy(repository, FAILING.replace("OBSERVE", "return state"))
    server, calls = start(serve, repository)
    children = [int(number) for number in subprocess.run(["ps", "--ppid", str(server.process.pid), "-o", "pid="],
                                                         capture_output=True, text=True, check=True).stdout.split()]
    policy = [number for number in children if b"foliot.selection" in pathlib.Path(f"/proc/{number}/cmdline").read_bytes()]
    assert policy, children
    os.kill(policy[0], signal.SIGKILL)
    eventually(lambda: calls() and server.metrics()[FAILURES] == 1)
    eventually(lambda: calls() and calls.in_force())
    assert calls() == "right"


def test_a_policy_that_cannot_be_loaded_says_why_and_its_fallback_serves(serve, repository):
    write_policy(repository, "class Policy:\n    def init(self, models): return []\n")
    server = serve(repository, **OPTIONS, watch="100ms")
    calls = Calls(server)
    eventually(lambda: server.get("/v2/health/ready")[0] == 200)
    assert calls(loss=1) == "wrong"
    eventually(lambda: "policy.py needs a class Policy with the methods init, select, observe; select is missing"
               in server.console.read_text())
    # It is repaired while the server runs.
    write_policy(repository, FAILING.replace("OBSERVE", "return state"))
    eventually(lambda: calls.in_force())
    assert calls() == "right"


def test_a_policy_combines(serve, repository):
    write_policy(repository, """
class Policy:
    def init(self, models): return []
    def select(self, state): return [1, 1]
    def combine(self, state): return {"right": 3, "wrong": 1}
    def observe(self, state, weights, losses): return state
""", '"majority"\ncombines = true')
    _, calls = start(serve, repository)
    given = parameters_of(calls.client.infer("digits", [calls.tensor]))
    assert (given["models"], given["confidence"]) == ("wrong,right", 0.5)
    assert calls.client.infer("digits", [calls.tensor]).as_numpy("label").tolist() == [2]


def test_a_front_end_runs_policies_over_the_models_of_workers(repository, tmp_path):
    applications = tmp_path / "applications"
    applications.mkdir()
    code = """
class Policy:
    def init(self, models): return [0]
    def select(self, state): return "right" if state[0] else "wrong"
    def observe(self, state, weights, losses): return [1]
"""
    write_policy(applications, code)
    options = {"applications": applications, "state": tmp_path / "learned", "watch": "100ms"}
    with Cluster(tmp_path, repository, workers=1, frontends=0) as cluster:
        frontend = add_frontend(cluster, "first", **options)
        observe(frontend, chosen(frontend), 1)
        eventually(lambda: chosen(frontend)["models"] == "right")
        frontend.stop()
        frontend = add_frontend(cluster, "second", **options)
        eventually(lambda: chosen(frontend)["models"] == "right")
        write_policy(applications, code + "# begins anew\n")
        eventually(lambda: chosen(frontend)["models"] == "wrong")


def test_large_numbers_are_shares_too(serve, repository):
    write_policy(repository, """
class Policy:
    def init(self, models): return []
    def select(self, state): return [1e308, 1e308]
    def observe(self, state, weights, losses): return state
""")
    server, _ = start(serve, repository)
    assert server.metrics()['foliot_application_weight{application="digits",model="right"}'] == 0.5


def test_replay_says_what_is_wrong_with_a_policy(serve, repository, tmp_path):
    write_policy(repository, EXAMPLE.read_text(), '"exp3"')
    log = tmp_path / "log"
    server, calls = start(serve, repository, log=log)
    for _ in range(20):
        calls(label=2)
    server.stop()
    broken = tmp_path / "broken.py"
    broken.write_text(FAILING.replace("OBSERVE", 'raise ValueError("out of luck")'))
    judged = replay(log, in_toml(broken))
    assert judged.returncode == 1
    assert "the policy raised ValueError: out of luck (broken.py, line 13)" in judged.stderr
