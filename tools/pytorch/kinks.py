"""Kinks: places where a rounding error decides the path of a gradient - the input of a ReLU that is 0
except for rounding, or two maxima of a pooling window that are equal except for rounding.

One such place moves the gradient of a small deep layer by half a per cent, also between PyTorch's own fp32
and float64.  So gradients are compared with equal decisions (`forced`), and where the decisions differ
(`flipped`), rounding must be the cause.
"""

import copy

import torch
from torch import nn
from torch.nn.functional import max_pool2d


class ForcedReLU(nn.Module):
    """ReLU that is open where `mask` is true."""

    def __init__(self, mask):
        super().__init__()
        self.mask = mask

    def forward(self, x):
        return x * self.mask


class ForcedMaxPool(nn.Module):
    """Max pooling that takes the elements `index` (positions in the image, as in PyTorch)."""

    def __init__(self, index):
        super().__init__()
        self.index = index

    def forward(self, x):
        return x.flatten(2).gather(2, self.index.flatten(2)).view(self.index.shape)


def kinks_of(model):
    return {name: m for name, m in model.named_modules() if isinstance(m, (nn.ReLU, nn.MaxPool2d))}


def inputs_of_kinks(model, step):
    """Returns, for every kink, its input while step() runs, and the name of the module that made that input."""
    made_by, given = {}, {}

    def note(name):
        def hook(module, inputs, output):
            if not isinstance(module, nn.Sequential):
                made_by[id(output)] = (name, output)  # kept alive, so that no other tensor gets its id
            if isinstance(module, (nn.ReLU, nn.MaxPool2d)):
                given[name] = (inputs[0].detach(), made_by[id(inputs[0])][0])
        return hook

    handles = [m.register_forward_hook(note(name)) for name, m in model.named_modules() if name]
    step()
    for handle in handles:
        handle.remove()
    return given


def decision(module, x):
    """Returns the module's decision for input x: the open elements, or the positions of the maxima."""
    if isinstance(module, nn.ReLU):
        return x > 0
    return max_pool2d(x, module.kernel_size, return_indices=True)[1]


def forced(model, decisions):
    """Returns the same model with its kinks decided in advance."""
    model = copy.deepcopy(model)
    for name, module in kinks_of(model).items():
        parent, _, child = name.rpartition(".")
        made = ForcedReLU if isinstance(module, nn.ReLU) else ForcedMaxPool
        setattr(model.get_submodule(parent), child, made(decisions[name]))
    return model


def near(module, x, margin):
    """Returns the kink's decision, inverted wherever an error of `margin` of x's deviation could invert it."""
    distance = margin * x.square().mean().sqrt()
    if isinstance(module, nn.ReLU):
        return (x > 0) ^ (x.abs() < distance)
    first, index = max_pool2d(x, module.kernel_size, return_indices=True)
    rest = x.flatten(2).scatter(2, index.flatten(2), -torch.inf).view(x.shape)
    second, other = max_pool2d(rest, module.kernel_size, return_indices=True)
    return torch.where((first - second < distance) & (first > 0), other, index)


def flipped(module, x, theirs):
    """Returns how many decisions about x differ from `theirs`, and the largest distance of one from its kink,
    as a part of x's deviation."""
    ours = decision(module, x)
    if isinstance(module, nn.ReLU):
        distance = x.abs()[ours != theirs]
    else:
        flat = x.flatten(2)
        gap = flat.gather(2, ours.flatten(2)) - flat.gather(2, theirs.flatten(2))
        # A window without an open ReLU has no gradient.
        distance = gap[(ours != theirs).flatten(2) & (flat.gather(2, ours.flatten(2)) > 0)]
    if distance.numel() == 0:
        return 0, 0.0
    return distance.numel(), (distance.max() / x.square().mean().sqrt()).item()


def without_kinks(module):
    """Returns the same model without ReLU, and with the mean of each pooling window."""
    for name, child in module.named_children():
        if isinstance(child, nn.ReLU):
            setattr(module, name, nn.Identity())
        elif isinstance(child, nn.MaxPool2d):
            setattr(module, name, nn.AvgPool2d(child.kernel_size))
        else:
            without_kinks(child)
    return module
