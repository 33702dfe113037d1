"""What is shipped for operating Foliot is right: alerts, units, and the documents
that name metrics."""

import gzip
import hashlib
import io
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import urllib.request

import pytest

from conftest import serving, write_pair
from foliot_tools.server import foliot_binary

ROOT = pathlib.Path(__file__).resolve().parents[1]
NO_PROMTOOL = 69
RULES = ROOT / "deploy/prometheus/foliot.rules.yml"


def run(*command):
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


@pytest.mark.parametrize("arguments", [
    ("check", "rules", RULES),
    ("test", "rules", RULES.with_suffix(".test.yml")),
    ("check", "config", RULES.with_name("prometheus.yml")),
])
def test_alerts(arguments):
    done = run("tools/promtool", *arguments)
    if done.returncode == NO_PROMTOOL:
        pytest.skip(f"promtool cannot be had here: {done.stderr}")
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_has_its_section():
    sections = re.findall(r"^### (\w+)$", (ROOT / "docs/OPERATIONS.md").read_text(), re.MULTILINE)
    alerts = re.findall(r"- alert: (\w+)\n(.*?)(?=\n\n|\Z)", RULES.read_text(), re.DOTALL)
    assert len(alerts) > 10
    for name, rule in alerts:
        assert f'runbook_url: "docs/OPERATIONS.md#{name.lower()}"' in rule, name
        assert name in sections, name


def metric_names(text):
    names = set(re.findall(r"\bfoliot_[a-z_]+", text))
    return {re.sub(r"_(bucket|sum|count)$", "", name) for name in names}


def test_alerts_and_documents_name_metrics_that_exist(small_server):
    """Those of which there is a series from the start on; a model's come with its requests."""
    with urllib.request.urlopen(f"http://127.0.0.1:{small_server.metrics_port}/metrics", timeout=5) as answer:
        served = metric_names("\n".join(line for line in answer.read().decode().splitlines() if line.startswith("# TYPE")))
    sources = [ROOT / "src/answer/model_calls/metrics.cc", ROOT / "src/observe/tracing/tracing.cc", *(ROOT / "src/observe/metrics").glob("*_metrics.cc")]
    source = "".join(source.read_text() for source in sources)
    others = [ROOT / "src/answer/personal/service/personal_metrics.cc", ROOT / "src/models/training/retrainer.cc"]
    known = served | metric_names(source + "".join(other.read_text() for other in others))
    for file in (RULES, ROOT / "docs/OPERATIONS.md"):
        assert metric_names(file.read_text()) <= known, file
    assert metric_names(source) <= metric_names((ROOT / "docs/OPERATIONS.md").read_text()), "every metric is explained"


def test_timeouts_are_those_of_the_code():
    section = (ROOT / "docs/OPERATIONS.md").read_text().split("## Timeouts")[1].split("\n## ")[0]
    headers = "".join(path.read_text() for path in (ROOT / "src").rglob("*.h"))
    units = {"ms": "milliseconds", "s": "seconds"}
    named = re.findall(r"`(\w+)` (\d+) (ms|s)\b", section)
    assert len(named) > 30
    for name, count, unit in named:
        assert re.search(rf"Duration {name} = Duration::{units[unit]}\({count}\)", headers), f"{name} {count} {unit}"
    for header in re.findall(r"`([\w/]+_timeouts\.h)`", section):
        fields = re.findall(r"^ +Duration (\w+) =", (ROOT / "src" / header).read_text(), re.MULTILINE)
        assert fields and set(fields) <= {name for name, _, _ in named}, header


