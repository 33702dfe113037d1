"""Writes well-known networks with seeded random weights as ONNX.

    python -m tools.models resnet50_v1b --output models     models/resnet50_v1b/model.onnx
    python -m tools.models bert_base --set layers=2 --set seed=7
    python -m tools.models resnet50_v1b --quantize uint8    int8, as onnxruntime's quantizer writes it
    python -m tools.models --list
"""

import argparse
import ast
import pathlib
import sys

from . import MODELS, build, parameters, quantized, write


def setting(text):
    """"name=value", the value being a number, a list, or else a text."""
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"write NAME=VALUE, not '{text}'")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value


def print_list():
    for name in MODELS:
        print(f"{name:22} {' '.join(f'{key}={value}' for key, value in parameters(name).items())}")


def main():
    parser = argparse.ArgumentParser(prog="python -m tools.models", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="the networks to write")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("models"), metavar="DIR",
                        help="each becomes DIR/NAME/model.onnx (default: models)")
    parser.add_argument("--set", type=setting, action="append", default=[], metavar="NAME=VALUE", dest="changes",
                        help="change a parameter; --list shows them")
    parser.add_argument("--quantize", choices=quantized.TYPES, metavar="uint8|int8",
                        help="quantise to int8 weights and activations of this type")
    parser.add_argument("--list", action="store_true", help="name all networks with their parameters")
    arguments = parser.parse_args()
    if arguments.list:
        print_list()
    elif not arguments.names:
        parser.error("which network? --list names them")
    for name in arguments.names:
        try:
            network, path = build(name, **dict(arguments.changes)), arguments.output / name / "model.onnx"
            print(quantized.quantize(network, path, arguments.quantize) if arguments.quantize else write(network, path))
        except ValueError as error:
            sys.exit(f"tools.models: {error}")


if __name__ == "__main__":
    main()
