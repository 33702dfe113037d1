"""Runs a task, or a model, over many rows that no client waits for: python -m foliot.offline TASK --input NAME=FILE.npy ... --output FOLDER

    python -m foliot.offline digits --server localhost:8000 --input x=rows.npy --output answers --accuracy 0.9

Rows are sent in the class `offline`, which the server computes when nothing else wants the device. Each output becomes
FOLDER/OUTPUT.npy, in the order of the rows, and FOLDER/variants.txt says for each range of rows which variant answered.

The job is durable: FOLDER/job.log has the ranges of rows whose outputs are on disk. Whatever ends the job, the same command goes
on with the rows that are not in it. A row has one place in the outputs and is in the log once, so none is lost and none
counts twice; those under way when the job ended are computed again.

What the server refuses for now (503, 504) is sent again, after a time that doubles up to 10 s. What it refuses for good ends the job with
its reason. Ctrl-C ends it, too.
"""

import argparse
import concurrent.futures
import fcntl
import hashlib
import http.client
import json
import os
import pathlib
import sys
import time
import urllib.parse
import zlib

import numpy as np

DATATYPES = {"bool": "BOOL", "int8": "INT8", "uint8": "UINT8", "int16": "INT16", "uint16": "UINT16", "int32": "INT32",
             "uint32": "UINT32", "int64": "INT64", "uint64": "UINT64", "float16": "FP16", "float32": "FP32",
             "float64": "FP64"}
DTYPES = {datatype: np.dtype(name) for name, datatype in DATATYPES.items()}
REFUSED_FOR_NOW = (503, 504)
WAIT_FIRST, WAIT_MOST = 0.1, 10.0
# So many answers are made durable by one sync.
GROUP_MAX = 64


class OfflineError(RuntimeError):
    """Why the job cannot go on, in one clear sentence."""


class JobLog:
    """The ranges of rows that are done: a line each, with a checksum. A line that was being written when the job ended is
    cut off."""

    def __init__(self, path):
        self._file = open(path, "a+b")  # noqa: SIM115: it lives as long as the job
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise OfflineError(f"{path}: another process works on this job") from error
        self._file.seek(0)
        self.job = None
        self.ranges = []
        whole = 0
        for line in self._file:
            fields = parse_line(line)
            if fields is None:
                break
            if self.job is None:
                self.job = fields[0]
            else:
                self.ranges.append((int(fields[0]), int(fields[1]), fields[2]))
            whole += len(line)
        self._file.truncate(whole)

    def append(self, lines):
        """Returns when they are on disk."""
        for fields in lines:
            self._file.write(line_of(fields))
        self._file.flush()
        os.fsync(self._file.fileno())
        self.ranges += [tuple(fields) for fields in lines if len(fields) == 3]

    def close(self):
        self._file.close()


def line_of(fields):
    text = json.dumps(fields).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def parse_line(line):
    checksum, _, text = line.rstrip(b"\n").partition(b" ")
    if not line.endswith(b"\n") or checksum != b"%08x" % zlib.crc32(text):
        return None
    return json.loads(text)


def read_inputs(texts):
    """By name, from NAME=FILE.npy; all have as many rows."""
    inputs = {}
    for text in texts:
        name, equals, file = text.partition("=")
        if not equals:
            raise OfflineError(f"--input {text}: must be NAME=FILE.npy")
        try:
            inputs[name] = np.load(file, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError) as error:
            raise OfflineError(f"--input {text}: cannot be read as .npy: {error}") from error
        if inputs[name].dtype.name not in DATATYPES:
            raise OfflineError(f"--input {text}: no model takes {inputs[name].dtype}")
        if inputs[name].ndim == 0 or len(inputs[name]) == 0:
            raise OfflineError(f"--input {text}: has no rows")
        first = next(iter(inputs))
        if len(inputs[name]) != len(inputs[first]):
            raise OfflineError(f"--input {text}: has {len(inputs[name])} rows, and '{first}' has {len(inputs[first])}")
    return inputs


def digest_of(task, parameters, inputs):
    """Of what the job is: the same command, and the same rows."""
    digest = hashlib.sha256(json.dumps([task, parameters]).encode())
    for name, array in inputs.items():
        digest.update(json.dumps([name, array.dtype.str, array.shape]).encode())
        for begin in range(0, len(array), 4096):
            digest.update(np.ascontiguousarray(array[begin:begin + 4096]).tobytes())
    return digest.hexdigest()


