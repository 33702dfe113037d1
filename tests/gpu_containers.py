"""Containers on a GPU, on a machine that has one of NVIDIA's, in an environment with PyTorch (make test-gpu): `make test`
needs neither."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from foliot_tools.server import foliot_binary
from foliot_tools.waiting import eventually

torch = pytest.importorskip("torch")

MODEL = """import foliot
foliot.torch("network.pt", inputs={"x": ("FP32", [4])}, device="cuda")
"""
REPORTS = """import foliot, torch
@foliot.model(inputs={"x": ("FP32", [1])}, outputs={"gpus": ("INT64", []), "on_gpu": ("BOOL", [])}, batch_size_max=1)
def predict(batch):
    y = torch.from_numpy(batch["x"].copy()).cuda()
    return {"gpus": [torch.cuda.device_count()], "on_gpu": [y.is_cuda]}
"""
COUNTS_ROWS = """import torch
class Network(torch.nn.Module):
    def forward(self, x): return torch.full_like(x[:, :1], x.shape[0])
"""
ROWS = np.random.default_rng(1).normal(size=(5, 4)).astype(np.float32)


@pytest.fixture(autouse=True)
def gpu():
    if not torch.cuda.is_available():
        pytest.fail("this machine has no GPU that PyTorch can use")


@pytest.fixture
def repository(tmp_path):
    return tmp_path / "models"


def write(folder, text, settings):
    (folder / "1").mkdir(parents=True)
    (folder / "1/model.py").write_text(text)
    (folder / "model.toml").write_text(f'[container]\npython = "{sys.executable}"\n{settings}\n')
    return folder / "1"


def write_network(folder, settings):
    """A network as TorchScript, and what it answers for ROWS on the CPU."""
    code = write(folder, MODEL, settings)
    torch.manual_seed(1)
    network = torch.nn.Sequential(torch.nn.Linear(4, 64), torch.nn.ReLU(), torch.nn.Linear(64, 3)).eval()
    torch.jit.trace(network, torch.zeros(2, 4)).save(code / "network.pt")
    return network(torch.tensor(ROWS)).detach().numpy()


def check(folder, expected):
    """What `foliot container check` prints."""
    done = subprocess.run([foliot_binary(), "container", "check", folder], capture_output=True, text=True, timeout=60)
    output = done.stdout + done.stderr
    assert done.returncode == expected, output
    return output


def infer(server, model, data):
    status, answer = server.post(f"/v2/models/{model}/infer", {"inputs": [
        {"name": "x", "shape": list(data.shape), "datatype": "FP32", "data": data.ravel().tolist()}]})
    assert status == 200, answer
    return {output["name"]: np.array(output["data"]).reshape(output["shape"]) for output in answer["outputs"]}


def test_it_computes_on_the_gpu_what_the_cpu_computes(serve, repository):
    expected = write_network(repository / "m", "gpus = [0]")
    server = serve(repository, page_cache="64MiB")
    eventually(lambda: server.get("/v2/models/m/ready")[0] == 200, otherwise=server.output)
    np.testing.assert_allclose(infer(server, "m", ROWS)["y"], expected, rtol=1e-3, atol=1e-4)
    assert "not fully confined" not in server.output()


def test_code_sees_the_gpus_that_it_was_given(serve, repository):
    write(repository / "m", REPORTS, "gpus = [0]")
    server = serve(repository, page_cache="64MiB")
    eventually(lambda: server.get("/v2/models/m/ready")[0] == 200, otherwise=server.output)
    answer = infer(server, "m", np.ones((1, 1), np.float32))
    assert (answer["gpus"].tolist(), answer["on_gpu"].tolist()) == ([1], [True])


def test_without_gpus_none_is_reached_and_what_to_write_is_said(repository):
    write_network(repository / "m", "")
    assert "gpus = [0], or another number, in [container]" in check(repository / "m", 1)


def test_a_gpu_that_is_not_there_is_named(repository):
    write_network(repository / "m", "gpus = [127]")
    assert "'gpus' in [container] needs /dev/nvidia127, which does not exist" in check(repository / "m", 1)


def test_rows_are_padded_to_the_sizes_that_were_warmed_up(serve, repository):
    code = write(repository / "m", "import foliot\nfrom network import Network\n"
                 "foliot.torch('weights.pt', module=Network(), inputs={'x': ('FP32', [4])}, device='cuda')\n", "gpus = [0]")
    (code / "network.py").write_text(COUNTS_ROWS)
    torch.save({}, code / "weights.pt")
    server = serve(repository, page_cache="64MiB")
    eventually(lambda: server.get("/v2/models/m/ready")[0] == 200, otherwise=server.output)
    np.testing.assert_array_equal(infer(server, "m", ROWS)["y"], np.full((5, 1), 8, np.float32))


def test_replicas_share_a_gpu_and_one_that_is_killed_comes_back(serve, repository):
    write(repository / "m", REPORTS.replace('"gpus": ("INT64"', '"pid": ("INT64", []), "gpus": ("INT64"').replace(
        'return {', 'import os; return {"pid": [os.getpid()], '), "gpus = [0]\nreplicas = 2")
    server = serve(repository, page_cache="64MiB")
    row = np.ones((1, 1), np.float32)
    eventually(lambda: server.get("/v2/models/m/ready")[0] == 200, otherwise=server.output)
    first = int(infer(server, "m", row)["pid"][0])
    os.kill(first, signal.SIGKILL)
    eventually(lambda: "serves again" in server.output(), otherwise=server.output)
    assert infer(server, "m", row)["on_gpu"].tolist() == [True]
