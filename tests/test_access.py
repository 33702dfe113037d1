"""Keys as a user makes and uses them: `foliot keys new`, --keys, and what each
client then has to send. TLS from files that openssl made."""

import contextlib
import json
import re
import select
import socket
import ssl
import subprocess
import urllib.error
import urllib.request

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http
from tritonclient.utils import InferenceServerException

from foliot_tools.cluster import Cluster
from foliot_tools.server import ServerFailed, foliot_binary
from foliot_tools.waiting import eventually


def new_key(keys, name, *scopes):
    """Appends a new key to the file, as the help says, and returns the secret."""
    flags = [flag for scope in scopes for flag in ("--scope", scope)]
    made = subprocess.run([foliot_binary(), "keys", "new", name, *flags], capture_output=True, text=True, check=True)
    with keys.open("a") as file:
        file.write(made.stdout)
    secret = made.stderr.splitlines()[-1]
    assert secret not in made.stdout
    return secret


@pytest.fixture
def keys(tmp_path):
    return tmp_path / "keys.toml"


def get(url, headers=None, context=None):
    """(status, body) of a GET."""
    request = urllib.request.Request(url, headers=headers or {})
    try:
        with urllib.request.urlopen(request, timeout=5, context=context) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def infer(client_module, client, headers):
    tensor = client_module.InferInput("pixels", [1, 64], "FP32")
    tensor.set_data_from_numpy(np.zeros((1, 64), np.float32))
    return client.infer("dense", [tensor], headers=dict(headers)).as_numpy("probabilities")


def test_clients_show_their_key(serve, small_models, tmp_path, keys):
    client_key = new_key(keys, "app", "infer")
    operator_key = new_key(keys, "operator", "admin", "metrics")
    server = serve(small_models, keys=keys, cache=tmp_path / "cache")
    header = {"authorization": f"Bearer {client_key}"}

    http = tritonclient.http.InferenceServerClient(f"127.0.0.1:{server.http_port}")
    grpc = tritonclient.grpc.InferenceServerClient(f"127.0.0.1:{server.grpc_port}")
    for module, client in ((tritonclient.http, http), (tritonclient.grpc, grpc)):
        assert client.is_server_ready()
        assert infer(module, client, header).shape == (1, 10)
        for wrong in ({}, {"authorization": "Bearer guessed"}, {"authorization": f"Bearer {operator_key}"}):
            with pytest.raises(InferenceServerException):
                infer(module, client, wrong)
        with pytest.raises(InferenceServerException, match="admin"):
            client.unload_model("dense", headers=header)
        client.load_model("dense", headers={"authorization": f"Bearer {operator_key}"})

    metrics = f"http://127.0.0.1:{server.metrics_port}/metrics"
    assert get(metrics)[0] == 401
    assert get(metrics, {"Authorization": f"Bearer {operator_key}"})[0] == 200
    log = server.output()
    assert "'operator'" in log and "no scope 'infer'" in log
    assert client_key not in log and operator_key not in log and "guessed" not in log


def test_a_key_leaves_memory_for_bodies_to_others(serve, small_models, tmp_path, keys):
    """Of 16 MiB one key wants eight times 3 with bodies that do not end; another has room for one."""
    greedy, modest = new_key(keys, "greedy", "infer"), new_key(keys, "modest", "infer")
    server = serve(small_models, keys=keys, cache=tmp_path / "cache", body_max="4MiB", bodies_max="16MiB")
    head = "POST /v2/models/dense/infer HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nContent-Length: {}\r\n\r\n"
    waiting = [socket.create_connection(("127.0.0.1", server.http_port)) for _ in range(8)]
    for each in waiting:
        with contextlib.suppress(OSError):  # it may be refused before it has sent all
            each.sendall(head.format(greedy, 4 << 20).encode() + bytes(3 << 20))
    refused = []

    def three_are_refused():
        for each in select.select(waiting, [], [], 0)[0]:
            waiting.remove(each)
            refused.append(each.recv(65536).decode())
        return len(refused) >= 3

    eventually(three_are_refused, otherwise=server.output)
    assert all(text.startswith("HTTP/1.1 503") and "Retry-After: 1" in text for text in refused)
    body = json.dumps({"inputs": [{"name": "pixels", "shape": [1, 64], "datatype": "FP32", "data": [0.5] * 64}]})
    with socket.create_connection(("127.0.0.1", server.http_port), timeout=30) as client:
        client.sendall(head.format(modest, 3 << 20).encode() + body.encode().ljust(3 << 20))
        assert client.recv(65536).startswith(b"HTTP/1.1 200"), refused
    for each in waiting:
        each.close()


