"""What every end-to-end test starts from: real servers on free loopback ports,
and a repository of small models whose answers are easy to compute."""

import contextlib
import pathlib

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

from foliot_tools import onnx_models
from foliot_tools.server import Server, foliot_binary

onnxruntime.set_default_logger_severity(3)


def pytest_sessionstart(session):
    if not pathlib.Path(foliot_binary()).exists():
        raise pytest.UsageError(f"There is no {foliot_binary()}: run make build, or set FOLIOT")


def pytest_handlecrashitem(crashitem):
    """A process of tests that ends takes with it what it was to run; pytest-xdist 3.8 then waits for ever (--dist
    loadfile), so the run ends here."""
    pytest.exit(f"the process that ran {crashitem} ended", returncode=3)


@contextlib.contextmanager
def serving(repository, console, **options):
    """A server that must live until it is stopped, at the latest when the block
    ends, and stop cleanly."""
    server = Server(repository, console, **options).start()
    try:
        yield server
        assert server.stopped or server.alive(), f"the server died:\n{server.output()}"
    finally:
        exit_code = server.stop()
    assert exit_code == 0, f"the server stopped with {exit_code}:\n{server.output()}"


@pytest.fixture
def serve(tmp_path):
    """serve(repository, **flags) starts a server that lives until the test ends."""
    with contextlib.ExitStack() as stack:
        count = 0

        def start(repository, **options):
            nonlocal count
            count += 1
            return stack.enter_context(serving(repository, tmp_path / f"server{count}.log", **options))

        yield start


def write_pair(path):
    """a, b [batch, 4] -> sum, difference."""
    return onnx_models.save(
        path,
        [helper.make_node("Add", ["a", "b"], ["sum"], "add"),
         helper.make_node("Sub", ["a", "b"], ["difference"], "subtract")],
        {name: (TensorProto.FLOAT, ["batch", 4]) for name in ("a", "b")},
        {name: (TensorProto.FLOAT, ["batch", 4]) for name in ("sum", "difference")},
    )


def write_tokens(path):
    """tokens [batch, sequence] -> embedded [batch, sequence, 3]; needs buckets."""
    table = np.arange(30, dtype=np.float32).reshape(10, 3)
    return onnx_models.save(
        path,
        [helper.make_node("Gather", ["table", "tokens"], ["embedded"], "embed", axis=0)],
        {"tokens": (TensorProto.INT64, ["batch", "sequence"])},
        {"embedded": (TensorProto.FLOAT, ["batch", "sequence", 3])},
        {"table": table},
    )


def write_fixed(path):
    """x [2, 3] -> y [3, 2]: no batch dimension that both agree on."""
    return onnx_models.save(
        path,
        [helper.make_node("Transpose", ["x"], ["y"], "transpose", perm=[1, 0])],
        {"x": (TensorProto.FLOAT, [2, 3])},
        {"y": (TensorProto.FLOAT, [3, 2])},
    )


def write_small_models(folder):
    """dense, pair, tokens and fixed, in both layouts of a repository."""
    onnx_models.random_dense_network(folder / "dense/1/model.onnx", (64, 32, 10))
    write_pair(folder / "pair/1/model.onnx")
    write_tokens(folder / "tokens/model.onnx")
    (folder / "tokens/model.toml").write_text("[buckets]\nsequence = [8, 16]\n")
    write_fixed(folder / "fixed/model.onnx")
    return folder


@pytest.fixture(scope="session")
def small_models(tmp_path_factory):
    """The repository of write_small_models()."""
    return write_small_models(tmp_path_factory.mktemp("small_models"))


@pytest.fixture(scope="module")
def small_server(small_models, tmp_path_factory):
    """A server of the small models, one per test file."""
    folder = tmp_path_factory.mktemp("server")
    options = {"cache": folder / "cache", "page_size": "256KiB", "page_cache": "16MiB"}
    with serving(small_models, folder / "log", **options) as server:
        yield server


@pytest.fixture(scope="session")
def dense_oracle(small_models):
    """onnxruntime's answer of the model dense."""
    session = onnxruntime.InferenceSession(small_models / "dense/1/model.onnx")
    return lambda pixels: session.run(None, {"pixels": pixels})[0]
