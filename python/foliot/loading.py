"""Imports the model.py of a container and says in one sentence why that fails."""

import gc
import importlib.util
import os
import pathlib
import sys
import traceback

from foliot import registration
from foliot.description import ModelError

MODULE = "foliot_container_model"  # no name that model.py or a library is likely to import
# Packages that are installed under another name than they are imported by.
INSTALLED_AS = {"sklearn": "scikit-learn", "skimage": "scikit-image", "cv2": "opencv-python-headless", "PIL": "pillow",
                "yaml": "PyYAML"}


def load(folder):
    """The model that `folder`/model.py declares, as load_module()."""
    registration.registered.clear()
    if "FOLIOT_MODEL_FILE" in os.environ:
        return load_file(folder, os.environ["FOLIOT_MODEL_FILE"])
    return load_module(folder, "model.py", lambda module: registration.the_model())


def load_file(folder, name):
    """The model in the file `folder`/`name`, which a framework wrote. Raises ModelError."""
    from foliot.adapters import file_model

    sys.dont_write_bytecode = True
    os.chdir(folder)
    try:
        file_model.register(name)
    except ModelError:
        raise
    except Exception as error:
        raise ModelError(sentence_of(error, pathlib.Path(folder).resolve(), name)) from error
    gc.collect()
    gc.freeze()
    return registration.the_model()


def load_module(folder, name, model_of):
    """model_of(module) of the module `folder`/`name`. The folder becomes the working directory, and the first in which
    modules are looked for. Raises ModelError; prints the traceback of what the module raised."""
    folder = pathlib.Path(folder).resolve()
    path = folder / name
    if not path.is_file():
        raise ModelError(f"there is no {name} in {folder}")
    # Compiled modules would be new files in the folder, which is watched for changes.
    sys.dont_write_bytecode = True
    sys.path[0] = str(folder)
    os.chdir(folder)
    specification = importlib.util.spec_from_file_location(MODULE, path)
    module = importlib.util.module_from_spec(specification)
    sys.modules[MODULE] = module
    try:
        specification.loader.exec_module(module)
        model = model_of(module)
    except BaseException as error:  # noqa: BLE001: also SystemExit
        raise ModelError(sentence_of(error, folder, name)) from error
    # What was loaded stays: it is not examined again by each collection.
    gc.collect()
    gc.freeze()
    return model


def sentence_of(error, folder, name="model.py"):
    """Why the module `name` cannot be loaded."""
    if isinstance(error, ModelError):
        return str(error)
    if isinstance(error, ModuleNotFoundError) and error.name:
        package = error.name.partition(".")[0]
        if error.name == package:
            return missing_package(name, package)
    if isinstance(error, SyntaxError) and error.filename:
        return f"{pathlib.Path(error.filename).name}, line {error.lineno}: {type(error).__name__}: {error.msg}"
    if isinstance(error, SystemExit):
        return f"{name} ended the process while it was loaded, by {describe(error, folder)}"
    return f"{name} cannot be loaded: {describe(error, folder)}"


def missing_package(needed_by, package):
    return (f"{needed_by} needs the package '{package}'; install it for {sys.executable}: "
            f"{sys.executable} -m pip install {INSTALLED_AS.get(package, package)}")


def describe(error, folder):
    """Type, message and the innermost line inside `folder` of an exception: "ValueError: 3 (model.py, line 12)"."""
    try:
        message = str(error)
    except Exception:  # noqa: BLE001: of the user's own exception class
        message = "(its message cannot be shown)"
    text = type(error).__name__ + (f": {message}" if message else "")
    place = place_of(error, folder)
    return f"{text} ({place[0]}, line {place[1]})" if place else text


def place_of(error, folder):
    """(file relative to `folder`, line) of the innermost traceback frame inside it, or None. Packages in it do not count."""
    place = None
    for frame, line in traceback.walk_tb(error.__traceback__):
        path = pathlib.Path(frame.f_code.co_filename)
        if path.is_relative_to(folder) and "site-packages" not in path.parts:
            place = str(path.relative_to(folder)), line
    return place
