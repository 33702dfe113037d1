"""Products with weights of few bits, as weight-only quantizers write them, beside onnxruntime and float64: random shapes
under a fresh seed (FOLIOT_TEST_SEED runs one again), values that are not finite, both forms, and the memory that a model
takes."""


import numpy as np
import onnx
import onnxruntime
import pytest
from foliot_tools.seeds import fresh_seed
from foliot_tools.waiting import eventually
from onnx import TensorProto, helper, numpy_helper
from test_microsoft_operators import answers, compiled, unoptimised

ROUNDS = 6
# Of the sum of the magnitudes of all products.
ERROR_MAX = 2e-6
# A value that is rounded to int8 is at most half a step away.
HALF_STEP = 0.501 / 127


@pytest.fixture
def rng():
    return np.random.default_rng(fresh_seed())


class Product:
    """Weights [N, K] of few bits, as codes, scales [N, blocks] and zero points or None."""

    def __init__(self, rng, rows, depth, block, bits, zero_points):
        self.depth, self.rows, self.block, self.bits = depth, rows, block, bits
        blocks = -(-depth // block)
        self.codes = rng.integers(0, 1 << bits, (rows, blocks * block)).astype(np.uint8)
        self.scales = (rng.normal(size=(rows, blocks)) / 100).astype(np.float32)
        self.zero_points = rng.integers(0, 1 << bits, (rows, blocks)).astype(np.uint8) if zero_points else None

    def weights(self):
        """In float64."""
        middle = 1 << (self.bits - 1)
        zeros = np.full(self.scales.shape, middle) if self.zero_points is None else self.zero_points.astype(int)
        spread = lambda by_block: np.repeat(by_block, self.block, axis=1)  # noqa: E731
        return ((self.codes - spread(zeros)) * spread(self.scales.astype(np.float64)))[:, : self.depth]

    def packed(self, codes):
        """Each row from the lowest bit of a byte on."""
        per_byte = 8 // self.bits
        padded = np.pad(codes, ((0, 0), (0, -codes.shape[1] % per_byte)))
        return (padded.reshape(len(codes), -1, per_byte) << np.arange(0, 8, self.bits)).sum(axis=2).astype(np.uint8)

    def model(self, accuracy_level=0, rank=2):
        blocks = self.scales.shape[1]
        constants = {"w": self.packed(self.codes).reshape(self.rows, blocks, -1), "s": self.scales.reshape(-1)}
        if self.zero_points is not None:
            constants["z"] = self.packed(self.zero_points).reshape(-1)
        node = helper.make_node("MatMulNBits", ["x", *constants], ["y"], domain="com.microsoft", N=self.rows,
                                K=self.depth, bits=self.bits, block_size=self.block, accuracy_level=accuracy_level)
        return self.model_of([node], [numpy_helper.from_array(array, name) for name, array in constants.items()], rank)

    def standard_model(self, turned):
        """ONNX's own operators, with signed codes; turned: of weights [N, K], transposed."""
        kind, low = (TensorProto.INT4, 8) if self.bits == 4 else (TensorProto.INT8, 128)
        oriented = lambda array: array if turned else array.T  # noqa: E731

        def tensor(name, codes):
            values = oriented(codes).astype(int).flatten() - low
            return helper.make_tensor(name, kind, oriented(codes).shape, values)

        constants = [tensor("w", self.codes[:, : self.depth]), numpy_helper.from_array(oriented(self.scales).copy(), "s")]
        names = ["w", "s"]
        if self.zero_points is not None:
            constants.append(tensor("z", self.zero_points))
            names.append("z")
        nodes = [helper.make_node("DequantizeLinear", names, ["v"], axis=1 if turned else 0, block_size=self.block)]
        if turned:
            nodes.append(helper.make_node("Transpose", ["v"], ["t"], perm=[1, 0]))
        nodes.append(helper.make_node("MatMul", ["x", "t" if turned else "v"], ["y"]))
        return self.model_of(nodes, constants, 2)

    def model_of(self, nodes, constants, rank):
        shape = ["N", *[3] * (rank - 2), self.depth]
        graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, [*shape[:-1], self.rows])],
                                  constants)  # fmt: skip
        opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, ir_version=10, opset_imports=opsets)

    def bound(self, x, rounded):
        """The largest error of each result."""
        weights = np.abs(self.weights())
        error = ERROR_MAX * (np.abs(x) @ weights.T)
        if rounded:
            padded = np.pad(np.abs(x), [(0, 0)] * (x.ndim - 1) + [(0, -self.depth % self.block)])
            largest = padded.reshape(*x.shape[:-1], -1, self.block).max(axis=-1)
            error += HALF_STEP * (np.repeat(largest, self.block, axis=-1)[..., : self.depth] @ weights.T)
        return error + 1e-6


