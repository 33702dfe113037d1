"""GoogLeNet (Szegedy et al. 2015), with its local response normalisation and
poolings that round up."""

from .network import Network

# Channels of the branches 1x1, 3x3 (inner, outer), 5x5 (inner, outer), pooling;
# None: a pooling between stages.
MODULES = [(64, 96, 128, 16, 32, 32), (128, 128, 192, 32, 96, 64), None, (192, 96, 208, 16, 48, 64),
           (160, 112, 224, 24, 64, 64), (128, 128, 256, 24, 64, 64), (112, 144, 288, 32, 64, 64),
           (256, 160, 320, 32, 128, 128), None, (256, 160, 320, 32, 128, 128), (384, 192, 384, 48, 128, 128)]


def build(name, batch="batch", seed=1, resolution=224):
    network = Network(name, seed=seed, batch=batch)
    x = layer(network, network.image(3, resolution, resolution), 64, 7, stride=2)
    x = normalised(network, network.pool("Max", x, 3, 2, ceil_mode=1))
    x = layer(network, layer(network, x, 64, 1), 192, 3)
    x = network.pool("Max", normalised(network, x), 3, 2, ceil_mode=1)
    for channels in MODULES:
        x = module(network, x, *channels) if channels else network.pool("Max", x, 3, 2, ceil_mode=1)
    return network.classifier(x, 1000)


def layer(network, x, channels, kernel, **options):
    return network.relu(network.convolution(x, channels, kernel, bias=True, **options))


def normalised(network, x):
    return network.add("LRN", [x], size=5, alpha=1e-4, beta=0.75, bias=1.0)


def module(network, x, one, three_inner, three, five_inner, five, pooled):
    return network.concat([
        layer(network, x, one, 1),
        layer(network, layer(network, x, three_inner, 1), three, 3),
        layer(network, layer(network, x, five_inner, 1), five, 5),
        layer(network, network.pool("Max", x, 3, 1, 1), pooled, 1),
    ])


MODELS = {"googlenet": build}
