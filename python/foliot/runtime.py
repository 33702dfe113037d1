"""The process of a replica: python -m foliot.runtime FOLDER, with descriptor 3 a SOCK_SEQPACKET socket to the server.

Ends with 0 once the server closes its end, with 1 if the model cannot be served or the server breaks the protocol, which
docs/CONTAINERS.md describes.
"""

import os
import signal
import socket
import sys
import traceback

from foliot import loading
from foliot.description import ModelError, error_message

CONNECTION = 3


def require_numpy():
    """Raises ModelError."""
    try:
        import numpy  # noqa: F401: whether it is there
    except ModuleNotFoundError as error:
        raise ModelError(loading.missing_package("foliot", "numpy")) from error
    except ImportError as error:
        raise ModelError(f"numpy cannot be imported by {sys.executable}: {error}") from error


def serve(connection, folder, load):
    """The process's exit status."""
    try:
        require_numpy()
        from foliot import replica  # before model.py's folder is where modules are looked for first

        model = load(folder)
        description = model.description.to_json()
    except ModelError as error:
        cause = error.__cause__
        if cause is not None and not isinstance(cause, ModelError):
            traceback.print_exception(cause, file=sys.stderr)
        connection.send(error_message(str(error)))
        return 1
    try:
        connection.send(b"D" + description)
        replica.Replica(connection, model, os.path.realpath(folder)).run()
    except replica.ProtocolError as error:
        print(f"foliot.runtime: the server broke the protocol: {error}", file=sys.stderr)
        return 1
    return 0


def main(arguments, load=loading.load):
    if len(arguments) != 1:
        print("usage: python -m foliot.runtime FOLDER, started by foliot with a socket as descriptor 3", file=sys.stderr)
        return 2
    # Ctrl-C at a terminal reaches all its processes: the server decides when this one ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        connection = socket.socket(fileno=CONNECTION)
    except OSError as error:
        print(f"foliot.runtime: descriptor {CONNECTION} is no socket ({error}): this command is started by foliot; "
              "to try a folder, use python -m foliot.check FOLDER", file=sys.stderr)
        return 2
    connection.set_inheritable(False)
    try:
        return serve(connection, arguments[0], load)
    except ConnectionError:
        return 0  # the server has closed its end while this one wrote


def run(load=loading.load):
    """Ends the process."""
    status = main(sys.argv[1:], load)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            pass
    # Threads of the model's own would keep the interpreter alive.
    os._exit(status)


if __name__ == "__main__":
    run()
