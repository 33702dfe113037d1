#!/usr/bin/env python3
"""The same folders of MLServer behind Foliot and behind mlserver 1.7.1: requests per second and p99 with 1 and 16 clients,
and memory with many models.

Models are a logistic regression, a pipeline with a OneHotEncoder over columns with names (content type `pd`), XGBoost and
LightGBM of 500 trees; both sides read the same files with the same interpreter, mlserver with `parallel_workers` 0, which is
its best setting on few cores. Requests are one row in JSON over HTTP, from one process that shares the cores. Sides take
turns; each model is served alone, and the first answers of both are compared. Memory is the proportional set size of all
processes of a side, with `--models` copies of the logistic regression; Foliot also has that one as ONNX, if the rival's
environment has skl2onnx."""

import argparse
import json
import pathlib
import selectors
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

from rival_servers import environment_of, install

from foliot_tools.mlserver import Mlserver, wait_until_ready
from foliot_tools.server import ROOT, Server

sys.path.insert(0, str(ROOT / "tests/figures"))
from figure import machine, say  # noqa: E402

FEATURES = 4

MAKE = """
import json, pathlib, sys
import joblib, lightgbm, numpy as np, pandas, xgboost
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

root, interpreter = pathlib.Path(sys.argv[1]), sys.argv[2]
random = np.random.default_rng(7)
rows = random.normal(size=(2000, 4)).astype(np.float32)
classes = (rows[:, 0] + rows[:, 1] > 0).astype(int)
towns = random.choice(["Bern", "Thun", "Biel"], 2000)
table = pandas.DataFrame({"town": towns, "age": rows[:, 0], "income": rows[:, 1]})
columns = ColumnTransformer([("town", OneHotEncoder(handle_unknown="ignore"), ["town"]),
                             ("numbers", StandardScaler(), ["age", "income"])])

def folder(name, runtime, file, **more):
    made = root / name / name
    made.mkdir(parents=True)
    (made / "model-settings.json").write_text(json.dumps(
        {"name": name, "implementation": runtime, "parameters": {"uri": "./" + file}, **more}))
    (made / "model.toml").write_text('[container]\\npython = "%s"\\n' % interpreter)
    return str(made / file)

logistic = LogisticRegression().fit(rows, classes)
joblib.dump(logistic, folder("logistic", "mlserver_sklearn.SKLearnModel", "model.joblib"))
joblib.dump(make_pipeline(columns, LogisticRegression()).fit(table, classes),
            folder("onehot", "mlserver_sklearn.SKLearnModel", "model.joblib", inputs=[
                {"name": "town", "datatype": "BYTES", "shape": [-1, 1]}, {"name": "age", "datatype": "FP32", "shape": [-1, 1]},
                {"name": "income", "datatype": "FP32", "shape": [-1, 1]}]))
xgboost.XGBClassifier(n_estimators=500, n_jobs=1).fit(rows, classes).save_model(
    folder("xgboost", "mlserver_xgboost.XGBoostModel", "model.json"))
lightgbm.LGBMClassifier(n_estimators=500, verbose=-1, n_jobs=1).fit(rows, classes).booster_.save_model(
    folder("lightgbm", "mlserver_lightgbm.LightGBMModel", "model.bst"))
try:
    from skl2onnx import to_onnx
    made = to_onnx(logistic, rows[:1], options={"zipmap": False})
    (root / "logistic.onnx").write_bytes(made.SerializeToString())
except ImportError:
    pass
"""


def body(model):
    numbers = [0.3, -1.2, 0.5, 2.0]
    if model == "onehot":
        values = {"town": ("BYTES", "Thun"), "age": ("FP32", 0.3), "income": ("FP32", -1.2)}
        return {"parameters": {"content_type": "pd"},
                "inputs": [{"name": name, "shape": [1, 1], "datatype": datatype, "data": [value]}
                           for name, (datatype, value) in values.items()]}
    return {"inputs": [{"name": "input-0", "shape": [1, FEATURES], "datatype": "FP32", "data": numbers}]}


class Foliot:
    name = "Foliot"

    def __init__(self, folder, _, log):
        beside = pathlib.Path(log.name).parent
        self.server = Server(folder, beside / "foliot.log", cache=beside / "cache").start()
        self.port = self.server.http_port
        self.pid = self.server.process.pid

    def stop(self):
        self.server.stop()


def ask(port, model):
    request = urllib.request.Request(f"http://127.0.0.1:{port}/v2/models/{model}/infer", json.dumps(body(model)).encode(),
                                     {"Content-Type": "application/json"})
    return json.load(urllib.request.urlopen(request, timeout=30))["outputs"][0]


class Client:
    """One connection that asks again as soon as it has its answer."""

    def __init__(self, port, message):
        self.message = message
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.received = b""
        self.ask()

    def ask(self):
        self.asked = time.perf_counter()
        self.socket.sendall(self.message)

    def take(self):
        """The latency of an answer that is complete, else None."""
        self.received += self.socket.recv(65536)
        head, separator, content = self.received.partition(b"\r\n\r\n")
        if not separator:
            return None
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        if len(content) < length:
            return None
        if not head.startswith(b"HTTP/1.1 200"):
            raise SystemExit(f"not served: {self.received[:300]!r}")
        self.received = b""
        return time.perf_counter() - self.asked


