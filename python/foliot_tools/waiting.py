"""Waiting for what another process does, however long it takes."""

import time


def eventually(condition, timeout=60, otherwise="the condition does not hold", interval_seconds=0.01):
    """What `condition` returns, once that is true.

    Raises AssertionError if it is not within `timeout` seconds. `otherwise` says what was missing: a text, or
    a function that makes one.
    """
    end = time.monotonic() + timeout
    over = False
    while not (met := condition()):
        if over:
            raise AssertionError(f"after {timeout} s: {otherwise() if callable(otherwise) else otherwise}")
        time.sleep(interval_seconds)
        over = time.monotonic() > end  # a machine that stood still until then gets one more look
    return met
