"""What Foliot refuses on purpose, recognised by its compiler's messages: a program has
static shapes, a fixed order of operators, and tensors of numbers."""

import re

NOT_A_TENSOR = "sequences, optionals, strings and files are no tensors of numbers"
CONTROL_FLOW = "what an If or Loop runs depends on the data"
DATA_DEPENDENT = "the shape of the result depends on the data"
RANDOM = "the result is random"
TRAINING = "training"
ELEMENT_TYPE = "element types that the Open Inference Protocol does not have (floats of 4 and 8 bits, integers of 2 and 4)"

# Numbers of TensorProto.DataType: 8 is STRING, 14 and 15 are complex, 17 to 20
# and 23 to 27 are small floats, 21, 22 and 25, 26 small integers.
MESSAGES = [
    (r"what runs would depend on the data|its number of runs .* depends on", CONTROL_FLOW),
    (r"operator '\w+' cannot be served: the shape of its result", DATA_DEPENDENT),
    (r"operator '\w+' cannot be served: its result is random", RANDOM),
    (r"operator '\w+' cannot be served: it works on sequences", NOT_A_TENSOR),
    (r"operator '\w+' cannot be served: it trains", TRAINING),
    (r"training_mode is not supported", TRAINING),
    (r"is not a tensor; only tensors can be served", NOT_A_TENSOR),
    (r"ONNX element type 0 is not supported|strings \(datatype BYTES\) are not supported", NOT_A_TENSOR),
    (r"only weights are supported in such types", ELEMENT_TYPE),
    (r"ONNX element type (14|15|17|18|19|20|21|22|23|24|25|26) is not supported", ELEMENT_TYPE),
]


def of_message(message):
    """The reason behind what the compiler said, or None: then it is a failure."""
    for pattern, reason in MESSAGES:
        if re.search(pattern, message):
            return reason
    return None
