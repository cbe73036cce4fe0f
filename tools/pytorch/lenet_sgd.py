#!/usr/bin/env python3
"""Makes tests/golden/lenet5_sgd.json: ten SGD steps of the classic LeNet-5 in PyTorch.

    python3 tools/pytorch/lenet_sgd.py > tests/golden/lenet5_sgd.json        (needs torch and numpy)

Weights, inputs and labels are not in files: formulas compute them from integers, to the bit in any
language (tests/support/golden_inputs.h is the C++ version).

    bits(stream, i) = mix(stream * 2^32 + i)                       mix: see counted.py
    unit(stream, i) = (bits(stream, i) >> 44) / 2^19 - 1           20 bits, in [-1, 1)

    parameter p (0: conv1.weight, 1: conv1.bias, ... 9: fc3.bias, the order below), element i in
    PyTorch's row-major order:  unit(100 + p, i) * 2^-e, with 2^-e per parameter in PARAMETERS
    label of step s, sample n:                      (bits(300 + s, n) >> 33) mod 10
    input of step s, pixel i of sample n, i < 784:  (unit(200 + s, 784 n + i)
                                                     + unit(400 + label, i)) / 2

Numbers of 20 bits, sums of two of them and powers of two are exact in fp32, so nothing is rounded.
Each class has a pattern under the noise: the loss falls, and a wrong sign, scale, momentum or decay
shows.
"""

import json
import sys

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from counted import numbered_bits, numbered_unit

STEPS, BATCH, CLASSES = 10, 64, 10
SOLVER = {"lr": 0.01, "momentum": 0.9, "weight_decay": 0.0005}

# name, shape, exponent e of the scale 2^-e (weights near Kaiming's sqrt(2 / fan_in))
PARAMETERS = [
    ("conv1.weight", (6, 1, 5, 5), 1), ("conv1.bias", (6,), 3),
    ("conv2.weight", (16, 6, 5, 5), 2), ("conv2.bias", (16,), 4),
    ("fc1.weight", (120, 400), 3), ("fc1.bias", (120,), 4),
    ("fc2.weight", (84, 120), 2), ("fc2.bias", (84,), 4),
    ("fc3.weight", (10, 84), 2), ("fc3.bias", (10,), 4),
]


def unit(stream, shape):
    return torch.from_numpy(numbered_unit(stream, shape))


def labels(step):
    return torch.from_numpy(
        ((numbered_bits(300 + step, BATCH) >> np.uint64(33)) % np.uint64(CLASSES)).astype(np.int64))


def images(step):
    patterns = torch.stack([unit(400 + label, (1, 28, 28)) for label in range(CLASSES)])
    return (unit(200 + step, (BATCH, 1, 28, 28)) + patterns[labels(step)]) / 2


class LeNet5(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, padding=2)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(400, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, 10)

    def forward(self, x):
        x = functional.max_pool2d(functional.relu(self.conv1(x)), 2)
        x = functional.max_pool2d(functional.relu(self.conv2(x)), 2)
        x = functional.relu(self.fc1(x.flatten(1)))
        return self.fc3(functional.relu(self.fc2(x)))


def make_model(dtype):
    model = LeNet5().to(dtype)
    with torch.no_grad():
        for index, (name, shape, exponent) in enumerate(PARAMETERS):
            model.get_parameter(name).copy_(unit(100 + index, shape) * 2.0**-exponent)
    return model


def train(dtype):
    """Returns the losses before each of the STEPS updates, and logits and weight sums after the last."""
    model = make_model(dtype)
    optimizer = torch.optim.SGD(model.parameters(), **SOLVER)
    losses = []
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(images(step).to(dtype)), labels(step))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    with torch.no_grad():
        logits = model(images(STEPS).to(dtype))[:2].double()
        sums = {name: model.get_parameter(name).double().sum().item() for name, _, _ in PARAMETERS}
    return losses, logits.tolist(), sums


def main():
    torch.set_num_threads(1)
    losses64, logits64, sums64 = train(torch.float64)
    losses32, logits32, sums32 = train(torch.float32)
    checks = {
        "conv1.weight[0..3]": make_model(torch.float64).conv1.weight.flatten()[:4].tolist(),
        "input[step 0][0..3]": images(0).flatten()[:4].tolist(),
        "labels[step 0][0..7]": labels(0)[:8].tolist(),
    }
    json.dump({
        "made_by": "tools/pytorch/lenet_sgd.py, torch " + torch.__version__.split("+")[0],
        "model": "lenet5", "batch": BATCH, "steps": STEPS, "solver": SOLVER,
        "inputs_check": checks,
        "float64": {"losses": losses64, "logits_after": logits64, "weight_sums_after": sums64},
        "float32": {"losses": losses32, "logits_after": logits32, "weight_sums_after": sums32},
    }, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
