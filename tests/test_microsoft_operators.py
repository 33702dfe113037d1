"""What onnxruntime's optimizer and quantizers write: operators of com.microsoft one by one, and
networks as these tools write them, beside onnxruntime."""

import contextlib

import numpy as np
import onnx
import onnxruntime
import pytest
from foliot_tools import processor
from foliot_tools.model_check import Failed, foliot
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.capi.onnxruntime_pybind11_state import NotImplemented as NoKernel

from tools import models
from tools.models import quantized

DOMAIN = "com.microsoft"
ROWS = 2
# Of the largest value: sums are added up in another order.
ERROR_MAX = 1e-5


def real(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).normal(size=shape).astype(np.float32)


def codes(*shape, kind=np.uint8, seed=0):
    limits = np.iinfo(kind)
    return np.random.default_rng([seed, *shape]).integers(limits.min, limits.max + 1, shape).astype(kind)


def scale(value):
    return np.float32(value)


def zero(value, kind=np.uint8):
    return kind(value)


class Case:
    """One node. Operands that are None are left out; those in `constants`, by position, are
    initializers, and all others inputs whose first dimension is the batch, unless `fixed`."""

    def __init__(self, operator, *operands, constants=(), outputs=1, fixed=False, domain=DOMAIN, **attributes):
        self.operator, self.operands, self.constants = operator, operands, constants
        self.outputs, self.fixed, self.domain, self.attributes = outputs, fixed, domain, attributes

    def model(self):
        names = [f"x{i}" if operand is not None else "" for i, operand in enumerate(self.operands)]
        node = helper.make_node(self.operator, names, [f"y{i}" for i in range(self.outputs)], "the_node",
                                domain=self.domain, **self.attributes)
        inputs, initializers = [], []
        for i, (name, operand) in enumerate(zip(names, self.operands)):
            if operand is None:
                continue
            array = np.asarray(operand)
            if i in self.constants:
                initializers.append(numpy_helper.from_array(array, name))
                continue
            shape = list(array.shape) if self.fixed else ["N", *array.shape[1:]]
            inputs.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), shape))
        graph = helper.make_graph([node], "one", inputs, [], initializers)
        model = helper.make_model(graph, ir_version=8,
                                  opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)])
        for output, kind in zip(node.output, self.output_types(model)):
            model.graph.output.append(helper.make_tensor_value_info(output, kind, None))
        return model

    def output_types(self, model):
        """As onnxruntime infers them."""
        wanted = onnx.ModelProto()
        wanted.CopyFrom(model)
        names = [f"y{i}" for i in range(self.outputs)]
        for name in names:
            wanted.graph.output.append(helper.make_empty_tensor_value_info(name))
        session = onnxruntime.InferenceSession(wanted.SerializeToString(), unoptimised())
        types = {"tensor(float)": TensorProto.FLOAT, "tensor(uint8)": TensorProto.UINT8,
                 "tensor(int8)": TensorProto.INT8, "tensor(int32)": TensorProto.INT32}
        return [types[output.type] for output in session.get_outputs()]

    def inputs(self):
        return {f"x{i}": np.asarray(operand) for i, operand in enumerate(self.operands)
                if operand is not None and i not in self.constants}


def unoptimised():
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    return options


def reference(path):
    """onnxruntime with products that do not saturate. Without VNNI those of uint8 and int8 do, unless its optimizer
    makes the weights uint8."""
    if not processor.has(processor.supported()[-1], "UINT8"):
        options = unoptimised()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
        options.add_session_config_entry("session.x64quantprecision", "1")
        with contextlib.suppress(NoKernel):  # products of int8 and int8, which do not saturate
            return onnxruntime.InferenceSession(path, options)
    return onnxruntime.InferenceSession(path, unoptimised())


