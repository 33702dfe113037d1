"""Random small networks of torch, exported by one of its exporters."""

import contextlib
import io
import logging
import os
import sys
import warnings

import numpy as np
import onnx
import torch
from torch import nn
from torch.nn import functional

from exports import Case, NotExported

ACTIVATIONS = [nn.ReLU, nn.GELU, nn.SiLU, nn.Tanh, nn.Sigmoid, nn.LeakyReLU, nn.ELU, nn.Softplus, nn.Mish, nn.Hardswish,
               nn.Hardsigmoid, nn.ReLU6, nn.SELU, nn.CELU, nn.PReLU, nn.Softsign, nn.LogSigmoid, nn.Hardtanh,
               nn.Softshrink, nn.Tanhshrink, nn.Identity]  # fmt: skip


def activation(r):
    return r.choice(ACTIVATIONS)()


class Wrapped(nn.Module):
    """A function of modules as a module."""

    def __init__(self, function, *modules):
        super().__init__()
        self.function = function
        self.parts = nn.ModuleList(modules)

    def forward(self, *inputs):
        return self.function(*self.parts, *inputs)


def dense(r, width):
    """Layers that keep [rows, width]."""
    kind = r.randrange(9)
    if kind <= 2:
        hidden = r.choice([3, 8, 17, 32])
        return nn.Sequential(nn.Linear(width, hidden, bias=r.random() < 0.8), activation(r), nn.Linear(hidden, width))
    if kind == 3:
        return r.choice([nn.LayerNorm(width, eps=r.choice([1e-5, 1e-3])), nn.BatchNorm1d(width), nn.RMSNorm(width, eps=1e-5)])
    if kind == 4:
        return Wrapped(lambda inner, x: x + inner(x), nn.Sequential(nn.Linear(width, width), activation(r)))
    if kind == 5:
        return Wrapped(lambda a, b, x: a(x) * torch.sigmoid(b(x)), nn.Linear(width, width), nn.Linear(width, width))
    if kind == 6:
        p = r.choice([1.0, 2.0])
        return Wrapped(lambda x: functional.normalize(x, p=p, dim=-1))
    if kind == 7:
        scale = r.choice([1.0, float(width) ** 0.5, 3.0])
        return Wrapped(lambda x: functional.softmax(x / scale, dim=1) * x)
    dim, keep = -1, True
    reduce = r.choice([torch.mean, torch.amax, torch.sum, torch.logsumexp, torch.amin])
    return Wrapped(lambda x: x - reduce(x, dim, keep))


def mlp(r):
    width = r.choice([1, 2, 5, 8, 12, 16, 33])
    layers = [dense(r, width) for _ in range(r.randint(1, 5))]
    head = r.choice([lambda: nn.Linear(width, r.choice([1, 2, 7])), nn.Softmax, nn.LogSoftmax, nn.Identity])
    last = head(dim=-1) if head in (nn.Softmax, nn.LogSoftmax) else head()
    return nn.Sequential(*layers, last), {"x": ("float", (width,))}


def norm2d(r, channels):
    groups = r.choice([g for g in (1, 2, 4, channels) if channels % g == 0])
    return r.choice([lambda: nn.BatchNorm2d(channels), lambda: nn.GroupNorm(groups, channels),
                     lambda: nn.InstanceNorm2d(channels, affine=r.random() < 0.5), nn.Identity])()  # fmt: skip


def convolution(r, inward, outward):
    groups = r.choice([g for g in (1, 1, 2, inward) if inward % g == 0 and outward % g == 0])
    kernel, dilation = r.choice([1, 2, 3, 3, 5, (1, 3), (3, 2)]), r.choice([1, 1, 2])
    if r.random() < 0.15:
        stride = r.choice([1, 2])
        return nn.ConvTranspose2d(inward, outward, r.choice([2, 3, 4]), stride=stride, padding=r.choice([0, 1]),
                                  output_padding=r.choice([0, stride - 1]), groups=groups)  # fmt: skip
    mode = r.choice(["zeros", "zeros", "zeros", "reflect", "replicate", "circular"])
    stride = r.choice([1, 1, 2])
    padding = "same" if stride == 1 and r.random() < 0.3 else r.choice([0, 1, 2]) if mode == "zeros" else 1
    return nn.Conv2d(inward, outward, kernel, stride=stride, padding=padding, dilation=dilation, groups=groups,
                     bias=r.random() < 0.7, padding_mode=mode)  # fmt: skip


