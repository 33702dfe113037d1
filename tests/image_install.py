"""The image (`make image`) as a runtime starts it: its files as the root, its user, its command. It serves with one broken
model of several, under TLS and keys, and its health check agrees with /v2/health/ready. Wants root. `make test-image`."""

import gzip
import io
import json
import os
import subprocess
import tarfile
import time

import pytest

from conftest import write_pair
from foliot_tools.certificates import openssl
from foliot_tools.server import ROOT, Server

IMAGE_BYTES_MAX = 150e6

def unpack(image, to):
    """Unpacks an image; returns its configuration and the size of its layers."""
    with tarfile.open(image) as outer:
        (manifest,) = json.load(outer.extractfile("manifest.json"))
        layers = [gzip.decompress(outer.extractfile(layer).read()) for layer in manifest["Layers"]]
        for layer in layers:
            with tarfile.open(fileobj=io.BytesIO(layer)) as files:
                files.extractall(to)
        return json.load(outer.extractfile(manifest["Config"]))["config"], sum(map(len, layers))


@pytest.fixture(scope="module", params=["", "-python"])
def image(request, tmp_path_factory):
    if os.getuid() != 0:
        pytest.skip("only root may change the root of a process")
    (path,) = [path for path in (ROOT / "dist").glob("foliot_*_amd64.oci.tar") if ("-python" in path.name) == bool(request.param)]
    root = tmp_path_factory.mktemp("image")
    root.chmod(0o755)
    config, size = unpack(path, root)
    if not request.param:
        assert size <= IMAGE_BYTES_MAX
    write_pair(root / "models/pair/model.onnx")
    (root / "models/broken").mkdir()
    (root / "models/broken/model.onnx").write_text("no network")
    return root, config


def inside(image):
    """What runs a command in an image, with what a runtime mounts into it."""
    root, config = image
    mounts = f"mount --rbind /proc {root}/proc && mount --rbind /dev {root}/dev && mount --rbind /sys {root}/sys"
    return ["unshare", "--mount", "sh", "-c",
            f'{mounts} && exec env -i {" ".join(config["Env"])} /usr/sbin/chroot --userspec={config["User"]} {root} "$@"', "sh"]


def healthy(image, server):
    """Whether the health check passes, at the port of the test."""
    kind, *command = image[1]["Healthcheck"]["Test"]
    assert kind == "CMD"
    command = [part.replace("127.0.0.1:8000", server.http) for part in command]
    done = subprocess.run([*inside(image), *command], capture_output=True, text=True)
    return done.returncode == 0, done.stdout + done.stderr


def test_it_serves_as_its_user_and_is_healthy_with_a_broken_model_keys_and_tls(image, tmp_path):
    root, config = image
    assert config["Entrypoint"] == ["foliot"] and config["User"] == "10001:10001"
    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", 2, "-subj", "/CN=localhost", "-keyout", root / "key.pem",
            "-out", root / "certificate.pem")
    (root / "key.pem").chmod(0o644)
    key = subprocess.run([*inside(image), "foliot", "keys", "new", "client"], capture_output=True, text=True, check=True)
    (root / "keys.toml").write_text(key.stdout)
    command, *flags = config["Cmd"]
    assert command == "serve"
    options = {name[2:]: value for name, value in zip(flags[::2], flags[1::2])} | {"address": "127.0.0.1"}
    for more in ({}, {"keys": "/keys.toml", "tls_certificate": "/certificate.pem", "tls_key": "/key.pem"}):
        console = tmp_path / "console.log"
        with Server("/models", console, foliot="foliot", prefix=inside(image), **options, **more) as server:
            assert healthy(image, server) == (True, 'ready: {"ready":true}\n'), server.output()
            began = time.monotonic()
        assert time.monotonic() - began < 20, "it ends when it is asked to"
        assert (root / "cache").stat().st_uid == 10001 and any((root / "cache").iterdir())
        stopped = healthy(image, server)
        assert not stopped[0], stopped
