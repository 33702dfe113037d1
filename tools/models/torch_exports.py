"""Networks of torchvision, timm and transformers with random weights, exported by both of
torch's exporters with a dynamic batch dimension, and texts with a dynamic length.

Needs python/requirements-torch.txt beside the other packages.
"""

import contextlib
import dataclasses
import inspect
import io
import logging
import warnings

import numpy as np
import onnx

# TorchScript's exporter, and the one over torch.export.
EXPORTERS = ("torchscript", "dynamo")
OPSET = {"torchscript": 17, "dynamo": 18}
EXAMPLE_ROWS = 2
LENGTH = 32


class NotExported(Exception):
    """Why an exporter could not write a network."""


@dataclasses.dataclass
class Architecture:
    """A network in eval mode and what it takes: for each input its example, with its dynamic dimensions."""

    name: str
    network: object
    inputs: dict  # name -> torch tensor
    dimensions: dict  # name -> {axis: name}
    entries: int = 0  # of the vocabulary that integer inputs index

    def rows(self, count, length, seed):
        """{input: array} of `count` rows; `length` where that is dynamic."""
        random = np.random.default_rng(seed)
        result = {}
        for name, example in self.inputs.items():
            shape = list(example.shape)
            shape[0] = count
            if 1 in self.dimensions[name]:
                shape[1] = length
            if name == "attention_mask":
                result[name] = np.ones(shape, np.int64)
            elif self.entries:
                result[name] = random.integers(3, self.entries, shape)
            else:
                result[name] = random.normal(size=shape).astype(np.float32)
        return result


def stir(network, example):
    """Random weights that are worth comparing: parameters that begin as zeros, or nearly, are drawn, and
    BatchNorm takes the statistics of an example, so that values neither vanish nor explode."""
    import torch

    for parameter in network.parameters():
        if parameter.abs().max() < 1e-2:
            torch.nn.init.normal_(parameter, std=0.1)
    norms = [module for module in network.modules() if isinstance(module, torch.nn.modules.batchnorm._BatchNorm)]
    for norm in norms:
        norm.momentum = None  # the mean of all examples
        norm.train()
    with torch.no_grad():
        for _ in range(2 if norms else 0):
            network(example)
    return network.eval()


def image(name, network, side=224):
    import torch

    stir(network.eval(), torch.randn(4, 3, side, side))
    return Architecture(name, network, {"pixels": torch.randn(EXAMPLE_ROWS, 3, side, side)},
                        {"pixels": {0: "batch"}})


def vision(name, side=224, **settings):
    import torchvision

    return image(name, torchvision.models.get_model(name, weights=None, **settings), side)


