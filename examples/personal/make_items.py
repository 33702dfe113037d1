"""Writes a repository with a personal model: features of 1,000 films for a start, drawn at random."""

import pathlib
import sys

import numpy as np

from foliot import personal

ITEMS, FEATURES = 1000, 16


def features_of_items():
    return np.random.default_rng(1).normal(0, FEATURES**-0.5, (ITEMS, FEATURES))


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "models") / "films"
    personal.write_items(folder / "1" / "items.features", np.arange(ITEMS), features_of_items())
    (folder / "personal.toml").write_text('[exploration]\nname = "thompson"\ndeviation = 0.2\n')
    print(f"wrote {folder}")
