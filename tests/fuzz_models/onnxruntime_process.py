"""onnxruntime without optimisations, in a process of its own: a model that ends it, or on which it takes too long, is
one that it refuses, and does not end the run of the tests."""

import atexit
import multiprocessing
import os

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

LIMIT_SECONDS = 120


class Refused(Exception):
    """onnxruntime does not compute the model, for a reason."""


def compute(serialized, inputs):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(serialized, options, ["CPUExecutionProvider"]).run(None, inputs)


def answer_calls(calls):
    while True:
        try:
            serialized, inputs = calls.recv()
        except EOFError:
            return
        try:
            result = compute(serialized, inputs), None
        except Exception as error:  # onnxruntime raises types of its own
            result = None, str(error)
        calls.send(result)


class OnnxruntimeProcess:
    """One call at a time. The process starts with the first call, and anew after a call that ended it."""

    def __init__(self):
        self.process = None
        atexit.register(self.stop)

    def run(self, model, inputs):
        """The outputs. Refused: with the reason, or how the process ended."""
        if self.process is None:
            self.start()
        try:
            self.calls.send((model.SerializeToString(), inputs))
            if not self.calls.poll(LIMIT_SECONDS):
                self.stop()
                raise Refused(f"no result within {LIMIT_SECONDS} s")
            outputs, error = self.calls.recv()
        except (EOFError, ConnectionError):
            self.process.join()
            code = self.process.exitcode
            self.stop()
            raise Refused(f"its process ended with exit code {code}") from None
        if error is not None:
            raise Refused(error)
        return outputs

    def start(self):
        context = multiprocessing.get_context("spawn")
        self.calls, theirs = context.Pipe()
        self.process = context.Process(target=answer_calls, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()

    def stop(self):
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.calls.close()
            self.process = None
