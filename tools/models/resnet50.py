"""ResNet-50 (He et al. 2016), stride in the 3x3 convolutions, as torchvision has it."""

from onnx import TensorProto

from network import Network


def add_arguments(parser):
    parser.add_argument("--resolution", type=int, default=224, help="height and width of the image")
    parser.add_argument("--width", type=float, default=1.0, help="factor on all channel counts")


def build(arguments):
    network = Network("resnet50", 13, arguments.seed)
    batch = arguments.batch
    side = arguments.resolution

    def scaled(channels):
        return max(8, int(channels * arguments.width))

    x = network.input("input", TensorProto.FLOAT, [batch, 3, side, side])
    channels = scaled(64)
    x = network.convolution(x, 3, channels, 7, stride=2)
    x = network.add("Relu", [network.batch_normalization(x, channels)])
    x = network.add("MaxPool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    for stage, blocks in enumerate([3, 4, 6, 3]):
        inner = scaled(64 * 2**stage)
        outer = scaled(256 * 2**stage)
        for block in range(blocks):
            stride = 2 if stage > 0 and block == 0 else 1
            x = bottleneck(network, x, channels, inner, outer, stride)
            channels = outer
    x = network.add("GlobalAveragePool", [x])
    x = network.add("Flatten", [x], axis=1)
    network.output(network.linear(x, channels, 1000), "output", [batch, 1000])
    return network.model()


def bottleneck(network, x, channels, inner, outer, stride):
    y = network.convolution(x, channels, inner, 1)
    y = network.add("Relu", [network.batch_normalization(y, inner)])
    y = network.convolution(y, inner, inner, 3, stride=stride)
    y = network.add("Relu", [network.batch_normalization(y, inner)])
    y = network.convolution(y, inner, outer, 1)
    # A small scale, so that the sum of many blocks stays finite.
    y = network.batch_normalization(y, outer, scale=0.25)
    if channels != outer or stride != 1:
        x = network.convolution(x, channels, outer, 1, stride=stride)
        x = network.batch_normalization(x, outer)
    return network.add("Relu", [network.add("Add", [y, x])])