def compiled(path, *flags):
    """Compiled for one and two rows."""
    package = path.with_suffix(".foliot")
    result = foliot("compile", path, "--output", package, "--batch-sizes", "1,2", "--threads", 1, "--profile-runs", 1,
                    *flags)
    return package, result.stderr


def answers(package, folder, inputs, batch=None):
    flags = []
    for name, array in inputs.items():
        np.save(folder / f"{name}.npy", array)
        flags += ["--input", f"{name}={folder / name}.npy"]
    batch_flags = ["--batch", batch] if batch else []
    foliot("run", package, "--threads", 1, "--output", folder / "answers", *batch_flags, *flags)
    return {path.stem: np.load(path) for path in (folder / "answers").iterdir()}


def expect_close(actual, expected, error_max=ERROR_MAX, steps=0):
    assert actual.shape == expected.shape and actual.dtype == expected.dtype
    if actual.dtype.kind in "iu":
        assert np.max(np.abs(actual.astype(np.int64) - expected)) <= steps
    else:
        assert np.max(np.abs(actual - expected)) <= error_max * np.max(np.abs(expected))


N, S, T, HEADS, D = ROWS, 5, 7, 2, 8  # rows, queries, keys, heads, entries of all heads
PROJECTION = (real(N, S, D), real(D, 3 * D, seed=1), real(3 * D, seed=2))
FLAGS = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 0]], np.int32)
QUERY_KEY_VALUE = (real(N, S, D), real(N, T, D, seed=1), real(N, T, D, seed=2))
QUANTIZED = (codes(N, 6), scale(0.02), zero(120))
IMAGE = (codes(N, 4, 7, 9), scale(0.03), zero(100))
EMBEDDING = (np.array([[3, 1, 4, 1, 5], [9, 2, 6, 5, 3]], np.int32), np.array([[0, 0, 1, 1, 1], [0, 1, 1, 1, 1]], np.int32),
             real(12, D), real(9, D, seed=1), real(2, D, seed=2), real(D, seed=3), real(D, seed=4))

