"""MLServer's batch client, `mlserver infer`, and its codecs."""

import json
import pathlib
import subprocess
import sys
import tempfile

import checks
import numpy as np
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceRequest, InferenceResponse


def request():
    return InferenceRequest(inputs=[NumpyCodec.encode_input("a", checks.A), NumpyCodec.encode_input("b", checks.B)])


def infer(server, *flags):
    """The answers to two requests, by `mlserver infer`."""
    with tempfile.TemporaryDirectory() as folder:
        asked, answered = pathlib.Path(folder) / "in.jsonl", pathlib.Path(folder) / "out.jsonl"
        asked.write_text((request().model_dump_json(exclude_none=True) + "\n") * 2)
        command = [pathlib.Path(sys.executable).with_name("mlserver"), "infer", "--url", server.http, "--model-name", "pair",
                   "--input-data-path", asked, "--output-data-path", answered, *flags]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert ended.returncode == 0 and answered.exists(), ended.stdout[-300:] + ended.stderr[-300:]
        return [json.loads(line) for line in answered.read_text().splitlines()]


def expect_all(answers):
    assert len(answers) == 2
    for answer in answers:
        assert "error" not in answer, answer
        outputs = InferenceResponse.model_validate(answer).outputs
        checks.expect({output.name: np.asarray(NumpyCodec.decode_output(output)) for output in outputs})


def one_by_one(server):
    """REST: mlserver infer"""
    expect_all(infer(server))


def in_batches(server):
    """REST: mlserver infer, in batches of two"""
    expect_all(infer(server, "--batch-size", "2"))


if __name__ == "__main__":
    checks.run([one_by_one, in_batches])
