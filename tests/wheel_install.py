"""The wheel (`make wheel`) as a user installs it: in a fresh environment, without this tree and without the paths of this
shell, it serves an ONNX file and a container. `make test-wheel`."""

import os
import pathlib
import re
import subprocess
import time

import numpy as np
import pytest
from onnx import TensorProto, helper

from foliot_tools import onnx_models
from foliot_tools.server import ROOT, Server

WHEEL_BYTES_MAX = 60e6
# What every system of the wheel's tag has (PEP 600): the C library, and these.
OF_THE_SYSTEM = re.compile(r"^(linux-vdso|ld-linux-x86-64|libc|libm|libmvec|libpthread|librt|libdl|libresolv|libutil|libstdc\+\+"
                           r"|libgcc_s|libz)\.so")
CODE = """
import foliot

@foliot.model(inputs={"x": ("FP32", [4])}, outputs={"y": ("FP32", [4])})
def predict(batch):
    return {"y": 3 * batch["x"]}
"""


@pytest.fixture(scope="session")
def wheel():
    wheels = list((ROOT / "dist").glob("foliot-*.whl"))
    assert len(wheels) == 1, "make wheel makes it"
    return wheels[0]


@pytest.fixture(scope="session")
def environment(wheel, tmp_path_factory):
    """The bin folder of a virtual environment with the wheel."""
    folder = tmp_path_factory.mktemp("wheel") / "venv"
    subprocess.run(["/usr/bin/python3", "-m", "venv", folder], check=True)
    subprocess.run([folder / "bin/pip", "--quiet", "--disable-pip-version-check", "install", wheel], check=True)
    return folder / "bin"


@pytest.fixture
def serve(environment, tmp_path):
    """Like that of the other tests, without any variable of this environment."""
    servers = []

    def start(repository):
        server = Server(repository, tmp_path / "log", foliot=environment / "foliot", prefix=("env", "-i"),
                        page_size="256KiB", page_cache="16MiB")
        servers.append(server)
        return server.start()

    yield start
    assert all(server.stop() == 0 for server in servers)


def answer(server, model):
    body = {"inputs": [{"name": "x", "shape": [1, 4], "datatype": "FP32", "data": [1, 2, 3, 4]}]}
    status, said = server.post(f"/v2/models/{model}/infer", body)
    assert status == 200, said
    return said["outputs"][0]["data"]


def test_size_and_tag(wheel):
    assert wheel.stat().st_size <= WHEEL_BYTES_MAX
    assert re.fullmatch(r"foliot-\d+\.\d+\.\d+-py3-none-manylinux_2_\d+_x86_64\.whl", wheel.name)


def test_the_command_has_its_libraries(environment):
    done = subprocess.run(["env", "-i", environment / "foliot", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("foliot ")
    [program] = environment.parent.glob("lib/python*/site-packages/foliot/bin/foliot")
    listed = subprocess.run([program], env={"LD_TRACE_LOADED_OBJECTS": "1"}, capture_output=True, text=True, check=True).stdout
    for line in listed.splitlines():
        name, _, path = line.strip().partition(" => ")
        inside = str(environment.parent) in os.path.realpath(path.split(" (")[0])
        assert inside or OF_THE_SYSTEM.match(pathlib.Path(name.split(" (")[0]).name), line


def test_it_serves_a_file(serve, environment, tmp_path):
    model = onnx_models.save(tmp_path / "double.onnx", [helper.make_node("Mul", ["x", "two"], ["y"])],
                             {"x": (TensorProto.FLOAT, ["batch", 4])}, {"y": (TensorProto.FLOAT, ["batch", 4])},
                             {"two": np.full(4, 2, np.float32)})
    began = time.monotonic()
    assert answer(serve(model), "double") == [2, 4, 6, 8]
    print(f"first answer {time.monotonic() - began:.2f} s after `foliot serve`")


def test_it_serves_a_container_with_its_own_interpreter(serve, environment, tmp_path):
    (tmp_path / "triple").mkdir()
    (tmp_path / "triple/model.py").write_text(CODE)
    server = serve(tmp_path / "triple")
    assert answer(server, "triple") == [3, 6, 9, 12]
    checked = subprocess.run(["env", "-i", environment / "foliot", "container", "check", tmp_path / "triple"],
                             capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_package_can_be_imported(environment):
    subprocess.run(["env", "-i", environment / "python", "-c", "import foliot; foliot.model"], check=True)
