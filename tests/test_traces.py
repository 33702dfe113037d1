"""OpenTelemetry: a call that brings a traceparent becomes spans at a collector, of front end, controller and worker,
as OTLP's own messages read them. What goes wrong with a collector costs calls nothing."""

import base64
import contextlib
import http.server
import json
import re
import socket
import threading
import urllib.request

import numpy as np
import pytest
import tritonclient.grpc as grpc_client
import tritonclient.http as http_client
from tritonclient.utils import InferenceServerException

import test_pipelines
from foliot_tools.bench import bench
from foliot_tools.cluster import Cluster
from foliot_tools.server import free_ports
from foliot_tools.waiting import eventually

json_format = pytest.importorskip("google.protobuf.json_format")
trace_service = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")

TRACE = "0af7651916cd43dd8448eb211c80319c"
CALLER = "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE}-{CALLER}-01"


def in_base64(document):
    """OTLP writes ids in hexadecimal, where Protobuf's JSON has base64; all else is Protobuf's."""
    if isinstance(document, list):
        return [in_base64(each) for each in document]
    if not isinstance(document, dict):
        return document
    ids = ("traceId", "spanId", "parentSpanId")
    return {key: base64.b64encode(bytes.fromhex(value)).decode() if key in ids else in_base64(value)
            for key, value in document.items()}


class Collector:
    """Takes OTLP over HTTP on a loopback port; `spans`: {span id: (service, span)}."""

    def __init__(self, status=200):
        (self.port,) = free_ports(1)
        self.spans = {}
        self.posts = 0
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                collector.posts += 1
                assert self.path == "/v1/traces" and self.headers["Content-Type"] == "application/json"
                collector.take(body)
                self.send_response(status)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def take(self, body):
        request = json_format.ParseDict(in_base64(json.loads(body)), trace_service.ExportTraceServiceRequest())
        for resource in request.resource_spans:
            (service,) = [each.value.string_value for each in resource.resource.attributes if each.key == "service.name"]
            for span in (span for scope in resource.scope_spans for span in scope.spans):
                self.spans[span.span_id.hex()] = (service, span)

    def await_trace(self, trace, names):
        """{name: (service, span)} of a trace, once it has these names."""

        def found():
            spans = {span.name: (service, span) for service, span in list(self.spans.values())
                     if span.trace_id.hex() == trace}
            return spans if set(names) <= set(spans) else None

        return eventually(found, 20, lambda: f"{names} are not all of {[s.name for _, s in self.spans.values()]}")


def attributes(span):
    return {each.key: each.value.string_value or each.value.int_value for each in span.attributes}


def infer_http(url, name, headers=None, timeout=None):
    client = http_client.InferenceServerClient(url)
    given = http_client.InferInput("pixels", [1, 64], "FP32")
    given.set_data_from_numpy(np.zeros((1, 64), np.float32))
    return client.infer(name, [given], headers=headers, timeout=timeout)


def infer_grpc(url, name, headers=None):
    given = grpc_client.InferInput("pixels", [1, 64], "FP32")
    given.set_data_from_numpy(np.zeros((1, 64), np.float32))
    with grpc_client.InferenceServerClient(url) as client:
        return client.infer(name, [given], headers=headers)


def metric(port, name):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
        (value,) = re.findall(rf"^{re.escape(name)} (\S+)$", answer.read().decode(), re.MULTILINE)
    return float(value)


def check_parts(spans, model):
    """The spans of one call with one row: whose they are, and that each lies in its parent's time."""
    _, call = spans[f"infer {model}"]
    assert call.parent_span_id.hex() == CALLER and call.kind == call.SPAN_KIND_SERVER
    _, request = spans[f"request {model}"]
    assert request.parent_span_id == call.span_id
    services = {"infer": "frontend", "request": "controller", "queue": "controller", "INPUT": "worker", "EXEC": "worker",
                "OUTPUT": "worker"}
    for part, service in services.items():
        owner, span = spans[f"{part} {model}"]
        assert owner == f"foliot-{service}", part
        if service == "worker" or part == "queue":
            assert span.parent_span_id == request.span_id
        assert span.start_time_unix_nano <= span.end_time_unix_nano
    slack = 5_000_000  # between the clocks of two processes
    assert call.start_time_unix_nano <= spans[f"EXEC {model}"][1].start_time_unix_nano + slack
    assert spans[f"EXEC {model}"][1].end_time_unix_nano <= call.end_time_unix_nano + slack
    assert attributes(call)["foliot.request"] and attributes(spans[f"EXEC {model}"][1])["foliot.batch_size"] == 1


@pytest.fixture(name="traced", scope="module")
def traced_server(small_models, tmp_path_factory):
    from conftest import serving

    folder = tmp_path_factory.mktemp("traces")
    with Collector() as collector, serving(small_models, folder / "log", cache=folder / "cache", page_size="256KiB",
                                           page_cache="16MiB", otlp=collector.url) as server:
        yield server, collector


PARTS = ("infer", "request", "queue", "INPUT", "EXEC", "OUTPUT")


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_a_call_becomes_spans_of_its_callers_trace(traced, protocol):
    server, collector = traced
    trace = TRACE[:-1] + ("1" if protocol == "http" else "2")
    headers = {"traceparent": f"00-{trace}-{CALLER}-01"}
    if protocol == "http":
        infer_http(server.http, "dense", headers)
    else:
        infer_grpc(server.grpc, "dense", headers)
    check_parts(collector.await_trace(trace, [f"{part} dense" for part in PARTS]), "dense")


