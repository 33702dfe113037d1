"""Starts and stops a controller, workers and front ends as processes of their own."""

import pathlib
import re
import signal
import subprocess
import urllib.error
import urllib.request

from foliot_tools.server import foliot_binary, free_ports, metrics_of
from foliot_tools.waiting import eventually


class Part:
    """One `foliot COMMAND`; all that it prints goes to the file `console`. `namespace`: the
    network namespace in which it runs, if it is another."""

    def __init__(self, console, *arguments, namespace=None, **options):
        self.console = pathlib.Path(console)
        prefix = ["ip", "netns", "exec", namespace] if namespace else []
        self.command = [*prefix, foliot_binary(), *map(str, arguments)]
        self.metrics_port = options.get("metrics_port")
        for name, value in options.items():
            self.command += ["--" + name.replace("_", "-"), *([] if value is True else [str(value)])]
        self.process = None
        self.start()

    def start(self):
        with open(self.console, "ab") as console:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=console, stderr=subprocess.STDOUT
            )

    def output(self):
        return self.console.read_text(errors="replace").replace("\r", "\n")

    def await_line(self, pattern, count=1, timeout=180):
        """The `count`th match of `pattern` in what it prints."""
        def missing():
            return f"{' '.join(self.command)} does not print '{pattern}':\n{self.output()}"

        def printed():
            ended = self.process.poll() is not None
            found = list(re.finditer(pattern, self.output()))
            assert len(found) >= count or not ended, missing()
            return len(found) >= count and found[count - 1]

        return eventually(printed, timeout, missing)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self, timeout=40):
        """Lets it drain and end; returns its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout)


class Frontend(Part):
    def __init__(self, console, controller, **options):
        self.http_port, self.grpc_port, metrics_port = free_ports(3)
        super().__init__(
            console,
            "frontend",
            controller=controller,
            http_port=self.http_port,
            grpc_port=self.grpc_port,
            metrics_port=metrics_port,
            **options,
        )

    @property
    def http(self):
        return f"127.0.0.1:{self.http_port}"

    @property
    def grpc(self):
        return f"127.0.0.1:{self.grpc_port}"

    def metrics(self):
        return metrics_of(self.metrics_port)

    def ready(self):
        try:
            with urllib.request.urlopen(f"http://{self.http}/v2/health/ready", timeout=5) as response:
                return response.status == 200
        except (urllib.error.URLError, OSError):
            return False

    def await_ready(self, ready=True, timeout=180):
        eventually(lambda: self.ready() == ready, timeout,
                   lambda: f"not {'ready' if ready else 'unready'}:\n{self.output()}")


class Cluster:
    """A controller, and as many workers and front ends as asked for, on loopback.

    `repository`: of all workers, or a function from a worker's name to its own.
    `worker_options` become flags of each worker, `part_options` those of every part, `controller_options` those of the
    controller. With
    `log`, the controller keeps one in that folder, and each worker one of its own beside it;
    with `metrics`, all have a port for them. Everything is killed when the block ends.
    """

    def __init__(self, folder, repository, *, workers=2, frontends=2, part_options=None, controller_options=None, metrics=False,
                 log=None, **worker_options):
        self.folder = pathlib.Path(folder)
        self.repository = repository
        self.part_options = part_options or {}
        self.controller_options = controller_options or {}
        self.metrics = metrics
        self.log = pathlib.Path(log) if log else None
        self.worker_options = {"threads": 1, "page_size": "256KiB", "page_cache": "16MiB", **worker_options}
        self.counts = workers, frontends
        self.controller = None
        self.address = None
        self.workers = []
        self.frontends = []

    def __enter__(self):
        (port,) = free_ports(1)
        self.address = f"127.0.0.1:{port}"
        self.controller = Part(
            self.folder / "controller.log", "controller", listen=self.address, **self.observed(), **self.part_options,
            **self.controller_options
        )
        self.controller.await_line("ready:")
        for _ in range(self.counts[0]):
            self.add_worker()
        for _ in range(self.counts[1]):
            self.add_frontend()
        return self

    def __exit__(self, *_):
        for part in [*self.frontends, *self.workers, self.controller]:
            if part.process.poll() is None:
                part.kill()

    def observed(self, name=None):
        """The flags that make a part observable; `name`: of a worker."""
        options = {"metrics_port": free_ports(1)[0]} if self.metrics else {}
        if self.log:
            options["log"] = self.log.with_name(f"{self.log.name}.{name}") if name else self.log
        return options

    def worker_part(self, name, **options):
        options = {**self.worker_options, **options}
        if "devices" in options:
            options.pop("threads", None)  # as wide as its cores
        return Part(
            self.folder / f"{name}.log",
            "worker",
            self.repository(name) if callable(self.repository) else self.repository,
            controller=self.address,
            name=name,
            cache=self.folder / "cache",
            **self.observed(name),
            **self.part_options,
            **options,
        )

    def add_worker(self, **options):
        """One more, which is ready; `options`: flags of its own."""
        worker = self.worker_part(f"worker{len(self.workers)}", **options)
        self.workers.append(worker)
        worker.await_line("ready:", timeout=300)
        return worker

    def add_frontend(self, **options):
        """One more, which is ready; `options`: flags of its own."""
        console = self.folder / f"frontend{len(self.frontends)}.log"
        frontend = Frontend(console, self.address, **self.part_options, **options)
        self.frontends.append(frontend)
        frontend.await_ready()
        return frontend


class EmulatedCluster(Cluster):
    """A controller and emulated workers, each a process; no front ends, since there are no inputs.

    `profiles` is what `foliot worker --emulate` takes.
    """

    def __init__(self, folder, profiles, *, workers=4, page_cache="21.5GB"):
        super().__init__(folder, None, workers=workers, frontends=0)
        self.profiles = profiles
        self.worker_options = {"page_cache": page_cache}

    def worker_part(self, name, **options):
        return Part(
            self.folder / f"{name}.log",
            "worker",
            emulate=self.profiles,
            controller=self.address,
            name=name,
            **self.worker_options,
            **options,
        )