CASES = {
    "fused product": Case("FusedMatMul", real(N, 3, 4), real(N, 5, 4, seed=1), transB=1, alpha=0.5),
    "fused product of a weight": Case("FusedMatMul", real(N, 4, 3), real(4, 5), constants=(1,), transA=1),
    "fused convolution": Case("FusedConv", real(N, 3, 8, 8), real(4, 3, 3, 3), real(4), real(N, 4, 8, 8, seed=1),
                              constants=(1, 2), activation="Relu", pads=[1, 1, 1, 1]),
    "fused convolution, leaky": Case("FusedConv", real(N, 3, 8, 8), real(4, 3, 3, 3), constants=(1,),
                                     activation="LeakyRelu", activation_params=[0.3]),
    "fused convolution, clipped": Case("FusedConv", real(N, 3, 8, 8), real(4, 3, 3, 3), constants=(1,),
                                       activation="Clip", activation_params=[-0.5, 0.5]),
    "fused Gemm": Case("FusedGemm", real(N, 4), real(3, 4, seed=1), real(3), constants=(1, 2), transB=1, alpha=0.5,
                       beta=2.0, activation="LeakyRelu", activation_alpha=0.2),
    "Gelu": Case("Gelu", real(N, 9)),
    "BiasGelu": Case("BiasGelu", real(N, 9), real(9), constants=(1,)),
    "FastGelu": Case("FastGelu", real(N, 9)),
    "FastGelu with bias": Case("FastGelu", real(N, 9), real(9), constants=(1,)),
    "QuickGelu": Case("QuickGelu", real(N, 9)),
    "QuickGelu by 1": Case("QuickGelu", real(N, 9), alpha=1.0),
    "SkipLayerNormalization": Case("SkipLayerNormalization", real(N, 3, D), real(N, 3, D, seed=1), real(D), real(D, seed=1),
                                   real(D, seed=2), constants=(2, 3, 4), epsilon=1e-3),
    "SkipLayerNormalization without bias": Case("SkipLayerNormalization", real(N, 3, D), real(N, 3, D, seed=1), real(D),
                                                constants=(2,)),
    "SkipLayerNormalization and its sum": Case("SkipLayerNormalization", real(N, 3, D), real(N, 3, D, seed=1), real(D),
                                               real(D, seed=1), constants=(2, 3), outputs=4),
    "SkipSimplifiedLayerNormalization": Case("SkipSimplifiedLayerNormalization", real(N, 3, D), real(N, 3, D, seed=1),
                                             real(D), real(D, seed=2), constants=(2, 3), epsilon=1e-3),
    "SimplifiedLayerNormalization": Case("SimplifiedLayerNormalization", real(N, 3, D), real(D), constants=(1,),
                                         domain="", epsilon=1e-3),
    "EmbedLayerNormalization": Case("EmbedLayerNormalization", *EMBEDDING, FLAGS, constants=(2, 3, 4, 5, 6), outputs=2,
                                    epsilon=1e-3),
    "EmbedLayerNormalization without segments": Case("EmbedLayerNormalization", EMBEDDING[0], None, *EMBEDDING[2:4], None,
                                                     *EMBEDDING[5:], constants=(2, 3, 5, 6), outputs=2),
    "EmbedLayerNormalization with positions": Case("EmbedLayerNormalization", *EMBEDDING, None, EMBEDDING[0][:, ::-1] % 9,
                                                   constants=(2, 3, 4, 5, 6), outputs=2),
    "Attention": Case("Attention", *PROJECTION, constants=(1, 2), num_heads=HEADS),
    "Attention with a scale": Case("Attention", *PROJECTION, constants=(1, 2), num_heads=HEADS, scale=0.2),
    "Attention of other values": Case("Attention", real(N, S, D), real(D, 2 * D + 4), real(2 * D + 4), constants=(1, 2),
                                      num_heads=HEADS, qkv_hidden_sizes=[D, D, 4]),
    "Attention with flags": Case("Attention", *PROJECTION, FLAGS, constants=(1, 2), num_heads=HEADS),
    "Attention with a filter": Case("Attention", *PROJECTION, FLAGS, constants=(1, 2), num_heads=HEADS,
                                    mask_filter_value=-2.0),
    "Attention with lengths": Case("Attention", *PROJECTION, np.array([3, 5], np.int32), constants=(1, 2), num_heads=HEADS),
    "Attention with ends and starts": Case("Attention", *PROJECTION, np.array([3, 5, 1, 2], np.int32), constants=(1, 2),
                                           num_heads=HEADS, fixed=True),
    "Attention with flags of queries": Case("Attention", *PROJECTION, codes(N, S, S).astype(np.int32) % 2,
                                            constants=(1, 2), num_heads=HEADS),
    "causal Attention": Case("Attention", *PROJECTION, FLAGS, constants=(1, 2), num_heads=HEADS, unidirectional=1),
    "Attention with a bias of scores": Case("Attention", *PROJECTION, None, None, real(N, HEADS, S, S, seed=3),
                                            constants=(1, 2), num_heads=HEADS),
    "Attention with a past": Case("Attention", *PROJECTION, None, real(2, N, HEADS, 3, D // HEADS), constants=(1, 2),
                                  num_heads=HEADS, outputs=2, fixed=True, unidirectional=1),
    "MultiHeadAttention": Case("MultiHeadAttention", *QUERY_KEY_VALUE, num_heads=HEADS),
    "MultiHeadAttention with biases": Case("MultiHeadAttention", *QUERY_KEY_VALUE, real(3 * D), None,
                                           real(N, HEADS, S, T, seed=4), constants=(3,), num_heads=HEADS, scale=0.3),
    "MultiHeadAttention with flags": Case("MultiHeadAttention", *QUERY_KEY_VALUE, None, codes(N, T).astype(np.int32) % 2,
                                          num_heads=HEADS),
    "MultiHeadAttention of heads": Case("MultiHeadAttention", real(N, S, D), real(N, HEADS, T, D // HEADS),
                                        real(N, HEADS, T, D // HEADS, seed=1), num_heads=HEADS),
    "MultiHeadAttention with a past": Case("MultiHeadAttention", real(N, S, D), real(N, S, D, seed=1),
                                           real(N, S, D, seed=2), None, None, None, real(N, HEADS, 3, D // HEADS),
                                           real(N, HEADS, 3, D // HEADS, seed=1), num_heads=HEADS, outputs=3),
    "causal MultiHeadAttention": Case("MultiHeadAttention", real(N, S, D), real(N, S, D, seed=1), real(N, S, D, seed=2),
                                      num_heads=HEADS, unidirectional=1),
    "QAttention": Case("QAttention", codes(N, S, D), codes(D, 3 * D, kind=np.int8), real(3 * D), scale(0.01), scale(0.02),
                       FLAGS, zero(128), zero(0, np.int8), constants=(1, 2, 3, 4, 6, 7), num_heads=HEADS),
    "QEmbedLayerNormalization": Case(
        "QEmbedLayerNormalization", *EMBEDDING[:2], codes(12, D), codes(9, D, seed=1), codes(2, D, seed=2),
        codes(D, seed=3), codes(D, seed=4), FLAGS, *(scale(0.01 * i) for i in range(1, 6)),
        *(zero(100 + i) for i in range(5)), constants=(2, 3, 4, 5, 6, *range(8, 18)), outputs=2, epsilon=1e-3),
    "QLinearAdd": Case("QLinearAdd", *QUANTIZED, codes(N, 6, seed=1), scale(0.03), zero(90), scale(0.05), zero(110),
                       constants=(1, 2, 4, 5, 6, 7)),
    "QLinearAdd of int8": Case("QLinearAdd", codes(N, 6, kind=np.int8), scale(0.02), zero(3, np.int8),
                               codes(N, 6, kind=np.int8, seed=1), scale(0.03), zero(-5, np.int8), scale(0.05),
                               zero(1, np.int8), constants=(1, 2, 4, 5, 6, 7)),
    "QLinearMul by a constant": Case("QLinearMul", *QUANTIZED, codes(6, seed=1), scale(0.03), zero(90), scale(0.05),
                                     zero(110), constants=(1, 2, 3, 4, 5, 6, 7)),
    "QLinearSigmoid": Case("QLinearSigmoid", *QUANTIZED, scale(1 / 256), zero(0), constants=(1, 2, 3, 4)),
    "QLinearLeakyRelu": Case("QLinearLeakyRelu", *QUANTIZED, scale(0.02), zero(60), constants=(1, 2, 3, 4), alpha=0.3),
    "QLinearAveragePool": Case("QLinearAveragePool", *IMAGE, scale(0.02), zero(90), constants=(1, 2, 3, 4),
                               kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2]),
    "QLinearGlobalAveragePool": Case("QLinearGlobalAveragePool", *IMAGE, scale(0.01), zero(90), constants=(1, 2, 3, 4)),
    "QLinearSoftmax": Case("QLinearSoftmax", *QUANTIZED, scale(1 / 256), zero(0), constants=(1, 2, 3, 4), axis=-1, opset=13),
    "QLinearConcat": Case("QLinearConcat", scale(0.04), zero(100), *QUANTIZED, codes(N, 3), scale(0.03), zero(90),
                          constants=(0, 1, 3, 4, 6, 7), axis=1),
    "QLinearWhere": Case("QLinearWhere", codes(N, 6, seed=5) > 128, *QUANTIZED, codes(N, 6, seed=1), scale(0.03), zero(90),
                         scale(0.04), zero(100), constants=(2, 3, 5, 6, 7, 8)),
    "QGemm": Case("QGemm", *QUANTIZED, codes(4, 6, kind=np.int8), np.full(4, 0.01, np.float32), np.zeros(4, np.int8),
                  np.arange(4, dtype=np.int32) * 100, scale(0.1), zero(128), constants=(1, 2, 3, 4, 5, 6, 7, 8), transB=1),
    "QGemm to float32": Case("QGemm", *QUANTIZED, codes(6, 4, kind=np.int8), scale(0.01), zero(0, np.int8), None,
                             constants=(1, 2, 3, 4, 5), alpha=0.5),
    "DynamicQuantizeMatMul": Case("DynamicQuantizeMatMul", real(1, 3, 6), codes(6, 4, kind=np.int8), scale(0.01),
                                  zero(0, np.int8), real(4), constants=(1, 2, 3, 4), fixed=True),
    "MatMulIntegerToFloat": Case("MatMulIntegerToFloat", codes(N, 6), codes(6, 4, kind=np.int8), scale(0.02),
                                 np.array([0.01, 0.02, 0.03, 0.04], np.float32), zero(100), np.zeros(4, np.int8), real(4),
                                 constants=(1, 2, 3, 4, 5, 6)),
    "MatMulNBits": Case("MatMulNBits", real(N, 3, 40), codes(6, 3, 8), real(6, 3), constants=(1, 2), K=40, N=6, bits=4,
                        block_size=16),
    "MatMulNBits with zero points": Case("MatMulNBits", real(N, 3, 40), codes(6, 3, 8), real(18), codes(12, seed=1),
                                         constants=(1, 2, 3), K=40, N=6, bits=4, block_size=16),
    "MatMulNBits with real zero points and a bias": Case(
        "MatMulNBits", real(N, 40), codes(6, 3, 8), real(6, 3), real(6, 3, seed=1), None, real(6), constants=(1, 2, 3, 5),
        K=40, N=6, bits=4, block_size=16),
    "MatMulNBits of 8 bits": Case("MatMulNBits", real(N, 3, 64), codes(6, 2, 32), real(6, 2), codes(6, 2, seed=1),
                                  constants=(1, 2, 3), K=64, N=6, bits=8, block_size=32),
    "MatMulBnb4, FP4": Case("MatMulBnb4", real(N, 3, 40), codes(120), real(15), constants=(1, 2), K=40, N=6,
                            block_size=16, quant_type=0),
    "MatMulBnb4, NF4": Case("MatMulBnb4", real(N, 3, 40), codes(120), real(15), constants=(1, 2), K=40, N=6,
                            block_size=16, quant_type=1),
    "GroupQueryAttention": Case("GroupQueryAttention", real(N, S, 4 * D), real(N, S, 2 * D, seed=1), real(N, S, 2 * D, seed=2), None, None,
                                np.array([4, 2], np.int32), np.array(S, np.int32), constants=(6,), num_heads=2 * HEADS,
                                kv_num_heads=HEADS, outputs=3),
    "GroupQueryAttention of one operand, turned": Case(
        "GroupQueryAttention", real(N, S, 16 * D), None, None, None, None, np.array([4, 4], np.int32), np.array(S, np.int32),
        real(9, 8), real(9, 8, seed=1), constants=(6, 7, 8), num_heads=2 * HEADS, kv_num_heads=HEADS, outputs=3, do_rotary=1,
        scale=0.3),
    "GroupQueryAttention with a past": Case(
        "GroupQueryAttention", real(N, 1, 8 * D), real(N, 1, 4 * D, seed=1), real(N, 1, 4 * D, seed=2),
        real(N, HEADS, 3, 2 * D, seed=3), real(N, HEADS, 3, 2 * D, seed=4), np.array([3, 3], np.int32), np.array(4, np.int32),
        real(9, 8), real(9, 8, seed=1),
        constants=(6, 7, 8), num_heads=2 * HEADS, kv_num_heads=HEADS, outputs=3, do_rotary=1, rotary_interleaved=1),
    "RotaryEmbedding": Case("RotaryEmbedding", real(N, S, D), np.array([[0, 3, 1, 7, 2], [5, 5, 0, 8, 1]]), real(9, 2),
                            real(9, 2, seed=1), constants=(2, 3)),
    "RotaryEmbedding, interleaved": Case("RotaryEmbedding", real(N, HEADS, S, D), np.array([[0, 3, 1, 7, 2], [5, 5, 0, 8, 1]]),
                                         real(9, D // 2), real(9, D // 2, seed=1), constants=(2, 3), interleaved=1),
    "RotaryEmbedding from a position on, in part": Case(
        "RotaryEmbedding", real(N, S, 2 * D), np.array([3]), real(9, 2), real(9, 2, seed=1), constants=(1, 2, 3), num_heads=HEADS,
        rotary_embedding_dim=4),
}  # fmt: skip

# Rounded to codes twice, where onnxruntime looks values up or sums codes: a tie falls on either side.
STEPS = {"QLinearLeakyRelu", "QLinearSigmoid", "QLinearSoftmax", "QLinearAveragePool", "QLinearGlobalAveragePool",
         "QGemm", "QLinearAdd", "QLinearMul", "QLinearConcat", "QLinearWhere"}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_operator(name, tmp_path):
    case = CASES[name]
    model = case.model()
    # The statistics of a norm are for training.
    kept = [output for output in model.graph.output if output.name in ("y0", "y3") or "Skip" not in case.operator]
    del model.graph.output[:]
    model.graph.output.extend(kept)
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    package, complaints = compiled(path)
    assert case.fixed or "without batching" not in complaints
    session = reference(path)
    expected = dict(zip([output.name for output in session.get_outputs()], session.run(None, case.inputs())))
    actual = answers(package, tmp_path, case.inputs())
    assert set(actual) == set(expected)
    for output, values in expected.items():
        expect_close(actual[output], values, steps=case.operator in STEPS)


def test_a_past_that_is_not_full_is_refused(tmp_path):
    """As of a buffer of a fixed size: then the new key would belong somewhere in it."""
    case = CASES["GroupQueryAttention with a past"]
    path = tmp_path / "model.onnx"
    onnx.save(case.model(), path)
    package, _ = compiled(path)
    with pytest.raises(Failed, match="refuses 1 of 2 rows, .* zeros: 1\\."):
        answers(package, tmp_path, {**case.inputs(), "x5": np.array([3, 2], np.int32)})


# Of weights, by the number of bits: all that fit the type.
SMALL_TYPES = {TensorProto.INT4: 4, TensorProto.UINT4: 4, TensorProto.INT2: 2, TensorProto.UINT2: 2,
               TensorProto.FLOAT8E4M3FN: 8, TensorProto.FLOAT8E4M3FNUZ: 8, TensorProto.FLOAT8E5M2: 8,
               TensorProto.FLOAT8E5M2FNUZ: 8, TensorProto.FLOAT4E2M1: 4}  # fmt: skip


def packed(kind, rows, columns, seed=0):
    """A tensor of every code in turn but NaN and infinities."""
    bits = SMALL_TYPES[kind]
    finite = []
    for code in range(2**bits):
        value = numpy_helper.to_array(helper.make_tensor("one", kind, [1], bytes([code]), raw=True))
        if np.isfinite(value.astype(np.float32)).all():
            finite.append(code)
    chosen = np.resize(np.random.default_rng(seed).permutation(finite), rows * columns).reshape(-1, 8 // bits)
    data = (chosen << np.arange(0, 8, bits)).sum(axis=1).astype(np.uint8)
    return helper.make_tensor("w", kind, [rows, columns], data.tobytes(), raw=True)


@pytest.mark.parametrize("block", [0, 4])
@pytest.mark.parametrize("kind", SMALL_TYPES, ids=TensorProto.DataType.Name)
def test_weights_of_small_types(kind, block, tmp_path):
    weights = packed(kind, 32, 8)
    scales = real(8, 8, seed=1) if block else np.abs(real(8, seed=1)) + np.float32(0.1)
    nodes = [helper.make_node("DequantizeLinear", ["w", "s"], ["v"], axis=0 if block else 1, block_size=block),
             helper.make_node("MatMul", ["x", "v"], ["y"])]  # fmt: skip
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 32])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 8])],
                              [weights, numpy_helper.from_array(scales, "s")])  # fmt: skip
    path = tmp_path / "model.onnx"
    onnx.save(helper.make_model(graph, ir_version=13, opset_imports=[helper.make_opsetid("", 25)]), path)
    x = real(ROWS, 32, seed=2)
    real_weights = numpy_helper.to_array(weights).astype(np.float64)
    expected = x.astype(np.float64) @ (real_weights * (np.repeat(scales, 4, axis=0) if block else scales))
    package, complaints = compiled(path)
    assert "without batching" not in complaints
    expect_close(answers(package, tmp_path, {"x": x})["y"], expected.astype(np.float32))


def test_activations_of_small_types_are_refused(tmp_path):
    """Their zero point says which type they have; read as int8 they would have its range."""
    zero_point = helper.make_tensor("z", TensorProto.INT4, [], bytes([0]), raw=True)
    nodes = [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], "the_node"),
             helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"])]  # fmt: skip
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 4])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 4])],
                              [zero_point, numpy_helper.from_array(np.float32(0.5), "s")])  # fmt: skip
    path = tmp_path / "model.onnx"
    onnx.save(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)]), path)
    with pytest.raises(Failed) as refusal:
        compiled(path)
    assert "'the_node' (QuantizeLinear)" in str(refusal.value) and "'z'" in str(refusal.value)


