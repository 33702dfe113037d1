"""The process of a replica (python/foliot), driven as a server does, and the adapters of libraries."""

import os
import re
import socket
import struct
import subprocess
import sys
import tomllib

import lightgbm
import numpy as np
import onnxruntime
import pytest
import sklearn.datasets
import sklearn.ensemble
import sklearn.linear_model
import sklearn.pipeline
import sklearn.preprocessing
import sklearn.svm
import skops.io
import xgboost
from onnx import TensorProto, helper

from foliot_tools import onnx_models
from foliot_tools.replica import PACKAGES, Replica, ReplicaError

HEAD = "import foliot, numpy\n"
# Doubles x, counts it and says whether it is above zero; line 4 of model.py is where `body` begins.
MODEL = HEAD + """
@foliot.model(inputs={"x": ("FP32", [3])}, outputs={"twice": ("FP32", [3]), "count": ("INT64", [])})
def predict(batch):
"""
GOOD = '    return {"twice": 2 * batch["x"], "count": numpy.full(len(batch["x"]), len(batch["x"]))}\n'


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "model"
    path.mkdir()
    return path


def write(folder, text, name="model.py"):
    (folder / name).write_text(text)
    return folder


def started(folder, **options):
    """A replica that has loaded its model, with memory."""
    replica = Replica(folder, **options)
    replica.start()
    replica.share_memory(1 << 16)
    return replica


def why_not(folder, **options):
    """Why the folder cannot be served; the process must then end with 1."""
    with Replica(folder, **options) as replica:
        with pytest.raises(ReplicaError) as error:
            replica.start()
        status, _, printed = replica.close()
    assert status == 1, printed
    return str(error.value)


def short(parameter):
    """The name of a test with this parameter."""
    return re.sub(r"\W+", "_", str(parameter).removeprefix(HEAD))[:40]


def rows(count, width=3):
    return np.arange(count * width, dtype=np.float32).reshape(count, width)


# What it serves


def test_it_describes_what_model_py_declares(folder):
    write(folder, HEAD + """
@foliot.model(inputs={"a": ("UINT8", (2, 4)), "b": ("BOOL", [])}, outputs={"y": ("FP16", [0])}, batch_size_max=8)
def predict(batch): return {}
""")
    with Replica(folder) as replica:
        assert replica.start() == {
            "protocol": 1,
            "inputs": [{"name": "a", "datatype": "UINT8", "shape": [2, 4]}, {"name": "b", "datatype": "BOOL", "shape": []}],
            "outputs": [{"name": "y", "datatype": "FP16", "shape": [0]}],
            "batch_size_max": 8,
        }


@pytest.mark.parametrize("output_offset", [1 << 15, 1 << 14])
def test_calls_of_any_number_of_rows_at_any_place(folder, output_offset):
    with started(write(folder, MODEL + GOOD)) as replica:
        for count in (1, 2, 3, 17, 1, 64):
            for input_offset in (0, 4096):
                outputs = replica.call({"x": rows(count)}, input_offset=input_offset, output_offset=output_offset)
                np.testing.assert_array_equal(outputs["twice"], 2 * rows(count))
                np.testing.assert_array_equal(outputs["count"], np.full(count, count))


DATATYPES = ["BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64", "FP16", "FP32", "FP64"]


def test_all_data_types_go_there_and_back(folder):
    tensors = {name.lower(): (name, [3]) for name in DATATYPES}
    write(folder, HEAD + f"@foliot.model(inputs={tensors}, outputs={tensors})\ndef predict(batch): return batch\n")
    with started(folder) as replica:
        assert [each["datatype"] for each in replica.description["inputs"]] == DATATYPES
        inputs = {name: np.array([[0, 1, 1], [1, 0, 1]]) for name in tensors}
        outputs = replica.call(inputs)
        for name, value in outputs.items():
            np.testing.assert_array_equal(value, inputs[name], name)


def test_new_memory_takes_the_place_of_the_old(folder):
    with started(write(folder, MODEL + GOOD)) as replica:
        replica.call({"x": rows(2)}, output_offset=1 << 14)
        replica.share_memory(1 << 15)
        np.testing.assert_array_equal(replica.call({"x": rows(2)}, output_offset=1 << 14)["twice"], 2 * rows(2))


def test_the_model_lives_in_its_folder(folder):
    """It finds modules and files beside it, before others, and leaves none there."""
    (folder / "scale.txt").write_text("5")
    write(folder, "FACTOR = int(open('scale.txt').read())", "json.py")  # the name of a module that is loaded already
    write(folder, "from random_factor import FACTOR", "helper_of_mine.py")
    write(folder, "FACTOR = int(open('scale.txt').read())", "random_factor.py")
    write(folder, HEAD + "from helper_of_mine import FACTOR" + MODEL[len(HEAD):].replace("INT64", "INT64")
          + '    return {"twice": FACTOR * batch["x"], "count": numpy.zeros(len(batch["x"]), int)}\n')
    before = sorted(path.name for path in folder.iterdir())
    with started(folder) as replica:
        np.testing.assert_array_equal(replica.call({"x": rows(1)})["twice"], 5 * rows(1))
    assert sorted(path.name for path in folder.iterdir()) == before