def image_layer(r, channels):
    kind = r.randrange(12)
    if kind <= 3:
        return nn.Sequential(convolution(r, channels, channels), norm2d(r, channels), activation(r))
    if kind == 4:
        return r.choice([nn.MaxPool2d(2, ceil_mode=r.random() < 0.5), nn.AvgPool2d(3, 2, 1, r.random() < 0.5, r.random() < 0.5),
                         nn.MaxPool2d(3, 1, 1), nn.LPPool2d(2, 2), nn.AdaptiveAvgPool2d(1)])  # fmt: skip
    if kind == 5:
        mode = r.choice(["nearest", "bilinear", "bicubic"])
        corners = None if mode == "nearest" else r.random() < 0.5
        return nn.Upsample(scale_factor=r.choice([2, 1.5, 0.5]), mode=mode, align_corners=corners)
    if kind == 6:
        return nn.Sequential(nn.Conv2d(channels, 4 * channels, 1), nn.PixelShuffle(2))
    if kind == 7:
        inner = nn.Sequential(nn.Conv2d(channels, channels, 3, padding=1), activation(r))
        return Wrapped(lambda i, x: torch.cat([i(x), x], 1)[:, ::2] if r.random() < 0 else x + i(x), inner)
    if kind == 8:
        squeeze = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(channels, 2, 1), activation(r), nn.Conv2d(2, channels, 1))
        return Wrapped(lambda s, x: x * torch.sigmoid(s(x)), squeeze)
    if kind == 9:
        left, mode = r.choice([0, 1, 2]), r.choice(["constant", "reflect", "replicate"])
        return Wrapped(lambda x: functional.pad(x, (left, 1, 1, 0), mode=mode))
    if kind == 10:
        return Wrapped(lambda x: x.flip(3) + x.roll(1, 2) * torch.tril(torch.ones_like(x)))
    return norm2d(r, channels)


def image(r):
    channels, side = r.choice([1, 3, 4, 6]), r.choice([7, 8, 12, 16])
    width = r.choice([2, 4, 6, 8, 16])
    layers = [nn.Conv2d(channels, width, 3, padding=1)] + [image_layer(r, width) for _ in range(r.randint(1, 5))]
    head = r.choice([[], [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 5)],
                     [nn.AdaptiveMaxPool2d(1), nn.Flatten(1)], [nn.Flatten(2), nn.Softmax(-1)]])  # fmt: skip
    return nn.Sequential(*layers, *head), {"pixels": ("float", (channels, side, side + r.choice([0, 3])))}


def signal(r):
    channels, length = r.choice([1, 4, 6]), r.choice([9, 16, 25])
    width = r.choice([4, 8])
    layers = [nn.Conv1d(channels, width, r.choice([1, 3, 5]), padding=r.choice([0, 2]), stride=r.choice([1, 2]))]
    for _ in range(r.randint(0, 3)):
        layers.append(r.choice([
            lambda: nn.Conv1d(width, width, 3, padding=2, dilation=2, groups=r.choice([1, 2, width])),
            lambda: nn.BatchNorm1d(width), lambda: activation(r), lambda: nn.MaxPool1d(2, 1), lambda: nn.AvgPool1d(3, 1, 1),
            lambda: nn.GroupNorm(2, width), lambda: nn.Conv1d(width, width, 3, padding=1, padding_mode="circular"),
            lambda: nn.ConvTranspose1d(width, width, 4, 2, 1), lambda: nn.Upsample(scale_factor=2, mode="linear")])())  # fmt: skip
    head = r.choice([[], [nn.AdaptiveAvgPool1d(1), nn.Flatten()], [Wrapped(lambda x: x.mean(2))],
                     [Wrapped(lambda x: torch.stft(x[:, 0], 4, 2, return_complex=False, center=False)
                              if False else x.cumsum(2))]])  # fmt: skip
    return nn.Sequential(*layers, *head), {"signal": ("float", (channels, length))}