REFUSED = {
    "do_rotary": Case("Attention", *PROJECTION, constants=(1, 2), num_heads=HEADS, do_rotary=1),
    "transBatchA": Case("FusedMatMul", real(N, 3, 4), real(3, 4, 5, seed=1), transBatchA=1),
    "channels_last": Case("QLinearGlobalAveragePool", codes(N, 7, 9, 4), *IMAGE[1:], scale(0.01), zero(90),
                          constants=(1, 2, 3, 4), channels_last=1),
    "num_heads": Case("Attention", *PROJECTION, constants=(1, 2), num_heads=0),
    "activation": Case("FusedConv", real(N, 3, 8, 8), real(4, 3, 3, 3), constants=(1,), activation="Softplus"),
    "axis": Case("SimplifiedLayerNormalization", real(N, 3, D), real(3, D), constants=(1,), axis=1),
    "made_up": Case("Gelu", real(N, 9), made_up=1),
}  # fmt: skip


@pytest.mark.parametrize("attribute", REFUSED)
def test_what_is_not_supported_is_refused_by_name(attribute, tmp_path, monkeypatch):
    monkeypatch.setattr(Case, "output_types", lambda *_: [TensorProto.FLOAT])
    path = tmp_path / "model.onnx"
    onnx.save(REFUSED[attribute].model(), path)
    with pytest.raises(Failed) as refusal:
        compiled(path)
    for part in (str(path), "'the_node'", f"'{attribute}'"):
        assert part in str(refusal.value)


