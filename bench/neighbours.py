#!/usr/bin/env python3
"""Two threads beside 0, 1, 2 and 4 processes that never sleep: one run of Foliot, onnxruntime and, where the Python
package openvino is installed, OpenVINO, in turns. The ratio is to the faster rival of the same row. --before takes a
folder with the runtime_runner of another commit, which then is a side of its own. With --quota each side runs in a
control group of its own with so many processors, where this process may make one (version 1, cpu)."""

import argparse
import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnxruntime
from foliot_tools.server import ROOT, foliot_binary

sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "bench"))
import runtime  # noqa: E402
from tools import models  # noqa: E402

NETWORKS = ("mobilenet_v2", "resnet18_v1b", "efficientnet_b0", "densenet121", "minilm", "yolo8_nano", "text_detection",
            "smart_turn")
CHANGES = runtime.MODELS | {"minilm": {"sequence": 128}}
CONTROL_GROUPS = pathlib.Path("/sys/fs/cgroup/cpu")
QUOTA_PERIOD_MICROSECONDS = 100_000


class RivalSide:
    """A rival in a process of its own, as Foliot's runner is."""

    def __init__(self, kind, model, inputs, threads, enter):
        self.process = subprocess.Popen([sys.executable, __file__, "--rival", kind, str(model), str(inputs),
                                         str(threads)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        preexec_fn=enter)
        self.process.stdout.readline()

    def run(self, count):
        print(count, file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.process.args[3]} died")
        return [float(word) for word in line.split()]


def be_rival(kind, model, inputs, threads):
    """Runs as often as each line of the standard input says, and prints the seconds of each run."""
    onnxruntime.set_default_logger_severity(3)
    side = (runtime.OnnxruntimeSide if kind == "onnxruntime" else runtime.OpenvinoSide)(model, int(threads))
    arrays = dict(np.load(inputs))  # OpenVINO reads them where they are
    side.put(arrays)
    side.run(2)
    print("ready", flush=True)
    for line in sys.stdin:
        print(*side.run(int(line)), flush=True)


class RunnerSide(runtime.FoliotSide):
    def __init__(self, package, inputs, threads, folder, scratch, enter=None):
        self.process = subprocess.Popen([folder / "runtime_runner", package, str(threads)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, preexec_fn=enter)
        self.numbers()
        self.put(0, inputs.values(), scratch)
        super().run(0, 2)

    def run(self, count):
        return super().run(0, count)


@contextlib.contextmanager
def busy(count):
    """So many processes that compute all the time."""
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    time.sleep(0.2 if count else 0)
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


@contextlib.contextmanager
def control_group(processors):
    """What a child process calls to be in a control group of its own that grants so many processors; None: in none."""
    if processors is None:
        yield None
        return
    group = pathlib.Path(tempfile.mkdtemp(prefix="foliot-bench-", dir=CONTROL_GROUPS))
    try:
        (group / "cpu.cfs_period_us").write_text(str(QUOTA_PERIOD_MICROSECONDS))
        (group / "cpu.cfs_quota_us").write_text(str(int(processors * QUOTA_PERIOD_MICROSECONDS)))
        yield lambda: (group / "cgroup.procs").write_text(str(os.getpid()))
    finally:
        group.rmdir()


@contextlib.contextmanager
def started(start, processors):
    """A side, in a control group if `processors` are given."""
    with control_group(processors) as enter:
        side = start(enter)
        try:
            yield side
        finally:
            side.process.kill()
            side.process.wait()


def measure(sides, rounds, seconds):
    """{side: durations}, in turns."""
    count = max(1, int(seconds / np.median(sides["foliot"].run(3))))
    durations = {name: [] for name in sides}
    names = list(sides)
    for turn in range(rounds):
        for shift in range(len(names)):
            name = names[(turn + shift) % len(names)]
            durations[name] += sides[name].run(count)
            time.sleep(runtime.PAUSE_SECONDS)
    return durations


def cells_of(name, batch, arguments, scratch):
    network = models.build(name, **CHANGES.get(name, {}))
    model = models.write(network, scratch / name / "model.onnx")
    package = scratch / f"{name}.foliot"
    runtime.compile_model(model, package, [batch], arguments.threads)
    inputs = network.examples(batch, np.random.default_rng(7))
    np.savez(scratch / "inputs.npz", **inputs)
    folders = {"foliot": pathlib.Path(foliot_binary()).parent}
    if arguments.before:
        folders["before"] = arguments.before
    for quota in arguments.quota or [None]:
        with contextlib.ExitStack() as stack:
            sides = {}
            for side, folder in folders.items():
                sides[side] = stack.enter_context(started(
                    lambda enter, folder=folder: RunnerSide(package, inputs, arguments.threads, folder, scratch, enter),
                    quota))
            for side in runtime.RIVALS:
                sides[side] = stack.enter_context(started(
                    lambda enter, side=side: RivalSide(side, model, scratch / "inputs.npz", arguments.threads, enter),
                    quota))
            for neighbours in arguments.busy:
                with busy(neighbours):
                    yield quota, neighbours, measure(sides, arguments.rounds, arguments.seconds)


def row(name, batch, quota, neighbours, durations):
    middle = {side: float(np.median(times)) for side, times in durations.items()}
    mean = {side: float(np.mean(times)) for side, times in durations.items()}
    ratios = [kind["foliot"] / min(kind[rival] for rival in runtime.RIVALS) for kind in (middle, mean)]
    shown = " | ".join(f"{middle[side] * 1e3:.2f} / {mean[side] * 1e3:.2f}" for side in durations)
    before = f" | {middle['foliot'] / middle['before']:.2f} / {mean['foliot'] / mean['before']:.2f}" \
        if "before" in middle else ""
    print(f"| {name} b{batch} | {quota or '-'} | {neighbours} | {shown} | {ratios[0]:.2f} / {ratios[1]:.2f}{before} |",
          flush=True)


def parse_arguments():
    def listed(kind):
        return lambda text: [kind(word) for word in text.split(",")]

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=listed(str), default=NETWORKS, metavar="NAME,...")
    parser.add_argument("--batches", type=listed(int), default=[1])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--busy", type=listed(int), default=[0, 1, 2, 4], help="numbers of busy processes")
    parser.add_argument("--quota", type=listed(float), help="processors that each side may use, such as 0.5,1,1.5")
    parser.add_argument("--before", type=pathlib.Path, metavar="FOLDER")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=0.3, help="of each side in a round, about")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    sides = ["foliot", *(["before"] if arguments.before else []), *runtime.RIVALS]
    columns = ["network", "quota", "busy", *(f"{side}, ms" for side in sides), "to the faster rival",
               *(["to before"] if arguments.before else [])]
    print(f"median / mean\n| {' | '.join(columns)} |\n" + "|---" * len(columns) + "|")
    for name in arguments.models:
        for batch in arguments.batches:
            with tempfile.TemporaryDirectory(prefix="foliot-bench-") as folder:
                for quota, neighbours, durations in cells_of(name, batch, arguments, pathlib.Path(folder)):
                    row(name, batch, quota, neighbours, durations)
    print(runtime.machine())


if __name__ == "__main__":
    if sys.argv[1:2] == ["--rival"]:
        be_rival(*sys.argv[2:])
    else:
        main()