def test_what_it_prints_is_its_own(folder):
    write(folder, "print('loading')\n" + MODEL + "    print('predicting')\n" + GOOD)
    with started(folder) as replica:
        replica.call({"x": rows(1)})
        assert replica.close() == (0, "loading\npredicting\n", "")


def test_inputs_cannot_be_written(folder):
    with started(write(folder, MODEL + "    batch['x'] += 1\n" + GOOD)) as replica:
        with pytest.raises(ReplicaError, match=r"predict raised ValueError: output array is read-only \(model.py, line 5\)"):
            replica.call({"x": rows(1)})


def test_predict_may_change_its_dictionary(folder):
    with started(write(folder, MODEL + "    batch = {'x': batch.pop('x')}\n" + GOOD)) as replica:
        for _ in range(2):
            np.testing.assert_array_equal(replica.call({"x": rows(2)})["twice"], 2 * rows(2))


# Calls that fail, after which the next is answered


@pytest.mark.parametrize("statement, expected", [
    ("raise ValueError('three')", "predict raised ValueError: three (model.py, line 6)"),
    ("raise KeyError", "predict raised KeyError (model.py, line 6)"),
    ("exit(3)", "predict raised SystemExit: 3 (model.py, line 6)"),
    ("raise KeyboardInterrupt", "predict raised KeyboardInterrupt (model.py, line 6)"),
    ("numpy.linalg.inv(numpy.zeros((2, 2)))", "predict raised LinAlgError: Singular matrix (model.py, line 6)"),
    ("def f(): f()\n        f()", "predict raised RecursionError: maximum recursion depth exceeded (model.py, line 6)"),
    ("return None", "predict returned None: it must be a dict of the outputs ['twice', 'count']"),
    ("return [1]", "predict returned a value of type list: it must be a dict of the outputs ['twice', 'count']"),
    ("return {'twice': 1}", "predict returned the outputs ['twice']: declared are ['twice', 'count']"),
    ("return {'twice': 1, 'count': 1, 3: 1}", "predict returned the outputs ['twice', 'count', 3]: declared are "
                                              "['twice', 'count']"),
    ("return {'twice': batch['x'][:0], 'count': 0}",
     "output 'twice' has the shape [0, 3]: for 1 rows it must be [1, 3]"),
    ("return {'twice': batch['x'], 'count': 0}", "output 'count' has the shape []: for 1 rows it must be [1]"),
    ("return {'twice': batch['x'], 'count': [[0], [1]]}", "output 'count' has the shape [2, 1]: for 1 rows it must be [1]"),
    ("return {'twice': batch['x'], 'count': batch['x'][:, 0]}",
     "output 'count' has the data type float32, which is not cast to int64 by itself: declare another, or return it "
     ".astype(numpy.int64)"),
    ("return {'twice': batch['x'], 'count': ['a'] * len(batch['x'])}",
     "output 'count' has the data type <U1, which is not cast to int64 by itself: declare another, or return it "
     ".astype(numpy.int64)"),
    ("return {'twice': [[1], [1, 2]], 'count': 0}", "output 'twice' is a value of type list, not an array: ValueError: "),
], ids=short)
def test_a_call_that_fails_says_why(folder, statement, expected):
    write(folder, MODEL + f"    if batch['x'][0, 0] < 0:\n        {statement}\n" + GOOD)
    with started(folder) as replica:
        for _ in range(2):
            with pytest.raises(ReplicaError) as error:
                replica.call({"x": -1 - rows(2)})
            assert str(error.value).startswith(expected)
            np.testing.assert_array_equal(replica.call({"x": rows(2)})["twice"], 2 * rows(2))
        status, _, printed = replica.close()
    assert status == 0
    raised = expected.startswith("predict raised")
    assert printed.count("Traceback") == (1 if raised else 0), "each is printed once"


@pytest.mark.parametrize("failing", [[3], [0, 63], [5, 6, 7, 40], list(range(63))])
def test_rows_fail_alone(folder, failing):
    """Others of their batch have outputs."""
    write(folder, MODEL + "    if (batch['x'][:, 0] < 0).any(): raise ValueError('below zero')\n" + GOOD)
    inputs = rows(64)
    inputs[failing] = -1
    rest = [row for row in range(64) if row not in failing]
    with started(folder) as replica:
        with pytest.raises(ReplicaError, match=r"predict raised ValueError: below zero \(model.py, line 5\)") as error:
            replica.call({"x": inputs})
        assert error.value.rows == failing
        np.testing.assert_array_equal(replica.views("outputs", 64, 1 << 15)["twice"][rest], 2 * inputs[rest])