def served(model, folder, x):
    path = folder / "model.onnx"
    onnx.save(model, path)
    package, complaints = compiled(path)
    assert "without batching" not in complaints
    return answers(package, folder, {"x": x}, batch=len(x))["y"]


def random_product(rng, zero_points):
    return Product(rng, int(rng.integers(1, 90)), int(rng.integers(1, 300)), int(2 ** rng.integers(4, 9)),
                   int(rng.choice([4, 8])), zero_points)


@pytest.mark.parametrize("accuracy_level", [0, 4])
@pytest.mark.parametrize("zero_points", [False, True])
def test_random_products(rng, accuracy_level, zero_points, tmp_path):
    for number in range(ROUNDS):
        folder = tmp_path / str(number)
        folder.mkdir()
        product = random_product(rng, zero_points)
        model = product.model(accuracy_level, rank=int(rng.integers(2, 4)))
        shape = [2, *[d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim[1:]]]
        x = rng.normal(size=shape).astype(np.float32)
        actual = served(model, folder, x)
        exact, bound = x.astype(np.float64) @ product.weights().T, product.bound(x, accuracy_level == 4)
        assert np.all(np.abs(actual - exact) <= bound)
        (theirs,) = onnxruntime.InferenceSession(model.SerializeToString(), unoptimised()).run(None, {"x": x})
        # onnxruntime may round the input as well, even where nothing asks for it.
        assert np.all(np.abs(actual - theirs) <= bound + product.bound(x, True))


def test_inputs_and_scales_of_float16(rng, tmp_path):
    product = Product(rng, 50, 200, 32, 4, True)
    product.scales = product.scales.astype(np.float16)
    model = product.model()
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.elem_type = TensorProto.FLOAT16
    x = rng.normal(size=(2, 200)).astype(np.float16)
    actual = served(model, tmp_path, x)
    exact = x.astype(np.float64) @ product.weights().T
    assert actual.dtype == np.float16
    assert np.all(np.abs(actual - exact) <= np.abs(exact) * 2**-11 + product.bound(x.astype(np.float64), False))


@pytest.mark.parametrize("turned", [False, True], ids=["as they are", "turned"])
@pytest.mark.parametrize("zero_points", [False, True])
def test_weights_that_are_dequantized_in_blocks(rng, zero_points, turned, tmp_path):
    for number in range(ROUNDS):
        folder = tmp_path / str(number)
        folder.mkdir()
        product = random_product(rng, zero_points)
        x = rng.normal(size=(2, product.depth)).astype(np.float32)
        actual = served(product.standard_model(turned), folder, x)
        assert np.all(np.abs(actual - x.astype(np.float64) @ product.weights().T) <= product.bound(x, False))


@pytest.mark.parametrize("form", ["MatMulNBits", "DequantizeLinear"])
@pytest.mark.parametrize("bits", [4, 8])
def test_a_model_takes_the_memory_of_its_bits(rng, serve, bits, form, tmp_path):
    product = Product(rng, 1024, 2048, 128, bits, True)
    path = tmp_path / "models/m/1/model.onnx"
    path.parent.mkdir(parents=True)
    onnx.save(product.model() if form == "MatMulNBits" else product.standard_model(turned=False), path)
    server = serve(tmp_path / "models", page_size="256KiB", page_cache="16MiB")
    weights = 1024 * 2048 * bits // 8 + 1024 * 16 * (4 + 1)
    pages = -(-weights // (256 * 1024))
    used = lambda: server.metrics()['foliot_page_cache_pages{device="0",state="used"}']  # noqa: E731
    eventually(lambda: used() == pages, otherwise=lambda: f"{used()} pages are used, not {pages}")


@pytest.mark.parametrize("accuracy_level", [0, 4])
@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite(rng, special, accuracy_level, tmp_path):
    product = Product(rng, 40, 100, 32, 4, True)
    x = rng.normal(size=(2, 100)).astype(np.float32)
    x[0, rng.integers(100)] = special
    actual = served(product.model(accuracy_level), tmp_path, x)
    assert np.isfinite(actual[1]).all()
    if accuracy_level == 4:
        assert np.isnan(actual[0]).all()
    else:
        with np.errstate(invalid="ignore"):
            expected = (x[0].astype(np.float64) * product.weights()).sum(axis=1)
        np.testing.assert_array_equal(np.nan_to_num(actual[0], nan=5, posinf=6, neginf=7),
                                      np.nan_to_num(expected, nan=5, posinf=6, neginf=7))
