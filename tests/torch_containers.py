"""The adapter of PyTorch, in an environment that has it (make test-torch-containers): `make test` installs no torch."""

import numpy as np
import pytest
import torch
from foliot.adapters import pytorch
from foliot_tools.replica import Replica

MODULE = """import torch
class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.activation = torch.nn.ReLU(inplace=True)
        self.linear = torch.nn.Linear(4, 3)
    def forward(self, x): return self.linear(self.activation(x))
"""
ROWS = np.random.default_rng(1).normal(size=(5, 4)).astype(np.float32)


@pytest.fixture
def folder(tmp_path):
    """Has a network as TorchScript, as an exported program and as weights."""
    (tmp_path / "network.py").write_text(MODULE)
    scope = {}
    exec(compile(MODULE, tmp_path / "network.py", "exec"), scope)
    torch.manual_seed(1)
    network = scope["Network"]().eval()
    torch.jit.trace(network, torch.zeros(2, 4)).save(tmp_path / "network.pt")
    torch.save(network.state_dict(), tmp_path / "weights.pt")
    exported = torch.export.export(network, (torch.zeros(2, 4),), dynamic_shapes=({0: torch.export.Dim("rows")},))
    torch.export.save(exported, tmp_path / "network.pt2")
    np.save(tmp_path / "expected.npy", network(torch.tensor(ROWS)).detach().numpy())
    return tmp_path


@pytest.mark.parametrize("arguments", ["'network.pt'", "'network.pt2'", "'weights.pt', module=Network()"])
def test_it_computes_what_torch_computes(folder, arguments):
    (folder / "model.py").write_text("import foliot\nfrom network import Network\n"
                                     f"foliot.torch({arguments}, inputs={{'x': ('FP32', [4])}})\n")
    with Replica(folder) as replica:
        assert replica.start()["outputs"] == [{"name": "y", "datatype": "FP32", "shape": [3]}]
        replica.share_memory(1 << 16)
        np.testing.assert_allclose(replica.call({"x": ROWS})["y"], np.load(folder / "expected.npy"), rtol=1e-5, atol=1e-6)
        status, _, printed = replica.close()
        assert status == 0 and "not writable" not in printed


@pytest.mark.parametrize("rows, most, computed", [(1, None, 1), (5, None, 8), (8, None, 8), (33, 48, 48), (48, 48, 48), (3, 64, 4)])
def test_batches_for_a_gpu_have_few_sizes(rows, most, computed):
    assert pytorch.padded(rows, most) == computed


def test_padding_is_zeros_behind_the_rows():
    rows = np.arange(12, dtype=np.float32).reshape(3, 2, 2)
    tensor = pytorch.on_device(torch, rows, 1, torch.device("cpu"))
    np.testing.assert_array_equal(tensor.numpy(), np.concatenate([rows, np.zeros((1, 2, 2), np.float32)]))
    np.testing.assert_array_equal(pytorch.on_device(torch, rows, 0, torch.device("cpu")).numpy(), rows)


def test_a_device_that_cannot_be_used_is_an_error(folder):
    (folder / "model.py").write_text("import foliot\nfoliot.torch('network.pt', inputs={'x': ('FP32', [4])}, device='gpu7')\n")
    with Replica(folder) as replica:
        with pytest.raises(Exception, match=r"the device 'gpu7' cannot be used .*gpus = \[0\]"):
            replica.start()
