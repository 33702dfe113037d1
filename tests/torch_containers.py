"""The adapter of PyTorch, in an environment that has it (make test-torch-containers): `make test` installs no torch."""

import numpy as np
import pytest
import torch
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
