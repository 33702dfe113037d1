"""One-dimensional convolutions over sound: M5 (Dai et al. 2017) on samples, a
classifier of gated dilated layers like WaveNet's (van den Oord et al. 2016), and
QuartzNet (Kriman et al. 2020) on features of frames, reduced to 5x5."""

from .network import Network


def build_m5(name, batch="batch", seed=1, samples=16000, classes=35):
    network = Network(name, seed=seed, batch=batch)
    x = network.image(1, samples)
    for channels, kernel, stride in ((128, 80, 4), (128, 3, 1), (256, 3, 1), (512, 3, 1)):
        x = network.unit(x, channels, [kernel], stride=stride, pads=[0, 0], bias=True)
        x = network.pool("Max", x, 4, 4, rank=1)
    return network.classifier(x, classes)


def build_wavenet(name, batch="batch", seed=1, samples=4000, channels=32, skip=64, stacks=2, layers=8, classes=35):
    network = Network(name, seed=seed, batch=batch)
    x = network.convolution(network.image(1, samples), channels, [1], bias=True)
    total = None
    for _ in range(stacks):
        for layer in range(layers):
            x, passed_on = gated(network, x, channels, skip, 2**layer)
            total = passed_on if total is None else network.plus(total, passed_on)
    x = network.relu(network.convolution(network.relu(total), skip, [1], bias=True))
    return network.classifier(x, classes)


def gated(network, x, channels, skip, dilation):
    """The residual and what is passed on; looks only back in time."""
    options = {"dilation": dilation, "pads": [dilation, 0], "bias": True}
    value = network.add("Tanh", [network.convolution(x, channels, [2], **options)])
    gate = network.add("Sigmoid", [network.convolution(x, channels, [2], **options)])
    y = network.times(value, gate)
    residual = network.plus(x, network.convolution(y, channels, [1], bias=True, gain=0.5))
    return residual, network.convolution(y, skip, [1], bias=True, gain=1.0)


def build_quartznet(name, batch="batch", seed=1, frames=200, features=64, letters=29):
    network = Network(name, seed=seed, batch=batch)
    x = network.image(features, frames)
    x = network.relu(separable(network, x, 256, 33, stride=2))
    for channels, kernel in ((256, 33), (256, 39), (512, 51), (512, 63), (512, 75)):
        x = repeated(network, x, channels, kernel)
    x = network.relu(separable(network, x, 512, 87, dilation=2))
    x = network.convolution(network.unit(x, 1024, [1]), letters, [1], bias=True, gain=1.0)
    x = network.add("LogSoftmax", [network.add("Transpose", [x], perm=[0, 2, 1])], axis=2)
    return network.output(x, "output", [(frames + 1) // 2, letters])


def repeated(network, x, channels, kernel):
    y = x
    for _ in range(4):
        y = network.relu(separable(network, y, channels, kernel))
    return network.relu(network.plus(separable(network, y, channels, kernel), network.unit(x, channels, [1], None)))


def separable(network, x, channels, kernel, **options):
    x = network.convolution(x, network.channels[x], [kernel], groups=network.channels[x], gain=1.0, **options)
    return network.unit(x, channels, [1], None, gain=2**0.5)


MODELS = {"m5": build_m5, "wavenet": build_wavenet, "quartznet": build_quartznet}
