"""TLS on the links: parts with certificates of one authority connect, and no
others, on the controller's port and on a worker's."""

import contextlib
import re
import socket
import ssl

import numpy as np
import pytest
import tritonclient.http

from foliot_tools.certificates import Authority, link_flags
from foliot_tools.cluster import Cluster, Part
from foliot_tools.link import CLIENT, greeting
from foliot_tools.waiting import eventually


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def cluster(small_models, tmp_path_factory, authority):
    with Cluster(tmp_path_factory.mktemp("cluster"), small_models, workers=1, frontends=1,
                 part_options=link_flags(authority, "part")) as running:
        yield running


def infer(cluster, pixels):
    request = tritonclient.http.InferInput("pixels", pixels.shape, "FP32")
    request.set_data_from_numpy(pixels)
    with tritonclient.http.InferenceServerClient(cluster.frontends[0].http) as client:
        return client.infer("dense", [request]).as_numpy("probabilities")


def test_answers_are_right(cluster, dense_oracle):
    pixels = np.random.default_rng(1).random((3, 64), np.float32)
    np.testing.assert_allclose(infer(cluster, pixels), dense_oracle(pixels), rtol=1e-3, atol=1e-5)


def plain(_authority, _folder):
    return None


def without_certificate(authority, _folder):
    return ssl.create_default_context(cafile=authority.certificate)


def with_files(authority, files):
    context = ssl.create_default_context(cafile=authority.certificate)
    context.load_cert_chain(*files)
    return context


def expired(authority, _folder):
    files = authority.issue("expired", days=-1)
    return with_files(authority, files)


def of_another_authority(authority, folder):
    return with_files(authority, Authority(folder, "another").issue("stranger"))


@pytest.mark.parametrize("part", ["controller", "worker"])
@pytest.mark.parametrize(("stranger", "complaint"), [
    (plain, "it does not speak TLS"),
    (without_certificate, "it shows no certificate"),
    (expired, "its certificate is not accepted: certificate has expired"),
    (of_another_authority, "its certificate is not accepted: "),
])
def test_other_authorities_are_refused(cluster, authority, tmp_path, dense_oracle, part, stranger, complaint):
    running = cluster.controller if part == "controller" else cluster.workers[0]
    port = (cluster.address.split(":")[1] if part == "controller"
            else running.await_line(r"front ends on port (\d+)")[1])
    context = stranger(authority, tmp_path)
    before = len(running.output())
    with socket.create_connection(("127.0.0.1", int(port)), timeout=10) as peer, contextlib.suppress(OSError):
        if context is not None:
            context.check_hostname = False
            peer = context.wrap_socket(peer)
        peer.sendall(greeting(CLIENT))
        while peer.recv(4096):  # until it is closed
            pass
    eventually(lambda: complaint in running.output()[before:], otherwise=running.output)
    pixels = np.ones((1, 64), np.float32)
    np.testing.assert_allclose(infer(cluster, pixels), dense_oracle(pixels), rtol=1e-3, atol=1e-5)


def test_plain_and_tls_do_not_mix(cluster, small_models, tmp_path):
    plain_worker = Part(tmp_path / "worker.log", "worker", small_models, controller=cluster.address, threads=1,
                        page_size="256KiB", page_cache="16MiB", cache=cluster.folder / "cache")
    try:
        plain_worker.await_line("does it use TLS")
    finally:
        plain_worker.kill()


def test_a_controller_without_tls_says_so(authority, tmp_path):
    controller = Part(tmp_path / "controller.log", "controller", listen="127.0.0.1:0")
    port = controller.await_line(r"port (\d+)")[1]
    worker = Part(tmp_path / "worker.log", "worker", emulate="resnet50", controller=f"127.0.0.1:{port}",
                  **link_flags(authority, "worker"))
    try:
        controller.await_line("it speaks TLS, and this side does not: give both the flags --tls-link")
    finally:
        worker.kill()
        controller.kill()


@pytest.mark.parametrize(("flags", "complaint"), [
    (("tls_link_certificate",), "give --tls-link-certificate, --tls-link-key and --tls-link-ca, or none"),
    (("tls_link_certificate", "tls_link_key", "tls_link_ca"), "the certificate has expired"),
])
@pytest.mark.parametrize("command", ["controller", "worker", "frontend"])
def test_wrong_flags(authority, tmp_path, command, flags, complaint):
    certificate, key = authority.issue("old", days=-1)
    files = {"tls_link_certificate": certificate, "tls_link_key": key, "tls_link_ca": authority.certificate}
    emulate = {"emulate": "resnet50"} if command == "worker" else {}
    part = Part(tmp_path / "log", command, **emulate, **{flag: files[flag] for flag in flags})
    assert part.process.wait(30) == 1
    assert re.search(complaint, part.output())