UNITS = sorted((ROOT / "deploy/systemd").glob("*.service"))


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_units(unit):
    done = run("systemd-analyze", "verify", "--man=no", unit)
    complaints = [line for line in done.stderr.splitlines() if unit.name in line and "not executable" not in line]
    assert not complaints


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_units_start_what_exists_and_close_what_it_does_not_need(unit):
    text = unit.read_text()
    command, *flags = re.search(r"^ExecStart=/usr/local/bin/foliot (.*)$", text, re.MULTILINE)[1].split()
    known = run(foliot_binary(), command, "--help").stdout
    assert all(flag in known for flag in flags if flag.startswith("--") and flag != "--config"), flags
    def hardening(text):
        return set(text[text.index("NoNewPrivileges=") : text.index("[Install]")].split())

    # Where containers run, they have namespaces of their own.
    has_containers = unit.name in ("foliot.service", "foliot-worker.service")
    assert ("RestrictNamespaces=yes" in text) != has_containers
    assert "\nRestart=always\nRestartPreventExitStatus=2 3\n" in re.sub(r"^#.*\n", "", text, flags=re.MULTILINE)
    assert ("\nLimitMEMLOCK=infinity\nLimitNICE=-10\n" in text) == has_containers, "what computes goes first"
    expected = hardening((ROOT / "deploy/systemd/foliot.service").read_text())
    assert "DynamicUser=yes" in text and hardening(text) - {"RestrictNamespaces=yes"} <= expected


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_the_head_of_a_unit_makes_the_files_that_it_names(unit):
    head, text = unit.read_text().split("[Unit]")
    commands = [line.split("    #")[0] for line in head.splitlines() if line.startswith("#   ")]
    command = re.search(r"^ExecStart=(.*)$", text, re.MULTILINE)[1]
    for path in re.findall(r"/usr/local/bin/foliot|/etc/foliot/\S+|/srv/foliot/models", command):
        assert any(path in line for line in commands), path


def test_the_configuration_of_the_unit_is_right(tmp_path):
    done = run(foliot_binary(), "serve", tmp_path / "gone", "--config", ROOT / "deploy/systemd/foliot.toml")
    assert done.returncode == 3, "2 would be a wrong file\n" + done.stderr


