"""One member of etcd of a test's own, on loopback."""

import pathlib
import subprocess
import urllib.error
import urllib.request

from foliot_tools.server import free_ports
from foliot_tools.waiting import eventually


class Etcd:
    """Runs while the block does, and between stop() and start() not."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.port, self.peer_port = free_ports(2)
        self.process = None

    @property
    def address(self):
        return f"etcd://127.0.0.1:{self.port}/foliot"

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def start(self):
        client, peer = f"http://127.0.0.1:{self.port}", f"http://127.0.0.1:{self.peer_port}"
        command = ["etcd", "--data-dir", self.folder, "--listen-client-urls", client, "--advertise-client-urls", client,
                   "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                   "--initial-cluster", f"default={peer}", "--unsafe-no-fsync"]
        self.process = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        stdin=subprocess.DEVNULL)
        eventually(self.answers)

    def stop(self):
        self.process.kill()
        self.process.wait()

    def answers(self):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=1) as answer:
                return b'"true"' in answer.read()
        except (urllib.error.URLError, OSError):
            return False
