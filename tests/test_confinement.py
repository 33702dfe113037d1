"""How containers are confined (docs/SECURITY.md#containers), and that libraries compute in them all the same.

PACKAGES_PYTHON is the interpreter whose libraries are tried, in place of that of the tests: of an environment with
tests/popular_packages.txt."""

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys

import pytest

from foliot_tools import system_calls
from foliot_tools.server import Server, ServerFailed, foliot_binary
from foliot_tools.waiting import await_output, eventually

OPTIONS = {"page_size": "256KiB", "page_cache": "16MiB"}
MODEL = """import foliot, os
%s

@foliot.model(inputs={"x": ("FP32", [2])}, outputs={"y": ("FP32", [2])}, batch_size_max=1)
def predict(batch):
    return {"y": 2 * batch["x"]}
"""


def write_container(folder, code="", python=sys.executable):
    (folder / "1").mkdir(parents=True)
    (folder / "1/model.py").write_text(MODEL % code)
    (folder / "model.toml").write_text(f'[container]\npython = "{python}"\nstart_timeout = "600s"\n')
    return folder


# Each computes something, and says so by raising nothing.
PACKAGES = {
    "numpy": "import numpy as n; n.linalg.svd(n.random.rand(64, 64))",
    "scipy": "import scipy.optimize as o; o.minimize(lambda x: (x**2).sum(), [1.0, 2.0])",
    "pandas": "import pandas as p; p.DataFrame({'a': [1, 1, 2], 'b': [1, 2, 3]}).groupby('a').sum()",
    "polars": "import polars as p; p.DataFrame({'a': [1, 1, 2]}).lazy().group_by('a').len().collect()",
    "pyarrow": "import pyarrow as a, pyarrow.compute as c; c.sum(a.array(range(1000)))",
    "duckdb": "import duckdb; duckdb.sql('select sum(i) from range(1000) t(i)').fetchall()",
    "sklearn": "import sklearn.ensemble as e; e.RandomForestClassifier(n_jobs=2).fit([[0], [1]] * 20, [0, 1] * 20)",
    "xgboost": "import numpy as n, xgboost as x; x.train({'nthread': 2}, x.DMatrix(n.ones((9, 2)), label=n.ones(9)), 2)",
    "lightgbm": "import numpy as n, lightgbm as l; l.train({'verbose': -1}, l.Dataset(n.random.rand(99, 2), n.ones(99)), 2)",
    "catboost": "import catboost as c; c.CatBoostRegressor(iterations=2, verbose=0, allow_writing_files=False).fit([[0], [1]] * 9, [0, 1] * 9)",
    "onnxruntime": "import onnxruntime as o; o.SessionOptions(); o.get_available_providers()",
    "openvino": "import openvino as o; o.Core().available_devices",
    "torch": "import torch; torch.nn.Linear(9, 9)(torch.ones(9, 9)).sum().backward()",
    "jax": "import jax; jax.jit(lambda x: x @ x)(jax.numpy.ones((9, 9))).block_until_ready()",
    "numba": "import numba; numba.njit(lambda x: x + 1)(1)",
    "cv2": "import cv2, numpy; cv2.GaussianBlur(numpy.zeros((64, 64, 3), 'u1'), (5, 5), 0)",
    "PIL": "import io, PIL.Image as i; i.new('RGB', (9, 9)).save(io.BytesIO(), 'PNG')",
    "statsmodels": "import numpy as n, statsmodels.api as s; s.OLS(n.random.rand(9), n.random.rand(9, 2)).fit()",
    "tokenizers": "import tokenizers as t; t.Tokenizer(t.models.BPE()).encode('a b')",
    "sentencepiece": "import sentencepiece; sentencepiece.SentencePieceProcessor()",
    "spacy": "import spacy; spacy.blank('en')('one two')",
    "nltk": "import nltk; nltk.ngrams([1, 2, 3], 2)",
    "gensim": "import gensim; gensim.corpora.Dictionary([['a', 'b']])",
    "networkx": "import networkx as n; n.pagerank(n.path_graph(9))",
    "lxml": "import lxml.etree as e; e.fromstring('<a/>')",
    "shapely": "import shapely; shapely.Point(0, 0).buffer(1).area",
    "faiss": "import faiss, numpy; i = faiss.IndexFlatL2(8); i.add(numpy.ones((9, 8), 'f4')); i.search(numpy.ones((1, 8), 'f4'), 1)",
    "h5py": "import h5py; h5py.File(os.environ['TMPDIR'] + '/x.h5', 'w').create_dataset('x', data=[1, 2])",
    "tables": "import tables; tables.open_file(os.environ['TMPDIR'] + '/x.pt', 'w').close()",
    "numexpr": "import numexpr, numpy; a = numpy.ones(100000); numexpr.evaluate('a + a')",
    "bottleneck": "import bottleneck, numpy; bottleneck.nanmean(numpy.ones(9))",
    "matplotlib": "import matplotlib; matplotlib.use('Agg'); import matplotlib.pyplot as p; p.plot([1, 2]); p.savefig(os.environ['TMPDIR'] + '/x.png')",
    "sympy": "import sympy; sympy.integrate(sympy.Symbol('x'))",
    "joblib": "import joblib; joblib.dump([1], os.environ['TMPDIR'] + '/x'); joblib.load(os.environ['TMPDIR'] + '/x')",
    "skops": "import skops.io, sklearn.linear_model as m; skops.io.dumps(m.Ridge())",
    "psutil": "import psutil; p = psutil.Process(); p.memory_info().rss; p.cpu_times(); psutil.virtual_memory(); p.num_threads()",
    "cryptography": "import cryptography.fernet as f; f.Fernet(f.Fernet.generate_key()).encrypt(b'x')",
    "pydantic": "import pydantic; pydantic.TypeAdapter(int).validate_python('1')",
    "orjson": "import orjson; orjson.dumps({'a': 1})",
    "zstandard": "import zstandard; zstandard.ZstdCompressor(threads=2).compress(b'x' * 1000)",
    "regex": "import regex; regex.findall('a', 'aa')",
    "rapidfuzz": "import rapidfuzz; rapidfuzz.fuzz.ratio('a', 'b')",
    "google.protobuf": "import google.protobuf.struct_pb2 as s; s.Struct().SerializeToString()",
    "grpc": "import grpc",
    "aiohttp": "import aiohttp, asyncio; asyncio.run(asyncio.sleep(0))",
}


