"""Writes a well-known network with seeded random weights as ONNX.

    python tools/models/generate.py resnet50 resnet50.onnx --batch dynamic
"""

import argparse

import onnx

import bert
import mlp
import mobilenet_v2
import resnet50

FAMILIES = {"resnet50": resnet50, "mobilenet_v2": mobilenet_v2, "bert": bert, "mlp": mlp}


def batch_size(text):
    return "batch" if text == "dynamic" else int(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    families = parser.add_subparsers(dest="family", required=True)
    for name, family in FAMILIES.items():
        options = families.add_parser(name, help=family.__doc__.splitlines()[0])
        options.add_argument("output", help="the file to write")
        options.add_argument("--batch", type=batch_size, default="dynamic", help="a size, or 'dynamic' (the default)")
        options.add_argument("--seed", type=int, default=1)
        family.add_arguments(options)
    arguments = parser.parse_args()
    model = FAMILIES[arguments.family].build(arguments)
    onnx.checker.check_model(model)
    onnx.save(model, arguments.output)


if __name__ == "__main__":
    main()