def attention(r, width, heads, causal):
    def apply(query, key, value, out, x):
        shape = (x.shape[0], x.shape[1], heads, width // heads)
        q, k, v = (part(x).view(shape).transpose(1, 2) for part in (query, key, value))
        if fused:
            mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
        else:
            scores = q @ k.transpose(-2, -1) / (width // heads) ** 0.5
            if causal:
                length = x.shape[1]
                scores = scores.masked_fill(torch.triu(torch.ones(length, length, dtype=torch.bool), 1), fill)
            mixed = scores.softmax(-1) @ v
        return x + out(mixed.transpose(1, 2).reshape(x.shape[0], -1, width))

    fused, fill = r.random() < 0.5, r.choice([float("-inf"), -1e9, -1e4])
    return Wrapped(apply, *(nn.Linear(width, width, bias=r.random() < 0.7) for _ in range(4)))


def transformer(r):
    heads, width = r.choice([(1, 4), (2, 8), (4, 16), (2, 12)])
    length, entries = r.choice([1, 4, 7, 16]), 30
    layers = []
    for _ in range(r.randint(1, 2)):
        layers.append(r.choice([
            lambda: attention(r, width, heads, r.random() < 0.5),
            lambda: nn.TransformerEncoderLayer(width, heads, 2 * width, 0.0, r.choice(["relu", "gelu"]), batch_first=True,
                                               norm_first=r.random() < 0.5),
            lambda: Wrapped(lambda m, x: m(x, x, x, need_weights=False)[0],
                            nn.MultiheadAttention(width, heads, batch_first=True, bias=r.random() < 0.5))])())  # fmt: skip
        layers.append(r.choice([nn.LayerNorm(width), nn.Sequential(nn.Linear(width, width), activation(r)), nn.RMSNorm(width, 1e-5)]))
    pool = r.choice([lambda x: x.mean(1), lambda x: x[:, 0], lambda x: x.amax(1), lambda x: x, lambda x: x[:, -1].softmax(-1)])
    if r.random() < 0.5:
        position = nn.Embedding(length, width)
        network = Wrapped(lambda e, p, body, ids: pool(body(e(ids) + p(torch.arange(length)))),
                          nn.Embedding(entries, width, padding_idx=r.choice([None, 0])), position, nn.Sequential(*layers))  # fmt: skip
        return network, {"ids": (entries, (length,))}
    return Wrapped(lambda body, x: pool(body(x)), nn.Sequential(*layers)), {"x": ("float", (length, width))}


def recurrent(r):
    inward, hidden, steps = r.choice([1, 3, 8]), r.choice([2, 5, 8]), r.choice([1, 4, 9])
    kind = r.choice([nn.LSTM, nn.GRU, nn.RNN])
    options = {"nonlinearity": r.choice(["tanh", "relu"])} if kind is nn.RNN else {}
    core = kind(inward, hidden, num_layers=r.choice([1, 2]), batch_first=True, bidirectional=r.random() < 0.4,
                bias=r.random() < 0.8, **options)  # fmt: skip
    last = r.choice([lambda m, x: m(x)[0], lambda m, x: m(x)[0][:, -1], lambda m, x: m(x)[0].mean(1)])
    return Wrapped(last, core), {"x": ("float", (steps, inward))}


def recommender(r):
    fields, width, entries = r.randint(1, 4), r.choice([2, 4, 8]), r.choice([5, 20])
    tables = nn.ModuleList(nn.Embedding(entries, width) for _ in range(fields))
    bottom, top = nn.Linear(3, width), nn.Linear(width + (fields + 1) ** 2, 1)

    def apply(tables, bottom, top, ids, numbers):
        dense_part = torch.relu(bottom(numbers))
        parts = torch.stack([table(ids[:, i]) for i, table in enumerate(tables)] + [dense_part], 1)
        meet = torch.bmm(parts, parts.transpose(1, 2)).flatten(1)
        return torch.sigmoid(top(torch.cat([dense_part, meet], 1))).squeeze(1)

    return Wrapped(apply, tables, bottom, top), {"ids": (entries, (fields,)), "numbers": ("float", (3,))}


def chain(r):
    """Functions of tensors that keep [rows, a, b]."""
    a, b = r.choice([(2, 3), (4, 4), (1, 6), (5, 8)])
    picks = torch.tensor([r.randrange(b) for _ in range(b)])
    order = r.choice([True, False])
    steps = r.choices([
        lambda x: x.transpose(1, 2).reshape(x.shape[0], a, b), lambda x: x.view(-1, a * b).view(-1, a, b),
        lambda x: x.index_select(2, picks), lambda x: torch.where(x > 0, x, 0.1 * x), lambda x: x.clamp(-1, 1),
        lambda x: torch.cat([x[:, :1], x[:, 1:]], 1), lambda x: x.sort(2, descending=order)[0], lambda x: x.cumsum(1),
        lambda x: x.unsqueeze(1).expand(-1, 2, -1, -1).mean(1), lambda x: torch.stack([x, -x], 3).amax(3),
        lambda x: x.permute(2, 0, 1).permute(1, 2, 0), lambda x: torch.einsum("nab,nac->nbc", x, x)[:, :1] + x,
        lambda x: x.pow(2).sum(2, keepdim=True).add(1).rsqrt() * x, lambda x: x / x.abs().amax((1, 2), keepdim=True).clamp(min=1),
        lambda x: x.gather(2, x.argsort(2)), lambda x: x.var(2, keepdim=True, unbiased=order) + x,
        lambda x: (x - x.mean(2, keepdim=True)) / (x.std(2, keepdim=True) + 1), lambda x: x.chunk(2, 2)[0].repeat(1, 1, 2)[:, :, :b] + x,
        lambda x: torch.atan2(x, x.abs() + 1), lambda x: x.roll(1, 1), lambda x: torch.remainder(x, 1.5), lambda x: x.erf().exp(),
        lambda x: x.masked_fill(x < 0, 0.5), lambda x: torch.baddbmm(x, x @ x.mT, x), lambda x: x.unfold(2, 1, 1).squeeze(3),
        lambda x: x * (x.long() % 3), lambda x: torch.log1p(x.abs()), lambda x: functional.glu(torch.cat([x, x], 2), 2),
        lambda x: x.prod(2, keepdim=True).tanh() + x, lambda x: functional.one_hot(x.argmax(2), b).float() + x], k=r.randint(1, 5))  # fmt: skip

    def apply(x):
        for step in steps:
            x = step(x)
        return x

    return Wrapped(apply), {"x": ("float", (a, b))}


def coupled(r):
    """The first dimension is a set or a sequence, or rows meet."""
    width = r.choice([3, 4, 8])
    inner = nn.Linear(width, width)
    function = r.choice([
        lambda f, x: f(x).view(1, -1, width).amax(1), lambda f, x: functional.softmax(x @ x.T, -1) @ f(x),
        lambda f, x: f(x) / x.abs().max().clamp(min=10), lambda f, x: f(x) - f(x).mean(0), lambda f, x: f(x).cumsum(0),
        lambda f, x: f(x).flip(0), lambda f, x: f(x).t().unsqueeze(0).softmax(2), lambda f, x: f(x) * functional.softmax(x, 0),
        lambda f, x: f(x)[torch.argsort(x[:, 0])], lambda f, x: f(x).reshape(1, -1, width).transpose(1, 2).mean(2),
        lambda f, x: f(x).sum() + x, lambda f, x: functional.layer_norm(f(x).view(1, -1), [x.numel()]) if False else f(x).std() + f(x)])  # fmt: skip
    return Wrapped(function, inner), {"x": ("float", (width,))}


KINDS = [mlp, mlp, image, image, image, signal, transformer, transformer, recurrent, recommender, chain, chain, coupled]


def stir(network, example):
    """Parameters that begin as zeros or ones are drawn, and BatchNorm takes statistics."""
    for parameter in network.parameters():
        if parameter.numel() > 1 and parameter.std() < 1e-3:
            parameter.data.add_(torch.randn_like(parameter) * 0.2)
    network.train()
    with torch.no_grad():
        for _ in range(2):
            network(*example)
    return network.eval()


def drawn(kind, shape, count):
    if kind == "float":
        return torch.randn(count, *shape)
    return torch.randint(0, kind, (count, *shape))


@contextlib.contextmanager
def silent():
    """Torch prints graphs that it can't export, from C++."""
    sys.stdout.flush()
    kept, nothing = [os.dup(1), os.dup(2)], os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1), os.dup2(nothing, 2)
    try:
        yield
    finally:
        sys.stdout.flush()
        for number, old in enumerate(kept, 1):
            os.dup2(old, number), os.close(old)
        os.close(nothing)


def exported(network, names, example, exporter, opset):
    dimensions = {name: {0: "batch"} for name in names}
    written = io.BytesIO()
    with silent(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.disable(logging.WARNING)
        if exporter == "dynamo":
            shapes = [{0: torch.export.Dim.DYNAMIC} for _ in names]
            shapes = (tuple(shapes),) if isinstance(network, Wrapped) else tuple(shapes)
            program = torch.onnx.export(network, example, dynamo=True, input_names=names, dynamic_shapes=shapes, verbose=False)
            return program.model_proto
        torch.onnx.export(network, example, written, dynamo=False, input_names=names, opset_version=opset, dynamic_axes=dimensions,
                          do_constant_folding=opset % 2 == 0)  # fmt: skip
    return onnx.load_from_string(written.getvalue())


def make(r, dynamo_share):
    torch.manual_seed(r.getrandbits(31))
    torch.set_num_threads(1)
    kind = r.choice(KINDS)
    exporter = "dynamo" if r.random() < dynamo_share else "torchscript"
    opset = r.choice([11, 12, 13, 14, 15, 16, 17, 18, 19, 20])
    name = f"torch {kind.__name__} {exporter} {opset if exporter == 'torchscript' else ''}"
    try:
        network, inputs = kind(r)
        example = tuple(drawn(*spec, 3) for spec in inputs.values())
        stir(network, example)
        with torch.no_grad():
            network(*example)
        model = exported(network, list(inputs), example, exporter, opset)
    except Exception as error:  # what a network or an exporter does not do is of many types
        raise NotExported(f"{name}: {type(error).__name__} {str(error)[:100]}") from error
    names = [value.name for value in model.graph.input]

    def answers(values):
        with torch.no_grad():
            given = [torch.from_numpy(np.ascontiguousarray(values[n])) for n in inputs if n in values]
            if len(given) < len(inputs):
                return None
            return [network(*given).numpy()]

    rows = {n: drawn(*inputs[n], 18).numpy() for n in names}
    return Case(name, model, rows, answers, kind is not coupled)
