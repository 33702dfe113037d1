"""Several devices in one process, each pinned to cores of its own."""

import concurrent.futures
import os
import pathlib
import subprocess

import numpy as np
import pytest
import tritonclient.http as triton

from foliot_tools import onnx_models
from foliot_tools.cluster import Cluster
from foliot_tools.server import Server, foliot_binary
from foliot_tools.waiting import await_output, eventually

WIDTH = 1024  # so that an inference takes longer than it takes to ask for the next


def cores():
    """Two cores that this process may use."""
    first, second, *_ = sorted(os.sched_getaffinity(0))
    return first, second


@pytest.fixture(name="models", scope="module")
def model_repository(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    onnx_models.random_dense_network(folder / "dense/1/model.onnx", (WIDTH, WIDTH, WIDTH, 10))
    (folder / "dense/model.toml").write_text("batch_sizes = [1]\n")
    return folder


def ask_until(address, done):
    """Keeps eight requests under way until done(); all answers must be equal."""
    row = np.ones((1, WIDTH), np.float32)

    def ask():
        with triton.InferenceServerClient(address, network_timeout=60) as client:
            pixels = triton.InferInput("pixels", row.shape, "FP32")
            pixels.set_data_from_numpy(row)
            answers = [client.infer("dense", [pixels]).as_numpy("scores") for _ in range(20)]
        return answers

    with concurrent.futures.ThreadPoolExecutor(8) as clients:
        def asked():
            for asking in [clients.submit(ask) for _ in range(8)]:
                for answer in asking.result():
                    answers.append(answer)
            return done()

        answers = []
        eventually(asked, 60, lambda: "one of the devices has not run the model")
    for answer in answers:
        np.testing.assert_array_equal(answer, answers[0])


def done_by_device(metrics, series):
    """How many INFERs each device has done."""
    return [
        sum(value for name, value in metrics.items()
            if name.startswith(series + "{") and f'device="{device}"' in name
            and 'action="INFER"' in name and 'status="done"' in name)
        for device in range(2)
    ]


def await_pinned(process, expected):
    """Returns once the threads of EXEC of this process, which name themselves, are pinned so."""
    wanted = sorted(map(str, expected))
    eventually(lambda: exec_cores(process) == wanted, 30, lambda: f"pinned to {exec_cores(process)}, not {wanted}")


def exec_cores(process):
    """What the threads of EXEC of this process are pinned to."""
    pinned = []
    for task in pathlib.Path(f"/proc/{process.pid}/task").iterdir():
        if (task / "comm").read_text().strip() != "exec":
            continue
        status = dict(line.split(":\t", 1) for line in (task / "status").read_text().splitlines() if ":\t" in line)
        pinned.append(status["Cpus_allowed_list"].strip())
    return sorted(pinned)


def test_both_devices_of_a_server_run_a_model(models, tmp_path):
    first, second = cores()
    with Server(models, tmp_path / "console", cache=tmp_path / "cache", log=tmp_path / "log",
                devices=f"{first};{second}") as server:
        await_output(server, "2 devices")
        await_pinned(server.process, (first, second))
        eventually(lambda: len(list((tmp_path / "cache").glob("*.foliot"))) == 1, otherwise="there is not one package")
        ask_until(server.http, lambda: min(done_by_device(server.metrics(), "foliot_worker_actions_total")) > 0)
        assert min(done_by_device(server.metrics(), "foliot_actions_total")) > 0
        for device in range(2):
            assert server.metrics()[f'foliot_worker_pages{{device="{device}",state="used"}}'] > 0
        assert server.stop() == 0
    exported = tmp_path / "trace.json"
    command = [foliot_binary(), "trace", "export", tmp_path / "log", "--output", exported]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    trace = exported.read_text()
    assert '"device 0"' in trace and '"device 1"' in trace


def test_both_devices_of_a_worker_run_a_model(models, tmp_path):
    first, second = cores()
    with Cluster(tmp_path, models, workers=0, frontends=0, metrics=True) as cluster:
        worker = cluster.add_worker(devices=f"{first};{second}", page_cache="64MiB")
        await_pinned(worker.process, (first, second))
        frontend = cluster.add_frontend()
        controller = Scraped(cluster.controller.metrics_port)
        of_worker = Scraped(worker.metrics_port)
        ask_until(frontend.http, lambda: min(done_by_device(of_worker.metrics(), "foliot_worker_actions_total")) > 0)
        assert min(done_by_device(controller.metrics(), "foliot_actions_total")) > 0


class Scraped:
    """The metrics of a part of a cluster."""

    def __init__(self, port):
        self.metrics_port = port

    metrics = Server.metrics


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--devices", "0;9999"], "--devices: device 1 ('9999'): core 9999 is beyond the limit of 1023"),
        (["--devices", "0;1000"], "--devices: device 1 ('1000'): core 1000 does not exist"),
        (["--devices", "0;0"], "core 0 is in the set 0 too; devices share no cores"),
        (["--devices", "0;"], "--devices: device 1 (''): a set without cores; name at least one"),
        (["--devices", ""], "--devices: a set without cores"),
        (["--devices", "two"], "'two' is no set of cores; write it like 0-15 or 0,2,4-7"),
        (["--devices", "0", "--threads", "1"], "--devices excludes --threads"),
    ],
)
def test_names_what_is_wrong_with_sets(models, tmp_path, flags, message):
    for command in ("serve", "worker"):
        result = subprocess.run([foliot_binary(), command, models, "--cache", tmp_path / "cache", *flags],
                                capture_output=True, text=True, timeout=60)
        assert result.returncode != 0
        assert message in result.stderr


def test_cores_outside_the_affinity_are_forbidden(models, tmp_path):
    first, second = cores()
    result = subprocess.run(["taskset", "-c", str(first), foliot_binary(), "serve", models, "--cache",
                             tmp_path / "cache", "--devices", f"{first};{second}"],
                            capture_output=True, text=True, timeout=60)
    assert result.returncode == 2
    assert f"core {second} is forbidden by the affinity (taskset) of this process; usable are cores {first}" in result.stderr
