"""MLPerf LoadGen, scenario Server, against a running Foliot over gRPC.

    .venv/bin/python -m foliot_tools.loadgen --model resnet50 --qps 50 --latency 100

LoadGen draws Poisson arrivals and counts latency from the instant at which a query
was due. It has no notion of a refusal, and every query must be reported complete; so a query that was refused, or failed, is reported complete only after
the latency bound has passed: it counts as missed, and LoadGen's verdict is honest.
"""

import argparse
import collections
import dataclasses
import heapq
import itertools
import pathlib
import re
import sys
import tempfile
import threading
import time

import mlperf_loadgen
import numpy as np
import tritonclient.grpc as triton
from tritonclient.utils import triton_to_np_dtype

SAMPLES = 64  # different inputs


@dataclasses.dataclass(frozen=True)
class LoadgenResult:
    """LoadGen's verdict, and what became of the queries."""

    valid: bool
    summary: str
    outcomes: dict  # "answered", or why not -> count


class Timeouts:
    """Calls functions at instants of time.monotonic(), on a thread of its own."""

    def __init__(self):
        self._due = []
        self._count = itertools.count()  # keeps the order of those that are due together
        self._changed = threading.Condition()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def at(self, instant, function, *arguments):
        with self._changed:
            heapq.heappush(self._due, (instant, next(self._count), function, arguments))
            self._changed.notify()

    def stop(self):
        with self._changed:
            self._stopping = True
            self._changed.notify()
        self._thread.join()

    def _run(self):
        while True:
            with self._changed:
                while not self._due or self._due[0][0] > time.monotonic():
                    if self._stopping and not self._due:
                        return
                    self._changed.wait(self._due[0][0] - time.monotonic() if self._due else None)
                _, _, function, arguments = heapq.heappop(self._due)
            function(*arguments)


class SystemUnderTest:
    """What LoadGen drives: a model of a Foliot server."""

    def __init__(self, url, model, bound_seconds, margin_seconds, shapes):
        self._client = triton.InferenceServerClient(url)
        self._model = model
        self._bound = bound_seconds
        # Of the bound, the way to the server and back is the client's own.
        self._timeout_us = int((bound_seconds - margin_seconds) * 1e6)
        self._inputs = {}
        self._specs = input_specs(self._client, model, shapes)
        self._timeouts = Timeouts()
        self._lock = threading.Lock()
        self.outcomes = collections.Counter()

    def load_samples(self, indices):
        for index in indices:
            random = np.random.default_rng(index)
            self._inputs[index] = [make_input(random, *spec) for spec in self._specs]

    def unload_samples(self, indices):
        for index in indices:
            del self._inputs[index]

    def issue(self, queries):
        for query in queries:
            give_up = time.monotonic() + 2 * self._bound

            def done(result, error, query_id=query.id, give_up=give_up):
                self._finish(query_id, error, give_up)

            self._client.async_infer(self._model, self._inputs[query.index], done, timeout=self._timeout_us)

    def flush(self):
        pass

    def close(self):
        self._timeouts.stop()
        self._client.close()

    def _finish(self, query_id, error, give_up):
        with self._lock:
            self.outcomes["answered" if error is None else outcome_of(error)] += 1
        if error is None:
            complete(query_id)
        else:
            self._timeouts.at(give_up, complete, query_id)


def complete(query_id):
    mlperf_loadgen.QuerySamplesComplete([mlperf_loadgen.QuerySampleResponse(query_id, 0, 0)])


def outcome_of(error):
    """The reason of a refusal, or the error's code."""
    refusal = re.search(r"refused the request: (\w+)", error.message() or "")
    return refusal[1] if refusal else str(error.status())