def test_the_metrics_of_a_cluster_need_a_key(small_models, tmp_path, keys):
    reader = {"Authorization": f"Bearer {new_key(keys, 'prometheus', 'metrics')}"}
    other = {"Authorization": f"Bearer {new_key(keys, 'app', 'infer')}"}
    with Cluster(tmp_path, small_models, workers=1, frontends=1, metrics=True, part_options={"keys": keys}) as cluster:
        for part, known in ((cluster.controller, b"foliot_device_up{"), (cluster.workers[0], b"foliot_worker_pages{"),
                            (cluster.frontends[0], b"foliot_tenant_requests_in_flight{")):
            metrics = f"http://127.0.0.1:{part.metrics_port}/metrics"
            assert get(metrics)[0] == 401 and get(metrics, other)[0] == 403
            status, page = get(metrics, reader)
            assert status == 200 and known in page
            part.await_line("refused /metrics of key 'app' from .*: the key has no scope 'metrics'")
        keys.write_text("")
        new_key(keys, "another", "metrics")
        cluster.controller.await_line("the file of keys was replaced")
        assert get(f"http://127.0.0.1:{cluster.controller.metrics_port}/metrics", reader)[0] == 401


def test_quotas_and_new_keys_without_a_restart(serve, small_models, tmp_path, keys):
    key = new_key(keys, "app", "infer")
    server = serve(small_models, keys=keys, cache=tmp_path / "cache")
    client = tritonclient.http.InferenceServerClient(f"127.0.0.1:{server.http_port}")
    header = {"authorization": f"Bearer {key}"}
    for _ in range(5):
        infer(tritonclient.http, client, header)
    keys.write_text(keys.read_text() + "requests_per_second = 0.01\n")
    await_output(server, "the file of keys was replaced")
    infer(tritonclient.http, client, header)
    with pytest.raises(InferenceServerException, match="the key may make 0.01 requests per second") as refused:
        infer(tritonclient.http, client, header)
    assert refused.value.status() == "429"
    keys.write_text("nonsense")
    await_output(server, "the file of keys stays as it was: ")
    other = new_key(keys.with_name("other.toml"), "other", "infer")
    keys.write_text(keys.with_name("other.toml").read_text())
    await_output(server, "the file of keys was replaced", count=2)
    infer(tritonclient.http, client, {"authorization": f"Bearer {other}"})
    with pytest.raises(InferenceServerException, match="not known"):
        infer(tritonclient.http, client, header)


def test_what_becomes_of_a_tenants_requests(serve, small_models, tmp_path, keys):
    header = {"authorization": f"Bearer {new_key(keys, 'app', 'infer', 'metrics')}"}
    keys.write_text(keys.read_text() + "weight = 3\n")
    server = serve(small_models, keys=keys, cache=tmp_path / "cache")
    client = tritonclient.http.InferenceServerClient(f"127.0.0.1:{server.http_port}")
    for _ in range(3):
        infer(tritonclient.http, client, header)
    status, metrics = get(f"http://127.0.0.1:{server.metrics_port}/metrics", header)
    assert status == 200
    assert b'foliot_tenant_answers_total{tenant="app",outcome="served"} 3' in metrics
    assert b'foliot_tenant_answers_total{tenant="app",outcome="over_share"} 0' in metrics
    number = re.search(rb'foliot_tenant_info\{tenant="app",tenant_id="(\w+)"\} 1', metrics)[1]
    dollars = re.search(rb'foliot_dollars_total\{model="dense",of="exec",tenant_id="%s"\} (\S+)' % number, metrics)[1]
    assert float(dollars) > 0


def await_output(server, text, count=1):
    eventually(lambda: server.output().count(text) >= count, otherwise=server.output)


