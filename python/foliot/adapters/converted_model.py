"""The model of a framework's file as ONNX, with the inputs and outputs of its container, and rows with the container's answers
by which the server checks what it has compiled (src/models/repository/answer_check.h).

skl2onnx and onnxmltools convert; what they leave out is put right here, since rows are FP64: scikit-learn's trees compare
them as float32 and have sides for NaN, those of LightGBM and HistGradientBoosting compare float64. What a library refuses
(NaN, infinity) the graph refuses, too, by an index that is out of range. Which models can be converted is listed, all others
stay containers; and one whose rows are answered otherwise does, too, whatever the list says.
"""

import copy
import dataclasses
import itertools
import json
import pathlib
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from foliot.adapters import converted_rows, estimator_columns
from foliot.adapters.converted_inputs import Inputs
from foliot.description import DATATYPES, STRINGS, ModelError

OPSETS = {"": 18, "ai.onnx.ml": 3}
IR_VERSION = 9

LINEAR = ("LogisticRegression", "LogisticRegressionCV", "LinearRegression", "Ridge", "RidgeCV", "Lasso", "LassoCV", "ElasticNet",
          "ElasticNetCV", "Lars", "LassoLars", "BayesianRidge", "ARDRegression", "HuberRegressor", "SGDRegressor", "LinearSVR",
          "TheilSenRegressor", "QuantileRegressor", "RidgeClassifier", "LinearSVC", "SGDClassifier", "Perceptron")
# Their trees compare rows as float32.
TREES = ("DecisionTreeClassifier", "DecisionTreeRegressor", "ExtraTreeClassifier", "ExtraTreeRegressor",
         "RandomForestClassifier", "RandomForestRegressor", "ExtraTreesClassifier", "ExtraTreesRegressor",
         "GradientBoostingClassifier", "GradientBoostingRegressor")
# Whose classes are what the leaves' shares add up to.
VOTERS = ("DecisionTreeClassifier", "ExtraTreeClassifier", "RandomForestClassifier", "ExtraTreesClassifier")
DOUBLE_TREES = ("HistGradientBoostingClassifier", "HistGradientBoostingRegressor")
TRANSFORMERS = ("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler", "SimpleImputer", "OneHotEncoder", "PCA",
                "VarianceThreshold", "SelectKBest", "SelectPercentile")
COMPOSED = ("Pipeline", "ColumnTransformer")


@dataclasses.dataclass
class Converted:
    graph: bytes
    answers: bytes


def convert(model):
    """Of a registration.Model. Raises ModelError, which says why it stays a container."""
    if model.source is None:
        raise ModelError("it is code, not the model of a library that is converted")
    library = library_of(model.source)
    if library not in READERS:
        raise ModelError(f"models of {library} are not converted")
    inputs = Inputs(model.description.inputs, [str(name) for name in getattr(model.source, "feature_names_in_", ())])
    texts = [output.name for output in model.description.outputs if output.datatype == STRINGS]
    if texts:
        raise ModelError(f"its output '{texts[0]}' is text")
    graph = Graph(inputs)
    try:
        tensors = READERS[library](graph, model)
        proto = graph.finish(model.description.outputs, tensors, model.method)
    except ModelError:
        raise
    except Exception as error:  # of converters, which have no class for what they lack
        raise ModelError(f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0]}") from error
    return Converted(proto.SerializeToString(), converted_rows.answers_of(model, inputs, graph.splits()))


def library_of(part):
    return type(part).__module__.partition(".")[0]


