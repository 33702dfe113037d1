"""The step tokenise: a pipeline that takes text and asks a model of ids for its score (docs/STEPS.md)."""

import numpy as np
import onnx
import pytest
import tritonclient.http as http_client
from onnx import TensorProto, helper, numpy_helper
from tritonclient.utils import InferenceServerException

from test_exec_heap import allocations

LENGTH = 12
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "good", "bad", "not", "##ly", ",", "good2"]
WEIGHTS = np.array([100, 0.25, 0, 0, 1, -1, -0.5, 0.125, 0, 7], np.float32)

PIPELINE = f"""
[[stage]]
name = "tokenise"
step = "tokenise"
vocabulary = "vocab.txt"
length = {LENGTH}
bytes = [32, 128]
inputs = {{ text = "review" }}

[[stage]]
name = "score"
model = "scorer"
inputs = {{ ids = "tokenise.ids", mask = "tokenise.mask" }}

[[output]]
name = "score"
from = "score.score"

[[output]]
name = "types"
from = "tokenise.types"
"""


def write_scorer(folder):
    """The sum of the words' weights, padding left out."""
    ids, mask = (helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", LENGTH]) for name in ("ids", "mask"))
    score = helper.make_tensor_value_info("score", TensorProto.FLOAT, ["batch"])
    nodes = [helper.make_node("Gather", ["weights", "ids"], ["each"]),
             helper.make_node("Cast", ["mask"], ["used"], to=TensorProto.FLOAT),
             helper.make_node("Mul", ["each", "used"], ["counted"]),
             helper.make_node("ReduceSum", ["counted", "axis"], ["score"], keepdims=0)]
    constants = [numpy_helper.from_array(WEIGHTS, "weights"), numpy_helper.from_array(np.array([1]), "axis")]
    graph = helper.make_graph(nodes, "scorer", [ids, mask], [score], constants)
    (folder / "scorer" / "1").mkdir(parents=True)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
              folder / "scorer" / "1" / "model.onnx")


@pytest.fixture
def reviews(serve, tmp_path):
    folder = tmp_path / "models"
    write_scorer(folder)
    (folder / "reviews").mkdir()
    (folder / "reviews" / "pipeline.toml").write_text(PIPELINE)
    (folder / "reviews" / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n")
    return serve(folder, page_size="256KiB", page_cache="16MiB")


def ask(server, *texts, outputs=("score",)):
    rows = np.zeros((len(texts), max(len(text.encode()) for text in texts)), np.uint8)
    for row, text in zip(rows, texts):
        row[: len(text.encode())] = np.frombuffer(text.encode(), np.uint8)
    tensor = http_client.InferInput("review", list(rows.shape), "UINT8")
    tensor.set_data_from_numpy(rows)
    with http_client.InferenceServerClient(server.http) as client:
        answer = client.infer("reviews", [tensor])
        return [answer.as_numpy(name) for name in outputs]


def test_text_is_scored_by_its_words(reviews):
    scores, types = ask(reviews, "Good,  not bad!", "GOODLY", "bäd " * 15, outputs=("score", "types"))
    unknown, cut = 0.25, (LENGTH - 2) * -1.0
    np.testing.assert_allclose(scores, [1 - 0.5 - 1 + unknown, 1.125, cut])
    assert types.shape == (3, LENGTH) and not types.any()


def test_long_text_is_refused_by_the_call(reviews):
    with pytest.raises(InferenceServerException, match="128"):
        ask(reviews, "good " * 40)


def test_reading_text_allocates_nothing(reviews):
    ask(reviews, "good, not bad " * 5, "中文 goodly")
    assert allocations(reviews) == 0
