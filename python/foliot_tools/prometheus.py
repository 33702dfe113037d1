"""A real Prometheus server with the alerts that are shipped, in less time than they take in production."""

import json
import re
import subprocess
import urllib.error
import urllib.request

from foliot_tools.server import ROOT, free_ports
from foliot_tools.waiting import eventually

RULES = ROOT / "deploy/prometheus/foliot.rules.yml"
NOT_AVAILABLE = 69  # of tools/prometheus
SCRAPE_INTERVAL = "500ms"
# The first of these labels that an alert has says what it is about.
ABOUT = ("task", "pipeline", "model", "instance")


def available():
    """Whether a Prometheus server can be had here; otherwise, why not."""
    done = subprocess.run([ROOT / "tools/prometheus", "--version"], capture_output=True, text=True, check=False)
    return (True, "") if done.returncode == 0 else (False, done.stderr)


def in_seconds(rules):
    """The rules with every minute as a second: `for: 5m` becomes `for: 5s`, `[5m]` becomes `[5s]`."""
    return re.sub(r"(for: |\[)(\d+)m\b", r"\1\2s", rules)


class Prometheus:
    """Scrapes the processes of `jobs`, {job: [metrics port]}, until the block ends. Remembers every alert that it
    has seen firing. `key`: of their API, with the scope `metrics`. `in_time`: minutes of the rules are minutes."""

    def __init__(self, folder, jobs, port=None, key=None, in_time=False):
        self.folder = folder
        self.jobs = jobs
        self.rules = RULES.read_text() if in_time else in_seconds(RULES.read_text())
        self.access = {"authorization": {"credentials": key}} if key else {}
        self.port = port or free_ports(1)[0]
        self.process = None
        self.seen = set()

    def __enter__(self):
        self.folder.mkdir(parents=True)
        (self.folder / "foliot.rules.yml").write_text(self.rules)
        config = {
            "global": {"scrape_interval": SCRAPE_INTERVAL, "scrape_timeout": SCRAPE_INTERVAL,
                       "evaluation_interval": SCRAPE_INTERVAL},
            "rule_files": ["foliot.rules.yml"],
            "scrape_configs": [
                {"job_name": job, **self.access, "static_configs": [{"targets": [f"127.0.0.1:{port}" for port in ports]}]}
                for job, ports in self.jobs.items()
            ],
        }
        (self.folder / "prometheus.yml").write_text(json.dumps(config))  # which is YAML, too
        with open(self.folder / "console", "wb") as console:
            self.process = subprocess.Popen(
                [ROOT / "tools/prometheus", "--config.file", self.folder / "prometheus.yml", "--storage.tsdb.path",
                 self.folder / "data", "--web.listen-address", f"127.0.0.1:{self.port}"],
                stdin=subprocess.DEVNULL, stdout=console, stderr=subprocess.STDOUT)
        self.wait(lambda: self.samples("up") is not None, 30, "Prometheus does not answer")
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(20)

    def _get(self, path):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api/v1/{path}", timeout=5) as answer:
                return json.loads(answer.read())["data"]
        except (urllib.error.URLError, OSError):
            return None

    def samples(self, expression):
        """[(labels, value)] of an expression now; None if there is no answer."""
        data = self._get(f"query?query={urllib.request.quote(expression)}")
        return None if data is None else [(each["metric"], float(each["value"][1])) for each in data["result"]]

    def firing(self):
        """{(alert, what it is about, if anything)} that fire now."""
        data = self._get("alerts") or {"alerts": []}
        now = {(alert["labels"]["alertname"],
                next((alert["labels"][label] for label in ABOUT if label in alert["labels"]), None))
               for alert in data["alerts"] if alert["state"] == "firing"}
        self.seen |= now
        return now

    def wait(self, condition, seconds, what):
        """Until the condition holds."""

        def missing():
            console = (self.folder / "console").read_text(errors="replace")
            return f"{what}; firing so far: {sorted(map(str, self.seen))}\n{console[-2000:]}"

        eventually(condition, seconds, missing, interval_seconds=0.1)

    def await_alert(self, name, about=None, seconds=30):
        """Until this alert fires; `about`: its task, pipeline, model or instance, if not any."""
        self.wait(lambda: any(alert == name and about in (None, labelled) for alert, labelled in self.firing()),
                  seconds, f"{name} does not fire{f' about {about}' if about else ''}")