FINDS = """import importlib.util, json, sys
def is_there(name):
    try: return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError: return False
print(json.dumps([name for name in sys.argv[1:] if is_there(name)]))"""


@pytest.mark.parametrize("kernel", ["", "namespaces=no,ids=no"])
def test_libraries_that_are_installed_compute(tmp_path, kernel):
    """Each in a process of its own, as the server starts it, on this kernel and on one without namespaces."""
    python = os.environ.get("PACKAGES_PYTHON", sys.executable)
    found = subprocess.run([python, "-c", FINDS, *PACKAGES], capture_output=True, text=True, check=True)
    present = json.loads(found.stdout)
    print(f"{len(present)} of {len(PACKAGES)} are installed, without {set(PACKAGES) - set(present)}")
    assert {"numpy", "sklearn", "onnxruntime"} <= set(present)
    failed = {}
    for name in present:
        folder = write_container(tmp_path / name.replace(".", "_"), PACKAGES[name], python)
        command = [foliot_binary(), "container", "check", str(folder), "--containers-kernel", kernel]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            failed[name] = done.stdout[-1000:] + done.stderr[-1000:]
    assert not failed, f"of {present}"


@contextlib.contextmanager
def asleep():
    """Another process of the same user."""
    with subprocess.Popen(["sleep", "1000"]) as process:
        try:
            yield process.pid
        finally:
            process.kill()


