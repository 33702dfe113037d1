"""Networks of PyTorch: TorchScript, exported programs, or a module with its weights."""

import pathlib
import warnings

from foliot.adapters import common
from foliot.description import ModelError, make_tensors

WHAT = "foliot.torch"


def torch(path, *, inputs, module=None, device="cpu", batch_size_max=None):
    """Serves a file of torch.jit.save (.pt), of torch.export.save (.pt2) or, with `module`, its weights by torch.save.

    The inputs are the arguments of the module's forward, in their order. A module that returns one tensor has the output
    "y"; the outputs of a tuple are y0, y1 ..., those of a dict have their names.

    `device` is PyTorch's name of what computes: "cpu", or "cuda" for the first of the GPUs that `gpus` in model.toml
    lets the container use. There, batches are padded with zeros to 1, 2, 4 ... rows: libraries of GPUs prepare themselves
    for each number of rows when it first comes, which takes longer than many calls, and these are what a replica is warmed
    up with.
    """
    library = common.require("torch", WHAT)
    library.set_num_threads(1)
    device = usable_device(library, device)
    # Inputs are read-only views of shared memory, which from_numpy warns of.
    warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
    network = read(library, common.existing_file(path, WHAT), module, device)
    names = [tensor.name for tensor in make_tensors("inputs", inputs)]

    @library.inference_mode()
    def predict(batch):
        rows = len(batch[names[0]])
        padding = 0 if device.type == "cpu" else padded(rows, batch_size_max) - rows
        result = network(*(on_device(library, batch[name], padding, device) for name in names))
        return {name: (value[:rows] if padding else value).cpu().numpy() for name, value in named(library, result).items()}

    common.register(predict, inputs, batch_size_max, WHAT)


def padded(rows, most):
    """The number of rows that a batch of `rows` is computed as: a power of two, or `most`."""
    power = 1 << (rows - 1).bit_length()
    return power if most is None else max(rows, min(power, most))


def on_device(library, array, padding, device):
    """A copy of the array where the network is, with so many rows of zeros behind it."""
    tensor = library.from_numpy(array).to(device)
    return library.nn.functional.pad(tensor, [0, 0] * (tensor.ndim - 1) + [0, padding]) if padding else tensor


def usable_device(library, name):
    try:
        device = library.device(name)
        library.empty(0, device=device)
    except (RuntimeError, AssertionError, TypeError) as error:
        raise ModelError(f"{WHAT}: the device {name!r} cannot be used ({str(error).splitlines()[0]}); a container reaches a "
                         "GPU only with gpus = [0], or another number, in [container] of its model.toml") from error
    return device


def read(library, path, module, device):
    if module is not None:
        module.load_state_dict(library.load(path, map_location="cpu", weights_only=True))
        return module.eval().to(device)
    if pathlib.Path(path).suffix == ".pt2":
        program = library.export.load(path)
        if device.type != "cpu":
            program = library.export.passes.move_to_device_pass(program, device)
        return program.module()
    try:
        return library.jit.load(path, map_location=device).eval()
    except RuntimeError as error:
        raise ModelError(f"{WHAT}: '{path}' cannot be read by torch.jit.load ({str(error).splitlines()[0]}): for a file of "
                         "weights give the module, as in foliot.torch(PATH, module=Network(), inputs=...)") from error


def named(library, result):
    if isinstance(result, library.Tensor):
        return {common.Names.output: result}
    if isinstance(result, dict):
        return result
    return {f"{common.Names.output}{position}": value for position, value in enumerate(result)}
