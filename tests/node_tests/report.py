"""docs/OPERATORS.md: what became of the node tests, operator by operator."""

import collections
import re

import onnx

TYPES = {
    "float": "float32", "double": "float64", "float16": "float16", "bfloat16": "bfloat16", "bool": "bool",
    **{f"{sign}int{bits}": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}  # fmt: skip

INTRODUCTION = """\
# Operators

What Foliot's compiler makes of ONNX's operators, measured by the node tests of
`onnx.backend.test` ({version}): every case goes through the whole compiler and
runs on the CPU device. `make node-tests` runs them and writes this file.

**{summary}**

- *passes*: every output has the expected type and shape and is within the case's own tolerance.
- *refused*: on purpose, for a reason below; the compiler says it, and names the node.
- *fails*: everything else, a missing operator included.

A served model's shapes are known when it is compiled. Many cases hand in as
inputs what a model has as constants: the shape of a Reshape, the axes of a
reduction. An input that a shape depends on, without which the compiler refuses
the model, is therefore made an initializer, and so is an input without elements.
That is so in {bound} of the cases that pass; all others run on inputs alone.

## How types are computed

| type | how |
|---|---|
| float32 | as it is |
| float16, bfloat16 | in float32: operands are cast before each operator and results after it; operators that follow one another are not rounded in between |
| float64 | as it is where only elements are compared, combined or moved, and in matrix products; in float32 in convolutions, pooling, normalisation, softmax and resizing |
| integers, bool | as they are; convolutions of integers in float32, where that is exact; matrix products of integers in vectors, but without VNNI (`foliot compile --report` shows `foliot:matmul`) |
| QuantizeLinear, DequantizeLinear | kernels between float32 and int8 or uint8; convolutions, products, additions, elementwise functions, MaxPool and movements between the two compute in integers where the CPU has AVX512_VNNI, else in float32 |
| operators on codes (QLinearConv, QLinearMatMul, QLinearAdd, ...) | as the real operator between a dequantisation and a quantisation, so as those above; by the arithmetic that defines them, in float32, where scales are not known when compiling |
| weights of 2 or 4 bits, floats of 4 or 8 bits (INT4, UINT2, FLOAT8E4M3FN, ...; MatMulNBits, MatMulBnb4) | as int8, uint8 or float32; weights of 2 to 8 bits with a scale for each block, in MatMulNBits or dequantised before a product, stay packed ([how they are multiplied](decisions/0310-weights-of-few-bits-stay-packed.md)), those of other operators and of MatMulBnb4 become float32 when compiling; what else has such a type is refused |
| the input of MatMulNBits with `accuracy_level` 4 | each block of a row (`block_size` values) is rounded to multiples of its largest magnitude / 127, to the even one of two; products of integers are summed up exactly, and each block's sum is scaled in float32; a row with NaN or infinity becomes NaN, and a block below 3.8e-37 counts as zero. At other levels in float32 |

## What ONNX leaves open

Random models are compared with onnxruntime (`make fuzz-models`, and a minute of it in `make test`); where the two differ
by more than rounding, onnx's reference decides. What is open, and what is done here:

| case | here |
|---|---|
| NaN in Max, Min, ReduceMax, ReduceMin, Clip, Relu, Sign | the result is NaN |
| NaN or infinity in a row, or made of its numbers, before a convolution that is followed by Relu, Clip, HardSigmoid, Exp, Max or Min | the kernels would make a number of NaN: the row is refused (`model_error`); its neighbours are not, unless it is [not known](decisions/0253-rows-that-would-lose-nan-are-refused.md) whose NaN it is |
| an index out of range in Gather, GatherElements, GatherND, ScatterElements, ScatterND | the row that brought it is refused (`model_error`), where its row is known; else it reads as zeros, and an update is left out |
| QuantizeLinear of NaN | the least code |
| Cast to an integer of what is beyond its range, or NaN | the nearest integer of the type; 0 |
| an integer divided by zero, or its remainder | 0 |
| integers beyond their range | wrap around |
| Pow of an integer base and a fractional exponent | in float64, the fraction cut |
| Resize before opset 11, nearest | the next pixel where the image becomes smaller, else the one before |
| Resize with `align_corners` to a length that was cut to a whole number | corners are those of whole pixels, as in onnxruntime and torch; onnx's reference takes the length before it was cut |
| Resize to the same length with another scale than 1 | between pixels, as onnx's reference; onnxruntime copies |
| Resize of integers, linear | in float32, the fraction cut |
| Clip whose bounds cross | the upper one |
| equal elements in TopK | the first one comes first |
| NaN in TopK | the largest |
| NaN in MaxPool | NaN, or the greatest of the others, by the order in a window |
| NaN or infinity beside a position of Resize or GridSample | counts where its weight is not zero |
| the sign of a zero that Max, Min, a pool or a reduction chooses between 0 and -0 | either |
| Gelu of numbers far below zero, and Softplus of them where a convolution is followed by it | within 1e-6, not relative to the result |
| Pow of -infinity, and of -0 to -0.5 | by roots and reciprocals where the exponent is 0.5, 1.5, -0.5 or -1 |
| products with weights of int4 by DequantizeLinear with blocks | in float32; onnxruntime 1.31.1 rounds their inputs to int8 from the level of optimisation "extended" on, which changes results by up to 1 % of the largest |
| quantised convolutions and products between QuantizeLinear and DequantizeLinear | the zero point is added before rounding: a tie may give the next code |

## Control flow and functions

An If is the branch that its condition takes, and a Loop or Scan (from opset 9 on) is unrolled, where the condition or
the number of runs is known once dimensions are fixed: computed from constants and shapes. What depends on the values
of inputs is refused. Functions that the file defines (`ModelProto.functions`) are inlined; a function that calls itself
is refused by its name.

- At most 100,000 nodes come out of bodies and functions of a model, each run of a loop counting as one more, and they
  stand at most 64 deep in one another. The error names the node and the limit.
- A Loop or Scan that runs no times has no outputs that are joined from its runs: their shape is not known.

## What onnxruntime writes

Of the domain `com.microsoft`, as its sessions save models at the levels `basic` and `extended`, and as its optimizer
of transformers and its quantizers write them; tested beside onnxruntime (`tests/test_microsoft_operators.py`):
Attention, BiasGelu, DynamicQuantizeMatMul, EmbedLayerNormalization, FastGelu, FusedConv, FusedGemm, FusedMatMul, Gelu,
MatMulIntegerToFloat, MultiHeadAttention, QAttention, QEmbedLayerNormalization, QGemm, QLinearAdd, QLinearAveragePool,
QLinearConcat, QLinearGlobalAveragePool, QLinearLeakyRelu, QLinearMul, QLinearSigmoid, QLinearSoftmax, QLinearWhere,
QuickGelu, SkipLayerNormalization, SkipSimplifiedLayerNormalization, TransposeMatMul, and SimplifiedLayerNormalization,
which onnxruntime writes into ONNX's own domain. Each becomes the operators that it was fused from. Attributes beyond
these operators' own, and values that ask for more, are refused by node and attribute: `do_rotary`, `channels_last`,
`transBatchA` and `transBatchB`, a `past` that shares its buffer, outputs for training. The level `all` writes layouts of
one processor (`com.microsoft.nchwc`), which are refused.

## Exports of frameworks

`make fuzz-exports` writes random small networks in torch, scikit-learn, XGBoost, LightGBM and CatBoost with random options,
exports them by their own tools, and compares each row with onnxruntime's answer and the framework's, alone and in batches
beside rows with huge, tiny and constant numbers, NaN and infinities.

`make test-torch-exports` exports 31 networks of torchvision, timm and transformers, with random weights and
a dynamic batch dimension, by both of torch's exporters, lets `foliot init` write their settings, and compares answers
with onnxruntime's.

## Foliot's own

Of the domain `foliot`, opset 1: DecodeJpeg, with the attributes `width`, `height`, `fit`, `pad_value` and `pixels_max`
([STEPS](STEPS.md#decode)).

## Classic models

Of the domain `ai.onnx.ml`, opsets 1 to 5: ArrayFeatureExtractor, Binarizer, FeatureVectorizer, Imputer, LabelEncoder,
LinearClassifier, LinearRegressor, Normalizer, OneHotEncoder, Scaler, SVMClassifier, SVMRegressor, TreeEnsemble,
TreeEnsembleClassifier and TreeEnsembleRegressor, over numbers. ZipMap is left out where it makes an output. Where ONNX
leaves open what a score becomes, they follow onnxruntime. `make test-classic-models` trains 25 models of scikit-learn,
XGBoost and LightGBM, exports them with default options and compares all answers with onnxruntime's: all agree.

- Trees: at most 10,000,000 nodes in all and 4,096 levels each.
- Names of classes are served as their positions ([SERVING](SERVING.md#classifiers)). Other strings are refused.
- A value that a OneHotEncoder does not know becomes zeros, also where `zeros` asks for an error.
- A TreeEnsembleClassifier of two classes that both have weights gives the class of the higher score; onnxruntime gives
  1 or 0 by the sign of the second score, and with two `base_values` computes the second score from the first. onnxmltools
  1.16 writes such files of XGBoost models with `num_parallel_tree`; they are not what XGBoost computes. PROBIT is refused for two classes of which one has weights, and for a
  LinearClassifier with a single score.

## Refused on purpose

| reason | cases | operators |
|---|---|---|
"""


def summary(counts):
    counted = counts["pass"] + counts["fail"]
    share = 100 * counts["pass"] / max(counted, 1)
    return (
        f"{sum(counts.values())} cases: {counts['refused']} refused on purpose; of the other {counted}, "
        f"{counts['pass']} pass ({share:.1f} %) and {counts['fail']} fail"
    )


def refusals(outcomes):
    reasons = collections.defaultdict(list)
    for outcome in outcomes:
        if outcome.verdict == "refused":
            reasons[outcome.reason].append(outcome.operator)
    for reason, operators in sorted(reasons.items(), key=lambda item: -len(item[1])):
        yield f"| {reason} | {len(operators)} | {', '.join(sorted(set(operators)))} |"


def spans(opsets):
    return ", ".join(str(opset) for opset in sorted(opsets))


def explained(message):
    """What the compiler said, without the file that it said it of."""
    if message.startswith("wrong result"):
        return "a result is beyond the case's tolerance"
    return re.sub(r"^\S*/model\.onnx: ", "", message).replace("|", "\\|")


def table(outcomes):
    operators = collections.defaultdict(list)
    for outcome in outcomes:
        operators[(outcome.domain, outcome.operator)].append(outcome)
    for (domain, operator), cases in sorted(operators.items()):
        counts = collections.Counter(case.verdict for case in cases)
        types = {kind for case in cases if case.verdict == "pass" for kind in case.types if kind in TYPES}
        name = f"{domain}.{operator}" if domain else operator
        yield (
            f"| {name} | {spans({case.opset for case in cases})} | "
            f"{', '.join(TYPES[kind] for kind in TYPES if kind in types)} | "
            f"{counts['pass'] or ''} | {counts['refused'] or ''} | {counts['fail'] or ''} |"
        )


def failures(outcomes):
    for outcome in outcomes:
        if outcome.verdict == "fail":
            yield f"| {outcome.operator} | `{outcome.name}` | {explained(outcome.reason)} |"


def document(outcomes):
    counts = collections.Counter(outcome.verdict for outcome in outcomes)
    bound = sum(outcome.verdict == "pass" and bool(outcome.bound) for outcome in outcomes)
    lines = [INTRODUCTION.format(version=f"onnx {onnx.__version__}", summary=summary(counts), bound=bound) + "\n".join(
        refusals(outcomes))]
    lines += ["", "## Operator by operator", "", "Opsets and types are those of the cases, types those of the cases that pass.", "",
              "| operator | opset | types | passes | refused | fails |", "|---|---|---|---|---|---|", *table(outcomes)]
    lines += ["", "## What fails", "", "| operator | case | why |", "|---|---|---|", *failures(outcomes), ""]
    return "\n".join(lines)