class Graph:
    """A graph over `rows` [N, features], which are the inputs as float64."""

    def __init__(self, inputs):
        self.inputs = inputs
        self.features = inputs.features
        self._nodes, self._constants = [], []
        self._names = itertools.count()
        self._refused = []  # tensors [N] of whether a row is refused
        wide = [self.add("Cast", inputs.tensors[column].name, to=TensorProto.DOUBLE) for column in inputs.columns]
        self.rows = wide[0] if len(wide) == 1 else self.add("Concat", *wide, axis=1)

    def add(self, kind, *inputs, **attributes):
        """The name of the node's output."""
        name = f"made_{next(self._names)}"
        self._nodes.append(helper.make_node(kind, list(inputs), [name], name, **attributes))
        return name

    def constant(self, value):
        name = f"constant_{next(self._names)}"
        self._constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def include(self, proto, value):
        """The outputs of another model, whose only input is `value`, without those that are no tensors."""
        prefix = f"part_{next(self._names)}_"
        inner = {each.name for each in proto.graph.initializer}
        (own,) = [each.name for each in proto.graph.input if each.name not in inner]

        def named(name):
            return value if name == own else prefix + name if name else name

        for constant in proto.graph.initializer:
            self._constants.append(copy.deepcopy(constant))
            self._constants[-1].name = prefix + constant.name
        maps = {name for node in proto.graph.node if node.op_type == "ZipMap" for name in node.output}
        for number, node in enumerate(proto.graph.node):
            if node.op_type == "ZipMap":
                continue
            if any(each.type in (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS) for each in node.attribute):
                raise ModelError(f"the converter made a {node.op_type} with a body")
            node = copy.deepcopy(node)
            node.name = f"{prefix}{number}"
            node.input[:], node.output[:] = map(named, node.input), map(named, node.output)
            if node.op_type == "Softmax":  # which the compiler computes in float32, where these may be infinite
                largest = self.add("ReduceMax", node.input[0], self.constant([1]), keepdims=1)
                node.input[0] = self.add("Sub", node.input[0], largest)
            self._nodes.append(node)
        return [named(each.name) for each in proto.graph.output if each.name not in maps]

    def trees(self):
        """Its nodes that are ensembles of trees."""
        return [node for node in self._nodes if node.op_type.startswith("TreeEnsemble")]

    def splits(self):
        """(feature, threshold) of all trees that compare the rows themselves."""
        own, found = {self.rows}, set()
        for node in self._nodes:
            if node.op_type in ("Cast", "Identity", "Where") and own & set(node.input):
                own.add(node.output[0])
            if node.op_type.startswith("TreeEnsemble") and node.input[0] in own:
                kept = attributes_of(node)
                values = kept.get("nodes_values", kept.get("nodes_values_as_tensor"))
                found.update((int(feature), float(value)) for feature, value, mode in
                             zip(kept["nodes_featureids"], values, kept["nodes_modes"]) if mode != b"LEAF")
        return sorted(found)

    def refuse(self, is_wrong):
        """`is_wrong` [N, columns]: rows with one that is true are refused."""
        number = self.add("Cast", is_wrong, to=TensorProto.FLOAT)
        self._refused.append(self.add("ReduceMax", number, self.constant([1]), keepdims=0))

    def is_nan(self, value):
        return self.add("Not", self.add("Equal", value, value))

    def is_infinite(self, value, dtype):
        return self.add("Equal", self.add("Abs", value), self.constant(dtype(np.inf)))

    def column(self, value, index):
        return self.add("Gather", value, self.constant(index), axis=1)

    def finish(self, outputs, tensors, method):
        """The model with these outputs, each of what `tensors` has under its name, or for the first that of `method`: [N], or
        [N, ...]."""
        made = []
        for position, output in enumerate(outputs):
            name = method if position == 0 and output.name not in tensors else output.name
            if name not in tensors:
                raise ModelError(f"its output '{output.name}', which is {name}, is not converted")
            kind = onnx_type(output.datatype)
            value = self.add("Cast", tensors[name], to=kind)
            shape = [-1, *output.shape] if output.shape else [-1]
            value = self.add("Reshape", value, self.constant(np.array(shape, np.int64)))
            if position == 0 and self._refused:
                value = self._guarded(value, output)
            self._nodes.append(helper.make_node("Identity", [value], [output.name], "output_" + output.name))
            made.append(helper.make_tensor_value_info(output.name, kind, ["N", *output.shape]))
        taken = [helper.make_tensor_value_info(tensor.name, onnx_type(tensor.datatype), ["N", *tensor.shape])
                 for tensor in self.inputs.tensors]
        graph = helper.make_graph(self._nodes, "converted", taken, made, self._constants)
        proto = helper.make_model(graph, opset_imports=[helper.make_opsetid(*each) for each in OPSETS.items()],
                                  ir_version=IR_VERSION)
        onnx.checker.check_model(proto)
        return proto

    def _guarded(self, value, output):
        """The output, with zero added that is looked up at an index which only rows that are not refused have."""
        wrong = self._refused[0] if len(self._refused) == 1 else self.add("Max", *self._refused)
        index = self.add("Cast", wrong, to=TensorProto.INT64)
        dtype = np.dtype(DATATYPES[output.datatype])
        wide = np.int64 if dtype.kind in "biu" else dtype
        zero = self.add("Gather", self.constant(np.zeros(1, wide)), index)
        zero = self.add("Reshape", zero, self.constant(np.array([-1] + [1] * len(output.shape), np.int64)))
        value = self.add("Cast", value, to=helper.np_dtype_to_tensor_dtype(np.dtype(wide)))
        return self.add("Cast", self.add("Add", value, zero), to=onnx_type(output.datatype))


