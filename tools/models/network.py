"""A small builder of ONNX graphs with seeded random weights."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper


class Network:
    """Collects nodes and initializers; every method returns a value's name."""

    def __init__(self, name, opset, seed):
        self.name = name
        self.opset = opset
        self.random = np.random.default_rng(seed)
        self.nodes = []
        self.initializers = []
        self.inputs = []
        self.outputs = []

    def input(self, name, element_type, shape):
        self.inputs.append(helper.make_tensor_value_info(name, element_type, shape))
        return name

    def output(self, value, name, shape, element_type=TensorProto.FLOAT):
        self.nodes.append(helper.make_node("Identity", [value], [name], name=f"name_{name}"))
        self.outputs.append(helper.make_tensor_value_info(name, element_type, shape))

    def constant(self, values, name=None):
        name = name or f"constant_{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def weights(self, shape, fan_in, gain=1.0):
        """Normal weights that keep the deviation of activations at `gain`."""
        values = self.random.standard_normal(shape) * gain / np.sqrt(fan_in)
        return self.constant(values.astype(np.float32))

    def near(self, size, centre, spread):
        return self.constant((centre + spread * self.random.standard_normal(size)).astype(np.float32))

    def add(self, operator, inputs, **attributes):
        name = f"{operator}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [f"{name}_output"], name=name, **attributes))
        return f"{name}_output"

    def integers(self, values):
        return self.constant(np.asarray(values, dtype=np.int64))

    def real(self, value):
        return self.constant(np.float32(value))

    def convolution(self, x, channels_in, channels_out, kernel, stride=1, groups=1, gain=2**0.5):
        fan_in = channels_in // groups * kernel * kernel
        weights = self.weights((channels_out, channels_in // groups, kernel, kernel), fan_in, gain)
        return self.add("Conv", [x, weights], kernel_shape=[kernel, kernel], strides=[stride, stride],
                        pads=[kernel // 2] * 4, group=groups)

    def batch_normalization(self, x, channels, scale=1.0):
        parameters = [self.near(channels, scale, 0.1 * scale), self.near(channels, 0, 0.1),
                      self.near(channels, 0, 0.1),
                      self.constant(self.random.uniform(0.8, 1.2, channels).astype(np.float32))]
        return self.add("BatchNormalization", [x, *parameters], epsilon=1e-5)

    def linear(self, x, size_in, size_out, gain=1.0):
        weights = self.weights((size_out, size_in), size_in, gain)
        return self.add("Gemm", [x, weights, self.near(size_out, 0, 0.1)], transB=1)

    def model(self):
        graph = helper.make_graph(self.nodes, self.name, self.inputs, self.outputs, self.initializers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)],
                                  producer_name="foliot")
        model.ir_version = 8
        return model
