"""Starts and stops a real MLServer over a folder of models, of an environment that has it."""

import json
import os
import pathlib
import signal
import subprocess
import time
import urllib.request

from foliot_tools.server import free_ports

READY_SECONDS = 180


def wait_until_ready(port, models, process=None):
    """Until the server at this port serves all of these. Raises SystemExit, also once its process has ended."""
    end = time.monotonic() + READY_SECONDS
    while time.monotonic() < end and (process is None or process.poll() is None):
        try:
            if all(urllib.request.urlopen(f"http://127.0.0.1:{port}/v2/models/{model}/ready", timeout=5).status == 200
                   for model in models):
                return
        except OSError:
            pass
        time.sleep(0.2)
    raise SystemExit(f"the server at port {port} does not serve {', '.join(models)} within {READY_SECONDS} s")


class Mlserver:
    """`python`: the interpreter of the environment. Without workers, which is its best setting on few cores."""

    name = "mlserver"

    def __init__(self, folder, python, log):
        ports = free_ports(3)
        (folder / "settings.json").write_text(json.dumps(
            {"host": "127.0.0.1", "http_port": ports[0], "grpc_port": ports[1], "metrics_port": ports[2], "parallel_workers": 0}))
        self.port, self.grpc_port = ports[:2]
        # A group of its own, and its environment for what it starts by name.
        environment = {**os.environ, "PATH": f"{pathlib.Path(python).parent}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen([pathlib.Path(python).parent / "mlserver", "start", folder], stdout=log, stderr=log,
                                        env=environment, start_new_session=True)
        self.pid = self.process.pid

    def stop(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
