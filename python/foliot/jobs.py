"""A thin client of the jobs of a server (docs/TASKS.md):

    import foliot.jobs

    jobs = foliot.jobs.Jobs("localhost:8000")
    job = jobs.submit_offline({"x": "rows.npy"}, "answers", task="digits", accuracy=0.9)
    job = jobs.wait(job["id"])
    job = jobs.register_model("digits", "digits.onnx", "digits.npz", "digits")

Paths are relative to the folder of jobs of the server (--jobs). A job is a dict, as the server sends it.
"""

import http.client
import json
import time
import urllib.parse

ENDED = ("succeeded", "failed", "cancelled")


class JobError(RuntimeError):
    """What the server refused, in its words; `status` is that of HTTP."""

    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


class Jobs:
    """The jobs of one server. `server`: HOST:PORT of HTTP, or of its --admin-port; `key`: an API key with the scope `jobs`."""

    def __init__(self, server="localhost:8000", key=None, timeout=60):
        self._server = server
        self._headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}
        self._timeout = timeout

    def submit_offline(self, inputs, output, *, task=None, model=None, accuracy=None, cost=None, webhook=None):
        """Inference over all rows of `inputs`, paths of .npy files by input, to OUTPUT/NAME.npy."""
        request = {"task": task, "model": model, "inputs": inputs, "output": output, "accuracy": accuracy, "cost": cost,
                   "webhook": webhook}
        return self.submit("offline", **{name: value for name, value in request.items() if value is not None})

    def register_model(self, name, file, validation, task, *, webhook=None, **options):
        """Registers a network of an .onnx file as variants of a task, which is made if there is none: NAME-float32 and so
        on, with the accuracy of each on the validation set, an .npz. `options`: precisions, batch_sizes, labels, output,
        calibration; accuracy and default_slo of a new task. The key needs the scope `admin`, too."""
        request = {"name": name, "file": file, "validation": validation, "task": task, "webhook": webhook, **options}
        return self.submit("register", **{name: value for name, value in request.items() if value is not None})

    def submit(self, kind, **request):
        """A job of any kind."""
        return self._call("POST", "/v2/jobs", {"kind": kind, **request})

    def list(self):
        """All that the key may see, in the order of submission."""
        return self._call("GET", "/v2/jobs")["jobs"]

    def get(self, job_id):
        return self._call("GET", f"/v2/jobs/{quoted(job_id)}")

    def cancel(self, job_id):
        return self._call("POST", f"/v2/jobs/{quoted(job_id)}/cancel", {})

    def wait(self, job_id, interval=0.5, on_progress=lambda job: None):
        """The job once it has ended, however."""
        while True:
            job = self.get(job_id)
            on_progress(job)
            if job["state"] in ENDED:
                return job
            time.sleep(interval)

    def _call(self, method, path, body=None):
        connection = http.client.HTTPConnection(self._server, timeout=self._timeout)
        try:
            connection.request(method, path, None if body is None else json.dumps(body), self._headers)
            response = connection.getresponse()
            answer = response.read()
        finally:
            connection.close()
        if not 200 <= response.status < 300:
            raise JobError(response.status, message_of(answer))
        return json.loads(answer)


def quoted(job_id):
    return urllib.parse.quote(job_id, safe="")


def message_of(answer):
    try:
        return json.loads(answer)["error"]
    except (ValueError, KeyError, TypeError):
        return answer[:200].decode(errors="replace")