NETWORKS = {
    "bert_base": {"layers": 2, "hidden": 64, "heads": 4, "vocabulary": 500, "sequence": [16]},
    "mobilenet_v2": {"resolution": 32},
    "resnet50_v1b": {"resolution": 32, "width": 0.125},
}


def operators(path):
    return {node.op_type for node in onnx.load(path).graph.node}


def built(name, folder):
    network = models.build(name, **NETWORKS[name])
    path = models.write(network, folder / "model.onnx")
    return network, path


def examples(network):
    dimensions = {name: values[0] for name, values in network.buckets.items()}
    return network.examples(ROWS, np.random.default_rng(3), **dimensions)


def compare(network, path, tmp_path, error_max=1e-4, batches=(1, ROWS)):
    package, complaints = compiled(path)
    assert ("without batching" in complaints) == (ROWS not in batches)
    inputs = {name: values[: batches[-1]] for name, values in examples(network).items()}
    session = reference(path)
    expected = dict(zip([output.name for output in session.get_outputs()], session.run(None, inputs)))
    for batch in batches:
        actual = answers(package, tmp_path, inputs, batch)
        for output, values in expected.items():
            expect_close(actual[output], values, error_max)


@pytest.mark.parametrize("name", NETWORKS)
def test_network_as_a_session_saves_it(name, tmp_path):
    """At the level of optimisation that is of no processor."""
    network, path = built(name, tmp_path)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    optimised = tmp_path / "optimised.onnx"
    options.optimized_model_filepath = str(optimised)
    onnxruntime.InferenceSession(path, options)
    assert operators(optimised) & {"FusedConv", "SkipLayerNormalization", "BiasGelu", "FusedMatMul", "FusedGemm"}
    compare(network, optimised, tmp_path)