def test_a_renewed_certificate_without_a_restart(serve, small_models, tmp_path):
    files = certificate(tmp_path, "server")
    server = serve(small_models, cache=tmp_path / "cache", tls_certificate=files[0], tls_key=files[1])
    url = f"https://127.0.0.1:{server.http_port}/v2"
    before = ssl.create_default_context(cafile=files[0])
    assert get(url, context=before)[0] == 200
    renewed = certificate(tmp_path, "renewed")
    renewed[0].replace(files[0])
    await_output(server, "the certificate stays as it was: ")  # its key is not there yet
    assert get(url, context=before)[0] == 200
    renewed[1].replace(files[1])
    await_output(server, "the certificate was replaced")
    assert get(url, context=ssl.create_default_context(cafile=files[0]))[0] == 200
    with pytest.raises(OSError):
        get(url, context=before)


def test_json_log(serve, small_models, tmp_path, keys):
    new_key(keys, "app", "infer")
    server = serve(small_models, keys=keys, cache=tmp_path / "cache", log_level="warning", log_format="text")
    assert get(f"http://127.0.0.1:{server.http_port}/v2", {"Authorization": "Bearer guessed"})[0] == 401
    await_output(server, " warning serve: refused ")
    json_server = subprocess.Popen(
        [foliot_binary(), "serve", small_models, "--keys", keys, "--cache", tmp_path / "cache", "--log-format", "json",
         "--http-port", "0", "--grpc-port", "0", "--metrics-port", "0"], stderr=subprocess.PIPE, text=True)
    lines = []
    for line in json_server.stderr:
        lines.append(json.loads(line))
        if lines[-1]["message"].startswith("ready:"):
            json_server.terminate()
    assert json_server.wait(30) == 0
    assert all(set(line) == {"time", "level", "part", "message"} and line["part"] == "serve" for line in lines)
    assert lines[-1]["message"] == "stopped"


def certificate(folder, name):
    """A self-signed certificate for 127.0.0.1, and its key."""
    files = folder / f"{name}.pem", folder / f"{name}.key"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
         "-subj", f"/CN={name}", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
         "-out", files[0], "-keyout", files[1]], check=True, capture_output=True)
    return files


@pytest.mark.parametrize("tls", [False, True])
def test_the_health_check_of_an_image_needs_no_key(serve, small_models, tmp_path, keys, tls):
    new_key(keys, "app", "infer")
    files = dict(zip(("tls_certificate", "tls_key"), certificate(tmp_path, "server"))) if tls else {}
    server = serve(small_models, cache=tmp_path / "cache", keys=keys, **files)
    check = [foliot_binary(), "models", "--url", server.http, "--ready"]
    done = subprocess.run(check, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith("ready: "), done
    server.stop()
    done = subprocess.run(check, capture_output=True, text=True)
    assert done.returncode == 1 and server.http in done.stderr, done


def test_mutual_tls(serve, small_models, tmp_path):
    server_files, client_files = certificate(tmp_path, "server"), certificate(tmp_path, "client")
    server = serve(small_models, cache=tmp_path / "cache", tls_certificate=server_files[0], tls_key=server_files[1],
                   tls_client_ca=client_files[0])
    url = f"https://127.0.0.1:{server.http_port}/v2"

    def as_client(files):
        context = ssl.create_default_context(cafile=server_files[0])
        if files:
            context.load_cert_chain(*files)
        return context

    status, body = get(url, context=as_client(client_files))
    assert status == 200 and json.loads(body)["name"] == "foliot"
    for files in (None, server_files):
        with pytest.raises(OSError):
            get(url, context=as_client(files))
    with pytest.raises(OSError):
        get(f"http://127.0.0.1:{server.http_port}/v2")
    grpc = tritonclient.grpc.InferenceServerClient(
        f"localhost:{server.grpc_port}", ssl=True, root_certificates=str(server_files[0]),
        certificate_chain=str(client_files[0]), private_key=str(client_files[1]))
    assert infer(tritonclient.grpc, grpc, {}).shape == (1, 10)


@pytest.mark.parametrize(("flags", "complaint"), [
    ({"keys": "nowhere.toml"}, "nowhere.toml"),
    ({"tls_certificate": "nowhere.pem"}, "nowhere.pem: cannot read the certificate"),
    ({"tls_key": "some.key"}, "need --tls-certificate"),
])
def test_wrong_files_are_named(serve, small_models, tmp_path, flags, complaint):
    with pytest.raises(ServerFailed, match=complaint):
        serve(small_models, cache=tmp_path / "cache", **flags)
