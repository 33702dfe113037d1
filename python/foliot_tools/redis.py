"""A server of Redis of a test's own, at a socket in a folder."""

import pathlib
import subprocess

from foliot_tools.waiting import eventually


class Redis:
    """Runs while the block does, and between stop() and start() not. With a password it answers clients that give it."""

    def __init__(self, folder, password=""):
        self.password = password
        self.folder = pathlib.Path(folder)
        self.socket = self.folder / "redis.sock"
        self.process = None

    @property
    def address(self):
        return f"unix:{self.socket}"

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def start(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        command = ["redis-server", "--port", "0", "--unixsocket", self.socket, "--dir", self.folder, "--save", "",
                   "--appendonly", "yes", "--appendfsync", "always", "--requirepass", self.password]
        self.process = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        eventually(self.answers)

    def stop(self):
        self.process.kill()
        self.process.wait()

    def answers(self):
        return subprocess.run(["redis-cli", "-s", str(self.socket), "--no-auth-warning", "-a", self.password, "ping"], capture_output=True, text=True,
                              check=False).stdout == "PONG\n"