def onnx_type(datatype):
    return helper.np_dtype_to_tensor_dtype(np.dtype(DATATYPES[datatype]))


def attributes_of(node):
    """Values by name; of a tensor its array."""
    found = {each.name: helper.get_attribute_value(each) for each in node.attribute}
    return {name: numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value for name, value in found.items()}


def replace(node, name, value):
    kept = [each for each in node.attribute if each.name.removesuffix("_as_tensor") != name.removesuffix("_as_tensor")]
    del node.attribute[:]
    node.attribute.extend([*kept, helper.make_attribute(name, value)])


def with_thresholds(node, thresholds):
    """The node compares float64, with these."""
    array = np.asarray(thresholds, np.float64)
    replace(node, "nodes_values_as_tensor", numpy_helper.from_array(array, "thresholds"))


# ---- scikit-learn ----


def estimator(graph, model):
    whole = model.source
    check_kinds(whole)
    first, last = parted(whole)
    base = np.array([[known[0] if known else 0.0 for known in converted_rows.known_values(whole, graph.features)]])
    if not hasattr(last, "predict"):
        (value,) = graph.include(to_onnx(whole, np.float64), graph.rows)
        guard_rows(graph, np.float64, model, base)
        return {"transform": value}
    value, width = graph.rows, graph.features
    if first is not None:
        (value,) = graph.include(to_onnx(first, np.float64), graph.rows)
        width = last.n_features_in_
        guard_rows(graph, np.float64, model, base)
        if any(getattr(each, "handle_unknown", "") == "error" for each in parts_of(first)):
            graph.refuse(graph.is_nan(value))
    kind = type(last).__name__
    dtype = np.float32 if kind in TREES else np.float64
    if dtype == np.float32:
        value = graph.add("Cast", value, to=TensorProto.FLOAT)
    guard(graph, value, dtype, last.predict, np.zeros((1, width)))
    classes = getattr(last, "classes_", None)
    if classes is not None and getattr(classes, "ndim", 0) != 1:
        raise ModelError("it has several labels a row")
    proto = to_onnx(last, np.float32 if kind in DOUBLE_TREES else dtype)
    for node in proto.graph.node:
        if node.op_type.startswith("TreeEnsemble"):
            complete_trees(node, last)
    made = votes(graph, proto, last, value) if kind in VOTERS else graph.include(proto, value)
    if classes is None:
        return {"predict": made[0]}
    # The converter gives positions, as the container answers classes that have names.
    label = made[0] if classes.dtype.kind in "OUS" else graph.add("Gather", graph.constant(classes), made[0])
    return {"predict": label, **({"predict_proba": made[1]} if hasattr(last, "predict_proba") else {})}