def load(port, model, clients, seconds):
    """(answers per second, p99 in milliseconds)"""
    content = json.dumps(body(model)).encode()
    message = (f"POST /v2/models/{model}/infer HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
               f"Content-Length: {len(content)}\r\n\r\n").encode() + content
    selector, latencies = selectors.DefaultSelector(), []
    for _ in range(clients):
        client = Client(port, message)
        selector.register(client.socket, selectors.EVENT_READ, client)
    begin = time.perf_counter()
    while (now := time.perf_counter()) < begin + seconds:
        for key, _ in selector.select(1):
            latency = key.data.take()
            if latency is not None:
                latencies.append(latency)
                key.data.ask()
    for key in list(selector.get_map().values()):
        key.data.socket.close()
    if not latencies:
        raise SystemExit(f"no answer in {seconds} s; give longer turns by --seconds")
    latencies.sort()
    return len(latencies) / (now - begin), 1000 * latencies[int(0.99 * len(latencies))]


def proportional_bytes(pid):
    """Of the process and of all that it started."""
    children = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                children.setdefault(int((entry / "stat").read_text().rpartition(")")[2].split()[1]), []).append(int(entry.name))
            except OSError:
                continue
    family = [pid]
    for parent in family:
        family += children.get(parent, [])
    total = 0
    for each in family:
        try:
            lines = pathlib.Path(f"/proc/{each}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total


def compare(root, model, options, log):
    sides = [side(root / model, options.python, log) for side in (Foliot, Mlserver)]
    try:
        answers = []
        for side in sides:
            wait_until_ready(side.port, [model])
            answers.append(ask(side.port, model))
        same = all(answers[0][key] == answers[1][key] for key in ("name", "shape", "datatype"))
        print(f"{model}: {'equal names, shapes and types' if same else answers}", flush=True)
        for clients in (1, 16):
            found = {side.name: [] for side in sides}
            for turn in range(options.rounds):
                for side in sides if turn % 2 == 0 else sides[::-1]:
                    load(side.port, model, clients, 0.3)
                    found[side.name].append(load(side.port, model, clients, options.seconds))
            rates, tails = ({name: [each[i] for each in turns] for name, turns in found.items()} for i in (0, 1))
            ratio = [a / b for a, b in zip(rates["Foliot"], rates["mlserver"], strict=True)]
            tail = [a / b for a, b in zip(tails["Foliot"], tails["mlserver"], strict=True)]
            shown = "; ".join(f"{name} {statistics.median(rates[name]):,.0f}/s, p99 {statistics.median(tails[name]):.2f} ms"
                              for name in rates)
            print(f"  {clients} clients: {shown}; ratio {statistics.median(ratio):.1f} ({min(ratio):.1f} to {max(ratio):.1f}), "
                  f"of the p99 {statistics.median(tail):.2f} ({min(tail):.2f} to {max(tail):.2f})", flush=True)
    finally:
        for side in sides:
            side.stop()


def copies(root, to, count, as_onnx):
    names = [f"m{i}" for i in range(count)]
    for name in names:
        if as_onnx:
            (to / name / "1").mkdir(parents=True)
            shutil.copy(root / "logistic.onnx", to / name / "1/model.onnx")
            continue
        shutil.copytree(root / "logistic/logistic", to / name)
        settings = json.loads((to / name / "model-settings.json").read_text())
        (to / name / "model-settings.json").write_text(json.dumps({**settings, "name": name}))
    return names


def memory(root, options, log):
    sides = [(Mlserver, options.models, False), (Foliot, min(options.models, options.containers), False)]
    if (root / "logistic.onnx").exists():
        sides.append((Foliot, options.models, True))
    for side_class, count, as_onnx in sides:
        with tempfile.TemporaryDirectory() as folder:
            names = copies(root, pathlib.Path(folder), count, as_onnx)
            side = side_class(pathlib.Path(folder), options.python, log)
            try:
                wait_until_ready(side.port, names)
                kind = "compiled from ONNX" if as_onnx else "files of joblib"
                print(f"memory of {side.name} with {count} models, {kind}: {proportional_bytes(side.pid) / 2**20:,.0f} MiB",
                      flush=True)
            finally:
                side.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", help="interpreter of an environment that has the rival; default: one is made")
    parser.add_argument("--only", nargs="*", default=["logistic", "onehot", "xgboost", "lightgbm", "memory"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2, help="of a turn (default 2)")
    parser.add_argument("--models", type=int, default=100, help="for memory (default 100)")
    parser.add_argument("--containers", type=int, default=10, help="of these at most so many as containers (default 10)")
    options = parser.parse_args()
    if options.python is None:
        wrong = install("mlserver")
        if wrong:
            raise SystemExit(f"mlserver cannot be installed: {wrong}")
        options.python = str(environment_of("mlserver") / "bin/python")
    with tempfile.TemporaryDirectory() as folder, open(pathlib.Path(folder) / "log", "w", encoding="utf-8") as log:
        root = pathlib.Path(folder) / "models"
        root.mkdir()
        say("training")
        subprocess.run([options.python, "-c", MAKE, root, options.python], check=True)
        print(machine())
        for each in options.only:
            if each == "memory":
                memory(root, options, log)
            else:
                compare(root, each, options, log)


if __name__ == "__main__":
    main()
