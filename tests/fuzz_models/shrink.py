"""Makes a model on which two sides disagree smaller, as long as they do."""

import numpy as np
import onnx
from onnx import helper

import generator
import oracle


def rebuilt(model, nodes, inputs, extra=()):
    """The model of these nodes: what they read and none of them makes is an input, of the type it has."""
    made = {name for node in nodes for name in node.output}
    read = generator.names_read(nodes) & {*inputs, *made, *(i.name for i in model.graph.initializer)}
    initializers = [i for i in model.graph.initializer if i.name in read]
    constants = {i.name for i in initializers}
    values = []
    for name in [n for n in inputs if n in read]:
        array = inputs[name]
        shape = ["N", *array.shape[1:]] if array.ndim else []
        values.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), shape))
    if read - made - constants - {v.name for v in values}:
        return None
    unread = [name for node in nodes for name in node.output if name not in read]
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    graph = helper.make_graph(nodes, "fuzz", values, [onnx.ValueInfoProto(name=n) for n in unread], initializers)
    copy.graph.CopyFrom(graph)
    inferred = onnx.shape_inference.infer_shapes(copy, strict_mode=False, data_prop=True)
    types = {v.name: v for v in [*inferred.graph.value_info, *inferred.graph.output]}
    if any(not types[n].type.tensor_type.elem_type for n in unread):
        return None
    del copy.graph.output[:]
    copy.graph.output.extend(types[n] for n in unread)
    return copy


def shrunk(foliot, model, inputs, rows, what):
    """(model, inputs, rows) that still disagree, with as few nodes and rows as could be found."""

    def still(candidate, values, count):
        if candidate is None or not candidate.graph.node:
            return False
        try:
            return oracle.judge(foliot, candidate, values, count) is not None
        except (oracle.Refused, onnx.checker.ValidationError):
            return False

    if "alone" not in what:
        for row in range(rows):
            single = {n: a[row : row + 1] for n, a in inputs.items()}
            if rows > 1 and still(model, single, 1):
                inputs, rows = single, 1
                break
    changed = True
    while changed:
        changed = False
        nodes = list(model.graph.node)
        try:
            values = {**inputs, **oracle.evaluated(model, inputs)}
        except oracle.Refused:
            break
        for i in range(len(nodes)):
            kept = nodes[:i] + nodes[i + 1 :]
            read = generator.names_read(kept)
            # What the node made becomes an input, if it has rows.
            given = {n: values[n] for n in values if n in read and n not in {o for k in kept for o in k.output}
                     and n not in {c.name for c in model.graph.initializer}}  # fmt: skip
            if not given or any(np.ndim(v) == 0 or np.shape(v)[0] != rows for v in given.values()):
                continue
            candidate = rebuilt(model, kept, given)
            if still(candidate, given, rows):
                model, inputs, changed = candidate, given, True
                break
    return model, inputs, rows