def check_kinds(part):
    kind = type(part).__name__
    if not type(part).__module__.startswith("sklearn."):
        raise ModelError(f"{kind} is not scikit-learn's")
    if kind == "FunctionTransformer" and part.func is None:  # "passthrough"
        return
    if kind not in (*LINEAR, *TREES, *DOUBLE_TREES, *TRANSFORMERS, *COMPOSED):
        raise ModelError(f"{kind} is not among those that are converted")
    for each in inner_of(part):
        check_kinds(each)


def inner_of(part):
    inner = [step for _, step in getattr(part, "steps", ())] + [each for _, each, _ in getattr(part, "transformers_", ())]
    return [each for each in inner if hasattr(each, "get_params")]


def parts_of(part):
    return [part, *(each for inner in inner_of(part) for each in parts_of(inner))]


def parted(whole):
    """(what is before the last step of a pipeline, or None; the last step)"""
    if type(whole).__name__ != "Pipeline":
        return None, whole
    steps = [(name, step) for name, step in whole.steps if step not in (None, "passthrough")]
    if len(steps) == 1:
        return parted(steps[0][1])
    first = copy.copy(whole)
    first.steps = steps[:-1]
    before, last = parted(steps[-1][1])
    if before is not None:
        raise ModelError("its last step is a pipeline")
    return first, last


def to_onnx(part, dtype):
    import skl2onnx
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType
    from sklearn.preprocessing import OneHotEncoder

    # Its own makes whole numbers of the rows first.
    skl2onnx.update_registered_converter(OneHotEncoder, "FoliotOneHotEncoder", one_hot_shape, one_hot)
    part = plain_columns(part)
    options = None
    if hasattr(part, "classes_"):
        part = copy.copy(part)
        part.classes_ = np.arange(len(part.classes_))
        options = {id(part): {"zipmap": False}}
    kind = DoubleTensorType if dtype == np.float64 else FloatTensorType
    return skl2onnx.to_onnx(part, initial_types=[("rows", kind([None, part.n_features_in_]))], options=options,
                            target_opset=OPSETS)


def one_hot_shape(operator):
    from skl2onnx.common.data_types import DoubleTensorType

    operator.outputs[0].type = DoubleTensorType([None, len(operator.raw_operator.get_feature_names_out())])


def one_hot(scope, operator, container):
    """Columns of 0 and 1, as float64; NaN where an unknown value is an error."""
    encoder = operator.raw_operator
    if getattr(encoder, "_infrequent_enabled", False):
        raise ModelError("its OneHotEncoder counts values that are rare as one")

    def add(kind, *inputs, to=None, **attributes):
        output = to or scope.get_unique_variable_name("one_hot")
        container.add_node(kind, list(inputs), [output], name=scope.get_unique_operator_name("one_hot"), **attributes)
        return output

    def constant(value):
        name = scope.get_unique_variable_name("one_hot_constant")
        kind = helper.np_dtype_to_tensor_dtype(value.dtype)
        container.add_initializer(name, kind, value.shape, value.ravel().tolist())
        return name

    names = [each.full_name for each in operator.inputs]
    rows = names[0] if len(names) == 1 else add("Concat", *names, axis=1)
    made = []
    for column, categories in enumerate(encoder.categories_):
        categories = np.asarray(categories, np.float64)
        if np.isnan(categories).any():
            raise ModelError("its OneHotEncoder takes NaN for a category")
        kept = [i for i in range(len(categories)) if encoder.drop_idx_ is None or encoder.drop_idx_[column] != i]
        value = add("Gather", rows, constant(np.array([column])), axis=1)
        is_it = add("Equal", value, constant(categories[None, :]))
        ones = add("Where", is_it, constant(np.ones(1)), constant(np.zeros(1)))
        if encoder.handle_unknown == "error":
            known = add("ReduceMax", ones, constant(np.array([1])), keepdims=1, op_version=18)
            ones = add("Div", ones, known)
        made.append(add("Gather", ones, constant(np.array(kept)), axis=1))
    add("Concat", *made, to=operator.outputs[0].full_name, axis=1)


