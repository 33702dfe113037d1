"""A server that stood still: what it says afterwards is judged by when requests came,
and not by when it got to them."""

import http.client
import json
import time

from foliot_tools.server import frozen

BODY = {"inputs": [{"name": "pixels", "shape": [1, 64], "datatype": "FP32", "data": [0.5] * 64}]}


def send(connection, timeout_seconds):
    body = BODY | {"parameters": {"timeout": int(timeout_seconds * 1e6)}}
    connection.request("POST", "/v2/models/dense/infer", json.dumps(body))


def answer(connection):
    response = connection.getresponse()
    return response.status, json.loads(response.read())


def test_what_came_while_it_was_stopped_has_waited(small_server):
    known, new = (http.client.HTTPConnection(small_server.http, timeout=30) for _ in range(2))
    send(known, 0)
    assert answer(known)[0] == 200
    with frozen(small_server.process):
        send(known, 0.1)
        send(new, 0.1)
        patient = http.client.HTTPConnection(small_server.http, timeout=30)
        send(patient, 100)
        time.sleep(0.3)
    for connection in (known, new):
        status, said = answer(connection)
        assert status in (503, 504) and said["reason"] in ("unmeetable", "overload", "expired", "late"), said
    assert answer(patient)[0] == 200
