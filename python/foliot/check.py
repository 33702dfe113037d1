"""python -m foliot.check FOLDER: loads a container's model.py in this process and calls it with zeros, or its example.

`foliot container check FOLDER` does the same in the confined process that a server would start.
"""

import pathlib
import sys
import time

from foliot import layout, loading
from foliot.call import CallFailed, Caller
from foliot.description import ModelError
from foliot.rows import Rows

BATCH_SIZE = 64  # of a model that declares none, as of a server


def check(folder, out=sys.stdout):
    """Prints what `folder`/model.py declares and how long its calls took. Raises ModelError or CallFailed."""
    model = loading.load(folder)
    description = model.description
    for what, tensors in (("input ", description.inputs), ("output", description.outputs)):
        for tensor in tensors:
            print(f"{what}  {tensor.name}  {tensor} a row", file=out)
    caller = Caller(model, pathlib.Path(folder).resolve())
    for rows in sorted({1, description.batch_size_max or BATCH_SIZE}):
        inputs = {tensor.name: example_of(tensor, rows) for tensor in description.inputs}
        memory = bytearray(layout.offsets_of(description.outputs, rows)[1])
        outputs = layout.views(description.outputs, memory, rows, 0, writeable=True)
        begin = time.perf_counter()
        caller.call(inputs, outputs)
        print(f"{rows} rows: {(time.perf_counter() - begin) * 1e3:.2f} ms, the first time", file=out)


def example_of(tensor, rows):
    if not tensor.bounded:
        return layout.examples(tensor, rows)
    view = Rows(tensor, bytearray(rows * tensor.row_bytes), rows, 0)
    if tensor.example:
        view.write(layout.examples(tensor, rows))
    else:
        view.write_zeros()
    return view


def main(arguments):
    if len(arguments) != 1:
        print("usage: python -m foliot.check FOLDER", file=sys.stderr)
        return 2
    try:
        check(arguments[0])
    except (ModelError, CallFailed) as error:
        print(f"{arguments[0]}: {error}", file=sys.stderr)
        return 1
    print("ok")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
