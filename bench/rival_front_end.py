#!/usr/bin/env python3
"""onnxruntime or OpenVINO behind a deadline, as bench/lanes.py measures them beside Foliot: a front end that
speaks the Open Inference Protocol over gRPC, a bounded queue of all models, and a session of each model.

A request brings its deadline as with Foliot (the parameter `timeout`). One that finds the queue full is refused. One
that could not be over by its deadline any more is refused when its turn comes, before it runs, by what its model
took last; so nothing is computed in vain. What waits is served by arrival, one row at a time.

    rival_front_end.py --engine onnxruntime --threads 1 --sessions 2 --port 9001 out/lanes/models"""

import argparse
import asyncio
import collections
import contextlib
import pathlib
import threading
import time

import grpc
import numpy as np
from tritonclient.grpc import service_pb2, service_pb2_grpc

# What a model is expected to take follows its last requests.
NEW_SHARE = 0.2
# What was refused for what its model took may have been refused in vain.
DOUBT = 0.99
WARM_UP_RUNS = 10
TYPES = {"FP32": np.float32, "INT64": np.int64}
# The load generator makes up small numbers, which are beyond these tables' ends.
LARGEST = {"token_type_ids": 1}


class OnnxruntimeModel:
    """A session, which several threads may run at once."""

    def __init__(self, path, threads):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.add_free_dimension_override_by_name("batch", 1)
        # The other models' threads would spin on the cores that this one needs.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        onnxruntime.set_default_logger_severity(3)
        self.session = onnxruntime.InferenceSession(path, options)
        kinds = {"tensor(float)": "FP32", "tensor(int64)": "INT64"}
        self.inputs = [(each.name, kinds[each.type], each.shape) for each in self.session.get_inputs()]

    def runner(self):
        """A function of {name: array}, for one thread."""
        return lambda arrays: self.session.run(None, arrays)


class OpenvinoModel:
    """A compiled model of one row, in float32 as the others compute."""

    def __init__(self, path, hint):
        import openvino

        core = openvino.Core()
        network = core.read_model(path)
        network.reshape({each.any_name: [1, *list(each.partial_shape)[1:]] for each in network.inputs})
        self.compiled = core.compile_model(network, "CPU", {
            "PERFORMANCE_HINT": hint, "INFERENCE_PRECISION_HINT": "f32"})
        kinds = {"f32": "FP32", "i64": "INT64"}
        self.inputs = [(each.any_name, kinds[each.element_type.get_type_name()], list(each.shape))
                       for each in self.compiled.inputs]

    def streams(self):
        return self.compiled.get_property("NUM_STREAMS")

    def runner(self):
        request = self.compiled.create_infer_request()

        def run(arrays):
            results = request.infer(arrays, share_inputs=True)
            return [results[output] for output in self.compiled.outputs]

        return run


class Waiting:
    """A request in the queue."""

    def __init__(self, message, deadline, future):
        self.message, self.deadline, self.future = message, deadline, future


class Refused(Exception):
    """The reason is one of those that `foliot bench` counts as refusals."""


class Backend:
    """The bounded queue, and a thread for each session. Answers futures of the event loop that made it."""

    def __init__(self, models, sessions, queue_max):
        self.queue_max = queue_max
        self.loop = asyncio.get_running_loop()
        self.models = models
        self.expected = {}  # seconds, by model
        self.queue = collections.deque()
        self.changed = threading.Condition()
        self.ready = threading.Barrier(sessions + 1)
        for number in range(sessions):
            threading.Thread(target=self.work, name=f"session-{number}", daemon=True).start()
        self.ready.wait()

    def submit(self, message, deadline):
        future = self.loop.create_future()
        with self.changed:
            if len(self.queue) >= self.queue_max:
                raise Refused("overload")
            self.queue.append(Waiting(message, deadline, future))
            self.changed.notify()
        return future

    def work(self):
        runners = {name: model.runner() for name, model in self.models.items()}
        self.warm_up(runners)
        self.ready.wait()
        while True:
            with self.changed:
                while not self.queue:
                    self.changed.wait()
                waiting = self.queue.popleft()
            result = self.run(runners, waiting)
            self.loop.call_soon_threadsafe(finish, waiting.future, result)

    def warm_up(self, runners):
        for name, run in runners.items():
            arrays = {key: np.zeros(shape, TYPES[kind]) for key, kind, shape in self.models[name].inputs}
            for _ in range(WARM_UP_RUNS):
                begin = time.monotonic()
                run(arrays)
                self.expected[name] = time.monotonic() - begin

    def run(self, runners, waiting):
        """The outputs, or the exception."""
        name = waiting.message.model_name
        begin = time.monotonic()
        if begin + self.expected[name] > waiting.deadline:
            self.expected[name] *= DOUBT
            return Refused("expired")
        try:
            outputs = runners[name](arrays_of(waiting.message))
        except Exception as error:  # whatever an engine raises is this request's failure
            return error
        self.expected[name] += NEW_SHARE * (time.monotonic() - begin - self.expected[name])
        response = service_pb2.ModelInferResponse(model_name=name)
        for position, output in enumerate(outputs):
            response.outputs.add(name=f"output_{position}", datatype="FP32", shape=output.shape)
            response.raw_output_contents.append(output.tobytes())
        return response


