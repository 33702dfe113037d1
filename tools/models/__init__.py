"""Well-known networks with seeded random weights, written as ONNX. One module per
family; each has MODELS, {name: function that builds a Network}."""

import inspect

import onnx

from . import (audio, bert, densenet, dla, dlrm, efficientnet, googlenet, inception, mlp, mobilenet, pose, recurrent,
               resnest, resnet, resnext, senet, speech, text_detection, unet, vgg, vit, wide_resnet, xception, yolo, yolo8)

FAMILIES = (resnet, resnext, senet, wide_resnet, resnest, densenet, googlenet, inception, xception, dla, mobilenet,
            efficientnet, vgg, pose, unet, yolo, yolo8, text_detection, vit, bert, recurrent, dlrm, audio, speech, mlp)
MODELS = {name: build for family in FAMILIES for name, build in family.MODELS.items()}


def parameters(name):
    """{parameter: default} of a model: what its function takes and the model leaves open."""
    fixed = getattr(MODELS[name], "keywords", {})
    signature = inspect.signature(MODELS[name])
    return {key: parameter.default for key, parameter in signature.parameters.items()
            if key != "name" and key not in fixed and parameter.kind is not parameter.VAR_KEYWORD}


def build(name, **changes):
    """The Network. Errors: ValueError, naming what is unknown."""
    if name not in MODELS:
        raise ValueError(f"there is no model '{name}'; python -m tools.models --list names them")
    unknown = changes.keys() - parameters(name).keys()
    if unknown:
        raise ValueError(f"'{name}' has no parameter '{min(unknown)}'; it has {', '.join(parameters(name))}")
    return MODELS[name](name=name, **changes)


def write(network, path):
    """Writes path (model.onnx) and, where it needs settings, model.toml beside it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(network.model(), path)
    if network.settings():
        (path.parent / "model.toml").write_text(network.settings())
    return path
