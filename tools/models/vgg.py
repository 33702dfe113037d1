"""VGG (Simonyan and Zisserman 2015)."""

from functools import partial

from .network import Network

LAYERS = {16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}


def build(name, depth, batch="batch", seed=1, resolution=224):
    network = Network(name, seed=seed, batch=batch)
    x = network.image(3, resolution, resolution)
    for stage, layers in enumerate(LAYERS[depth]):
        for _ in range(layers):
            x = network.relu(network.convolution(x, min(512, 64 * 2**stage), 3, bias=True))
        x = network.pool("Max", x, 2, 2)
    x = network.add("Flatten", [x], 512 * (resolution // 32)**2, axis=1)
    for _ in range(2):
        x = network.add("Dropout", [network.relu(network.linear(x, 4096, gain=2**0.5))])
    return network.output(network.linear(x, 1000), "output", [1000])


MODELS = {f"vgg{depth}": partial(build, depth=depth) for depth in LAYERS}
