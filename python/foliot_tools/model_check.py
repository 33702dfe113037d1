"""Whether a model does what onnxruntime says it does: compiled, run at every batch
size and bucket, and in parts."""

import dataclasses
import json
import shutil
import subprocess
import sys
import time

import numpy as np
import onnxruntime

from foliot_tools.server import ROOT, foliot_binary

sys.path.insert(0, str(ROOT))
from tools import models  # noqa: E402

BATCH_SIZES = (1, 2, 4, 8, 16)
# Batch sizes at which plans are also cut in two, which takes many runs.
CUT_BATCH_SIZES = (2,)
# Largest difference over the largest value of the reference, output by output.
RELATIVE_ERROR_MAX = 1e-4
# Rows must differ by more than that, or agreement would prove nothing.
SPREAD_MIN = 10 * RELATIVE_ERROR_MAX
# Workspace over the largest set of tensors that are alive at once.
WORKSPACE_RATIO_MAX = 1.1


@dataclasses.dataclass
class ModelCheck:
    """What came of one model; `failure` is empty if all is well."""

    name: str
    failure: str = ""
    error: float = 0.0  # the largest relative one
    spread: float = float("inf")  # the smallest relative difference between two rows
    workspace_ratio: float = 0.0  # the largest of all plans
    slow: list = dataclasses.field(default_factory=list)  # operators on reference kernels, a warning
    seconds: float = 0.0


class Failed(Exception):
    """Why a model does not pass."""


def check_model(name, folder, batch_sizes=BATCH_SIZES, threads=1, **changes):
    """Builds the model with these changes, compiles it in `folder` (emptied
    afterwards) and compares. Never raises for what the model does."""
    start = time.monotonic()
    check = ModelCheck(name)
    folder.mkdir(parents=True)
    try:
        network = models.build(name, **changes)
        model = models.write(network, folder / "model.onnx")
        package = folder / "model.foliot"
        check_report(check, compile_model(model, package, batch_sizes, threads), batch_sizes)
        session = open_session(model)
        for dimensions in buckets(network):
            compare(check, network, session, package, batch_sizes, threads, dimensions)
        require(check.error <= RELATIVE_ERROR_MAX, f"relative error {check.error:.1e}")
        require(check.spread >= SPREAD_MIN, f"rows differ by {check.spread:.1e} only: the comparison proves nothing")
        require(check.workspace_ratio <= WORKSPACE_RATIO_MAX,
                f"workspace {check.workspace_ratio:.2f} of the least possible")
    except Failed as failure:
        check.failure = str(failure)
    finally:
        shutil.rmtree(folder)
    check.seconds = time.monotonic() - start
    return check


def require(condition, message):
    if not condition:
        raise Failed(message)


def buckets(network):
    """[{symbolic dimension: value}], one for each bucket."""
    if not network.buckets:
        return [{}]
    return [dict(zip(network.buckets, values)) for values in zip(*network.buckets.values())]


def foliot(*arguments):
    """Runs a command; its complaint is the failure."""
    result = subprocess.run([foliot_binary(), *map(str, arguments)], capture_output=True, text=True, check=False)
    require(result.returncode == 0, result.stderr.strip().split("\n")[-1] or f"exit status {result.returncode}")
    return result


def compile_model(model, package, batch_sizes, threads):
    """The report on the compiled model."""
    report = package.with_suffix(".json")
    sizes = ",".join(map(str, batch_sizes))
    result = foliot("compile", model, "--output", package, "--batch-sizes", sizes, "--threads", threads,
                    "--profile-runs", 1, "--report-json", report)
    for line in result.stderr.splitlines():
        require("without batching" not in line, line.strip())
    return json.loads(report.read_text())


def check_report(check, report, batch_sizes):
    plans = report["plans"]
    require({plan["batch_size"] for plan in plans} == set(batch_sizes), "not compiled for all batch sizes")
    check.workspace_ratio = max(plan["workspace_bytes"] / max(plan["workspace_bytes_min"], 1) for plan in plans)
    check.slow = sorted({operator["name"] for plan in plans for operator in plan["operators"]
                         if operator["kernel"].startswith("ref")})


def open_session(model, optimized=True):
    """onnxruntime on one thread. Not optimised it computes quantised layers in float32, as
    the file has them: without VNNI its own products of int8 saturate."""
    options = onnxruntime.SessionOptions()
    if not optimized:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model, options)


def compare(check, network, session, package, batch_sizes, threads, dimensions):
    """The same rows at every batch size, against onnxruntime's answers."""
    folder = package.parent
    inputs = network.examples(max(batch_sizes), np.random.default_rng(7), **dimensions)
    flags = ["--threads", threads, "--output", folder / "answers"]
    for name, array in inputs.items():
        np.save(folder / f"{name}.npy", array)
        flags += ["--input", f"{name}={folder / name}.npy"]
    names = [output.name for output in session.get_outputs()]
    references = dict(zip(names, session.run(names, inputs)))
    for reference in references.values():
        check.spread = min(check.spread, relative_error(reference[:-1], reference[1:]))
    for batch_size in batch_sizes:
        cut = ["--check-ranges"] if batch_size in CUT_BATCH_SIZES else []
        foliot("run", package, "--batch", batch_size, *flags, *cut)
        for name, reference in references.items():
            answer = np.load(folder / "answers" / f"{name}.npy")
            require(answer.shape == reference.shape, f"output '{name}' is {answer.shape}, not {reference.shape}")
            check.error = max(check.error, relative_error(answer, reference))


def relative_error(actual, expected):
    """The largest difference over the largest expected value; infinite for NaN."""
    error = np.max(np.abs(actual - expected)) / np.max(np.abs(expected))
    return float(error) if np.isfinite(error) else float("inf")