def plain_columns(part):
    """The same with columns chosen by numbers."""
    if type(part).__name__ == "Pipeline":
        part = copy.copy(part)
        part.steps = [(name, plain_columns(step)) for name, step in part.steps]
    elif type(part).__name__ == "ColumnTransformer":
        names, count = [str(name) for name in getattr(part, "feature_names_in_", ())], part.n_features_in_
        part = copy.copy(part)
        part.transformers_ = [(name, plain_columns(each), estimator_columns.positions(chosen, names, count))
                              for name, each, chosen in part.transformers_]
    return part


def guard_rows(graph, dtype, model, base=None):
    """Refuses the rows, as `dtype`, that the container refuses."""
    inputs = graph.inputs
    base = inputs.fitted(np.zeros((1, graph.features)) if base is None else base)
    value = graph.rows if dtype == np.float64 else graph.add("Cast", graph.rows, to=onnx_type("FP32"))
    guard(graph, value, dtype, lambda row: model.predict(inputs.batch(row)), base, inputs.with_fractions())


def guard(graph, value, dtype, run, base, columns=None):
    """Refuses the rows of `value` that `run` refuses: those with NaN, or infinite ones, in `columns` (None: in all). `base`: a
    row that it takes."""
    columns = list(range(base.shape[1])) if columns is None else columns
    # Some steps look at some columns only: of those the check of the answers decides.
    tried = columns if len(columns) <= 64 else columns[::len(columns) // 64]

    def refuses(number):
        return bool(tried) and all(fails(run, one_at(base, column, number)) for column in tried)

    if refuses(np.nan):
        graph.refuse(graph.is_nan(value))
    if refuses(np.inf):
        graph.refuse(graph.is_infinite(value, dtype))


def one_at(base, column, number):
    row = base.copy()
    row[0, column] = number
    return row


def fails(run, row):
    try:
        run(row)
    except Exception:  # noqa: BLE001: of the library, for rows that it refuses
        return True
    return False


def complete_trees(node, last):
    """What skl2onnx leaves out: the sides of NaN in trees, and float64 in HistGradientBoosting."""
    kept = attributes_of(node)
    places = list(zip(kept["nodes_treeids"], kept["nodes_nodeids"]))
    if type(last).__name__ in DOUBLE_TREES:
        trees = [tree.nodes for iteration in last._predictors for tree in iteration]  # noqa: SLF001: as skl2onnx
        if any(tree["is_categorical"].any() for tree in trees):
            raise ModelError("its trees split by categories")
        with_thresholds(node, [trees[tree][number]["num_threshold"] for tree, number in places])
        return
    trees = np.ravel(last.estimators_).tolist() if hasattr(last, "estimators_") else [last]
    missing = [tree.tree_.missing_go_to_left for tree in trees]
    replace(node, "nodes_missing_value_tracks_true", [int(missing[tree][number]) for tree, number in places])


def votes(graph, proto, last, value):
    """[positions of the classes, probabilities] of a tree or a forest. Many rows have two classes with equal votes, and the last
    bit of the library's sums then decides. So each tree gives the number of its leaf, and the leaves' shares are added as there:
    in float64, one tree after the other."""
    (node,) = [each for each in proto.graph.node if each.op_type == "TreeEnsembleClassifier"]
    kept = attributes_of(node)
    trees = [each.tree_ for each in getattr(last, "estimators_", [last])]
    leaves = [(tree, number) for tree, number, mode in zip(kept["nodes_treeids"], kept["nodes_nodeids"], kept["nodes_modes"])
              if mode == b"LEAF"]
    if max(tree.node_count for tree in trees) > 1 << 24:
        raise ModelError("a tree has more than 2^24 nodes, which float32 cannot number")
    numbers = graph.add("TreeEnsembleRegressor", value, domain="ai.onnx.ml", n_targets=len(trees),
                        target_treeids=[tree for tree, _ in leaves], target_nodeids=[number for _, number in leaves],
                        target_ids=[tree for tree, _ in leaves], target_weights=[float(number) for _, number in leaves],
                        **{name: list(values) for name, values in kept.items() if name.startswith("nodes_")})
    numbers = graph.add("Cast", numbers, to=TensorProto.INT64)
    sums = None
    for position, tree in enumerate(trees):
        shares = tree.value[:, 0, :]
        totals = shares.sum(axis=1, keepdims=True)
        if not np.allclose(totals, 1):  # files of scikit-learn before 1.3 have counts
            shares = shares / totals
        shares = graph.add("Gather", graph.constant(shares), graph.column(numbers, position))
        sums = shares if sums is None else graph.add("Add", sums, shares)
    shares = graph.add("Div", sums, graph.constant(np.float64(len(trees))))
    return [graph.add("ArgMax", shares, axis=1, keepdims=0), shares]


# ---- Boosted trees ----


def xgboost(graph, model):
    import xgboost as library

    booster = model.source if isinstance(model.source, library.Booster) else model.source.get_booster()
    guard_rows(graph, np.float32, model)
    scores, objective = xgboost_scores(graph, booster, graph.add("Cast", graph.rows, to=TensorProto.FLOAT))
    if model.source is booster:  # whose container answers with scores, or as XGBClassifier
        is_classifier = len(model.description.outputs) > 1 or not model.description.outputs[0].datatype.startswith("FP")
    else:
        is_classifier = hasattr(model.source, "predict_proba")
    if not is_classifier or not objective.startswith(("binary:", "multi:")) or objective == "multi:softmax":
        return {"predict": scores}
    if objective == "multi:softprob":
        return {"predict": graph.add("ArgMax", scores, axis=1, keepdims=0), "predict_proba": scores}
    return pair_of(graph, graph.add("Greater", scores, graph.constant(np.float32(0.5))), scores)


def pair_of(graph, label, score):
    """Of two classes, of which `score` [N] is what the second has."""
    other = graph.add("Sub", graph.constant(np.float32(1)), score)
    axis = graph.constant([1])
    both = graph.add("Concat", graph.add("Unsqueeze", other, axis), graph.add("Unsqueeze", score, axis), axis=1)
    return {"predict": label, "predict_proba": both}


def xgboost_scores(graph, booster, value):
    """(what the booster answers of rows in float32, its objective)"""
    import xgboost as library
    from onnxmltools.convert import convert_xgboost
    from onnxmltools.convert.common.data_types import FloatTensorType

    objective = objective_of(booster)
    is_classifier = objective.startswith(("binary:", "multi:"))
    wrapped = (library.XGBClassifier if is_classifier else library.XGBRegressor)()
    wrapped.load_model(bytearray(booster.save_raw("ubj")))
    wrapped.get_booster().feature_names = None  # which it would take for numbers of columns
    made = graph.include(convert_xgboost(wrapped, initial_types=[("rows", FloatTensorType([None, booster.num_features()]))],
                                         target_opset=15), value)
    if objective == "multi:softmax":
        return graph.add("Cast", made[0], to=TensorProto.FLOAT), objective
    return graph.column(made[1], 1) if objective.startswith("binary:") else made[-1], objective


def objective_of(booster):
    return json.loads(booster.save_config())["learner"]["objective"]["name"]


def lightgbm(graph, model):
    import lightgbm as library

    booster = model.source if isinstance(model.source, library.Booster) else model.source.booster_
    guard_rows(graph, np.float64, model)
    made = lightgbm_scores(graph, booster, graph.rows)
    if model.source is not booster and hasattr(model.source, "classes_"):
        if len(made) != 2:
            raise ModelError("its objective has no probabilities")
        position = graph.add("ArgMax", made[1], axis=1, keepdims=0)
        return {"predict": graph.add("Gather", graph.constant(np.asarray(model.source.classes_)), position), "predict_proba": made[1]}
    scores = made[-1]
    if model.description.outputs[0].shape in ((), (1,)) and len(made) == 2:
        scores = graph.column(scores, 1)
    return {"predict": scores}


def lightgbm_scores(graph, booster, value):
    """What the converter's model has for outputs: the scores of values, or labels and probabilities of classes."""
    from onnxmltools.convert import convert_lightgbm
    from onnxmltools.convert.common.data_types import FloatTensorType

    # The library leaves out what is no more than 1e-35 as float32, and NaN is none of that.
    tiny = graph.add("LessOrEqual", graph.add("Abs", value), graph.constant(np.float64(np.float32(1e-35))))
    rows = graph.add("Where", tiny, graph.constant(np.float64(0)), value)
    before = len(graph.trees())
    made = graph.include(convert_lightgbm(booster, initial_types=[("rows", FloatTensorType([None, booster.num_feature()]))],
                                          zipmap=False, target_opset=15), rows)
    for node in graph.trees()[before:]:
        widen(node, booster)
    return made


def widen(node, booster):
    """The thresholds of the library, in float64, in place of their roundings."""
    exact = {}

    def visit(part):
        if "split_feature" not in part:
            return
        if isinstance(part["threshold"], float | int):
            key = part["split_feature"], np.float32(part["threshold"])
            exact.setdefault(key, set()).add(float(part["threshold"]))
        visit(part["left_child"])
        visit(part["right_child"])

    for tree in booster.dump_model()["tree_info"]:
        visit(tree["tree_structure"])
    kept = attributes_of(node)
    thresholds = []
    for feature, value, mode in zip(kept["nodes_featureids"], kept["nodes_values"], kept["nodes_modes"]):
        found = exact.get((feature, np.float32(value)), {value}) if mode != b"LEAF" else {0.0}
        if len(found) > 1:
            first, second = sorted(found)[:2]
            raise ModelError(f"its trees compare feature {feature} with {first!r} and {second!r}, which are one float32")
        thresholds.extend(found)
    with_thresholds(node, thresholds)


def catboost(graph, model):
    """Of the library's own description of its trees: its ONNX exporter drops the sides of missing values."""
    source = model.source
    content = described(source)
    if any(content["features_info"].get(kind) for kind in ("categorical_features", "text_features", "embedding_features")):
        raise ModelError("its trees split by categories, texts or embeddings")
    guard_rows(graph, np.float32, model)
    trees = CatboostTrees(content["features_info"]["float_features"])
    for tree in content.get("oblivious_trees", ()):
        trees.add_level(trees.next_tree(), tree["splits"], tree["leaf_values"])
    for tree in content.get("trees", ()):
        trees.add(trees.next_tree(), tree)
    scale, bias = content["scale_and_bias"]
    bias = np.atleast_1d(np.asarray(bias, float))
    value = graph.add("Cast", graph.rows, to=TensorProto.FLOAT)
    sums = graph.add("TreeEnsembleRegressor", value, domain="ai.onnx.ml", n_targets=len(bias), **trees.attributes)
    sums = graph.add("Mul", graph.add("Cast", sums, to=TensorProto.DOUBLE), graph.constant(np.float64(scale)))
    scores = graph.add("Add", sums, graph.constant(bias[None, :]))
    classes = np.asarray(source.classes_)
    is_value = type(source).__name__ == "CatBoost" and model.description.outputs[0].datatype.startswith("FP")
    if not len(classes) or is_value and model.method == "predict":
        return {"predict": scores}
    if len(bias) == 1:
        score = graph.column(scores, 0)
        position = graph.add("Cast", graph.add("Greater", score, graph.constant(np.float64(0))), to=TensorProto.INT64)
        axis = graph.constant([1])
        signed = [graph.add("Unsqueeze", each, axis) for each in (graph.add("Neg", score), score)]
        shares = graph.add("Sigmoid", graph.add("Concat", *signed, axis=1))
    else:
        position = graph.add("ArgMax", scores, axis=1, keepdims=0)
        largest = graph.add("ReduceMax", scores, graph.constant([1]), keepdims=1)
        shares = graph.add("Softmax", graph.add("Sub", scores, largest), axis=1)
    # Classes that have names are answered with their numbers.
    label = position if classes.dtype.kind in "OUS" else graph.add("Gather", graph.constant(classes), position)
    return {"predict": label, "predict_proba": shares}


def described(source):
    """The model as the library writes it in JSON."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "model.json"
        source.save_model(str(path), format="json")
        return json.loads(path.read_text(encoding="utf-8"))


class CatboostTrees:
    """Attributes of a TreeEnsembleRegressor, of trees that are added node by node."""

    def __init__(self, features):
        self.attributes = {f"nodes_{name}": [] for name in ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids",
                                                            "falsenodeids", "missing_value_tracks_true")}
        self.attributes |= {f"target_{name}": [] for name in ("treeids", "nodeids", "ids", "weights")}
        self._columns = {each["feature_index"]: each["flat_feature_index"] for each in features}
        self._to_true = {each["feature_index"] for each in features if each.get("nan_value_treatment") == "AsTrue"}
        self._trees, self._nodes = 0, 0

    def next_tree(self):
        self._trees, self._nodes = self._trees + 1, 0
        return self._trees - 1

    def add_level(self, tree, splits, values, level=0, leaf=0):
        """All nodes of a level have the same split, whose answer is a bit of the leaf's number. Returns the node's number."""
        if level == len(splits):
            width = len(values) >> len(splits)
            return self._leaf(tree, values[leaf * width:(leaf + 1) * width])
        return self._split(tree, splits[level], *(lambda bit=bit: self.add_level(tree, splits, values, level + 1, leaf | bit << level)
                                                  for bit in (1, 0)))

    def add(self, tree, part):
        if "split" not in part:
            return self._leaf(tree, np.atleast_1d(part["value"]).tolist())
        return self._split(tree, part["split"], lambda: self.add(tree, part["right"]), lambda: self.add(tree, part["left"]))

    def _split(self, tree, split, on_true, on_false):
        if split.get("split_type", "FloatFeature") != "FloatFeature":
            raise ModelError(f"its trees split by {split['split_type']}")
        feature = split["float_feature_index"]
        place = self._node(tree, "BRANCH_GT", self._columns[feature], split["border"], feature in self._to_true)
        self.attributes["nodes_truenodeids"][place] = on_true()
        self.attributes["nodes_falsenodeids"][place] = on_false()
        return self.attributes["nodes_nodeids"][place]

    def _leaf(self, tree, values):
        place = self._node(tree, "LEAF", 0, 0.0, False)
        number = self.attributes["nodes_nodeids"][place]
        for target, value in enumerate(values):
            for name, each in (("treeids", tree), ("nodeids", number), ("ids", target), ("weights", float(value))):
                self.attributes[f"target_{name}"].append(each)
        return number

    def _node(self, tree, mode, column, border, missing_is_true):
        """Its place in the lists."""
        for name, each in (("treeids", tree), ("nodeids", self._nodes), ("featureids", column), ("values", float(border)),
                           ("modes", mode), ("truenodeids", 0), ("falsenodeids", 0),
                           ("missing_value_tracks_true", int(missing_is_true))):
            self.attributes[f"nodes_{name}"].append(each)
        self._nodes += 1
        return len(self.attributes["nodes_modes"]) - 1


READERS = {"sklearn": estimator, "xgboost": xgboost, "lightgbm": lightgbm, "catboost": catboost}
