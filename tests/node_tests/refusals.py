"""What Foliot refuses on purpose, and how the refusal is told from a failure: a
program has static shapes and a fixed order of operators on tensors."""

import re

import onnx

NOT_A_TENSOR = "sequences, optionals, maps and strings are no tensors"
CONTROL_FLOW = "If, Loop and Scan run what data decides"
DATA_DEPENDENT = "the shape of the result depends on the data"
RANDOM = "the result is random"
TRAINING = "training"
ELEMENT_TYPE = "element types that the Open Inference Protocol cannot carry"
OTHER_DOMAIN = "operators outside ONNX's own domain"

OPERATORS = {
    **dict.fromkeys(["If", "Loop", "Scan"], CONTROL_FLOW),
    **dict.fromkeys(["Compress", "NonMaxSuppression", "NonZero", "Unique"], DATA_DEPENDENT),
    **dict.fromkeys(["Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform",
                     "RandomUniformLike"], RANDOM),
    **dict.fromkeys(["Adagrad", "Adam", "Gradient", "Momentum"], TRAINING),
    **dict.fromkeys(["ImageDecoder", "RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit",
                     "OptionalGetElement", "OptionalHasElement", "SequenceAt", "SequenceConstruct", "SequenceEmpty",
                     "SequenceInsert", "SequenceLength", "SequenceMap", "SplitToSequence", "ConcatFromSequence"],
                    NOT_A_TENSOR),
}  # fmt: skip

# Element types that a tensor of the protocol can have.
SERVED_TYPES = {
    getattr(onnx.TensorProto, name)
    for name in ["BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64", "FLOAT16",
                 "BFLOAT16", "FLOAT", "DOUBLE"]
}  # fmt: skip

MESSAGES = []


def of_model(model):
    """The reason for which this model is refused whatever the compiler says, or None."""
    return None


def of_message(message):
    """The reason behind what the compiler said, or None: then it is a failure."""
    for pattern, reason in MESSAGES:
        if re.search(pattern, message):
            return reason
    return None
