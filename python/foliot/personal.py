"""Personal models of a Foliot server: weights for each user, which learn from each observation (docs/PERSONAL.md).

    from foliot import personal

    personal.write_items("models/movies/1/items.features", ids, features)

    with personal.Client("localhost:8000", "movies") as movies:
        movies.observe("ada", item=3, value=4.5)
        movies.predict("ada", [3, 9])
        movies.top_k("ada", 10)

Users and ids of observations are whole numbers or texts, items are whole numbers.

Where a model computes the features of items, calls say what items are: `inputs`, that model's inputs by name, an array
with a row for each item. They may be left out where all items were observed before.
"""

import dataclasses
import http.client
import json
import pathlib
import struct
import urllib.parse
import uuid

import numpy as np

from foliot.xxh3 import hash64

__all__ = ["Client", "Observation", "PersonalError", "Place", "TopK", "write_items"]

_MAGIC = b"folitems"
_FEATURES_MAX = 1000
_GRANULE = 8
_ALIGNMENT = 64
_HEADER_BYTES = 32
_DATATYPES = {"b1": "BOOL", "f2": "FP16", "f4": "FP32", "f8": "FP64"}
_DATATYPES |= {f"{kind}{size}": f"{name}{8 * size}" for kind, name in (("i", "INT"), ("u", "UINT")) for size in (1, 2, 4, 8)}
# Of a call whose connection was lost: ids make a second one harmless.
_TRIES = 2


class PersonalError(Exception):
    """What the server answered instead: `status` is HTTP's, `reason` that of a refusal, such as "unmeetable"."""

    def __init__(self, status, message, reason=None):
        super().__init__(message)
        self.status = status
        self.reason = reason


@dataclasses.dataclass(frozen=True)
class Place:
    """An item of a list. `drawn`: uniformly, for the validation pool, with `probability`."""

    item: int
    score: float
    drawn: bool = False
    probability: float = 1.0


@dataclasses.dataclass(frozen=True)
class TopK:
    """The best first. Observations that follow from it name its `query`."""

    places: tuple
    query: int
    version: str

    @property
    def items(self):
        return [place.item for place in self.places]


@dataclasses.dataclass(frozen=True)
class Observation:
    """What a user made of an item. Sent again with the same id, it counts once."""

    user: object
    item: int
    value: float
    id: object = dataclasses.field(default_factory=lambda: uuid.uuid4().hex)
    query: int = 0

    def _json(self):
        return {"user": self.user, "item": int(self.item), "value": float(self.value), "id": self.id, "query": self.query}


class Client:
    """One connection to one model of a server, for one thread.

    `timeout`: seconds in which an answer is of use; None: what the model's default_slo says. `key`: of the scopes infer
    and observe. `context`: an ssl.SSLContext for a server with TLS.
    """

    def __init__(self, address, model, *, timeout=None, key=None, context=None):
        self._path = f"/v2/personal/{urllib.parse.quote(model, safe='')}/"
        self._timeout = timeout
        self._headers = {"Content-Type": "application/json"}
        if key is not None:
            self._headers["Authorization"] = f"Bearer {key}"
        if context is None:
            self._connection = http.client.HTTPConnection(address)
        else:
            self._connection = http.client.HTTPSConnection(address, context=context)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self._connection.close()

    def predict(self, user, items, inputs=None):
        """A number for one item, an array for a list of them."""
        several = np.ndim(items) > 0
        items = [int(item) for item in items] if several else [int(items)]
        predictions = self._call("predict", {"user": user, "items": items}, inputs)["predictions"]
        return np.array(predictions, np.float32) if several else predictions[0]

    def predict_pairs(self, users, items, inputs=None):
        """An array: of each user for the item at its place."""
        body = {"users": list(users), "items": [int(item) for item in items]}
        return np.array(self._call("predict", body, inputs)["predictions"], np.float32)

    def top_k(self, user, k, items=None, inputs=None):
        """The k best of these items, or of all."""
        return self.top_k_of_each([user], k, items, inputs)[0]

    def top_k_of_each(self, users, k, items=None, inputs=None):
        """A TopK for each user."""
        body = {"users": list(users), "k": int(k)}
        if items is not None:
            body["items"] = [int(item) for item in items]
        answer = self._call("topk", body, inputs)
        return [
            TopK(tuple(Place(**place) for place in result["items"]), result["query"], answer["model_version"])
            for result in answer["results"]
        ]

    def observe(self, user, item, value, *, id=None, query=0, inputs=None):
        """Returns once the server has it on disk. `query`: of the TopK that it follows from. `inputs`: of one row."""
        observation = Observation(user, item, value, query=query)
        self.observe_all([observation if id is None else dataclasses.replace(observation, id=id)], inputs)

    def observe_all(self, observations, inputs=None):
        """Several, of any users. After an error, send all of them again. `inputs`: a row for each observation."""
        self._call("observe", {"observations": [observation._json() for observation in observations]}, inputs)

    def forget(self, *users):
        self._call("forget", {"users": list(users)})

    def _call(self, method, body, inputs=None):
        if self._timeout is not None:
            body["parameters"] = {"timeout": int(self._timeout * 1e6)}
        headers = self._headers
        data = b""
        if inputs is not None:
            body["inputs"] = []
            for name, values in inputs.items():
                datatype, shape, content = _tensor(name, values)
                parameters = {"binary_data_size": len(content)}
                body["inputs"].append({"name": name, "datatype": datatype, "shape": shape, "parameters": parameters})
                data += content
        text = json.dumps(body).encode()
        if inputs is not None:
            headers = {**headers, "Inference-Header-Content-Length": str(len(text))}
        for left in reversed(range(_TRIES)):
            try:
                self._connection.request("POST", self._path + method, text + data, headers)
                response = self._connection.getresponse()
                content = response.read()
                break
            except (ConnectionError, http.client.HTTPException):
                self._connection.close()
                if left == 0:
                    raise
        try:
            answer = json.loads(content)
        except ValueError:
            answer = {"error": content.decode(errors="replace")}
        if response.status != 200:
            raise PersonalError(response.status, answer.get("error", ""), answer.get("reason"))
        return answer


