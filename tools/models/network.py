"""A small builder of ONNX graphs with seeded random weights, scaled so that
activations neither vanish nor explode on their way through."""

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper


class Network:
    """Collects nodes and initializers; every method returns a value's name. Keeps
    the number of channels (dimension 1) of values, so that layers need not be told."""

    def __init__(self, name, opset=13, seed=1, batch="batch"):
        self.name = name
        self.opset = opset
        self.batch = batch
        self.random = np.random.default_rng(seed)
        self.buckets = {}  # {symbolic dimension: the values to compile it for}
        self.channels = {}
        self.nodes = []
        self.initializers = []
        self.inputs = []
        self.outputs = []
        self.below = {}  # {integer input: the number below which its values must stay}

    # What goes in and out, without the batch dimension.

    def image(self, channels, *extents):
        return self.input("input", [channels, *extents])

    def input(self, name, shape, below=None):
        """Of real numbers, or of whole ones below `below`."""
        element_type = TensorProto.FLOAT if below is None else TensorProto.INT64
        self.inputs.append(helper.make_tensor_value_info(name, element_type, [self.batch, *shape]))
        self.channels[name] = shape[0]
        if below is not None:
            self.below[name] = below
        return name

    def output(self, value, name, shape):
        self.nodes.append(helper.make_node("Identity", [value], [name], name=f"name_{name}"))
        self.outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, [self.batch, *shape]))
        return self

    # Nodes and constants.

    def add(self, operator, inputs, channels=None, **attributes):
        """One node with one output, which has the channels of its first input
        unless told otherwise."""
        return self.add_several(operator, inputs, 1, channels, **attributes)[0]

    def add_several(self, operator, inputs, count, channels=None, **attributes):
        name = f"{operator}_{len(self.nodes)}"
        outputs = [f"{name}_output_{i}" for i in range(count)]
        self.nodes.append(helper.make_node(operator, inputs, outputs, name=name, **attributes))
        for output in outputs:
            self.channels[output] = channels or self.channels.get(inputs[0])
        return outputs

    def constant(self, values):
        name = f"constant_{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def weights(self, shape, fan_in, gain=1.0):
        """Normal weights that keep the deviation of activations at `gain`."""
        values = self.random.standard_normal(shape, np.float32)
        values *= np.float32(gain / np.sqrt(fan_in))
        return self.constant(values)

    def near(self, size, centre, spread):
        return self.constant((centre + spread * self.random.standard_normal(size)).astype(np.float32))

    def integers(self, values):
        return self.constant(np.asarray(values, dtype=np.int64))

    def real(self, value):
        return self.constant(np.float32(value))

    # Layers.

    def convolution(self, x, channels, kernel, stride=1, groups=1, dilation=1, pads=None, bias=False, gain=2**0.5):
        """`kernel`: a number for images, or one for each dimension. Pads to keep
        the extents unless told otherwise."""
        kernel = [kernel, kernel] if isinstance(kernel, int) else list(kernel)
        channels_in = self.channels[x] // groups
        inputs = [x, self.weights((channels, channels_in, *kernel), channels_in * np.prod(kernel), gain)]
        if bias:
            inputs.append(self.near(channels, 0, 0.1))
        if pads is None:
            pads = [extent // 2 * dilation for extent in kernel] * 2
        rank = len(kernel)
        return self.add("Conv", inputs, channels, kernel_shape=kernel, strides=[stride] * rank, pads=pads,
                        dilations=[dilation] * rank, group=groups)

    def batch_normalization(self, x, scale=1.0, epsilon=1e-5):
        channels = self.channels[x]
        variance = self.constant(self.random.uniform(0.8, 1.2, channels).astype(np.float32))
        parameters = [self.near(channels, scale, 0.1 * scale), self.near(channels, 0, 0.1),
                      self.near(channels, 0, 0.1), variance]
        return self.add("BatchNormalization", [x, *parameters], epsilon=epsilon)

    def unit(self, x, channels, kernel, activation="Relu", scale=1.0, **options):
        """Convolution, BatchNormalization and, unless None, an activation."""
        if activation is None:
            options.setdefault("gain", 1.0)
        x = self.batch_normalization(self.convolution(x, channels, kernel, **options), scale)
        return x if activation is None else self.activate(x, activation)

    def activate(self, x, activation):
        """An operator's name, or "Silu", "Relu6" and "HardSwish" as exporters write them."""
        if activation == "Silu":
            return self.add("Mul", [x, self.add("Sigmoid", [x])])
        if activation == "Relu6" and self.opset < 11:
            return self.add("Clip", [x], min=0.0, max=6.0)
        if activation == "Relu6":
            return self.add("Clip", [x, self.real(0), self.real(6)])
        if activation == "HardSwish" and self.opset < 14:
            return self.add("Mul", [x, self.add("HardSigmoid", [x], alpha=1 / 6, beta=0.5)])
        return self.add(activation, [x])

    def relu(self, x):
        return self.add("Relu", [x])

    def plus(self, a, b):
        return self.add("Add", [a, b])

    def times(self, a, b):
        return self.add("Mul", [a, b])

    def linear(self, x, size, size_in=None, gain=1.0):
        size_in = size_in or self.channels[x]
        return self.add("Gemm", [x, self.weights((size, size_in), size_in, gain), self.near(size, 0, 0.1)], size,
                        transB=1)

    def pool(self, kind, x, kernel, stride, pad=0, rank=2, **attributes):
        """kind: "Max" or "Average"."""
        return self.add(f"{kind}Pool", [x], kernel_shape=[kernel] * rank, strides=[stride] * rank,
                        pads=[pad] * 2 * rank, **attributes)

    def concat(self, values, axis=1):
        channels = sum(self.channels[value] for value in values) if axis == 1 else None
        return self.add("Concat", values, channels, axis=axis)

    def squeeze_and_excite(self, x, inner, gate="Sigmoid", activation="Relu"):
        """Weights channels by what their means say (Hu et al. 2018)."""
        y = self.add("GlobalAveragePool", [x])
        y = self.activate(self.convolution(y, inner, 1, bias=True), activation)
        y = self.convolution(y, self.channels[x], 1, bias=True)
        return self.times(x, self.add(gate, [y]))

    def classifier(self, x, classes):
        """Means over each channel, then a dense layer."""
        x = self.add("Flatten", [self.add("GlobalAveragePool", [x])], axis=1)
        return self.output(self.linear(x, classes), "output", [classes])

    # The result.

    def model(self):
        """The graph as ONNX, checked."""
        graph = helper.make_graph(self.nodes, self.name, self.inputs, self.outputs, self.initializers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)],
                                  producer_name="foliot")
        model.ir_version = 8
        checker.check_model(model)
        return model

    def settings(self):
        """The model.toml that goes with it; empty if it needs none."""
        if not self.buckets:
            return ""
        return "[buckets]\n" + "".join(f"{name} = {values}\n" for name, values in self.buckets.items())

    def examples(self, rows, random, **dimensions):
        """{input: array} of so many random rows, `dimensions` being the values of
        symbolic ones. Images are blotches under noise: noise alone averages out
        in deep networks."""
        return {value.name: self._example(value, rows, random, dimensions) for value in self.inputs}

    def _example(self, value, rows, random, dimensions):
        extents = value.type.tensor_type.shape.dim[1:]
        shape = [rows, *(dimensions.get(extent.dim_param) or extent.dim_value for extent in extents)]
        if value.name in self.below:
            return random.integers(0, self.below[value.name], shape, dtype=np.int64)
        values = random.standard_normal(shape, np.float32)
        if len(shape) < 3:
            return values
        coarse = random.standard_normal([*shape[:2], *(-(-extent // 32) for extent in shape[2:])], np.float32)
        for axis, extent in enumerate(shape[2:], start=2):
            coarse = np.repeat(coarse, 32, axis).take(range(extent), axis)
        return coarse + np.float32(0.5) * values
