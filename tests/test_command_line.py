"""The command line as a new user types it: one model alone, and mistakes, each with one line that has the remedy."""

import json
import os
import re
import shutil
import socket
import subprocess

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from foliot_tools import onnx_models
from foliot_tools.server import foliot_binary

FAILED, USAGE, NOTHING_TO_SERVE = 1, 2, 3
SMALL = {"page_size": "256KiB", "page_cache": "16MiB"}
ANY_PORTS = ("--http-port=0", "--grpc-port=0", "--metrics-port=0")


def run(*arguments, prefix=()):
    """The exit code of a command that must end, and what it printed; of errors alone if there are any."""
    done = subprocess.run([*prefix, foliot_binary(), *map(str, arguments)], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stderr or done.stdout


def wrong(*arguments, code, **options):
    """The line that says what is wrong."""
    got, output = run(*arguments, **options)
    lines = [line for line in output.splitlines() if not line.startswith("compiling ")]
    assert got == code and len(lines) == 1, (got, output)
    return lines[0]


def scale_network(path, factor, external=""):
    """y = factor * x, for x [batch, 4]; with its factor in the file `external`."""
    onnx_models.save(path, [helper.make_node("Mul", ["x", "factor"], ["y"])],
                     {"x": (TensorProto.FLOAT, ["batch", 4])}, {"y": (TensorProto.FLOAT, ["batch", 4])},
                     {"factor": np.full(4, factor, np.float32)})
    if external:
        onnx.save(onnx.load(path), path, save_as_external_data=True, location=external, size_threshold=0)
    return path


def answer(server, model):
    body = {"inputs": [{"name": "x", "shape": [1, 4], "datatype": "FP32", "data": [1, 2, 3, 4]}]}
    status, said = server.post(f"/v2/models/{model}/infer", body)
    assert status == 200, said
    return said["outputs"][0]["data"]


# One model alone


def test_a_file_is_served_among_files_of_others(tmp_path, serve):
    scale_network(tmp_path / "double.onnx", 2, external="double.onnx.data")
    scale_network(tmp_path / "triple.onnx", 3)
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters/pipeline.toml").write_text("nonsense")
    server = serve(tmp_path / "double.onnx", **SMALL)
    assert answer(server, "double") == [2, 4, 6, 8]
    assert [model["name"] for model in server.post("/v2/repository/index")[1]] == ["double"]
    assert "letters" not in server.output()


@pytest.mark.parametrize("file", ["model.onnx", "other.onnx"])
def test_a_folder_with_a_model_in_it_is_served(tmp_path, serve, file):
    scale_network(tmp_path / "net" / file, 2, external="weights.bin")
    assert answer(serve(tmp_path / "net", **SMALL), "net") == [2, 4, 6, 8]


def test_a_model_alone_that_changes_is_served_anew(tmp_path, serve):
    scale_network(tmp_path / "net.onnx", 2)
    server = serve(tmp_path / "net.onnx", watch="100ms", **SMALL)
    assert answer(server, "net") == [2, 4, 6, 8]
    scale_network(tmp_path / "new", 3)
    os.replace(tmp_path / "new", tmp_path / "net.onnx")
    assert server.post("/v2/repository/models/net/load")[0] == 200
    assert answer(server, "net") == [3, 6, 9, 12]


def test_models_lists_a_model_alone(tmp_path):
    code, output = run("models", scale_network(tmp_path / "net.onnx", 2))
    assert code == 0 and re.search(r"^net +1 +not compiled", output, re.MULTILINE), output


def test_what_lists_prints_json(tmp_path, serve):
    for name in ("scale", "broken"):
        (tmp_path / "models" / name).mkdir(parents=True)
    scale_network(tmp_path / "models/scale/model.onnx", 2)
    (tmp_path / "models/broken/model.onnx").write_text("no network")

    def lines(*arguments):
        code, printed = run(*arguments, "--json")
        return code, [json.loads(line) for line in printed.splitlines()]

    code, (broken, scale) = lines("models", tmp_path / "models")
    assert code == 1 and broken["state"] == "broken" and "not an ONNX model" in broken["reason"]
    assert (scale["name"], scale["state"], scale["batch_sizes"]) == ("scale", "not compiled", [1, 2, 4, 8, 16])
    code, devices = lines("devices")
    assert code == 0 and devices[0]["kind"] == "cpu" and devices[0]["processors"] >= 1
    server = serve(tmp_path / "models", **SMALL)
    code, served = lines("models", "--url", f"127.0.0.1:{server.http_port}")
    assert code == 1 and {each["name"]: each["state"] for each in served} == {"scale": "READY", "broken": "UNAVAILABLE"}


def test_data_of_another_name_is_none_of_a_file(tmp_path):
    scale_network(tmp_path / "net.onnx", 2, external="weights.bin")
    line = wrong("serve", tmp_path / "net.onnx", *ANY_PORTS, code=NOTHING_TO_SERVE)
    assert "external data weights.bin does not begin with 'net'; put both in a folder of their own" in line


# One inference


@pytest.fixture
def infer(tmp_path, serve):
    """infer(*arguments): the exit code and what `foliot infer double` printed."""
    server = serve(scale_network(tmp_path / "double.onnx", 2), **SMALL)
    return lambda *arguments: run("infer", "double", "--url", server.http, *arguments)


def test_infer_takes_json_files_and_random_numbers(tmp_path, infer):
    np.save(tmp_path / "x.npy", np.arange(24, dtype=np.float32).reshape(6, 4))
    code, output = infer("--input", "x=[[1, 2, 3, 4]]", "--deadline", "10s")
    assert code == 0 and output.startswith("y FP32 [1,4]: 2, 4, 6, 8\nanswered in "), output
    code, output = infer("--input", f"x=@{tmp_path}/x.npy")
    assert code == 0 and output.startswith("y FP32 [6,4]: 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, ...\n"), output
    for arguments in ((), ("--input", "x=random"), ("--input", "x=random:1,4")):
        code, output = infer(*arguments)
        assert code == 0 and output.startswith("y FP32 [1,4]: "), output
    code, output = infer("--input", "x=[[1, 2, 3, 4]]", "--json")
    assert code == 0 and json.loads(output)["outputs"][0]["data"] == [2, 4, 6, 8]


def test_infer_says_what_is_wrong(tmp_path, infer):
    for arguments, said in [(["--input", "z=random"], "the model has no input 'z'; it has x"),
                            (["--input", "x"], "--input 'x': write NAME=@FILE.npy"),
                            (["--input", "x=fast"], "input 'x': 'fast' is none of @FILE.npy"),
                            (["--input", "x=random:1;4"], "input 'x': write random:EXTENT"),
                            (["--input", f"x=@{tmp_path}/gone.npy"], "gone.npy"),
                            (["--input", "x=[[1, 2, 3]]"], "the server answered 400: "),
                            (["--deadline", "1us"], "the server answered ")]:
        code, output = infer(*arguments)
        assert code == FAILED and output.startswith("foliot infer: ") and said in output and output.count("\n") == 1, output
    assert "127.0.0.1:1" in wrong("infer", "double", "--url", "127.0.0.1:1", code=FAILED)


# What cannot be served


def test_nothing_is_there(tmp_path):
    assert f"there is no '{tmp_path}/gone'; give a .onnx file" in wrong("serve", tmp_path / "gone", code=NOTHING_TO_SERVE)


def test_a_folder_without_models(tmp_path):
    (tmp_path / "models/photos").mkdir(parents=True)
    line = wrong("serve", tmp_path / "models", *ANY_PORTS, code=NOTHING_TO_SERVE)
    assert f"there is no model in '{tmp_path}/models'; put one there" in line and "--watch" in line


def test_a_text_file(tmp_path):
    (tmp_path / "notes.txt").write_text("Dear diary")
    assert "is no model; give a .onnx file" in wrong("serve", tmp_path / "notes.txt", code=NOTHING_TO_SERVE)
    (tmp_path / "notes.onnx").write_text("Dear diary")
    line = wrong("serve", tmp_path / "notes.onnx", *ANY_PORTS, code=NOTHING_TO_SERVE)
    assert "model 'notes' cannot be served" in line and "it is not an ONNX model" in line


def test_several_files(tmp_path):
    scale_network(tmp_path / "a.onnx", 2)
    scale_network(tmp_path / "b.onnx", 2)
    assert "has 2 .onnx files, such as a.onnx and b.onnx; give one of them" in wrong("serve", tmp_path, code=NOTHING_TO_SERVE)


def test_a_repository_that_may_not_be_read(tmp_path):
    prefix = ()
    if os.geteuid() == 0:  # root may read all: as another user
        if not shutil.which("setpriv"):
            pytest.skip("setpriv is not installed")
        prefix = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--")
        for folder in (tmp_path, *tmp_path.parents[:3]):
            folder.chmod(folder.stat().st_mode | 0o005)
    (tmp_path / "models").mkdir()
    scale_network(tmp_path / "net.onnx", 2)
    for path in (tmp_path / "models", tmp_path / "net.onnx"):
        path.chmod(0)
        line = wrong("serve", path, code=NOTHING_TO_SERVE, prefix=prefix)
        assert f"'{path}' cannot be read: Permission denied; give this user the right to" in line
        path.chmod(0o755)


def test_a_port_that_is_taken(tmp_path):
    scale_network(tmp_path / "net.onnx", 2)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = wrong("serve", tmp_path / "net.onnx", f"--http-port={port}", code=FAILED)
    assert str(port) in line and "--http-port" in line


# Mistakes in commands and flags


@pytest.mark.parametrize("arguments, said", [
    (["serv", "models"], "foliot: there is no command 'serv'; did you mean 'serve'? `foliot --help` has the usage"),
    (["sevre", "models", "--http-port", "1"], "did you mean 'serve'?"),
    (["frobnicate"], "foliot: there is no command 'frobnicate'; `foliot --help`"),
    (["keys", "nwe"], "foliot keys: there is no command 'nwe'; did you mean 'new'?"),
    (["serve", "models", "--pagecache", "1GiB"], "foliot serve: there is no flag '--pagecache'; did you mean '--page-cache'?"),
    (["serve", "models", "--http=80"], "there is no flag '--http'; did you mean '--http-port'?"),
    (["serve", "models", "--port", "80"], "there is no flag '--port'"),
    (["serve", "models", "-v"], "there is no flag '-v'"),
    (["serve", "models", "more"], "foliot serve: 'more' is one argument too many"),
    (["serve", "models", "--http-port"], "foliot serve: --http-port has no value; `foliot serve --help`"),
    (["serve", "models", "--default-slo", "fast"], "--default-slo"),
    (["serve"], "foliot serve: repository is required"),
    (["--verbose"], "there is no flag '--verbose'"),
    (["keys"], "foliot keys: a command is missing"),
])
def test_a_mistake_is_one_line_with_what_was_probably_meant(arguments, said):
    assert said in wrong(*arguments, code=USAGE)


def test_a_wrong_config_file_is_a_wrong_command_line(tmp_path):
    (tmp_path / "foliot.toml").write_text("page-cash = 1\n")
    assert "foliot.toml:1: unknown key 'page-cash'" in wrong("serve", "models", "--config", tmp_path / "foliot.toml", code=USAGE)


def test_help_of_a_command_is_its_help():
    assert run("help", "serve") == run("serve", "--help") and run("help") == run("--help")
    assert run("bench", "--model", "help", "--frobnicate")[0] == USAGE


def test_the_version_has_the_commit():
    code, output = run("--version")
    assert code == 0 and re.fullmatch(r"foliot \d+\.\d+\.\d+ \(commit ([0-9a-f]{7,}\+?|unknown)\)\n", output), output


# Completion


def completed(*words):
    """What bash offers for the last of the words behind `foliot`."""
    script = ("source <(foliot completion bash)\n"
              'COMP_WORDS=(foliot "$@"); COMP_CWORD=$#\n'
              'COMPREPLY=(); _foliot; printf "%s\\n" "${COMPREPLY[@]}"\n')
    path = f"{os.path.dirname(foliot_binary())}:{os.environ['PATH']}"
    done = subprocess.run(["bash", "-c", script, "bash", *words], env={**os.environ, "PATH": path}, capture_output=True,
                          text=True, timeout=60, check=True)
    assert not done.stderr
    return done.stdout.split()


def test_a_shell_completes_commands_flags_and_values():
    assert completed("se") == ["serve"]
    assert completed("help", "ex") == ["explain", "experiment"]
    assert completed("serve", "models", "--http-p") == ["--http-port"]
    assert completed("serve", "--log-format", "") == ["json", "text"]
    assert completed("keys", "new", "--scope", "infer", "--scope", "ad") == ["admin"]
    assert set(completed("")) >= {"serve", "infer", "completion"}


@pytest.mark.parametrize("words", [("serve", "/"), ("serve", "--http-port", ""), ("serve", "--none", "x")])
def test_a_shell_completes_files_where_nothing_is_known(words):
    assert completed(*words) == []
