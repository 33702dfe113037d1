"""The nine networks of the ONNX model zoo that the onnx package ships as light
models: the real graphs, with every weight a constant that is made when they run."""

import pathlib

import numpy as np
import onnx
import onnx.backend.test
from onnx import numpy_helper

NETWORKS = (
    "bvlc_alexnet",
    "densenet121",
    "inception_v1",
    "inception_v2",
    "resnet50",
    "shufflenet",
    "squeezenet",
    "vgg19",
    "zfnet512",
)
LIGHT_MODELS = pathlib.Path(onnx.backend.test.__file__).parent / "data/light"


def light_model(network):
    """The model as shipped."""
    return onnx.load(LIGHT_MODELS / f"light_{network}.onnx")


def shipped_output(network):
    """The output shipped with it, for dummy_input()."""
    tensor = onnx.TensorProto()
    tensor.ParseFromString((LIGHT_MODELS / f"light_{network}_output_0.pb").read_bytes())
    return numpy_helper.to_array(tensor)


def true_inputs(model):
    """The graph's inputs that no initializer fills."""
    filled = {initializer.name for initializer in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in filled]


def dummy_input(model):
    """(name, array) of the one input, as onnx's own runner makes it: a ramp from 0 to 1."""
    (value,) = true_inputs(model)
    shape = [dimension.dim_value for dimension in value.type.tensor_type.shape.dim]
    count = int(np.prod(shape))
    return value.name, (np.arange(count).reshape(shape) / count).astype(np.float32)


def with_random_weights(model, seed):
    """The same graph with seeded random weights, scaled so that values neither
    vanish nor explode on their way through."""
    random = np.random.default_rng(seed)
    graph = model.graph
    # Residual branches add up, so each may carry only a part.
    scale = 0.5 if any(node.op_type == "Sum" for node in graph.node) else 0.9
    shapes = {initializer.name: numpy_helper.to_array(initializer) for initializer in graph.initializer}
    consumers = {}
    for node in graph.node:
        for position, name in enumerate(node.input):
            consumers.setdefault(name, []).append((node, position))

    made = [node for node in graph.node if node.op_type == "ConstantOfShape"]
    for node in made:
        weight = random_weight(random, scale, shapes[node.input[0]], *role(consumers, node.output[0]))
        graph.initializer.append(numpy_helper.from_array(weight.astype(np.float32), node.output[0]))
        graph.node.remove(node)
    for initializer in graph.initializer:
        if initializer.data_type == onnx.TensorProto.FLOAT and initializer.name in shapes.keys() & consumers.keys():
            weight = random_weight(random, scale, shapes[initializer.name].shape, *role(consumers, initializer.name))
            initializer.CopyFrom(numpy_helper.from_array(weight.astype(np.float32), initializer.name))
    model.ir_version = max(model.ir_version, 4)  # from here on initializers need not be inputs
    return model


def role(consumers, name):
    """(operator, position) of what uses this weight, looking through Unsqueeze."""
    node, position = consumers[name][0]
    while node.op_type == "Unsqueeze":
        node, position = consumers[node.output[0]][0]
    return node.op_type, position


def random_weight(random, scale, shape, operator, position):
    shape = tuple(int(extent) for extent in shape)
    if operator in ("Conv", "Gemm") and position == 1:
        return random.normal(0, (2 / np.prod(shape[1:])) ** 0.5, shape)
    if (operator, position) == ("BatchNormalization", 4):
        return random.uniform(0.7, 1.3, shape)
    if operator == "Mul" or (operator, position) == ("BatchNormalization", 1):
        return scale * random.uniform(0.7, 1.3, shape)
    return random.normal(0, 0.05, shape)
