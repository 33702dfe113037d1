#!/usr/bin/env python3
"""Figure: at three times its capacity the server still does nearly all the good
that it can, nothing late, and says no early."""

import pathlib
import sys
import tempfile
import threading
import time

from figure import Figure, print_figures, say
from foliot_tools.bench import bench
from foliot_tools.generated import write_resnet50
from foliot_tools.server import Server

MODEL = "resnet50"
LOAD = 3
SLO_MS = 100
SECONDS = 60
GOODPUT_MIN = 0.90
REFUSAL_MEDIAN_MAX_MS = SLO_MS / 2
MEMORY_GROWTH_MAX_MIB = 32


def watch_memory(server, stop, samples):
    while not stop.wait(1):
        samples.append(server.memory_bytes() / 2**20)


def watch_stalls(stop, stalls):
    """How long the machine itself held up a thread that only sleeps: what no
    server can answer through."""
    while not stop.is_set():
        begin = time.monotonic()
        time.sleep(0.005)
        late_ms = (time.monotonic() - begin) * 1000 - 5
        if late_ms > SLO_MS / 10:
            stalls.append(late_ms)


def measure():
    with tempfile.TemporaryDirectory(prefix="foliot-overload-") as folder:
        folder = pathlib.Path(folder)
        write_resnet50(folder / "models" / MODEL / "1/model.onnx", resolution=64)
        say("compiling")
        with Server(folder / "models", folder / "log", page_cache="256MiB") as server:
            say(f"measuring capacity: the best goodput under {SLO_MS} ms of 8, 12 and 16 users who wait for answers")
            capacity = max(bench(server.grpc, MODEL, concurrency=users, duration="6s",
                                 deadline=f"{SLO_MS}ms")["goodput_per_second"] for users in (8, 12, 16))
            say(f"capacity {capacity:.0f}/s; now {LOAD * capacity:.0f}/s for {SECONDS} s, {SLO_MS} ms each")
            memory, stop = [], threading.Event()
            watcher = threading.Thread(target=watch_memory, args=(server, stop, memory))
            stalls = []
            stall_watcher = threading.Thread(target=watch_stalls, args=(stop, stalls))
            watcher.start()
            stall_watcher.start()
            report = bench(server.grpc, MODEL, rate=f"{LOAD * capacity:.0f}", duration=f"{SECONDS}s",
                           deadline=f"{SLO_MS}ms")
            stop.set()
            watcher.join()
            stall_watcher.join()
    return figures_of(report, capacity, memory, stalls)


def figures_of(report, capacity, memory, stalls):
    share = report["goodput_per_second"] / capacity
    latency, refusal = report["latency_milliseconds"], report["refusal_latency_milliseconds"]
    # The first seconds still touch memory for the first time.
    growth = max(memory[10:]) - memory[10]
    check = f"overload: {LOAD}x capacity, SLO {SLO_MS} ms, {SECONDS} s"
    return [
        Figure(check, f"goodput >= {GOODPUT_MIN:.0%} of capacity", f"{share:.1%} of {capacity:.0f}/s",
               share >= GOODPUT_MIN),
        Figure(check, f"p99.9 of answered <= {SLO_MS} ms", f"{latency['p99.9']:.1f} ms, {report['late']} late; the machine stalled {len(stalls)} times, "
               f"at most {max(stalls, default=0):.0f} ms",
               latency["p99.9"] <= SLO_MS),
        Figure(check, f"refusals early: median <= {REFUSAL_MEDIAN_MAX_MS:.0f} ms",
               f"{refusal['p50']:.1f} ms of {report['refusals']}", refusal["p50"] <= REFUSAL_MEDIAN_MAX_MS),
        Figure(check, f"memory flat: grows <= {MEMORY_GROWTH_MAX_MIB} MiB", f"{growth:.1f} MiB on {memory[10]:.0f} MiB",
               growth <= MEMORY_GROWTH_MAX_MIB),
        Figure(check, "nothing fails", f"{report['failed']} failures {report['failures'] or ''}".strip(),
               report["failed"] == 0),
    ]


if __name__ == "__main__":
    sys.exit(print_figures(measure()))
