"""What EXEC asks the heap for is counted."""

import re
import urllib.request

import numpy as np
import tritonclient.http as triton


def allocations(server):
    with urllib.request.urlopen(f"http://127.0.0.1:{server.metrics_port}/metrics") as response:
        text = response.read().decode()
    return float(re.search(r"^foliot_exec_heap_allocations_total (.*)$", text, re.MULTILINE)[1])


def test_what_exec_allocates_is_counted(small_server):
    pixels = triton.InferInput("pixels", [1, 64], "FP32").set_data_from_numpy(np.zeros((1, 64), np.float32))
    counts = []
    with triton.InferenceServerClient(small_server.http) as client:
        for _ in range(5):
            client.infer("dense", [pixels])
            counts.append(allocations(small_server))
    # oneDNN makes as many objects in each run of the same batch, once the first has made what stays.
    steps = np.diff(counts)
    assert counts[0] > 0 and steps[1] > 0 and (steps[1:] == steps[1]).all(), counts
