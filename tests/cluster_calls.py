"""Calls of a name that a cluster serves, such as a pipeline or a task, and what front ends say of it."""

import threading

import numpy as np
import tritonclient.http as http_client
from tritonclient.utils import InferenceServerException

from foliot_tools.waiting import eventually

REFUSED = ("worker_lost", "overload", "expired", "late", "unmeetable")


def index_of(frontend):
    with http_client.InferenceServerClient(frontend.http) as client:
        return {entry["name"]: entry for entry in client.get_model_repository_index()}


def reason_of(frontend, name):
    """Why it is not served, or what it is served without; empty: there is nothing to say."""
    return index_of(frontend).get(name, {}).get("reason") or ""


def is_ready(frontend, name):
    with http_client.InferenceServerClient(frontend.http) as client:
        return client.is_model_ready(name)


def check_one_end_each_though_a_worker_is_killed(cluster, call):
    """Four threads call on while the cluster's first worker is killed: each call is served or refused with a reason,
    and others serve on. `call(random)` makes a call; it returns "served", or what is wrong with the answer."""
    ends = []
    over = threading.Event()

    def call_on(seed):
        random = np.random.default_rng(seed)
        while not over.is_set():
            try:
                ends.append(call(random))
            except InferenceServerException as refused:
                ends.append(str(refused))

    threads = [threading.Thread(target=call_on, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    try:
        eventually(lambda: ends.count("served") > 20)
        cluster.workers[0].kill()
        before = len(ends)
        eventually(lambda: ends[before:].count("served") > 20, timeout=60)
    finally:
        over.set()
        for thread in threads:
            thread.join()
    others = [end for end in ends if end != "served"]
    assert all(any(reason in end for reason in REFUSED) for end in others), others
    assert len(others) < len(ends) / 2
