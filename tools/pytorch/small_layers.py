#!/usr/bin/env python3
"""Makes tests/golden/small_layers.json: PyTorch's values of activations, normalisations and losses.

    python3 tools/pytorch/small_layers.py > tests/golden/small_layers.json   (needs torch and numpy)

The layers are torch.nn's, in double. Numbers that can be computed are not stored: with unit(stream, i) of
lenet_sgd.py,

    input 0, element i          4 unit(600, i)
    target, element i           (unit(601, i) + 1) / 2;   of classes: bits(601, i) >> 33 mod classes
    parameter p                 unit(640 + p, i)
    gradient by the output      unit(660, i); of a loss 1
"""

import json
import re

import numpy as np
import torch
from torch import nn

from counted import numbered_bits, numbered_unit


def unit(stream, shape):
    return torch.from_numpy(numbered_unit(stream, shape)).double()


def report(case, x, parameters, output, upstream):
    output.backward(upstream)
    case["output"] = output.flatten().tolist()
    case["input_gradient"] = x.grad.flatten().tolist()
    case["param_gradients"] = [p.grad.flatten().tolist() for p in parameters]
    return case


def layer(kind, keys, module, shape):
    module = module.double()
    parameters = list(module.parameters())
    with torch.no_grad():
        for p, parameter in enumerate(parameters):
            parameter.copy_(unit(640 + p, tuple(parameter.shape)))
    x = (4 * unit(600, shape)).requires_grad_()
    y = module(x)
    case = {"type": kind, "keys": keys, "inputs": [list(shape)], "classes": [0]}
    return report(case, x, parameters, y, unit(660, tuple(y.shape)))


def target_of(shape, target, classes):
    """Returns the targets for dtrain and for PyTorch; a class is 1 at its score and 0 at the others."""
    if classes == 0:
        return ((unit(601, target) + 1) / 2).reshape(shape)
    drawn = (numbered_bits(601, int(np.prod(target))) >> np.uint64(33)) % np.uint64(classes)
    labels = torch.from_numpy(drawn.astype(np.int64)).reshape(target)
    if shape[-1] == 1 or shape == target:
        return labels.double().reshape(shape)
    return nn.functional.one_hot(labels, shape[-1]).double()


def loss(kind, module, shape, target, classes=0):
    """Returns the losses of the samples; their sum has the gradients of dtrain at loss_scale 1."""
    x = (4 * unit(600, shape)).requires_grad_()
    y = module(reduction="none")(x, target_of(shape, target, classes)).flatten(1).mean(1)
    case = {"type": kind, "keys": "{}", "inputs": [list(shape), list(target)], "classes": [0, classes]}
    return report(case, x, [], y, torch.ones_like(y))


def main():
    torch.set_num_threads(1)
    image, words, rows = (2, 6, 3, 4), (2, 3, 10), (4, 9)
    cases = [
        layer("sigmoid", "{}", nn.Sigmoid(), rows),
        layer("silu", "{}", nn.SiLU(), rows),
        layer("gelu", "{}", nn.GELU(), rows),
        layer("gelu", "{approximate: tanh}", nn.GELU(approximate="tanh"), rows),
        layer("leaky_relu", "{}", nn.LeakyReLU(), rows),
        layer("leaky_relu", "{slope: 0.2}", nn.LeakyReLU(0.2), rows),
        layer("layer_norm", "{}", nn.LayerNorm(10), words),
        layer("layer_norm", "{axes: 3, eps: 0.001}", nn.LayerNorm(image[1:], eps=0.001), image),
        layer("layer_norm", "{affine: false}", nn.LayerNorm(9, elementwise_affine=False), rows),
        layer("group_norm", "{groups: 3}", nn.GroupNorm(3, 6), image),
        layer("group_norm", "{groups: 1}", nn.GroupNorm(1, 6), image),
        layer("group_norm", "{groups: 3, eps: 0.001}", nn.GroupNorm(3, 9, eps=0.001), rows),
        # Caffe's defaults, then PyTorch's.
        layer("lrn", "{}", nn.LocalResponseNorm(5, alpha=1), image),
        layer("lrn", "{alpha: 0.0001}", nn.LocalResponseNorm(5), image),
        layer("lrn", "{local_size: 3, alpha: 0.5, beta: 0.6, k: 2}",
              nn.LocalResponseNorm(3, alpha=0.5, beta=0.6, k=2), image),
        loss("mean_squared_error", nn.MSELoss, rows, rows),
        loss("mean_squared_error", nn.MSELoss, (5, 1), (5,)),
        loss("mean_squared_error", nn.MSELoss, (5, 1), (5,), 10),
        loss("mean_squared_error", nn.MSELoss, rows, (4,), 9),
        loss("binary_cross_entropy", nn.BCEWithLogitsLoss, rows, rows),
        loss("binary_cross_entropy", nn.BCEWithLogitsLoss, (5, 1), (5,), 2),
        loss("binary_cross_entropy", nn.BCEWithLogitsLoss, rows, rows, 2),
        loss("binary_cross_entropy", nn.BCEWithLogitsLoss, rows, (4,), 9),
    ]
    text = json.dumps({"made_by": "tools/pytorch/small_layers.py, torch " + torch.__version__.split("+")[0],
                       "cases": cases}, indent=1)
    print(re.sub(r"\[[^\[\]]*\]", lambda m: " ".join(m[0].split()), text))


if __name__ == "__main__":
    main()
