"""The models that bench/rivals.py serves. Each is trained on half of the digits of scikit-learn, and written into a folder
as a module `digits` with `predict(rows)`, which every server imports, beside the file that it reads."""

import importlib.util
import sys

import numpy as np
from sklearn.datasets import load_digits

TRAINED = 1000  # of 1,797 digits; the others are asked
EPOCHS = 15

FOREST = """import skops.io

model = skops.io.load("digits.skops", trusted=["sklearn.tree._tree.Tree"])

def predict(rows):
    return model.predict(rows)
"""
# PyTorch comes from the tools' environment, behind all that the server's own has.
NETWORK = """import sys, warnings
sys.path.append({packages!r})
import torch

torch.set_num_threads(1)
warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
model = torch.jit.load("digits.pt").eval()

@torch.inference_mode()
def predict(rows):
    return model(torch.from_numpy(rows)).argmax(1).numpy()
"""


def write_forest(folder):
    """Returns rows to ask about, and what the model says of them."""
    import skops.io
    from sklearn.ensemble import RandomForestClassifier

    rows, labels = digits()
    model = RandomForestClassifier(n_estimators=100, random_state=1).fit(rows[:TRAINED], labels[:TRAINED])
    skops.io.dump(model, folder / "digits.skops")
    (folder / "digits.py").write_text(FOREST)
    return rows[TRAINED:], model.predict(rows[TRAINED:])


def write_network(folder):
    """The same for three layers of convolution."""
    if importlib.util.find_spec("torch") is None:
        sys.exit("PyTorch is not installed: run tools/python-environment torch")
    import torch
    from torch import nn

    rows, labels = digits()
    torch.manual_seed(1)
    network = nn.Sequential(nn.Unflatten(1, (1, 8, 8)), nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(),
                            nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(),
                            nn.MaxPool2d(2), nn.Flatten(), nn.Linear(1024, 128), nn.ReLU(), nn.Linear(128, 10))
    optimizer = torch.optim.Adam(network.parameters())
    inputs, wanted = torch.from_numpy(rows[:TRAINED]), torch.from_numpy(labels[:TRAINED])
    for _ in range(EPOCHS):
        for chosen in torch.randperm(TRAINED).split(50):
            optimizer.zero_grad()
            nn.functional.cross_entropy(network(inputs[chosen]), wanted[chosen]).backward()
            optimizer.step()
    network.eval()
    torch.jit.trace(network, inputs[:2]).save(folder / "digits.pt")
    packages = str(next(path for path in sys.path if path.endswith("site-packages")))
    (folder / "digits.py").write_text(NETWORK.format(packages=packages))
    with torch.inference_mode():
        return rows[TRAINED:], network(torch.from_numpy(rows[TRAINED:])).argmax(1).numpy()


def digits():
    data = load_digits()
    return data.data.astype(np.float32), data.target


MODELS = {"forest": write_forest, "network": write_network}