def input_specs(client, model, shapes):
    """(name, shape of one row, data type) of each input."""
    specs = []
    for tensor in client.get_model_metadata(model).inputs:
        one_row = [1 if i == 0 and extent < 0 else extent for i, extent in enumerate(tensor.shape)]
        shape = shapes.get(tensor.name, one_row)
        if min(shape, default=1) < 0:
            raise ValueError(f"input {tensor.name} of {model} has the shape {list(tensor.shape)}; "
                             f"say which with --shape {tensor.name}:1,...")
        specs.append((tensor.name, shape, tensor.datatype))
    return specs


def make_input(random, name, shape, datatype):
    kind = np.dtype(triton_to_np_dtype(datatype))
    values = random.random(shape) if kind.kind == "f" else random.integers(0, 2, shape)
    tensor = triton.InferInput(name, shape, datatype)
    tensor.set_data_from_numpy(values.astype(kind))
    return tensor


def run_server_scenario(url, model, qps, latency_ms, *, seconds=60, queries=100, margin_ms=2.0, percentile=0.99,
                        shapes=None, output=None):
    """Runs LoadGen's Server scenario; `output`: a folder for LoadGen's own logs."""
    with tempfile.TemporaryDirectory(prefix="foliot-loadgen-") as folder:
        output = pathlib.Path(output or folder)
        output.mkdir(parents=True, exist_ok=True)
        system = SystemUnderTest(url, model, latency_ms / 1e3, margin_ms / 1e3, shapes or {})

        settings = mlperf_loadgen.TestSettings()
        settings.scenario = mlperf_loadgen.TestScenario.Server
        settings.mode = mlperf_loadgen.TestMode.PerformanceOnly
        settings.server_target_qps = qps
        settings.server_target_latency_ns = int(latency_ms * 1e6)
        settings.server_target_latency_percentile = percentile
        settings.min_duration_ms = int(seconds * 1e3)
        settings.min_query_count = queries
        log = mlperf_loadgen.LogSettings()
        log.log_output.outdir = str(output)
        log.log_output.copy_summary_to_stdout = False

        sut = mlperf_loadgen.ConstructSUT(system.issue, system.flush)
        library = mlperf_loadgen.ConstructQSL(SAMPLES, SAMPLES, system.load_samples, system.unload_samples)
        try:
            mlperf_loadgen.StartTestWithLogSettings(sut, library, settings, log)
        finally:
            mlperf_loadgen.DestroyQSL(library)
            mlperf_loadgen.DestroySUT(sut)
            system.close()
        summary = (output / "mlperf_log_summary.txt").read_text()
    return LoadgenResult("Result is : VALID" in summary, summary, dict(system.outcomes))


def parse_shape(text):
    name, _, extents = text.rpartition(":")
    return name, [int(extent) for extent in extents.split(",")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="127.0.0.1:8001", help="the server's gRPC address")
    parser.add_argument("--model", required=True)
    parser.add_argument("--qps", type=float, required=True, help="queries per second, Poisson")
    parser.add_argument("--latency", type=float, required=True, metavar="MS", help="bound that 99 %% must keep")
    parser.add_argument("--seconds", type=float, default=60, help="shortest run")
    parser.add_argument("--queries", type=int, default=100, help="smallest number of queries")
    parser.add_argument("--margin", type=float, default=2, metavar="MS",
                        help="the server's deadline is this much tighter than the bound")
    parser.add_argument("--shape", action="append", default=[], type=parse_shape, metavar="INPUT:EXTENTS",
                        help="of an input whose shape is variable, e.g. ids:1,128")
    parser.add_argument("--output", help="folder for LoadGen's own logs")
    arguments = parser.parse_args()
    result = run_server_scenario(arguments.url, arguments.model, arguments.qps, arguments.latency,
                                 seconds=arguments.seconds, queries=arguments.queries, margin_ms=arguments.margin,
                                 shapes=dict(arguments.shape), output=arguments.output)
    print(result.summary)
    print("outcomes:", ", ".join(f"{count} {outcome}" for outcome, count in sorted(result.outcomes.items())))
    return 0 if result.valid else 1


if __name__ == "__main__":
    sys.exit(main())
