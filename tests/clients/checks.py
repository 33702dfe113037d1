"""What the scripts of the clients share (tests/client_matrix.py runs them, each in its client's own environment).

A check is a function of the server's addresses that raises where the client does not work. Results go to
standard output, a line of JSON each.
"""

import argparse
import json
import re
import sys
import urllib.request

import numpy as np

A = np.array([[1, 2, 3, 4], [5, 6, 7, 8]], np.float32)
B = np.array([[8, 7, 6, 5], [4, 3, 2, 1.5]], np.float32)


def expect(outputs):
    """`outputs` as arrays by name are those of the model 'pair' for A and B."""
    np.testing.assert_array_equal(np.reshape(outputs["sum"], A.shape), A + B)
    np.testing.assert_array_equal(np.reshape(outputs["difference"], A.shape), A - B)


def expect_refusal(call, *words):
    """`call` raises an error whose text has these words."""
    try:
        call()
    except Exception as error:  # noqa: BLE001: each client has exceptions of its own
        missing = [word for word in words if word not in str(error)]
        assert not missing, f"the refusal lacks {missing}: {error}"
        return
    raise AssertionError("nothing was refused")


def refused_as_unmeetable(server):
    """Rows of the model 'pair' so far."""
    with urllib.request.urlopen(f"http://{server.metrics}/metrics", timeout=30) as page:
        counts = re.findall(r'^foliot_requests_total\{(.*)\} (\d+)', page.read().decode(), re.MULTILINE)
    return sum(int(count) for labels, count in counts if 'model="pair"' in labels and '"unmeetable"' in labels)


def addresses():
    """The server's. Taken from the arguments, which kserve reads as its own when it is imported."""
    arguments = argparse.ArgumentParser()
    for address in ("http", "grpc", "metrics"):
        arguments.add_argument(f"--{address}", required=True)
    found = arguments.parse_args()
    sys.argv = sys.argv[:1]
    return found


SERVER = addresses()


def run(checks):
    for check in checks:
        try:
            check(SERVER)
            failure = ""
        except Exception as error:  # noqa: BLE001: whatever a client raises is its result
            failure = f"{type(error).__name__}: {error}"
        print(json.dumps({"check": check.__doc__, "failure": failure[:500]}), flush=True)
