"""ONNX by onnxruntime, for operators that Foliot's compiler lacks."""

from foliot.adapters import common
from foliot.description import ModelError, NUMPY_NAMES

WHAT = "foliot.onnxruntime"
# As onnxruntime names data types, where numpy has other names.
NUMPY_OF = {"float": "float32", "double": "float64"}


def onnxruntime(path, *, inputs=None, batch_size_max=None):
    """Serves an ONNX file; it may not be named model.onnx, which is Foliot's own to compile. Inputs and outputs are the
    file's; the first dimension of each must be the rows. `inputs`: the shapes of those that have further variable
    dimensions. `providers`: as onnxruntime's InferenceSession takes them."""
    library = common.require("onnxruntime", WHAT)
    options = library.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = library.InferenceSession(common.existing_file(path, WHAT), options,
                                       providers=["CPUExecutionProvider"])
    found, is_fixed = inputs_of(session, inputs or {})
    names = [output.name for output in session.get_outputs()]

    def predict(batch):
        return dict(zip(names, session.run(names, batch)))

    common.register(predict, found, 1 if is_fixed else batch_size_max, WHAT)


def inputs_of(session, given):
    """(declaration of all inputs, whether they have exactly one row)."""
    declared, rows = {}, set()
    for value in session.get_inputs():
        if not value.shape or isinstance(value.shape[0], int) and value.shape[0] != 1:
            raise ModelError(f"{WHAT}: input '{value.name}' has the shape {value.shape}: the first dimension must be the rows, "
                             "variable or 1")
        rows.add(value.shape[0] == 1)
        if value.name in given:
            declared[value.name] = given[value.name]
            continue
        variable = [extent for extent in value.shape[1:] if not isinstance(extent, int)]
        if variable:
            raise ModelError(f"{WHAT}: dimension {variable[0]!r} of input '{value.name}' {value.shape} is variable: give its size "
                             f'by inputs={{"{value.name}": (data type, shape of one row)}}')
        declared[value.name] = datatype_of(value), value.shape[1:]
    unknown = sorted(given.keys() - declared.keys())
    if unknown:
        raise ModelError(f"{WHAT}: there is no input '{unknown[0]}': the file has {sorted(declared)}")
    return declared, rows == {True}


def datatype_of(value):
    """Of "tensor(int64)", as onnxruntime has it."""
    name = value.type.removeprefix("tensor(").removesuffix(")")
    datatype = NUMPY_NAMES.get(NUMPY_OF.get(name, name))
    if datatype is None:
        raise ModelError(f"{WHAT}: input '{value.name}' has the type {value.type}: containers have "
                         f"{', '.join(NUMPY_NAMES.values())}")
    return datatype