def test_each_row_that_fails_has_its_own_reason(folder):
    """Rows are different clients', which must not read of each other's."""
    write(folder, MODEL + "    if (batch['x'] < 0).any(): raise ValueError(f'below zero: {batch[\"x\"].min()}\\n' + 'x' * 600)\n" + GOOD)
    inputs = rows(9)
    inputs[4], inputs[7] = -4, -7
    with started(folder) as replica:
        with pytest.raises(ReplicaError) as error:
            replica.call({"x": inputs})
    for row in (4, 7):
        reason = error.value.reasons[row]
        assert f"below zero: -{row}.0\n" in reason and len(reason) == 512


def texts(*rows_of_texts):
    return [np.array([text.encode() for text in row], object) for row in rows_of_texts]


def test_strings(folder):
    """bytes come in, and str or bytes go out, in arrays or lists."""
    write(folder, HEAD + """
@foliot.model(inputs={"text": ("BYTES", [], 32), "pair": ("BYTES", [2])}, outputs={"upper": ("BYTES", [], 64), "pair": ("BYTES", [2], 64)})
def predict(batch):
    assert batch["text"].shape == (len(batch["text"]),) and batch["pair"].shape[1:] == (2,)
    assert all(type(text) is bytes for text in batch["text"])
    try:
        batch["text"][0] = b"changed"
    except ValueError:
        return {"upper": [text.decode().upper() for text in batch["text"]], "pair": batch["pair"][:, ::-1]}
""")
    text = [np.array(value.encode(), object) for value in ("one", "", "gr\u00fc\u00df", "x" * 32)]
    with started(folder) as replica:
        assert replica.description["inputs"] == [
            {"name": "text", "datatype": "BYTES", "shape": [], "string_bytes_max": 32},
            {"name": "pair", "datatype": "BYTES", "shape": [2], "string_bytes_max": 4096}]
        outputs = replica.call({"text": text, "pair": texts(("a", "b"), ("", "c"), ("d", "e"), ("f", "g"))}, output_offset=1 << 15)
    assert [row.item().decode() for row in outputs["upper"]] == ["ONE", "", "GR\u00dcSS", "X" * 32]
    assert [list(row) for row in outputs["pair"]] == [[b"b", b"a"], [b"c", b""], [b"e", b"d"], [b"g", b"f"]]


def test_dimensions_that_vary(folder):
    """Each row is an array of its own extents."""
    write(folder, HEAD + """
@foliot.model(inputs={"x": ("FP32", [foliot.up_to(5), 2]), "words": ("BYTES", [foliot.up_to(3)])},
              outputs={"twice": ("FP64", [foliot.up_to(5), 2]), "words": ("BYTES", [foliot.up_to(3)])})
def predict(batch):
    return {"twice": [2 * row for row in batch["x"]], "words": [sorted(row, reverse=True) for row in batch["words"]]}
""")
    x = [rows(count, 2) for count in (3, 0, 5)]
    with started(folder) as replica:
        assert replica.description["inputs"][0] == {"name": "x", "datatype": "FP32", "shape": [-1, 2], "shape_max": [5, 2]}
        outputs = replica.call({"x": x, "words": texts("ab", "", "cde")}, output_offset=1 << 15)
    for row, twice in zip(x, outputs["twice"]):
        np.testing.assert_array_equal(twice, 2 * row)
    assert [list(row) for row in outputs["words"]] == [[b"b", b"a"], [], [b"e", b"d", b"c"]]


@pytest.mark.parametrize(("returned", "expected"), [
    ("{'s': [1], 'v': [[]]}", "output 's' has a value of type int in row 0: strings are str or bytes"),
    ("{'s': ['123456789'], 'v': [[]]}", "output 's' has strings of 9 bytes in row 0: declared are at most 8"),
    ("{'s': ['a', 'b'], 'v': [[]]}", "output 's' has the shape [2]: for 1 rows it must be [1]"),
    ("{'s': 'a', 'v': [[]]}", "output 's' is a value of type str: it must be a list of arrays, one for each row"),
    ("{'s': ['\\ud800'], 'v': [[]]}", "output 's' has text in row 0 that is not valid Unicode"),
    ("{'s': ['a'], 'v': []}", "output 'v' has 0 rows: there are 1"),
    ("{'s': ['a'], 'v': [[1, 2, 3, 4]]}", "output 'v' has the shape [4] in row 0: it must be [0 to 3]"),
    ("{'s': ['a'], 'v': [[[1]]]}", "output 'v' has the shape [1, 1] in row 0: it must be [0 to 3]"),
    ("{'s': ['a'], 'v': [[1.5]]}", "output 'v' has the data type float64 in row 0, which is not cast to int64 by itself"),
    ("{'s': ['a'], 'v': [[[1], [1, 2]]]}", "output 'v' has a value of type list in row 0, not an array: ValueError"),
    ("{'s': ['a'], 'v': 7}", "output 'v' is a value of type int: it must be a list of arrays, one for each row"),
], ids=short)
def test_outputs_beyond_their_bound(folder, returned, expected):
    write(folder, HEAD + f"""
@foliot.model(inputs={{"x": ("BYTES", [])}}, outputs={{"s": ("BYTES", [], 8), "v": ("INT64", [foliot.up_to(3)])}})
def predict(batch): return {returned}
""")
    with started(folder) as replica:
        with pytest.raises(ReplicaError) as error:
            replica.call({"x": [np.array(b"", object)]})
    assert str(error.value).startswith(expected)


