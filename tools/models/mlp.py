"""A multi-layer perceptron that classifies."""

from onnx import TensorProto

from network import Network


def add_arguments(parser):
    parser.add_argument("--sizes", default="784,256,128,10", help="features of the input, of each layer, and classes")


def build(arguments):
    sizes = [int(size) for size in arguments.sizes.split(",")]
    network = Network("mlp", 13, arguments.seed)
    x = network.input("input", TensorProto.FLOAT, [arguments.batch, sizes[0]])
    for size_in, size_out in zip(sizes, sizes[1:-1]):
        x = network.add("Relu", [network.linear(x, size_in, size_out, gain=2**0.5)])
    x = network.linear(x, sizes[-2], sizes[-1])
    network.output(network.add("Softmax", [x], axis=-1), "output", [arguments.batch, sizes[-1]])
    return network.model()