def test_layout_of_one_processor_is_refused(tmp_path):
    _, path = built("resnet50_v1b", tmp_path)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    optimised = tmp_path / "optimised.onnx"
    options.optimized_model_filepath = str(optimised)
    onnxruntime.InferenceSession(path, options)
    with pytest.raises(Failed) as refusal:
        compiled(optimised)
    assert "com.microsoft.nchwc" in str(refusal.value) or "'extended'" in str(refusal.value)


def transformer_optimised(path, model_type, **settings):
    from onnxruntime.transformers import optimizer

    optimised = path.with_name("optimised.onnx")
    optimizer.optimize_model(str(path), model_type, opt_level=0, **settings).save_model_to_file(str(optimised))
    return optimised


def test_network_of_the_transformer_optimizer(tmp_path):
    network, path = built("bert_base", tmp_path)
    settings = NETWORKS["bert_base"]
    optimised = transformer_optimised(path, "bert", num_heads=settings["heads"], hidden_size=settings["hidden"])
    assert operators(optimised) & {"Attention", "SkipLayerNormalization", "BiasGelu"}
    compare(network, optimised, tmp_path)


@pytest.mark.parametrize("activations", quantized.TYPES)
@pytest.mark.parametrize("name", ["mobilenet_v2", "resnet50_v1b"])
def test_network_of_the_static_quantizer(name, activations, tmp_path):
    """Of operators on codes, not between pairs of quantisations (test_precisions.py)."""
    network, path = built(name, tmp_path)
    quantised = quantized.quantize(network, tmp_path / "quantised.onnx", activations, form="QOperator")
    assert operators(quantised) & {"QLinearConv", "QLinearAdd", "QLinearGlobalAveragePool"}
    compare(network, quantised, tmp_path, error_max=0.1)


def test_network_of_the_dynamic_quantizer(tmp_path):
    """Its scales are those of all rows together, so that it cannot be batched."""
    from onnxruntime.quantization import quantize_dynamic

    network, path = built("bert_base", tmp_path)
    settings = NETWORKS["bert_base"]
    optimised = transformer_optimised(path, "bert", num_heads=settings["heads"], hidden_size=settings["hidden"])
    quantised = tmp_path / "quantised.onnx"
    # What the optimizer wrote has types that are not inferred.
    quantize_dynamic(optimised, quantised, extra_options={"DefaultTensorType": TensorProto.FLOAT})
    assert operators(quantised) & {"QAttention", "MatMulInteger", "DynamicQuantizeLinear"}
    compare(network, quantised, tmp_path, error_max=0.02, batches=(1,))