def test_a_row_is_found_by_halves(folder):
    """64 calls of a model that takes long would end the process."""
    write(folder, MODEL + "    print('called')\n    if (batch['x'][:, 0] < 0).any(): raise ValueError\n" + GOOD)
    inputs = rows(64)
    inputs[9] = -1
    with started(folder) as replica:
        with pytest.raises(ReplicaError):
            replica.call({"x": inputs})
        assert replica.close()[1].count("called") == 1 + 2 * 6


def test_a_model_that_fails_slowly_fails_on_all_its_rows(folder):
    write(folder, "import time\n" + MODEL + "    if (batch['x'][:, 0] < 0).any():\n        time.sleep(0.3)\n        print('called')\n"
          "        raise ValueError\n" + GOOD)
    with started(folder) as replica:
        with pytest.raises(ReplicaError) as error:
            replica.call({"x": -1 - rows(64)})
        assert error.value.rows == list(range(64))
        assert set(error.value.reasons.values()) == {""}, "none was computed alone"
        assert replica.close()[1].count("called") <= 4


def test_a_batch_that_fails_and_whose_rows_do_not(folder):
    write(folder, MODEL + "    if len(batch['x']) > 8: raise MemoryError\n" + GOOD)
    with started(folder) as replica:
        np.testing.assert_array_equal(replica.call({"x": rows(64)})["twice"], 2 * rows(64))


def test_a_failure_of_another_file_names_it(folder):
    write(folder, "def f(x):\n    return 1 / 0\n", "helper_of_mine.py")
    with started(write(folder, "import helper_of_mine\n" + MODEL + "    helper_of_mine.f(1)\n")) as replica:
        with pytest.raises(ReplicaError, match=r"ZeroDivisionError: division by zero \(helper_of_mine.py, line 2\)"):
            replica.call({"x": rows(1)})


def test_messages_are_cut_between_characters(folder):
    with started(write(folder, MODEL + "    raise ValueError('\u00fc' * 5000)\n")) as replica:
        with pytest.raises(ReplicaError) as error:
            replica.call({"x": rows(1)})
    assert 4090 <= len(str(error.value).encode()) <= 4095 and "\ufffd" not in str(error.value)


def test_exceptions_that_cannot_be_shown(folder):
    write(folder, "class Mean(Exception):\n    def __str__(self): raise RuntimeError\n" + MODEL + "    raise Mean\n")
    with started(folder) as replica:
        with pytest.raises(ReplicaError, match=r"predict raised Mean: \(its message cannot be shown\) \(model.py, line 7\)"):
            replica.call({"x": rows(1)})


@pytest.mark.parametrize("declared, returned, sent", [
    ("FP32", "numpy.array([0.1, 1e10])", np.array([0.1, 1e10], np.float32)),
    ("FP64", "numpy.float16([0.5, 1])", np.array([0.5, 1])),
    ("FP32", "[3, 4]", np.array([3, 4], np.float32)),
    ("INT64", "numpy.int32([3, -4])", np.array([3, -4])),
    ("INT8", "numpy.array([3, -4])", np.array([3, -4], np.int8)),
    ("UINT8", "numpy.array([True, False])", np.array([1, 0], np.uint8)),
    ("FP32", "numpy.array([numpy.nan, -numpy.inf])", np.array([np.nan, -np.inf], np.float32)),
], ids=short)
def test_casts_within_a_kind_or_to_a_wider_one(folder, declared, returned, sent):
    write(folder, HEAD + f"@foliot.model(inputs={{'x': ('FP32', [])}}, outputs={{'y': ('{declared}', [])}})\n"
          f"def predict(batch): return {{'y': {returned}}}\n")
    with started(folder) as replica:
        np.testing.assert_array_equal(replica.call({"x": np.zeros(2)})["y"], sent)


# What cannot be served


