"""Waiting for what another process does, however long it takes, and how long the machine itself stood still."""

import contextlib
import threading
import time

STANDSTILL_SECONDS_MIN = 0.01


def eventually(condition, timeout=180, otherwise="the condition does not hold", interval_seconds=0.01):
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


def await_output(process, text):
    """Until `process`, a server or a part of a cluster, has printed `text`: what it logs is written a little later."""
    eventually(lambda: text in process.output(), otherwise=lambda: f"'{text}' is not in\n{process.output()}")


class Standstills:
    """`seconds` is how long the machine gave no processor to a thread that wakes every few milliseconds."""

    def __init__(self):
        self.seconds = 0.0
        self.ended = threading.Event()

    def watch(self):
        interval, last = 0.005, time.monotonic()
        while not self.ended.wait(interval):
            late, last = time.monotonic() - last - interval, time.monotonic()
            if late > STANDSTILL_SECONDS_MIN:
                self.seconds += late


@contextlib.contextmanager
def standstills():
    """Measures, within the block, what a host that shares its processors adds to every time. Yields Standstills."""
    result = Standstills()
    thread = threading.Thread(target=result.watch)
    thread.start()
    try:
        yield result
    finally:
        result.ended.set()
        thread.join()
