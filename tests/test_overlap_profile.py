"""foliot profile, and a server that runs models beside each other by what it made."""

import concurrent.futures
import json
import os
import signal
import subprocess
import time

import numpy as np
import onnxruntime
import pytest
import tritonclient.grpc as triton

from foliot_tools import onnx_models
from foliot_tools.server import foliot_binary
from foliot_tools.waiting import await_output

# Two threads that are not pinned, so that it runs on any machine.
DEVICE = ["--threads", "2", "--lanes", "2"]
LAYERS = {"wide": (512,) * 9 + (10,), "deep": (256,) * 21 + (10,), "other": (64, 32)}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("overlapping")
    for name, layers in LAYERS.items():
        onnx_models.random_dense_network(folder / name / "model.onnx", layers)
        (folder / name / "model.toml").write_text("batch_sizes = [1]\n")
    return folder


def profile(repository, *flags, error_max=1000.0):
    """However noisy the machine is."""
    return subprocess.run([foliot_binary(), "profile", str(repository), "--overlap", "wide,deep", *DEVICE, *flags,
                           "--error-max", str(error_max)], capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def profiled(models, tmp_path_factory):
    report = tmp_path_factory.mktemp("report") / "report.json"
    run = profile(models, "--samples", "40", "--repeats", "1", "--report-json", str(report))
    assert run.returncode == 0, run.stderr
    return run.stdout, json.loads(report.read_text())


def test_reports_error_spread_and_gain_of_each_pair(profiled):
    printed, report = profiled
    assert "deep + wide" in printed and "overlap/predictor is what" in printed
    [pair] = report["pairs"]
    assert sorted(pair["models"]) == ["deep", "wide"] and pair["groups"] == 40
    assert 0.3 < pair["gain"] < 4
    assert set(report["held_out_error"]) == {"correction", "abacus", "longest_alone"}


def test_goes_on_after_an_interruption(models, tmp_path):
    cache = ["--cache", str(tmp_path / "cache"), "--repeats", "3"]
    command = [foliot_binary(), "profile", str(models), "--overlap", "wide,deep", *DEVICE, *cache, "--samples", "100000"]
    samples = tmp_path / "cache/overlap/samples.new"
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as running:
        until = time.monotonic() + 60
        while not samples.exists() or samples.stat().st_size < 2000:
            assert running.poll() is None and time.monotonic() < until, running.stderr.read()
            time.sleep(0.02)
        running.send_signal(signal.SIGINT)
        error = running.communicate(timeout=60)[1]
    assert running.returncode == 1 and "the same command goes on from there" in error
    measured = int(error.split("interrupted with ")[1].split(" ")[0])
    again = profile(models, *cache, "--samples", str(measured + 10))
    assert again.returncode == 0, again.stderr
    assert f"going on after {measured} groups" in again.stdout


def test_a_noisy_predictor_is_not_kept(models, tmp_path):
    cache, report = tmp_path / "cache", tmp_path / "report.json"
    run = profile(models, "--cache", str(cache), "--samples", "20", "--report-json", str(report), error_max=1e-6)
    assert run.returncode == 1, run.stdout
    assert "no predictor was kept" in run.stderr and "the machine is noisy" in run.stderr, run.stderr
    assert not (cache / "overlap/predictor").exists()
    assert json.loads(report.read_text())["pairs"][0]["groups"] == 20
    # What was measured is used, where the bound is another one.
    run = profile(models, "--cache", str(cache), "--samples", "20")
    assert run.returncode == 0 and "going on after 20 groups" in run.stdout, run.stderr
    assert (cache / "overlap/predictor").exists()


@pytest.mark.parametrize("flags, reason", [
    (["--lanes", "1"], "a device of one lane runs nothing beside others"),
    (["--overlap", "wide"], "--overlap names 1 of the models"),
    (["--overlap", "nothing,wide"], "there is no such model"),
    (["--samples", "3"], "--samples"),
])
def test_says_what_cannot_be_profiled(models, flags, reason):
    command = [foliot_binary(), "profile", str(models), "--overlap", "wide,deep", "--threads", "2", "--lanes", "2"]
    if flags[0] == "--overlap":
        command[4] = flags[1]
    elif flags[0] == "--lanes":
        command[-1] = flags[1]
    else:
        command += flags
    run = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert run.returncode != 0 and reason in run.stderr, run.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no full disk to write to")
def test_a_full_disk_is_said(models, tmp_path):
    cache = tmp_path / "cache"
    assert profile(models, "--cache", str(cache), "--samples", "10", "--repeats", "1").returncode == 0
    (cache / "overlap/samples.new").unlink()
    (cache / "overlap/samples.new").symlink_to("/dev/full")
    run = profile(models, "--cache", str(cache), "--samples", "20", "--repeats", "1")
    assert run.returncode == 1 and "samples.new" in run.stderr, run.stderr


def answers(server, models, requests):
    """All answers of requests sent at once are those of onnxruntime."""
    sessions = {name: onnxruntime.InferenceSession(models / name / "model.onnx") for name in LAYERS}
    with triton.InferenceServerClient(server.grpc) as client, concurrent.futures.ThreadPoolExecutor(16) as pool:
        def one(i):
            name = list(LAYERS)[i % 3]
            pixels = np.random.default_rng(i).random((1, LAYERS[name][0])).astype(np.float32)
            call = triton.InferInput("pixels", list(pixels.shape), "FP32").set_data_from_numpy(pixels)
            result = client.infer(name, [call], timeout=2_000_000)
            wanted = sessions[name].run(None, {"pixels": pixels})[0]
            outputs = result.get_response().outputs[0].name
            np.testing.assert_allclose(result.as_numpy(outputs), wanted, rtol=1e-3, atol=1e-4)
        list(pool.map(one, range(requests)))


def test_a_server_runs_what_was_profiled_beside_each_other(profiled, models, serve, tmp_path):
    server = serve(models, scheduler="overlap", threads=2, lanes=2, log=tmp_path / "log")
    await_output(server, "model 'other' was not profiled as it is now")
    assert "'wide' was not profiled" not in server.output()
    answers(server, models, 240)


@pytest.mark.parametrize("damage, reason", [
    (lambda file: file.write_bytes(file.read_bytes()[:-1]), "damaged"),
    (lambda file: file.unlink(), "there is no predictor"),
])
def test_a_server_says_that_a_predictor_cannot_be_used(models, serve, tmp_path, damage, reason):
    cache = tmp_path / "cache"
    run = profile(models, "--cache", str(cache), "--samples", "10", "--repeats", "1")
    assert run.returncode == 0, run.stderr
    damage(cache / "overlap/predictor")
    server = serve(models, scheduler="overlap", threads=2, lanes=2, cache=cache)
    await_output(server, "models run one at a time")
    await_output(server, reason)
    answers(server, models, 30)