@pytest.mark.parametrize("text, expected", [
    ("import no_such_package", f"model.py needs the package 'no_such_package'; install it for {sys.executable}: "
                               f"{sys.executable} -m pip install no_such_package"),
    ("import no_such_package.inside", "model.py needs the package 'no_such_package'"),
    ("import json.no_such_module", "model.py cannot be loaded: ModuleNotFoundError: No module named 'json.no_such_module' "
                                   "(model.py, line 1)"),
    ("1 +", "model.py, line 1: SyntaxError: invalid syntax"),
    ("x = 1\n1 / 0", "model.py cannot be loaded: ZeroDivisionError: division by zero (model.py, line 2)"),
    ("import sys\nsys.exit(0)", "model.py ended the process while it was loaded, by SystemExit: 0 (model.py, line 2)"),
    ("", "model.py declares no model: decorate one function with @foliot.model"),
    (MODEL + GOOD + MODEL[len(HEAD):].replace("predict", "other") + GOOD,
     "model.py declares 2 models ('predict', 'other'): a container has one"),
    (HEAD + "@foliot.model\ndef predict(batch): pass", "@foliot.model needs inputs and outputs: @foliot.model(inputs="),
    (HEAD + "foliot.model(inputs={}, outputs={'y': ('FP32', [])})", "there are 0 inputs: 1 to 64 can be declared"),
    (HEAD + "foliot.model(inputs=[1], outputs={'y': ('FP32', [])})", "inputs are [1]: they must be a dict"),
    (HEAD + "foliot.model(inputs={'x': 'FP32'}, outputs={})", "input 'x' is 'FP32': it must be (data type, shape of one row)"),
    (HEAD + "foliot.model(inputs={'x': ('BF16', [])}, outputs={})", "input 'x' has the data type 'BF16': containers have BOOL,"),
    (HEAD + "foliot.model(inputs={'x': ('FP32', [], 9)}, outputs={})", "input 'x' is ('FP32', [], 9): it must be (data type, shape"),
    (HEAD + "foliot.model(inputs={'x': ('BYTES', [], -1)}, outputs={})", "input 'x' has strings of up to -1 bytes in a row: it must"),
    (HEAD + "foliot.model(inputs={'x': ('BYTES', [1], 67108864)}, outputs={})", "input 'x' takes 67108872 bytes in a row, limit"),
    (HEAD + "foliot.model(inputs={'x': ('FP32', [foliot.up_to(-1)])}, outputs={})", "up_to(-1): it must be a whole number, from 0 on"),
    (HEAD + "foliot.model(inputs={'x': (['FP32'], [])}, outputs={})", "input 'x' has the data type ['FP32']: containers have"),
    (HEAD + "foliot.model(inputs={'x': ('FP32', 3)}, outputs={})", "input 'x' has the shape 3: it must be a list"),
    (HEAD + "foliot.model(inputs={'x': ('FP32', [-1, 3])}, outputs={})", "input 'x' has the shape [-1, 3]: it must be that of one"),
    (HEAD + "foliot.model(inputs={'x': ('FP32', [None])}, outputs={})", "input 'x' has the shape [None]: it must be that of one"),
    (HEAD + "foliot.model(inputs={'': ('FP32', [])}, outputs={})", "an input has the name '': it must be text of 1 to 255"),
    (HEAD + "foliot.model(inputs={'x': ('FP32', [])}, outputs={'y' * 256: ('FP32', [])})", "an output has the name 'yyy"),
    (HEAD + "foliot.model(inputs={'x': ('FP32', [])}, outputs={'y': ('FP32', [])}, batch_size_max=0)",
     "batch_size_max is 0: it must be a whole number, at least 1"),
    (HEAD + "foliot.model(inputs={'x': ('FP32', [1] * 30000)}, outputs={'y': ('FP32', [])})(print)",
     "the description of inputs and outputs has 90"),
], ids=short)
def test_a_model_that_cannot_be_served_says_why(folder, text, expected):
    assert why_not(write(folder, text)).startswith(expected)


def test_a_folder_without_model_py(folder):
    assert why_not(folder) == f"there is no model.py in {folder}"


def test_an_interpreter_without_numpy(folder):
    write(folder, MODEL + GOOD)
    python = "/usr/bin/python3"
    if subprocess.run([python, "-c", "import numpy"], capture_output=True, check=False).returncode == 0:
        # One that has numpy does not find it.
        write(folder, "raise ModuleNotFoundError(\"No module named 'numpy'\", name='numpy')", "numpy.py")
        reason = why_not(folder, python=python, environment={"PYTHONPATH": f"{folder}:{PACKAGES}"})
    else:
        reason = why_not(folder, python=python)
    assert reason == f"foliot needs the package 'numpy'; install it for {python}: {python} -m pip install numpy"


# The protocol


def test_it_ends_when_the_server_closes(folder):
    write(folder, "import threading, time\nthreading.Thread(target=time.sleep, args=(3600,)).start()\n" + MODEL + GOOD)
    with started(folder) as replica:
        assert replica.close()[0] == 0, "a thread of the model's own does not keep it"