class Calls:
    """Calls of one task; any thread, each with a connection of its own."""

    def __init__(self, server, task, parameters, key, is_over):
        self._server = server
        self._path = f"/v2/models/{urllib.parse.quote(task, safe='')}/infer"
        self._parameters = {**parameters, "class": "offline", "binary_data_output": True}
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._is_over = is_over

    def infer(self, tensors):
        """(outputs, variant) once the server has answered; None if the job is over before."""
        body, header_bytes = encode(tensors, self._parameters)
        wait = WAIT_FIRST
        while not self._is_over():
            try:
                status, header, answer = self._post(body, header_bytes)
            except (OSError, http.client.HTTPException):
                status = REFUSED_FOR_NOW[0]  # it may be starting again
            if status == 200:
                return decode(header, answer)
            if status not in REFUSED_FOR_NOW:
                raise OfflineError(f"the server answered {status}: {message_of(answer)}")
            time.sleep(wait)
            wait = min(2 * wait, WAIT_MOST)
        return None

    def _post(self, body, header_bytes):
        connection = http.client.HTTPConnection(self._server)
        try:
            connection.request("POST", self._path, body, {
                **self._headers, "Inference-Header-Content-Length": str(header_bytes),
                "Content-Type": "application/octet-stream"})
            response = connection.getresponse()
            return response.status, response.getheader("Inference-Header-Content-Length"), response.read()
        finally:
            connection.close()


def message_of(answer):
    try:
        return json.loads(answer)["error"]
    except (ValueError, KeyError, TypeError):
        return answer[:200].decode(errors="replace")


def encode(tensors, parameters):
    inputs, blobs = [], []
    for name, array in tensors.items():
        blob = np.ascontiguousarray(array).tobytes()
        inputs.append({"name": name, "datatype": DATATYPES[array.dtype.name], "shape": list(array.shape),
                       "parameters": {"binary_data_size": len(blob)}})
        blobs.append(blob)
    header = json.dumps({"inputs": inputs, "parameters": parameters}).encode()
    return b"".join([header, *blobs]), len(header)


def decode(header_bytes, answer):
    at = int(header_bytes)
    header = json.loads(answer[:at])
    outputs = {}
    for output in header["outputs"]:
        size = output["parameters"]["binary_data_size"]
        outputs[output["name"]] = np.frombuffer(answer[at:at + size], DTYPES[output["datatype"]]).reshape(output["shape"])
        at += size
    return outputs, header.get("parameters", {}).get("variant", "")


class Job:
    """Rows in, outputs on disk. One thread; calls are made by others."""

    def __init__(self, folder, task, inputs, parameters):
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._inputs = inputs
        self.rows = len(next(iter(inputs.values())))
        self._outputs = {}
        self._log = JobLog(folder / "job.log")
        digest = digest_of(task, parameters, inputs)
        if self._log.job is None:
            self._log.append([[digest]])
        elif self._log.job != digest:
            raise OfflineError(f"{folder}: has a job of another task, of other rows or with other requirements; name another "
                               "folder with --output")
        self._done = np.zeros(self.rows, bool)
        for begin, end, _ in self._log.ranges:
            if self._done[begin:end].any():
                raise OfflineError(f"{folder / 'log'}: has rows {begin} to {end} twice; it is damaged")
            self._done[begin:end] = True
        self._pending = []

    @property
    def done(self):
        return int(self._done.sum())

    def left(self, size):
        """Ranges of at most `size` rows that are not done."""
        begin = 0
        while begin < self.rows:
            if self._done[begin]:
                begin += 1
                continue
            end = begin
            while end < min(self.rows, begin + size) and not self._done[end]:
                end += 1
            yield begin, end
            begin = end

    def take(self, begin, end):
        return {name: array[begin:end] for name, array in self._inputs.items()}

    def put(self, begin, end, outputs, variant):
        for name, array in outputs.items():
            if array.ndim == 0 or len(array) != end - begin:
                raise OfflineError(f"output '{name}' has shape {list(array.shape)}, and not a row for each of {end - begin}")
            whole = self._output(name, array)
            if whole.shape[1:] != array.shape[1:] or whole.dtype != array.dtype:
                raise OfflineError(f"output '{name}' has rows of shape {list(array.shape[1:])}, and earlier ones "
                                   f"{list(whole.shape[1:])}: their lengths differ")
            whole[begin:end] = array
        self._pending.append([begin, end, variant])
        self._done[begin:end] = True
        if len(self._pending) >= GROUP_MAX:
            self.sync()

    def _output(self, name, like):
        if name not in self._outputs:
            if "/" in name or name.startswith("."):
                raise OfflineError(f"output '{name}' cannot be the name of a file")
            path = self._folder / f"{name}.npy"
            if path.exists():
                self._outputs[name] = np.lib.format.open_memmap(path, mode="r+")
            else:
                self._outputs[name] = self._create(path, like)
        return self._outputs[name]

    def _create(self, path, like):
        """All of its room is taken now, so that a full disk is an error and not a signal; and it has its name once it is
        whole."""
        made = self._folder / f".{path.name}.new"
        whole = np.lib.format.open_memmap(made, mode="w+", dtype=like.dtype, shape=(self.rows, *like.shape[1:]))
        with open(made, "r+b") as file:
            os.posix_fallocate(file.fileno(), 0, made.stat().st_size)
        whole.flush()
        made.rename(path)
        folder = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        return whole

    def sync(self):
        """First the outputs, then the log that says that they are there."""
        for whole in self._outputs.values():
            whole.flush()
        self._log.append(self._pending)
        self._pending = []

    def close(self):
        self._log.close()

    def write_variants(self):
        """Which variant answered which rows, in their order; neighbours are one line."""
        lines = []
        for begin, end, variant in sorted(self._log.ranges):
            if lines and lines[-1][1] == begin and lines[-1][2] == variant:
                lines[-1][1] = end
            else:
                lines.append([begin, end, variant])
        text = "".join(f"{begin} {end} {variant}\n" for begin, end, variant in lines)
        (self._folder / "variants.txt").write_text(text)