def seen_of(folder, process):
    """What a system call that reaches too far would change."""
    entries = {path: (entry.st_mode, entry.st_uid, entry.st_gid, entry.st_size, entry.st_nlink, entry.st_mtime_ns, entry.st_ctime_ns)
               for path in (folder, *folder.rglob("*")) for entry in [path.stat()]}
    limits = [resource.prlimit(process, limit) for limit in (resource.RLIMIT_NOFILE, resource.RLIMIT_CORE)]
    return (entries, limits, os.sched_getaffinity(process), os.sched_getscheduler(process), os.getpriority(os.PRIO_PROCESS, process),
            os.getpgid(process), os.uname(), os.waitpid(process, os.WNOHANG))


@pytest.mark.parametrize("kernel", ["", "landlock=0", "landlock=1", "landlock=3", "landlock=6", "namespaces=no", "namespaces=no,ids=no",
                                    "landlock=0,namespaces=no,ids=no", "landlock=1,namespaces=no,ids=no", "landlock=3,namespaces=no,ids=no"])
def test_only_listed_system_calls_succeed(tmp_path, kernel):
    """All that the kernel's headers know, on files and a process outside, of which nothing changes."""
    known = system_calls.numbers()
    assert known, "the kernel's headers are not installed: linux-libc-dev, which g++ needs"
    with asleep() as process:
        outside = tmp_path / "m/1/kept"
        code, count = system_calls.code_that_makes_all(known, outside / "file", outside / "new", process)
        assert count >= 400
        assert {name for name, _, _ in system_calls.all_calls(known)} | system_calls.NOT_MADE == set(known)
        folder = write_container(tmp_path / "m", code)
        outside.mkdir()
        (outside / "file").write_text("x")
        before = seen_of(outside, process)
        command = [foliot_binary(), "container", "check", str(folder), "--containers-kernel", kernel]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert f"system calls made: {count}" in done.stdout + done.stderr, done.stdout + done.stderr
        assert done.returncode == 0, done.stderr
        assert seen_of(outside, process) == before


def test_what_a_kernel_lacks_is_said_at_the_start(tmp_path, serve):
    write_container(tmp_path / "models/m")
    server = serve(tmp_path / "models", containers_kernel="landlock=0,namespaces=no", **OPTIONS)
    eventually(lambda: server.get("/v2/models/m/ready")[0] == 200, otherwise=server.output)
    await_output(server, "this kernel confines containers less than it could: no Landlock")
    await_output(server, "; no namespaces")


def test_strictly_confined_a_server_does_not_start_without(tmp_path):
    write_container(tmp_path / "models/m")
    with pytest.raises(ServerFailed) as failed, Server(tmp_path / "models", tmp_path / "log", containers="strict",
                                                       containers_kernel="namespaces=no", **OPTIONS):
        pass
    assert failed.value.exit_code == 1
    assert "this kernel cannot confine containers as --containers strict demands: no namespaces" in failed.value.output


def test_folders_of_a_killed_server_are_removed_by_the_next(tmp_path, serve):
    repository = tmp_path / "models"
    write_container(repository / "m", "open(os.environ['TMPDIR'] + '/file', 'w').write('x')")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    prefix = ("env", f"TMPDIR={temporary}")

    def folders():
        return set(temporary.glob("foliot-container-*"))

    with Server(repository, tmp_path / "log", prefix=prefix, containers_kernel="namespaces=no", **OPTIONS) as server:
        left = eventually(folders, otherwise=server.output)
        server.stop(by=signal.SIGKILL)
    assert left <= folders()
    server = serve(repository, prefix=prefix, **OPTIONS)
    eventually(lambda: server.get("/v2/models/m/ready")[0] == 200, otherwise=server.output)
    assert not left & folders()
    await_output(server, "folders of containers that a killed server left")
    assert server.stop() == 0
    assert not folders()