def test_it_ends_when_the_server_closes_before_it_is_loaded(folder):
    pipe, theirs = os.pipe()
    write(folder, f"open({theirs}, 'w').close()\n" + MODEL + GOOD)
    os.set_inheritable(theirs, True)
    with Replica(folder) as replica:
        os.close(theirs)
        os.read(pipe, 1)  # model.py is being loaded
        os.close(pipe)
        assert replica.close()[0] == 0


@pytest.mark.parametrize("message", [
    b"X", b"C", b"M" + bytes(8), b"C" + bytes(20) + b"\0", b"C" * 100, struct.pack("<cIQQ", b"C", 0, 0, 0),
    struct.pack("<cIQQ", b"C", 1, 1, 1 << 15), struct.pack("<cIQQ", b"C", 1, 0, 1 << 16),
    struct.pack("<cIQQ", b"C", 65, 0, 1 << 15), struct.pack("<cIQQ", b"C", 1, 0, (1 << 64) - 64),
], ids=short)
def test_a_wrong_message_ends_it(folder, message):
    with started(write(folder, MODEL.replace("])})", "])}, batch_size_max=64)", 1) + GOOD)) as replica:
        replica.connection.send(message)
        assert replica.connection.recv(64) == b""
        status, _, printed = replica.close()
    assert status == 1 and "the server broke the protocol" in printed


def test_memory_that_cannot_be_mapped_ends_it(folder):
    for size, given in ((1 << 16, 4096), ((1 << 64) - 1, 4096)):
        with Replica(write(folder, MODEL + GOOD)) as replica:
            replica.start()
            descriptor = os.memfd_create("short")
            os.ftruncate(descriptor, given)
            socket.send_fds(replica.connection, [struct.pack("<cQ", b"M", size)], [descriptor])
            os.close(descriptor)
            assert replica.connection.recv(64) == b""
            status, _, printed = replica.close()
        assert status == 1 and "cannot be mapped" in printed


def test_a_call_before_the_memory_ends_it(folder):
    with Replica(write(folder, MODEL + GOOD)) as replica:
        replica.start()
        replica.connection.send(struct.pack("<cIQQ", b"C", 1, 0, 64))
        assert replica.connection.recv(64) == b""
        status, _, printed = replica.close()
    assert status == 1 and "a call came before the memory" in printed


def test_control_c_leaves_it(folder):
    write(folder, "import os, signal\n" + MODEL + "    os.kill(os.getpid(), signal.SIGINT)\n" + GOOD)
    with started(folder) as replica:
        np.testing.assert_array_equal(replica.call({"x": rows(1)})["twice"], 2 * rows(1))


def test_the_model_has_no_other_descriptors(folder):
    write(folder, "import os, fcntl\n" + MODEL
          + "    assert fcntl.fcntl(3, fcntl.F_GETFD) & fcntl.FD_CLOEXEC\n    print(len(os.listdir('/proc/self/fd')))\n" + GOOD)
    with started(folder) as replica:
        for _ in range(20):
            replica.share_memory(1 << 16)
            replica.call({"x": rows(1)})
        assert len(set(replica.close()[1].split())) == 1, "descriptors of memory are closed"


def test_started_by_hand_it_says_who_starts_it(folder):
    run = subprocess.run([sys.executable, "-m", "foliot.runtime", str(write(folder, MODEL + GOOD))], capture_output=True,
                         text=True, check=False, env={"PYTHONPATH": str(PACKAGES)})
    assert run.returncode == 2 and "descriptor 3 is no socket" in run.stderr and "foliot.check" in run.stderr


# python -m foliot.check


def run_check(folder):
    return subprocess.run([sys.executable, "-m", "foliot.check", str(folder)], capture_output=True, text=True, check=False,
                          env={"PYTHONPATH": str(PACKAGES)})


def test_check_of_a_good_folder(folder):
    run = run_check(write(folder, MODEL + GOOD))
    assert run.returncode == 0, run.stderr
    assert "input   x  FP32 [3] a row" in run.stdout and "64 rows: " in run.stdout and run.stdout.endswith("ok\n")


@pytest.mark.parametrize("text, expected", [
    (MODEL + "    return 5\n", "predict returned a value of type int"),
    ("", "model.py declares no model"),
])
def test_check_of_a_bad_folder(folder, text, expected):
    run = run_check(write(folder, text))
    assert run.returncode == 1 and expected in run.stderr


# Libraries


@pytest.fixture(scope="module")
def digits():
    data = sklearn.datasets.load_digits()
    return data.data.astype(np.float32), data.target


def outputs_of(folder, inputs, **options):
    """(description, outputs) of one call."""
    with started(folder, **options) as replica:
        replica.share_memory(1 << 20)
        return replica.description, replica.call(inputs)