def test_a_refusal_is_the_status_of_its_spans(traced):
    server, collector = traced
    trace = TRACE[:-1] + "3"
    with pytest.raises(InferenceServerException):
        infer_http(server.http, "dense", {"traceparent": f"00-{trace}-{CALLER}-01"}, timeout=1)
    spans = collector.await_trace(trace, ["infer dense", "request dense"])
    for name in ("infer dense", "request dense"):
        _, span = spans[name]
        assert span.status.code == span.status.STATUS_CODE_ERROR and span.status.message == "unmeetable"
        assert attributes(span)["foliot.refusal"] == "unmeetable"


def test_clients_are_shown_that_calls_are_traced(traced):
    server, _ = traced
    for module, address in ((http_client, server.http), (grpc_client, server.grpc)):
        with module.InferenceServerClient(address) as client:
            settings = client.get_trace_settings(**({} if module is http_client else {"as_json": True}))
            for name, expected in (("trace_level", ["TIMESTAMPS"]), ("trace_mode", "opentelemetry"), ("trace_rate", "0")):
                value = settings[name] if module is http_client else settings["settings"][name]["value"]
                assert value == expected or value == [expected]
            with pytest.raises(InferenceServerException, match="'trace_rate' is '0' .* another --otlp-share"):
                client.update_trace_settings(settings={"trace_rate": "2"})


def test_what_is_not_sampled_or_malformed_has_no_spans(traced):
    server, collector = traced
    malformed = metric(server.metrics_port, "foliot_traceparent_malformed_total")
    infer_http(server.http, "dense", {"traceparent": f"00-{TRACE[:-1]}4-{CALLER}-00"})
    infer_http(server.http, "dense")
    for broken in ("00-what", TRACEPARENT.upper(), f"ff{TRACEPARENT[2:]}", "x" * 5000):
        infer_http(server.http, "dense", {"traceparent": broken})
    assert metric(server.metrics_port, "foliot_traceparent_malformed_total") == malformed + 4
    last = TRACE[:-1] + "5"
    infer_http(server.http, "dense", {"traceparent": f"00-{last}-{CALLER}-01"})
    collector.await_trace(last, ["infer dense"])
    traces = {span.trace_id.hex() for _, span in collector.spans.values()}
    assert TRACE[:-1] + "4" not in traces
    assert all(trace.startswith(TRACE[:-1]) for trace in traces), "only what was asked for is traced"


def test_spans_of_one_call_come_from_three_processes(small_models, tmp_path):
    with Collector() as collector:
        tracing = {"otlp": collector.url}
        with Cluster(tmp_path, small_models, workers=1, frontends=0, controller_options=tracing) as cluster:
            frontend = cluster.add_frontend(**tracing)
            infer_http(frontend.http, "dense", {"traceparent": TRACEPARENT})
            spans = collector.await_trace(TRACE, [f"{part} dense" for part in PARTS])
            check_parts(spans, "dense")
            instances = set()
            for service, _ in spans.values():
                instances.add(service)
            assert instances == {"foliot-frontend", "foliot-controller", "foliot-worker"}


def test_each_stage_of_a_pipeline_has_spans(serve, tmp_path):
    folder = tmp_path / "models"
    for name in ("cheap", "fine", "doubling"):
        test_pipelines.write_linear(folder / name / "model.onnx", test_pipelines.WEIGHTS)
    test_pipelines.write_pipeline(folder, "cascade", test_pipelines.CASCADE)
    with Collector() as collector:
        server = test_pipelines.start(serve, folder, otlp=collector.url)
        test_pipelines.infer(http_client, server.http, "cascade", np.zeros((1, 4), np.float32),
                             headers={"traceparent": TRACEPARENT})
        names = ["infer cascade", "pipeline cascade"]
        for stage, model in (("cheap", "cheap"), ("fine", "fine"), ("last", "doubling")):
            names += [f"stage {stage}", f"queue {model}", f"EXEC {model}"]
        spans = collector.await_trace(TRACE, names)
        _, run = spans["pipeline cascade"]
        assert run.parent_span_id == spans["infer cascade"][1].span_id
        for stage, model in (("cheap", "cheap"), ("fine", "fine"), ("last", "doubling")):
            assert spans[f"stage {stage}"][1].parent_span_id == run.span_id
            assert spans[f"EXEC {model}"][1].parent_span_id == spans[f"stage {stage}"][1].span_id


@contextlib.contextmanager
def silent_collector():
    """Takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


@pytest.mark.parametrize("kind", ["gone", "slow", "refuses"])
def test_a_collector_that_fails_costs_calls_nothing(serve, small_models, tmp_path, kind):
    with contextlib.ExitStack() as stack:
        if kind == "slow":
            url = stack.enter_context(silent_collector())
        elif kind == "refuses":
            url = stack.enter_context(Collector(status=503)).url
        else:
            url = f"http://127.0.0.1:{free_ports(1)[0]}"
        server = serve(small_models, page_size="256KiB", page_cache="16MiB", otlp=url, otlp_share=1)
        report = bench(server.grpc, "dense", rate=400, duration="5s", deadline="5s")
        assert report["good"] == report["offered"]
        # Six spans of each call: more than may wait.
        lost = eventually(lambda: metric(server.metrics_port, 'foliot_spans_total{result="failed"}'))
        assert lost > 0 and metric(server.metrics_port, 'foliot_spans_total{result="sent"}') == 0
        if kind == "slow":
            assert metric(server.metrics_port, 'foliot_spans_total{result="dropped"}') > 0


def test_a_wrong_url_is_named(small_models, tmp_path):
    from foliot_tools.server import Server, ServerFailed

    with pytest.raises(ServerFailed) as failed:
        Server(small_models, tmp_path / "log", otlp="ftp://somewhere").start()
    assert "--otlp" in str(failed.value) and "must begin with http://" in str(failed.value)
