"""Hosts with a network namespace of their own each, joined by a router in user space that
loses, delays and cuts off packets on request. TCP above it is the kernel's own, with
its retransmissions and time-outs.

(tc's netem would do the same; many kernels come without it.)
"""

import contextlib
import dataclasses
import fcntl
import heapq
import multiprocessing
import os
import random
import select
import shutil
import struct
import subprocess
import time

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
PACKET_BYTES_MAX = 65536


def missing():
    """What this machine lacks for it; None: nothing."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    if not shutil.which("ip"):
        return "ip (iproute2) is not installed"
    if not os.path.exists("/dev/net/tun"):
        return "there is no /dev/net/tun"
    return None


@dataclasses.dataclass
class Weather:
    """What happens to packets from and to a host."""

    loss: float = 0  # share of them
    delay_seconds: float = 0  # in spikes:
    spike_every: float = 1
    spike_seconds: float = 0.2
    cut: bool = False

    def delay(self, now):
        return self.delay_seconds if now % self.spike_every < self.spike_seconds else 0


class _Router:
    def __init__(self, devices, seed):
        self._devices = devices  # address -> file descriptor
        self._weather = {address: Weather() for address in devices}
        self._draw = random.Random(seed)
        self._waiting = []  # (due, number, file descriptor, packet)
        self._last_due = {}  # between two addresses: packets do not overtake each other
        self._number = 0

    def run(self, orders):
        with contextlib.suppress(OSError):
            os.nice(-10)
        while True:
            timeout = max(self._waiting[0][0] - time.monotonic(), 0) if self._waiting else None
            for ready in select.select([orders, *self._devices.values()], [], [], timeout)[0]:
                if ready is not orders:
                    self._route(os.read(ready, PACKET_BYTES_MAX))
                    continue
                try:
                    address, weather = orders.recv()
                except EOFError:
                    return
                self._weather[address] = weather
                orders.send(None)
            while self._waiting and self._waiting[0][0] <= time.monotonic():
                _, _, device, packet = heapq.heappop(self._waiting)
                with contextlib.suppress(OSError):  # the host is gone
                    os.write(device, packet)

    def _route(self, packet):
        ends = packet[12:16], packet[16:20]
        if packet[0] >> 4 != 4 or not all(end in self._devices for end in ends):
            return
        now = time.monotonic()
        weathers = [self._weather[end] for end in ends]
        if any(weather.cut or self._draw.random() < weather.loss for weather in weathers):
            return
        due = max(now + sum(weather.delay(now) for weather in weathers), self._last_due.get(ends, 0))
        self._last_due[ends] = due
        self._number += 1
        heapq.heappush(self._waiting, (due, self._number, self._devices[ends[1]], packet))


class Network:
    """One host for each of `names`. All is gone when the block ends."""

    def __init__(self, names, seed=1):
        self._names = list(names)
        self._seed = seed
        self._devices = {}
        self._router = self._orders = None

    def namespace(self, name):
        return f"foliot-{os.getpid()}-{name}"

    def address(self, name):
        return f"10.213.0.{self._names.index(name) + 1}"

    def weather(self, name, **conditions):
        """From the time that this returns; without conditions it is fine again."""
        self._orders.send((self._bytes(name), Weather(**conditions)))
        self._orders.recv()

    def __enter__(self):
        try:
            for name in self._names:
                self._add(name)
        except BaseException:
            self._remove_all()
            raise
        context = multiprocessing.get_context("fork")
        self._orders, theirs = context.Pipe()

        def work():
            self._orders.close()
            _Router(self._devices, self._seed).run(theirs)

        self._router = context.Process(target=work, daemon=True)
        self._router.start()
        theirs.close()
        return self

    def __exit__(self, *_):
        self._orders.close()
        self._router.join()
        self._remove_all()

    def _bytes(self, name):
        return bytes(int(part) for part in self.address(name).split("."))

    def _add(self, name):
        namespace, interface = self.namespace(name), f"f{os.getpid()}.{self._names.index(name)}"
        subprocess.run(["ip", "netns", "add", namespace], check=True)
        device = os.open("/dev/net/tun", os.O_RDWR)
        self._devices[self._bytes(name)] = device
        fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", interface.encode(), IFF_TUN | IFF_NO_PI))
        for command in (
            f"link set {interface} netns {namespace}",
            f"-n {namespace} addr add {self.address(name)}/24 dev {interface}",
            f"-n {namespace} link set {interface} up",
            f"-n {namespace} link set lo up",
        ):
            subprocess.run(["ip", *command.split()], check=True)

    def _remove_all(self):
        for device in self._devices.values():
            os.close(device)
        for name in self._names:
            subprocess.run(["ip", "netns", "del", self.namespace(name)], stderr=subprocess.DEVNULL, check=False)
