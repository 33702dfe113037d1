"""The nine zoo networks through the HTTP front end: the outputs shipped with
them, and onnxruntime's under random weights."""

import numpy as np
import onnx
import onnxruntime
import pytest
import tritonclient.http as triton

import zoo

RELATIVE_ERROR_MAX = 1e-3


def infer(client, model, name, array):
    request = triton.InferInput(name, list(array.shape), "FP32")
    request.set_data_from_numpy(array)
    output = client.get_model_metadata(model)["outputs"][0]["name"]
    return client.infer(model, [request]).as_numpy(output)


def blotches(random):
    """An image of large random squares: white noise averages out in deep networks."""
    return np.kron(random.normal(size=(1, 3, 7, 7)), np.ones((1, 1, 32, 32))).astype(np.float32)


def assert_close(actual, expected):
    """Within RELATIVE_ERROR_MAX of each value; of values below a hundredth of
    the largest one, relative to that hundredth: Winograd's algorithm rounds what
    nearly cancels to some millionths of the largest."""
    assert actual.shape == expected.shape
    scale = np.maximum(np.abs(expected), np.abs(expected).max() * 1e-2)
    assert np.max(np.abs(actual - expected) / scale) <= RELATIVE_ERROR_MAX


@pytest.mark.parametrize("network", zoo.NETWORKS)
def test_network(network, tmp_path, serve):
    shipped = zoo.light_model(network)
    name, dummy = zoo.dummy_input(shipped)
    randomised = zoo.with_random_weights(zoo.light_model(network), seed=3)
    repository = tmp_path / "models"
    for model_name, model in (("shipped", shipped), ("random", randomised)):
        path = repository / model_name / "1/model.onnx"
        path.parent.mkdir(parents=True)
        onnx.save(model, path)
        (repository / model_name / "model.toml").write_text("batch_sizes = [1]\n")

    weights_mib = (repository / "random/1/model.onnx").stat().st_size >> 20
    server = serve(repository, page_cache=f"{3 * weights_mib + 96}MiB", weights_tier="disk")
    with triton.InferenceServerClient(server.http, network_timeout=120) as client:
        assert_close(infer(client, "shipped", name, dummy), zoo.shipped_output(network))

        session = onnxruntime.InferenceSession(repository / "random/1/model.onnx")
        random = np.random.default_rng(0)
        answers = []
        for _ in range(2):
            pixels = blotches(random)
            (expected,) = session.run(None, {name: pixels})
            answers.append(expected)
            assert_close(infer(client, "random", name, pixels), expected)
        # An output that hardly depends on the input would prove nothing.
        assert np.max(np.abs(answers[0] - answers[1]) / np.abs(answers[0]).max()) > 10 * RELATIVE_ERROR_MAX
