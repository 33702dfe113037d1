"""Rows are batched only where each is computed by itself. Random models against onnxruntime: what it computes for a
row alone, or for all rows of a call where the model takes them together. FOLIOT_SEED chooses others."""

import os
import pathlib
import sys

import numpy as np
import onnx
import onnxruntime
import pytest

sys.path[:0] = [str(pathlib.Path(__file__).parent / folder) for folder in ("node_tests", "fuzz_models")]

import node_tests
import oracle
import row_models

SEED = int(os.environ.get("FOLIOT_SEED", "1"))
COUPLED_ROUNDS, INDEPENDENT_CASES = 7, 60


@pytest.fixture(scope="module")
def process():
    yield node_tests.RunnerProcess(pathlib.Path(os.environ["FOLIOT"]).parent / "node_test_runner")


def session_of(model):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options)


def rows_of(case, values, rows):
    return {name: value if name in case.shared else value[rows] for name, value in values.items()}


def largest_of(expected):
    return max(0.1, np.abs(expected).max(initial=0))


def differ(case, expected, computed):
    return not np.allclose(computed, expected, rtol=0, atol=case.share * largest_of(expected), equal_nan=True)


def steady(case, values, calls, expected, whole, i):
    """The elements of output i, as a whole, that stay what they are when values between operators move by a rounding:
    of two that are nearly equal, either may be the largest."""
    parts = [oracle.sensitivity_inside(case.model, rows_of(case, values, rows), e, [np.zeros(a.shape) for a in e])[i]
             for rows, e in zip(calls, expected)]  # fmt: skip
    moved = np.concatenate(parts) if len(parts) > 1 else parts[0]
    return moved <= 10 * case.share * largest_of(whole)


def faults_of(process, case, folder):
    """(batched, what differs from onnxruntime)"""
    for old in folder.iterdir():
        old.unlink()
    onnx.save(case.model, folder / "model.onnx")
    for trial, values in enumerate(case.trials):
        for i, value in enumerate(case.model.graph.input):
            (folder / f"{trial}_input_{i}.bin").write_bytes(np.ascontiguousarray(values[value.name]).tobytes())
    status, *rest = process.run(folder, "rows")
    if status != "ok":
        return None, [rest[0]]
    batched, sizes = rest[0] == "batched", [int(size) for size in rest[1].split()]
    session = session_of(case.model)
    faults = []
    for trial, values in enumerate(case.trials):
        for size in sizes:
            # Of a batch each row alone, else all together.
            calls = [[row] for row in range(size)] if batched else [list(range(size))]
            expected = [session.run(None, rows_of(case, values, rows)) for rows in calls]
            for i, parts in enumerate(zip(*expected)):
                whole = np.concatenate(parts) if batched else parts[0]
                data = (folder / f"{trial}_{size}_output_{i}.bin").read_bytes()
                computed = np.frombuffer(data, whole.dtype)
                if computed.size == whole.size and differ(case, whole, computed.reshape(whole.shape)):
                    kept = steady(case, values, calls, expected, whole, i)
                    computed = np.where(kept, computed.reshape(whole.shape), whole)
                if computed.size != whole.size or differ(case, whole, computed.reshape(whole.shape)):
                    faults.append(f"trial {trial}, {size} rows, output {i}")
    if not batched and set(sizes) != {1, 2, 4, 6}:
        faults.append(f"sizes {sizes}: {rest[2]}")
    return batched, faults


def check_all(process, cases, folder):
    print(f"FOLIOT_SEED={SEED}")
    complaints = []
    for case in cases:
        batched, faults = faults_of(process, case, folder)
        if faults:
            complaints.append(f"{case.name}: {faults[:3]}")
        elif batched != case.independent:
            complaints.append(f"{case.name}: batched is {batched}")
    assert not complaints, f"seed {SEED}: {len(complaints)} of {len(cases)}:\n" + "\n".join(complaints)


def test_coupled_rows(process, tmp_path):
    random = np.random.default_rng(SEED)
    cases = [row_models.make_case(random, couple) for couple in row_models.COUPLED for _ in range(COUPLED_ROUNDS)]
    assert len(cases) >= 200
    check_all(process, cases, tmp_path)


def test_independent_rows(process, tmp_path):
    random = np.random.default_rng(SEED + 1)
    cases = [row_models.make_case(random) for _ in range(INDEPENDENT_CASES)]
    check_all(process, cases, tmp_path)
