#!/usr/bin/env python3
"""Mixed traffic with trouble for SOAK_SECONDS (default 600): steady load, bursts
beyond capacity, malformed requests, clients that go away, models unloaded and
loaded. The server must live, answer rightly and not grow."""

import os
import pathlib
import random
import socket
import sys
import tempfile
import threading
import time

import numpy as np
import tritonclient.http as triton
from tritonclient.utils import InferenceServerException

from figure import Figure, print_figures, say
from foliot_tools import onnx_models
from foliot_tools.bench import bench
from foliot_tools.log import breaches, read_log
from foliot_tools.server import Server

MODELS = 30
PAGES = 10
GROWTH_MAX_MIB = 64


def steady(server, stop, count):
    """Poisson traffic, and every third time a burst far beyond capacity."""
    turn = 0
    while not stop.is_set():
        rate, seconds = (20_000, 2) if turn % 3 == 2 else (300, 8)
        report = bench(server.grpc, "all", rate=rate, duration=f"{seconds}s", deadline="50ms", seed=turn)
        count["offered"] += report["offered"]
        count["good"] += report["good"]
        turn += 1


def check_answers(server, stop, count):
    """One client whose every answer is compared with the model's first."""
    pixels = np.full((1, 64), 0.25, np.float32)
    known = {}
    with triton.InferenceServerClient(server.http, network_timeout=60) as client:
        while not stop.wait(0.02):
            model = f"model_{random.randrange(5, MODELS):02}"
            request = triton.InferInput("pixels", [1, 64], "FP32")
            request.set_data_from_numpy(pixels)
            try:
                answer = client.infer(model, [request]).as_numpy("probabilities")
            except InferenceServerException:
                continue  # refused under a burst
            count["answers"] += 1
            count["wrong"] += not np.allclose(known.setdefault(model, answer), answer, rtol=1e-3, atol=1e-6)


def make_trouble(server, stop, count):
    """Malformed requests, half requests, and models that come and go."""
    source = random.Random(3)
    with triton.InferenceServerClient(server.http, network_timeout=60) as client:
        while not stop.wait(0.05):
            kind = source.randrange(4)
            model = f"model_{source.randrange(5):02}"
            if kind == 0:
                server.post(f"/v2/models/{model}/infer", source.randbytes(source.randrange(4096)))
            elif kind == 1:
                with socket.create_connection(("127.0.0.1", server.http_port)) as connection:
                    connection.sendall(b"POST /v2/models/x/infer HTTP/1.1\r\nContent-Length: 100\r\n\r\n{")
            elif kind == 2:
                with socket.create_connection(("127.0.0.1", server.grpc_port)) as connection:
                    connection.sendall(source.randbytes(200))
            else:
                client.unload_model(model)
                client.load_model(model)
            count["troubles"] += 1


def measure(seconds):
    count = {"offered": 0, "good": 0, "answers": 0, "wrong": 0, "troubles": 0}
    failures = []
    with tempfile.TemporaryDirectory(prefix="foliot-soak-") as folder:
        folder = pathlib.Path(folder)
        for i in range(MODELS):
            onnx_models.random_dense_network(folder / f"models/model_{i:02}/model.onnx", (64, 128, 10), seed=i)
        log = folder / "events"
        server = Server(folder / "models", folder / "log", page_size="64KiB", page_cache=f"{64 * PAGES}KiB",
                        log=log)
        with server:
            stop = threading.Event()

            def guarded(work):
                try:
                    work(server, stop, count)
                except Exception as error:  # noqa: BLE001: reported as the soak's result
                    if not stop.is_set():
                        failures.append(f"{work.__name__}: {error}")

            threads = [threading.Thread(target=guarded, args=(work,)) for work in (steady, check_answers, make_trouble)]
            for thread in threads:
                thread.start()
            memory = watch(server, seconds, count)
            stop.set()
            for thread in threads:
                thread.join()
            exit_code = server.stop()
        found = breaches(read_log(log), lambda model: 1, PAGES)
    for line in [*failures, *found[:10]]:
        say(line)
    # The first quarter still touches memory for the first time.
    growth = max(memory[len(memory) // 4 :]) - memory[len(memory) // 4]
    check = f"soak, {seconds} s"
    return [
        Figure(check, "the server lives and stops cleanly", f"exit code {exit_code}", exit_code == 0),
        Figure(check, "every answer is right", f"{count['wrong']} wrong of {count['answers']}",
               count["wrong"] == 0 < count["answers"]),
        Figure(check, "nothing unexpected", f"{len(failures)} failures among {count['troubles']} troubles",
               not failures),
        Figure(check, "pages balance, no overlap", f"{len(found)} breaches; {count['good']} good of {count['offered']}",
               not found),
        Figure(check, f"memory grows <= {GROWTH_MAX_MIB} MiB", f"{growth:.1f} MiB", growth <= GROWTH_MAX_MIB),
    ]


def watch(server, seconds, count):
    """Memory, in MiB, each second; ends early when the server does."""
    memory, end = [], time.monotonic() + seconds
    while time.monotonic() < end and server.alive():
        memory.append(server.memory_bytes() / 2**20)
        if len(memory) % 30 == 0:
            say(f"{len(memory)} s, {memory[-1]:.0f} MiB, {count}")
        time.sleep(1)
    return memory


if __name__ == "__main__":
    sys.exit(print_figures(measure(int(os.environ.get("SOAK_SECONDS", "600")))))