@pytest.mark.skipif(not shutil.which("dpkg-shlibdeps"), reason="dpkg-dev is not installed")
def test_the_debian_package(tmp_path):
    done = run(sys.executable, "packaging/deb.py", "--program", foliot_binary(), "--output", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    [package] = tmp_path.glob("foliot_*_amd64.deb")
    control = run("dpkg-deb", "--field", package).stdout
    assert "libdnnl" in control and re.search(r"^Version: \d+\.\d+\.\d+$", control, re.MULTILINE), control
    root = tmp_path / "root"
    assert run("dpkg-deb", "--raw-extract", package, root).returncode == 0
    assert (root / "DEBIAN/conffiles").read_text() == "/etc/foliot/foliot.toml\n"
    for name in ("etc/foliot/foliot.toml", "usr/share/foliot/python/foliot/replica.py", "usr/share/doc/foliot/copyright"):
        assert (root / name).is_file(), name
    for unit in UNITS:
        installed = (root / "usr/lib/systemd/system" / unit.name).read_text()
        assert "ExecStart=/usr/bin/foliot " in installed and "/usr/local" not in installed
    for script in ("postinst", "prerm", "postrm"):
        assert run("sh", "-n", root / "DEBIAN" / script).returncode == 0
    assert run(root / "usr/bin/foliot", "--version").stdout.startswith("foliot ")
    pages = {page.name for page in (root / "usr/share/man/man1").iterdir()}
    commands = run(foliot_binary(), "completion", "words", "--", "").stdout.splitlines()
    assert pages == {"foliot.1.gz"} | {f"foliot-{line.split()[0]}.1.gz" for line in commands}
    assert b"\\-\\-http\\-port" in gzip.decompress((root / "usr/share/man/man1/foliot-serve.1.gz").read_bytes())
    for place in ("bash-completion/completions/foliot", "zsh/vendor-completions/_foliot", "fish/vendor_completions.d/foliot.fish"):
        assert "foliot completion words" in (root / "usr/share" / place).read_text()


def test_an_image_has_what_its_head_says(tmp_path, monkeypatch):
    """Its layers of Debian's packages are made and tried by `make test-image`."""
    monkeypatch.syspath_prepend(ROOT / "packaging")
    import image

    config = image.settings((ROOT / "deploy/docker/Dockerfile").read_text())
    assert config["User"] == "10001:10001" and config["Entrypoint"] == ["foliot"] and config["Cmd"][0] == "serve"
    assert config["Healthcheck"]["Test"] == ["CMD", "foliot", "models", "--url", "127.0.0.1:8000", "--ready"]
    assert config["Healthcheck"]["StartPeriod"] == 600 * 10**9 and "8000/tcp" in config["ExposedPorts"]
    layer = image.Layer(7)
    layer.add("usr/bin/foliot", b"program", mode=0o755)
    layer.add_folder("cache", owner=image.USER)
    for name in ("a", "b"):
        image.write_image(tmp_path / name, "localhost/foliot:1", [layer.bytes()], config, 7)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    with tarfile.open(tmp_path / "a") as outer:
        def read(name):
            return outer.extractfile(name).read()

        for member in outer:
            if member.name.startswith("blobs/sha256/") and member.isfile():
                assert hashlib.sha256(read(member.name)).hexdigest() == member.name.split("/")[-1]
        [listed] = json.loads(read("index.json"))["manifests"]
        manifest = json.loads(read("blobs/" + listed["digest"].replace(":", "/")))
        [saved] = json.loads(read("manifest.json"))
        assert [f"blobs/{each['digest'].replace(':', '/')}" for each in manifest["layers"]] == saved["Layers"]
        content = gzip.decompress(read(saved["Layers"][0]))
        assert json.loads(read(saved["Config"]))["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(content).hexdigest()}"]
    with tarfile.open(fileobj=io.BytesIO(content)) as files:
        assert [(each.name, each.uid, each.mtime) for each in files] == [
            ("cache", 10001, 7), ("usr", 0, 7), ("usr/bin", 0, 7), ("usr/bin/foliot", 0, 7)]


def test_pods_start_what_exists_and_their_pools_are_read(tmp_path):
    text = (ROOT / "deploy/kubernetes/foliot.yaml").read_text()
    started = re.findall(r"args: \[(\w+),(.*?)\]", text, re.DOTALL)
    assert {command for command, _ in started} == {"controller", "worker", "frontend"}
    for command, arguments in started:
        known = run(foliot_binary(), command, "--help").stdout
        flags = re.findall(r"--[a-z-]+", arguments)
        assert flags and all(flag in known for flag in flags), command
    indented = re.search(r"pools\.toml: \|\n((?:    .*\n)+)", text)[1]
    pools = tmp_path / "pools.toml"
    pools.write_text(re.sub("^    ", "", indented, flags=re.MULTILINE) + '[kubernetes]\nserver = "http://127.0.0.1:1"\n')
    # What is wrong with the file would end it before the port that is in use does.
    done = run(foliot_binary(), "controller", "--listen", "no address", "--worker-pools", pools)
    assert done.returncode == 1 and "pools.toml" not in done.stderr, done.stderr


def test_pods_know_all_controllers_which_may_change_their_lease():
    text = (ROOT / "deploy/kubernetes/foliot.yaml").read_text()
    (controllers,) = [part for part in text.split("\n---\n") if "kind: StatefulSet\nmetadata: {name: foliot-controller," in part]
    count = int(re.search(r"replicas: (\d+)", controllers)[1])
    known = ",".join(f"foliot-controller-{i}.foliot-controller:8100" for i in range(count))
    assert len(re.findall(rf'--controller,\s+"{re.escape(known)}"', text)) == 2  # of workers, and of front ends
    name_space, lease = re.search(r"--election, kubernetes://([\w-]+)/([\w-]+)", controllers).groups()
    assert f"kind: Lease\nmetadata: {{name: {lease}, namespace: {name_space}}}" in text
    assert re.search(rf"resources: \[leases\]\n +resourceNames: \[{lease}\]\n +verbs: \[get, update\]", text)


def test_kserve_starts_the_server_as_its_runtime_says(tmp_path):
    """The arguments as KServe completes them, with folders and ports of this machine. tests/clients/kserve_client.py reads
    the rest of the file by KServe's schema."""
    runtime = (ROOT / "deploy/kserve/runtime.yaml").read_text()
    arguments = re.sub(r"\s+", " ", re.search(r" args: \[(.*?)\]", runtime, re.DOTALL)[1]).replace('"', "").split(", ")
    arguments = [each.replace("{{.Name}}", "named").replace("/cache", str(tmp_path / "cache")) for each in arguments]
    assert arguments[:2] == ["serve", "/mnt/models"]
    flags = {name[2:].replace("-", "_"): value for name, value in zip(arguments[2::2], arguments[3::2], strict=True)}
    assert (flags["http_port"], flags["grpc_port"], flags["address"]) == ("8080", "9000", "0.0.0.0")
    write_pair(tmp_path / "models/model.onnx")
    chosen = {name: value for name, value in flags.items() if name not in ("http_port", "grpc_port", "metrics_port", "address")}
    with serving(tmp_path / "models", tmp_path / "log", **chosen) as server:
        for path in "/v1/models/named", "/v2/models/named/ready", *re.findall(r"httpGet: \{path: (\S+), port: 8080", runtime):
            with urllib.request.urlopen(f"http://{server.http}{path}", timeout=10) as answer:
                assert answer.status == 200, path
