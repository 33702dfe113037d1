"""Mistakes of new users: each has one line, with the thing that is wrong and the remedy, and the exit code of the documents."""

import os
import socket
import subprocess

import numpy as np
import pytest
from onnx import TensorProto, helper

from foliot_tools import onnx_models
from foliot_tools.server import foliot_binary

FAILED, USAGE, NOTHING_TO_SERVE = 1, 2, 3
ANY_PORTS = ["--http-port", "0", "--grpc-port", "0", "--metrics-port", "0"]
NO_SERVER = "127.0.0.1:1"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with what is mistaken for something else."""
    folder = tmp_path_factory.mktemp("mistakes")
    (folder / "empty").mkdir()
    (folder / "notes.onnx").write_text("Dear diary")
    (folder / "notes.txt").write_text("Dear diary")
    onnx_models.save(folder / "good.onnx", [helper.make_node("Mul", ["x", "factor"], ["y"])],
                     {"x": (TensorProto.FLOAT, ["batch", 4])}, {"y": (TensorProto.FLOAT, ["batch", 4])},
                     {"factor": np.ones(4, np.float32)})
    for name, text in {"unfinished": "default_slo =\n", "misspelt": "batch_size = [1]\n", "light": "weight = -1\n",
                       "unitless": "default_slo = 50\n"}.items():
        (folder / name / "m").mkdir(parents=True)
        (folder / name / "m/model.toml").write_text(text)
        os.link(folder / "good.onnx", folder / name / "m/model.onnx")
    return folder


def line_of(folder, arguments, code, prefix=()):
    """The one line of a command that must fail with this exit code."""
    done = subprocess.run([*prefix, foliot_binary(), *arguments], cwd=folder, capture_output=True, text=True, timeout=60,
                          stdin=subprocess.DEVNULL)
    lines = [line for line in done.stderr.splitlines() if not line.startswith("compiling ")]
    assert done.returncode == code and len(lines) == 1, (arguments, done)
    return lines[0]


@pytest.mark.parametrize("command, code, words", [
    # Commands and flags
    ("serv models", USAGE, ["'serv'", "did you mean 'serve'?"]),
    ("start models", USAGE, ["'start'", "`foliot --help`"]),
    ("help serv", USAGE, ["'serv'", "did you mean 'serve'?"]),
    ("--verison", USAGE, ["'--verison'", "did you mean '--version'?"]),
    ("serve", USAGE, ["repository is required", "`foliot serve --help`"]),
    ("serve empty --htpp-port 1", USAGE, ["'--htpp-port'", "did you mean '--http-port'?"]),
    ("serve empty --http-port 99999", USAGE, ["--http-port", "'99999'", "from 0 to 65535"]),
    ("serve empty --http-port eighty", USAGE, ["--http-port", "'eighty'", "from 0 to 65535"]),
    ("serve empty --default-slo 50", USAGE, ["--default-slo", "'50'", "50ms"]),
    ("serve empty --page-cache lots", USAGE, ["--page-cache", "'lots'"]),
    ("serve empty --log-format jsn", USAGE, ["--log-format", "'jsn' is none of", "did you mean 'json'?"]),
    ("serve empty --config gone.toml", USAGE, ["--config: gone.toml: no such file", "check the path"]),
    ("serve empty --devices gpu", USAGE, ["--devices", "'gpu'", "gpus = [0]", "write it like 0-15"]),
    ("bench --rate 100 --deadline 50", USAGE, ["--deadline", "'50'", "50ms"]),
    ("infer m --deadline 50", USAGE, ["--deadline", "'50'", "50ms"]),
    ("explain --slowest", USAGE, ["--log is required", "`foliot explain --help`"]),
    ("completion fsh", USAGE, ["'fsh' is none of bash, zsh, fish"]),
    ("demo --seconds 1", USAGE, ["--seconds", "1", "2", "3600"]),
    # Files and folders
    ("serve gone", NOTHING_TO_SERVE, ["there is no 'gone'", "give a .onnx file"]),
    ("serve empty", NOTHING_TO_SERVE, ["no model in 'empty'", "put one there", "--watch"]),
    ("serve notes.onnx", NOTHING_TO_SERVE, ["notes.onnx", "not an ONNX model"]),
    ("serve notes.txt", NOTHING_TO_SERVE, ["notes.txt", "give a .onnx file"]),
    ("models gone", FAILED, ["there is no 'gone'", "give a .onnx file"]),
    ("models empty", FAILED, ["no model in 'empty'", "put one there"]),
    ("import gone", FAILED, ["gone is no folder", "give a model's folder"]),
    ("init gone.onnx", FAILED, ["gone.onnx does not exist", "check the path"]),
    ("compile notes.onnx", FAILED, ["notes.onnx", "not an ONNX model"]),
    ("simulate gone.toml", FAILED, ["gone.toml: no such file", "check the path"]),
    ("simulate notes.txt", FAILED, ["notes.txt:1:"]),
    ("explain --slowest --log gone", FAILED, ["gone/requests.csv", "--log FOLDER"]),
    ("trace export gone -o x.json", FAILED, ["gone/requests.csv", "--log FOLDER"]),
    # Servers
    (f"infer m --url {NO_SERVER}", FAILED, [NO_SERVER, "`foliot serve`", "--url"]),
    (f"models --url {NO_SERVER}", FAILED, [NO_SERVER, "foliot serve"]),
    (f"top {NO_SERVER}", FAILED, [NO_SERVER, "`foliot serve`", "--url"]),
    (f"top --once --url {NO_SERVER}", FAILED, [NO_SERVER, "`foliot serve`"]),
    (f"jobs list --url {NO_SERVER}", FAILED, [NO_SERVER, "`foliot serve`"]),
    (f"bench --url {NO_SERVER}", FAILED, [NO_SERVER, "'foliot serve'"]),
])
def test_a_mistake_has_one_line_with_the_remedy(place, command, code, words):
    arguments = command.split()
    if arguments[0] == "serve" and "--http-port" not in arguments and len(arguments) > 1:
        arguments += ANY_PORTS
    line = line_of(place, arguments, code)
    assert line.startswith("foliot") and all(word in line for word in words), line


@pytest.mark.parametrize("folder, words", [
    ("unfinished", ["unfinished/m/model.toml:1:"]),
    ("misspelt", ["misspelt/m/model.toml:1:", "'batch_size'", "batch_sizes"]),
    ("light", ["light/m/model.toml:1:", "'weight'", "above 0, not -1"]),
    ("unitless", ["unitless/m/model.toml:1:", "'default_slo'", "50ms"]),
])
def test_a_broken_model_toml_is_named_by_models(place, folder, words):
    done = subprocess.run([foliot_binary(), "models", folder], cwd=place, capture_output=True, text=True, timeout=60)
    assert done.returncode == FAILED and all(word in done.stdout for word in ["cannot be served", *words]), done


def test_a_port_that_is_taken(place):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        line = line_of(place, ["serve", "good.onnx", "--http-port", port, "--grpc-port", "0", "--metrics-port", "0"], FAILED)
    assert port in line and "--http-port" in line


def test_mistakes_in_a_call(place, serve):
    server = serve(place / "good.onnx", page_size="256KiB", page_cache="16MiB")
    for arguments, words in [(["infer", "goood"], ["404", "'goood'"]),
                             (["infer", "good", "--input", "x=[[1, 2, 3]]"], ["400", "'x'", "[1,3]"]),
                             (["infer", "good", "--input", "z=random"], ["no input 'z'", "it has x"]),
                             (["infer", "good", "--input", "x=@gone.npy"], ["gone.npy"])]:
        line = line_of(place, [*arguments, "--url", server.http], FAILED)
        assert all(word in line for word in words), line