def arrays_of(message):
    arrays = {}
    for tensor, content in zip(message.inputs, message.raw_input_contents):
        array = np.frombuffer(content, TYPES[tensor.datatype]).reshape(tensor.shape)
        arrays[tensor.name] = np.minimum(array, LARGEST[tensor.name]) if tensor.name in LARGEST else array
    return arrays


def finish(future, result):
    if future.cancelled():
        return
    if isinstance(result, Exception):
        future.set_exception(result)
    else:
        future.set_result(result)


class FrontEnd(service_pb2_grpc.GRPCInferenceServiceServicer):
    """What `foliot bench` calls."""

    def __init__(self, backend):
        self.backend = backend

    async def RepositoryIndex(self, request, context):
        models = [service_pb2.RepositoryIndexResponse.ModelIndex(name=name, version="1", state="READY")
                  for name in self.backend.models]
        return service_pb2.RepositoryIndexResponse(models=models)

    async def ModelMetadata(self, request, context):
        if request.name not in self.backend.models:
            await context.abort(grpc.StatusCode.NOT_FOUND, f"no model '{request.name}'")
        inputs = [service_pb2.ModelMetadataResponse.TensorMetadata(name=name, datatype=kind, shape=shape)
                  for name, kind, shape in self.backend.models[request.name].inputs]
        return service_pb2.ModelMetadataResponse(name=request.name, versions=["1"], inputs=inputs)

    async def ModelInfer(self, request, context):
        timeout = request.parameters["timeout"].int64_param * 1e-6 if "timeout" in request.parameters else float("inf")
        try:
            return await self.backend.submit(request, time.monotonic() + timeout)
        except Refused as refused:
            await context.abort(grpc.StatusCode.UNAVAILABLE, str(refused))
        except Exception as error:
            await context.abort(grpc.StatusCode.INTERNAL, repr(error))


def load(arguments):
    """({name: model}, how many sessions run at once)."""
    paths = {path.parent.name: str(path) for path in sorted(arguments.repository.glob("*/model.onnx"))}
    if not paths:
        raise SystemExit(f"no NAME/model.onnx in {arguments.repository}")
    if arguments.engine == "onnxruntime":
        return {name: OnnxruntimeModel(path, arguments.threads) for name, path in paths.items()}, arguments.sessions
    models = {name: OpenvinoModel(path, arguments.hint) for name, path in paths.items()}
    return models, max(model.streams() for model in models.values())


async def serve(arguments):
    models, sessions = load(arguments)
    backend = Backend(models, sessions, arguments.queue)
    server = grpc.aio.server(options=[("grpc.max_receive_message_length", -1)])
    service_pb2_grpc.add_GRPCInferenceServiceServicer_to_server(FrontEnd(backend), server)
    server.add_insecure_port(f"127.0.0.1:{arguments.port}")
    await server.start()
    expected = ", ".join(f"{name} {1e3 * seconds:.1f} ms" for name, seconds in backend.expected.items())
    print(f"ready: {sessions} at once; {expected}", flush=True)
    await server.wait_for_termination()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repository", type=pathlib.Path, help="a folder of NAME/model.onnx, whose first dimension is 'batch'")
    parser.add_argument("--engine", choices=("onnxruntime", "openvino"), required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--threads", type=int, default=1, help="of onnxruntime, within an operator")
    parser.add_argument("--sessions", type=int, default=1, help="of onnxruntime: requests at once")
    parser.add_argument("--hint", choices=("LATENCY", "THROUGHPUT"), default="LATENCY",
                        help="of OpenVINO; it chooses how many requests run at once")
    # The default: more than two cores answer within 50 ms; 40 MB of images.
    parser.add_argument("--queue", type=int, default=64, help="requests that wait at most; more are refused")
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(parser.parse_args()))


if __name__ == "__main__":
    main()
