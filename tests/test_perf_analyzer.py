"""The unmodified perf_analyzer over HTTP and gRPC; its latency and foliot
bench's are of the same size."""

import csv
import subprocess
import sys
from pathlib import Path

import pytest

from foliot_tools.bench import bench

PERF_ANALYZER = Path(sys.executable).parent / "perf_analyzer"
# Two load generators that share two noisy cores with the server agree no better.
AGREEMENT_FACTOR = 3.0


def perf_analyzer(server, protocol, load, report):
    """Measures for at most ten windows of a second; returns its one row as {column: number}."""
    command = [PERF_ANALYZER, "-m", "dense", "-i", protocol, "-u", getattr(server, protocol), "-p", "1000", "-r", "10",
               "-s", "1000", "-f", report, *load]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    output = result.stdout + result.stderr
    assert result.returncode == 0, output
    assert "rror" not in output and "ailed" not in output, output
    with open(report, newline="") as file:
        (row,) = csv.DictReader(file)
    return {name: float(value) for name, value in row.items() if value}


@pytest.mark.parametrize("protocol", ["http", "grpc"])
@pytest.mark.parametrize(
    "load",
    [("--concurrency-range", "1"), ("--concurrency-range", "4"),
     ("--request-rate-range", "200", "--request-distribution", "poisson")],
    ids=["concurrency-1", "concurrency-4", "poisson"],
)
def test_it_runs_unmodified(small_server, protocol, load, tmp_path):
    for _ in range(3 if "poisson" in load else 1):  # the load generator may find no time to send
        row = perf_analyzer(small_server, protocol, load, tmp_path / "report.csv")
        if row["Inferences/Second"] == pytest.approx(200, rel=0.25):
            break
    assert row["Inferences/Second"] > 50
    assert 0 < row["p50 latency"] <= row["p99 latency"]
    # These columns come from the server's own statistics.
    assert row["Server Compute Infer"] > 0
    if "poisson" in load:
        assert row["Inferences/Second"] == pytest.approx(200, rel=0.25)


def test_it_sends_json(small_server, tmp_path):
    """Numbers that are not finite, too: JSON has none, and Triton takes them."""
    data = tmp_path / "data.json"
    data.write_text('{"data": [{"pixels": [NaN, Infinity, -Infinity' + ", 1.5" * 61 + "]}]}")
    load = ["--concurrency-range", "2", "--input-tensor-format", "json", "--output-tensor-format", "json",
            "--input-data", data]
    assert perf_analyzer(small_server, "http", load, tmp_path / "report.csv")["Inferences/Second"] > 50


def test_it_collects_metrics(small_server, tmp_path):
    load = ["--concurrency-range", "1", "--collect-metrics", "--metrics-url",
            f"127.0.0.1:{small_server.metrics_port}/metrics"]
    assert perf_analyzer(small_server, "http", load, tmp_path / "report.csv")["Inferences/Second"] > 50


def test_latency_agrees_with_foliot_bench(small_server, tmp_path):
    load = ("--concurrency-range", "1")
    theirs_us = perf_analyzer(small_server, "grpc", load, tmp_path / "report.csv")["p50 latency"]
    ours_us = bench(small_server.grpc, "dense", concurrency=1, duration="2s")["latency_milliseconds"]["p50"] * 1e3
    assert theirs_us / AGREEMENT_FACTOR < ours_us < theirs_us * AGREEMENT_FACTOR
