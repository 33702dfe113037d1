"""MobileNetV2 (Sandler et al. 2018)."""

from onnx import TensorProto

from network import Network

# Expansion, channels, repeats, stride.
BLOCKS = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]


def add_arguments(parser):
    parser.add_argument("--resolution", type=int, default=224, help="height and width of the image")
    parser.add_argument("--opset", type=int, default=13, help="7 to 10 write ReLU6 with attributes, later with inputs")


def build(arguments):
    network = Network("mobilenet_v2", arguments.opset, arguments.seed)
    batch = arguments.batch
    side = arguments.resolution
    x = network.input("input", TensorProto.FLOAT, [batch, 3, side, side])
    x = relu6(network, network.batch_normalization(network.convolution(x, 3, 32, 3, stride=2), 32))
    channels = 32
    for expansion, outer, repeats, stride in BLOCKS:
        for repeat in range(repeats):
            x = inverted_residual(network, x, channels, outer, expansion, stride if repeat == 0 else 1)
            channels = outer
    x = relu6(network, network.batch_normalization(network.convolution(x, channels, 1280, 1), 1280))
    x = network.add("GlobalAveragePool", [x])
    x = network.add("Flatten", [x], axis=1)
    network.output(network.linear(x, 1280, 1000), "output", [batch, 1000])
    return network.model()


def relu6(network, x):
    if network.opset < 11:
        return network.add("Clip", [x], min=0.0, max=6.0)
    return network.add("Clip", [x, network.real(0), network.real(6)])


def inverted_residual(network, x, channels, outer, expansion, stride):
    inner = channels * expansion
    y = x
    if expansion != 1:
        y = relu6(network, network.batch_normalization(network.convolution(y, channels, inner, 1), inner))
    y = network.convolution(y, inner, inner, 3, stride=stride, groups=inner)
    y = relu6(network, network.batch_normalization(y, inner))
    y = network.batch_normalization(network.convolution(y, inner, outer, 1, gain=1.0), outer)
    if stride == 1 and channels == outer:
        y = network.add("Add", [x, y])
    return y
