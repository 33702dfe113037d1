"""Simple pose (Xiao et al. 2018): a ResNet whose features transposed convolutions
enlarge to heat maps of joints."""

from functools import partial

from . import resnet
from .network import Network

JOINTS = 17


def build(name, depth, batch="batch", seed=1, height=256, width=192):
    network = Network(name, seed=seed, batch=batch)
    x = resnet.body(network, network.image(3, height, width), depth)
    for _ in range(3):
        x = network.relu(network.batch_normalization(enlarge(network, x, 256)))
    x = network.convolution(x, JOINTS, 1, bias=True, gain=1.0)
    return network.output(x, "output", [JOINTS, height // 4, width // 4])


def enlarge(network, x, channels):
    """Doubles height and width."""
    channels_in = network.channels[x]
    # Each result sees 2x2 of the 4x4 weights.
    weights = network.weights((channels_in, channels, 4, 4), channels_in * 4, 2**0.5)
    return network.add("ConvTranspose", [x, weights], channels, kernel_shape=[4, 4], strides=[2, 2], pads=[1] * 4)


MODELS = {f"simple_pose_resnet{depth}": partial(build, depth=depth) for depth in (18, 50)}