def run(arguments, say):
    """Returns when every row is on disk. Raises OfflineError, and KeyboardInterrupt after what came is on disk."""
    inputs = read_inputs(arguments.input)
    parameters = {}
    for name in ("accuracy", "cost"):
        if getattr(arguments, name) is not None:
            parameters[name] = getattr(arguments, name)
    job = Job(arguments.output, arguments.task, inputs, parameters)
    over = False
    key = arguments.key_file.read_text().strip() if arguments.key_file else None
    calls = Calls(arguments.server, arguments.task, parameters, key, lambda: over)
    try:
        if job.done:
            say(f"goes on: {job.done} of {job.rows} rows are done")
        with concurrent.futures.ThreadPoolExecutor(arguments.calls) as pool:
            try:
                run_calls(job, calls, pool, arguments, say)
            finally:
                over = True
                job.sync()
        job.write_variants()
        say(f"done: {job.rows} rows in {arguments.output}")
    finally:
        job.close()


def run_calls(job, calls, pool, arguments, say):
    left = job.left(arguments.rows)
    under_way = {}
    said = time.monotonic()
    while True:
        while len(under_way) < arguments.calls and (next_range := next(left, None)) is not None:
            under_way[pool.submit(calls.infer, job.take(*next_range))] = next_range
        if not under_way:
            return
        finished, _ = concurrent.futures.wait(under_way, return_when=concurrent.futures.FIRST_COMPLETED)
        for future in finished:
            begin, end = under_way.pop(future)
            outputs, variant = future.result()
            job.put(begin, end, outputs, variant)
        if time.monotonic() - said >= arguments.progress:
            said = time.monotonic()
            job.sync()
            say(f"{job.done} of {job.rows} rows")


def parser():
    flags = argparse.ArgumentParser(prog="python -m foliot.offline", description=__doc__.split(":", maxsplit=1)[0])
    flags.add_argument("task", help="a task, or the name of a model")
    flags.add_argument("--server", default="localhost:8000", help="HOST:PORT of HTTP (localhost:8000)")
    flags.add_argument("--input", action="append", required=True, help="NAME=FILE.npy, rows first; once for each input")
    flags.add_argument("--output", type=pathlib.Path, required=True, help="folder of the job")
    flags.add_argument("--accuracy", type=float, help="of a task, at least")
    flags.add_argument("--cost", type=float, help="of a task, at most, of one row, in dollars")
    flags.add_argument("--rows", type=int, default=8, help="of one call, at most (8)")
    flags.add_argument("--calls", type=int, default=4, help="under way at a time (4)")
    flags.add_argument("--progress", type=float, default=5, help="seconds between reports (5)")
    flags.add_argument("--key-file", type=pathlib.Path, help="file with the API key")
    return flags


def main():
    arguments = parser().parse_args()
    for name in ("rows", "calls"):
        if getattr(arguments, name) < 1:
            print(f"foliot.offline: --{name} is {getattr(arguments, name)}; it must be at least 1", file=sys.stderr)
            return 2
    try:
        run(arguments, lambda line: print(line, flush=True))
    except (OfflineError, OSError) as error:
        print(f"foliot.offline: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("foliot.offline: ended; the same command goes on", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