def _tensor(name, values):
    """(datatype, shape, bytes) as the Open Inference Protocol has them. ValueError names the input."""
    values = np.asarray(values)
    if values.dtype.kind in "OSU":
        texts = [value if isinstance(value, bytes) else str(value).encode() for value in values.reshape(-1)]
        return "BYTES", list(values.shape), b"".join(struct.pack("<I", len(text)) + text for text in texts)
    datatype = _DATATYPES.get(f"{values.dtype.kind}{values.dtype.itemsize}")
    if datatype is None:
        raise ValueError(f"input '{name}': no datatype of the protocol is {values.dtype}")
    return datatype, list(values.shape), np.ascontiguousarray(values, values.dtype.newbyteorder("<")).tobytes()


def write_items(path, ids, features):
    """Writes items.features, the table of a version of a personal model, in place of one that is there.

    `ids`: whole numbers, each once, in any order; `features`: a row of 1 to 1000 numbers for each. ValueError names what is
    wrong.
    """
    ids = np.asarray(ids)
    if ids.ndim != 1 or (ids.size and ids.dtype.kind not in "iu"):
        raise ValueError(f"ids: must be a list of whole numbers, got {ids.dtype} of shape {ids.shape}")
    if ids.size and ids.dtype.kind == "i" and ids.min() < 0:
        raise ValueError(f"id {ids.min()}: must be 0 or more")
    features = np.asarray(features, np.float32)
    if features.ndim != 2 or features.shape[0] != ids.size or not 1 <= features.shape[1] <= _FEATURES_MAX:
        raise ValueError(
            f"features: must be a row of 1 to {_FEATURES_MAX} numbers for each of {ids.size} ids, got shape {features.shape}"
        )
    order = np.argsort(ids, kind="stable")
    ids = ids[order].astype("<u8")
    if (twice := np.flatnonzero(ids[1:] == ids[:-1])).size:
        raise ValueError(f"id {ids[twice[0]]} is named twice; name each item once")
    features = features[order]
    if not np.isfinite(features).all():
        row, column = np.argwhere(~np.isfinite(features))[0]
        raise ValueError(f"feature {column} of item {ids[row]} is {features[row, column]}; must be finite")
    rows, columns = features.shape
    padded = np.zeros((rows, -(-columns // _GRANULE) * _GRANULE), "<f4")
    padded[:, :columns] = features
    content = ids.tobytes()
    content += bytes(-(_HEADER_BYTES + len(content)) % _ALIGNMENT) + padded.tobytes()
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    draft.write_bytes(_MAGIC + struct.pack("<3Q", columns, rows, hash64(content) if len(content) >= 17 else 0) + content)
    draft.replace(path)