def test_scikit_learn(folder, digits):
    model = sklearn.pipeline.make_pipeline(sklearn.preprocessing.StandardScaler(), sklearn.linear_model.LogisticRegression())
    model.fit(*digits)
    skops.io.dump(model, folder / "digits.skops")
    write(folder, HEAD + "foliot.sklearn('digits.skops', batch_size_max=32)")
    description, outputs = outputs_of(folder, {"x": digits[0][:20]})
    assert description["inputs"] == [{"name": "x", "datatype": "FP32", "shape": [64]}]
    assert description["outputs"] == [{"name": "y", "datatype": "INT64", "shape": []}]
    assert description["batch_size_max"] == 32
    np.testing.assert_array_equal(outputs["y"], model.predict(digits[0][:20]))

    write(folder, HEAD + "foliot.sklearn('digits.skops', method='predict_proba')")
    description, outputs = outputs_of(folder, {"x": digits[0][:20]})
    assert description["outputs"] == [{"name": "y", "datatype": "FP32", "shape": [10]}]
    np.testing.assert_allclose(outputs["y"], model.predict_proba(digits[0][:20]), rtol=1e-5, atol=1e-7)


def test_scikit_learn_with_classes_that_have_names(folder, digits):
    names = np.array(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"])
    model = sklearn.svm.LinearSVC().fit(digits[0], names[digits[1]])
    skops.io.dump(model, folder / "digits.skops")
    description, outputs = outputs_of(write(folder, HEAD + "foliot.sklearn('digits.skops')"), {"x": digits[0][:20]})
    assert description["outputs"] == [{"name": "y", "datatype": "INT64", "shape": []}]
    np.testing.assert_array_equal(model.classes_[outputs["y"]], model.predict(digits[0][:20]))


def test_forests_are_read_from_skops_files(folder, digits):
    model = sklearn.ensemble.RandomForestClassifier(n_estimators=5, n_jobs=-1).fit(*digits)
    skops.io.dump(model, folder / "digits.skops")
    _, outputs = outputs_of(write(folder, HEAD + "foliot.sklearn('digits.skops')"), {"x": digits[0][:20]})
    np.testing.assert_array_equal(outputs["y"], model.predict(digits[0][:20]))


def test_pickles_are_read_where_they_are_trusted(folder, digits):
    import joblib

    model = sklearn.linear_model.LinearRegression(n_jobs=2).fit(*digits)
    joblib.dump(model, folder / "digits.joblib")
    write(folder, HEAD + "foliot.sklearn('digits.joblib')")
    reason = why_not(folder)
    assert "'digits.joblib' is a pickle" in reason and "trust_pickle = true under [container]" in reason
    assert why_not(folder, environment={"FOLIOT_TRUST_PICKLE": "0"}) == reason
    _, outputs = outputs_of(folder, {"x": digits[0][:20]}, environment={"FOLIOT_TRUST_PICKLE": "1"})
    np.testing.assert_allclose(outputs["y"], model.predict(digits[0][:20]), rtol=1e-4)


def test_types_of_a_skops_file_are_named(folder, digits):
    model = sklearn.pipeline.make_pipeline(sklearn.preprocessing.FunctionTransformer(np.char.upper))
    skops.io.dump(model, folder / "odd.skops")
    reason = why_not(write(folder, HEAD + "foliot.sklearn('odd.skops', inputs={'x': ('FP32', [2])})"))
    assert "'odd.skops' has the types numpy" in reason and "trusted=[" in reason and "trust_pickle = true" in reason


@pytest.mark.parametrize("call, expected", [
    ("foliot.sklearn('no.skops')", "foliot.sklearn: there is no file 'no.skops' in "),
    ("foliot.sklearn('model.py')", "foliot.sklearn: 'model.py' is none of *.skops, *.pkl, *.pickle, *.joblib"),
    ("foliot.sklearn('svm.skops', method='predict_proba')", "foliot.sklearn: 'svm.skops' has a LinearSVC, which has no predict_proba"),
    ("foliot.sklearn('svm.skops', method='fit')", "foliot.sklearn: method is 'fit': it is one of predict, "),
    ("foliot.sklearn('svm.skops', inputs={'x': ('FP32', [3])})", "foliot.sklearn: the model cannot be run on a row of zeros "),
    ("foliot.sklearn('svm.skops', inputs={'x': ('FP32', [3]), 'z': ('FP32', [3])})", "foliot.sklearn: there are 2 inputs, it takes"),
    ("foliot.xgboost('no.json')", "foliot.xgboost: there is no file 'no.json'"),
], ids=short)
def test_adapters_say_what_is_wrong(folder, digits, call, expected):
    skops.io.dump(sklearn.svm.LinearSVC().fit(*digits), folder / "svm.skops")
    assert why_not(write(folder, HEAD + call)).startswith(expected)


@pytest.mark.parametrize("library, package", [("sklearn", "scikit-learn"), ("xgboost", "xgboost"), ("lightgbm", "lightgbm"),
                                              ("torch", "torch"), ("onnxruntime", "onnxruntime")])
def test_a_library_that_is_missing_is_named(folder, library, package):
    """Also if it is installed: an import of it fails as if it were not."""
    inputs = ", inputs={}" if library == "torch" else ""
    write(folder, f"import sys\nsys.modules.pop('{library}', None)\nimport foliot\n"
          "class Missing:\n    def find_spec(self, name, path=None, target=None):\n"
          f"        if name == '{library}': raise ModuleNotFoundError(name=name)\n"
          f"sys.meta_path.insert(0, Missing())\nfoliot.{library}('file'{inputs})\n")
    assert why_not(folder) == (f"foliot.{library} needs the package '{library}'; install it for {sys.executable}: "
                               f"{sys.executable} -m pip install {package}")


def test_xgboost(folder, digits):
    model = xgboost.XGBClassifier(n_estimators=30, max_depth=3, early_stopping_rounds=1, n_jobs=1)
    model.fit(digits[0][:1000], digits[1][:1000], eval_set=[(digits[0][1000:], digits[1][1000:])], verbose=False)
    model.save_model(folder / "digits.json")
    description, outputs = outputs_of(write(folder, HEAD + "foliot.xgboost('digits.json')"), {"x": digits[0][:20]})
    assert description["inputs"] == [{"name": "x", "datatype": "FP32", "shape": [64]}]
    assert description["outputs"] == [{"name": "y", "datatype": "FP32", "shape": [10]}]
    np.testing.assert_allclose(outputs["y"], model.predict_proba(digits[0][:20]), rtol=1e-5)


def test_xgboost_with_a_linear_booster(folder, digits):
    model = xgboost.XGBClassifier(booster="gblinear", n_estimators=20, early_stopping_rounds=3, n_jobs=1)
    model.fit(digits[0][:1000], digits[1][:1000], eval_set=[(digits[0][1000:], digits[1][1000:])], verbose=False)
    model.save_model(folder / "digits.json")
    x = np.array(digits[0][:20])
    x[3, 5] = np.nan
    description, outputs = outputs_of(write(folder, HEAD + "foliot.xgboost('digits.json')"), {"x": x})
    assert description["outputs"] == [{"name": "y", "datatype": "FP32", "shape": [10]}]
    np.testing.assert_allclose(outputs["y"], model.predict_proba(x), rtol=1e-5)


def test_lightgbm(folder, digits):
    model = lightgbm.LGBMClassifier(n_estimators=5, n_jobs=1, verbose=-1).fit(*digits)
    model.booster_.save_model(folder / "digits.txt")
    description, outputs = outputs_of(write(folder, HEAD + "foliot.lightgbm('digits.txt')"), {"x": digits[0][:20]})
    assert description["inputs"] == [{"name": "x", "datatype": "FP32", "shape": [64]}]
    assert description["outputs"] == [{"name": "y", "datatype": "FP32", "shape": [10]}]
    np.testing.assert_allclose(outputs["y"], model.predict_proba(digits[0][:20]), rtol=1e-5)


def test_onnxruntime(folder):
    path = onnx_models.random_dense_network(folder / "network.onnx", (64, 32, 10))
    description, outputs = outputs_of(write(folder, HEAD + "foliot.onnxruntime('network.onnx')"), {"pixels": rows(5, 64)})
    assert description["inputs"] == [{"name": "pixels", "datatype": "FP32", "shape": [64]}]
    assert description["outputs"] == [{"name": "probabilities", "datatype": "FP32", "shape": [10]}]
    expected = onnxruntime.InferenceSession(path).run(None, {"pixels": rows(5, 64)})[0]
    np.testing.assert_allclose(outputs["probabilities"], expected, rtol=1e-5, atol=1e-7)


def test_onnxruntime_with_variable_dimensions(folder):
    onnx_models.save(folder / "tokens.onnx", [helper.make_node("Gather", ["table", "tokens"], ["embedded"], "embed", axis=0)],
                     {"tokens": (TensorProto.INT64, ["batch", "sequence"])},
                     {"embedded": (TensorProto.FLOAT, ["batch", "sequence", 3])}, {"table": rows(10)})
    write(folder, HEAD + "foliot.onnxruntime('tokens.onnx')")
    assert "dimension 'sequence' of input 'tokens' ['batch', 'sequence'] is variable: give its size" in why_not(folder)
    write(folder, HEAD + "foliot.onnxruntime('tokens.onnx', inputs={'tokens': ('INT64', [4])})")
    description, outputs = outputs_of(folder, {"tokens": np.array([[1, 2, 3, 4]])})
    assert description["outputs"] == [{"name": "embedded", "datatype": "FP32", "shape": [4, 3]}]
    np.testing.assert_array_equal(outputs["embedded"], rows(10)[None, 1:5])


def test_the_wheel_has_all_packages():
    packages = {str(path.parent.relative_to(PACKAGES)).replace("/", ".") for path in (PACKAGES / "foliot").rglob("__init__.py")}
    assert set(tomllib.loads((PACKAGES / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]) == packages