def segmentation(name, side=224):
    import torch
    import torchvision

    class Classes(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.network = torchvision.models.get_model(name, weights=None, weights_backbone=None)

        def forward(self, pixels):
            return self.network(pixels)["out"]

    return image(name, Classes(), side)


def timm(name, side=224):
    import timm as library

    return image(f"timm_{name}", library.create_model(name, pretrained=False), side)


def first_output(network, *names):
    """Called by position, with the first output alone: what both exporters take."""
    import torch

    class First(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.network = network

        def forward(self, *values):
            return self.network(**dict(zip(names, values)), return_dict=True)[0]

    return First().eval()


def text(name, config, network, mask=True):
    import torch

    names = ("input_ids", "attention_mask") if mask else ("input_ids",)
    inputs = {"input_ids": torch.randint(3, 100, (EXAMPLE_ROWS, LENGTH))}
    if mask:
        inputs["attention_mask"] = torch.ones(EXAMPLE_ROWS, LENGTH, dtype=torch.int64)
    return Architecture(name, first_output(network, *names), inputs,
                        {key: {0: "batch", 1: "sequence"} for key in names}, config.vocab_size)


def hugging(name, **settings):
    """A small one of a family of transformers, over texts."""
    import transformers

    config = getattr(transformers, f"{name}Config")(**settings)
    return text(name.lower(), config, getattr(transformers, f"{name}Model")(config))


SMALL = dict(vocab_size=1000, hidden_size=128, num_hidden_layers=2, num_attention_heads=4, intermediate_size=256)


def t5():
    import transformers

    config = transformers.T5Config(vocab_size=1000, d_model=128, d_kv=32, d_ff=256, num_layers=2, num_heads=4)
    return text("t5_encoder", config, transformers.T5EncoderModel(config))


def pixels(name, network, key, shape):
    import torch

    return Architecture(name, first_output(network, key), {key: torch.randn(EXAMPLE_ROWS, *shape)}, {key: {0: "batch"}})


def whisper():
    import transformers

    config = transformers.WhisperConfig(d_model=128, encoder_layers=2, encoder_attention_heads=4, encoder_ffn_dim=256,
                                        decoder_layers=1, decoder_attention_heads=4, vocab_size=1000, pad_token_id=0,
                                        bos_token_id=1, eos_token_id=2, decoder_start_token_id=1)
    return pixels("whisper_encoder", transformers.WhisperModel(config).encoder, "input_features", (80, 3000))


def clip_vision():
    import transformers

    config = transformers.CLIPVisionConfig(hidden_size=128, intermediate_size=256, num_hidden_layers=2,
                                           num_attention_heads=4, image_size=224, patch_size=32)
    return pixels("clip_vision", transformers.CLIPVisionModel(config), "pixel_values", (3, 224, 224))


def segformer():
    import transformers

    return pixels("segformer_b0", transformers.SegformerForSemanticSegmentation(transformers.SegformerConfig()),
                  "pixel_values", (3, 224, 224))


ARCHITECTURES = {
    **{name: lambda name=name: vision(name) for name in (
        "resnet18", "mobilenet_v2", "mobilenet_v3_small", "efficientnet_b0", "densenet121", "squeezenet1_1",
        "shufflenet_v2_x0_5", "mnasnet0_5", "regnet_y_400mf", "convnext_tiny", "vit_b_32", "swin_t")},
    "googlenet": lambda: vision("googlenet", aux_logits=False, init_weights=True),
    "deeplabv3_mobilenet_v3_large": lambda: segmentation("deeplabv3_mobilenet_v3_large"),
    **{f"timm_{name}": lambda name=name: timm(name) for name in (
        "deit_tiny_patch16_224", "ghostnet_100", "mobilevit_xxs", "edgenext_xx_small", "levit_128s",
        "poolformer_s12", "mobilenetv4_conv_small")},
    "bert": lambda: hugging("Bert", **SMALL),
    "roberta": lambda: hugging("Roberta", **SMALL),
    "albert": lambda: hugging("Albert", **SMALL, embedding_size=64),
    "distilbert": lambda: hugging("DistilBert", vocab_size=1000, dim=128, n_layers=2, n_heads=4, hidden_dim=256),
    "gpt2": lambda: hugging("GPT2", vocab_size=1000, n_embd=128, n_layer=2, n_head=4, use_cache=False),
    "llama": lambda: hugging("Llama", **SMALL, num_key_value_heads=2, use_cache=False),
    "t5_encoder": t5,
    "whisper_encoder": whisper,
    "clip_vision": clip_vision,
    "segformer_b0": segformer,
}  # fmt: skip


def build(name):
    import torch

    torch.manual_seed(0)
    torch.backends.mha.set_fastpath_enabled(False)  # its operator is none that TorchScript's exporter has
    return ARCHITECTURES[name]()


@contextlib.contextmanager
def silent():
    """Without what exporters print."""
    logging.disable(logging.WARNING)
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        yield
    logging.disable(logging.NOTSET)


def export(architecture, exporter, path):
    """Writes path. Errors: NotExported."""
    import torch

    arguments, dimensions = tuple(architecture.inputs.values()), architecture.dimensions
    settings = dict(input_names=list(architecture.inputs), output_names=["output"], opset_version=OPSET[exporter])
    if exporter == "dynamo":
        named = {}
        shapes = [{axis: named.setdefault(name, torch.export.Dim(name)) for axis, name in each.items()}
                  for each in dimensions.values()]
        takes_any_number = inspect.getfullargspec(architecture.network.forward).varargs is not None
        settings["dynamic_shapes"] = (tuple(shapes),) if takes_any_number else tuple(shapes)
    else:
        settings["dynamic_axes"] = {**dimensions, "output": {0: "batch"}}
    try:
        with silent(), torch.no_grad():
            torch.onnx.export(architecture.network, arguments, path, dynamo=exporter == "dynamo", **settings)
    except Exception as error:  # noqa: BLE001 an exporter can raise anything
        raise NotExported(f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error) else ''}") from error
    onnx.checker.check_model(str(path))
