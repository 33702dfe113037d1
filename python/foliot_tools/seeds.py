"""The seed of random tests."""

import os
import random


def fresh_seed():
    """Another one in each run, printed, so that a failure can be run again: FOLIOT_TEST_SEED is taken where it is set."""
    seed = int(os.environ.get("FOLIOT_TEST_SEED") or random.SystemRandom().getrandbits(32))
    print(f"FOLIOT_TEST_SEED={seed}", flush=True)
    return seed
