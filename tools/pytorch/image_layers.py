#!/usr/bin/env python3
"""Compares convolution, pooling and eltwise with all their keys with PyTorch, each layer alone, in fp32.

    python3 tools/pytorch/image_layers.py --build build/release        (needs torch and safetensors)

Each line of CASES is a layer of a model file and the same in PyTorch.  Inputs, weights and the gradient of the
output are random; the output and all gradients are compared, each as ||d|| / ||PyTorch's||.  The exit code is 1 if
one is above 2e-6.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

import torch
from safetensors.torch import load_file, save_file
from torch import nn

SAMPLE, BATCH, BOUND = (12, 17, 14), 5, 2e-6


def conv(outputs, kernel, **keys):
    return nn.Conv2d(SAMPLE[0], outputs, kernel, **keys)


CASES = [
    ("convolution, outputs: 8, kernel: [3, 5], pad: [1, 2]", conv(8, (3, 5), padding=(1, 2))),
    ("convolution, outputs: 16, kernel: 3, stride: [2, 1], bias: false", conv(16, 3, stride=(2, 1), bias=False)),
    ("convolution, outputs: 8, kernel: 3, dilation: 2, pad: 2", conv(8, 3, dilation=2, padding=2)),
    ("convolution, outputs: 8, kernel: [2, 3], dilation: [4, 1], stride: 2", conv(8, (2, 3), dilation=(4, 1), stride=2)),
    ("convolution, outputs: 8, kernel: 3, pad: 1, groups: 4", conv(8, 3, padding=1, groups=4)),
    ("convolution, outputs: 24, kernel: 1, groups: 3", conv(24, 1, groups=3)),
    ("convolution, outputs: 12, kernel: 3, pad: 1, stride: 2, groups: 12",
     conv(12, 3, padding=1, stride=2, groups=12)),
    ("convolution, outputs: 24, kernel: [5, 1], dilation: [3, 1], pad: [6, 0], groups: 12",
     conv(24, (5, 1), dilation=(3, 1), padding=(6, 0), groups=12)),
    ("pooling, kernel: [2, 3]", nn.MaxPool2d((2, 3))),
    ("pooling, kernel: [4, 2], stride: [2, 1], pad: [2, 0]", nn.MaxPool2d((4, 2), (2, 1), (2, 0))),
    ("pooling, method: average, kernel: [1, 4], stride: [1, 2], pad: [0, 2]", nn.AvgPool2d((1, 4), (1, 2), (0, 2))),
    ("pooling, global: true", nn.AdaptiveMaxPool2d(1)),
    ("pooling, method: average, global: true", nn.AdaptiveAvgPool2d(1)),
    ("pooling, adaptive: [5, 4]", nn.AdaptiveMaxPool2d((5, 4))),
    ("pooling, method: average, adaptive: [5, 4]", nn.AdaptiveAvgPool2d((5, 4))),
    ("pooling, method: average, adaptive: 7", nn.AdaptiveAvgPool2d(7)),
    ("pooling, method: average, adaptive: [20, 17]", nn.AdaptiveAvgPool2d((20, 17))),
    ("pooling, adaptive: [20, 3]", nn.AdaptiveMaxPool2d((20, 3))),
    ("eltwise, input: [data, data, data]", lambda a, b, c: a + b + c),
    ("eltwise, operation: product, input: [data, data, data]", lambda a, b, c: a * b * c),
    ("eltwise, operation: max, input: [data, data, data]", lambda a, b, c: torch.maximum(torch.maximum(a, b), c)),
]


def relative(ours, theirs):
    return ((ours.double() - theirs.double()).norm() / theirs.double().norm()).item()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build/release", help="folder with step_dump")
    options = parser.parse_args()
    torch.manual_seed(1)
    lines, given, wanted = [f"name: image_layers\nsample: {list(SAMPLE)}\nlayers:"], {}, {}
    for number, (keys, layer) in enumerate(CASES):
        name = f"layer{number}"
        data = "" if "input:" in keys else ", input: data"
        lines.append(f"  - {{name: {name}, type: {keys}{data}}}")
        inputs = [torch.randn(BATCH, *SAMPLE, requires_grad=True) for _ in range(3 if "input:" in keys else 1)]
        output = layer(*inputs)
        upstream = torch.randn_like(output)
        output.backward(upstream)
        given |= {f"{name}.input.{k}": x.detach() for k, x in enumerate(inputs)}
        given[f"{name}.output_gradient"] = upstream
        wanted[f"{name}.output"] = output.detach()
        wanted |= {f"{name}.input_gradient.{k}": x.grad for k, x in enumerate(inputs)}
        for parameter, value in layer.named_parameters() if isinstance(layer, nn.Module) else ():
            given[f"{name}.{parameter}"] = value.detach()
            wanted[f"{name}.gradient.{name}.{parameter}"] = value.grad
    with tempfile.TemporaryDirectory() as folder:
        model, source, result = (pathlib.Path(folder) / n for n in ("m.yaml", "in.safetensors", "out.safetensors"))
        model.write_text("\n".join(lines) + "\n")
        save_file({k: v.contiguous() for k, v in given.items()} | {"terms": torch.tensor([1], dtype=torch.int32)}, source)
        subprocess.run([pathlib.Path(options.build) / "step_dump", "layers", model, source, result], check=True)
        ours = load_file(result)
    worst = 0
    for number, (keys, _) in enumerate(CASES):
        errors = {k.split(".", 1)[1]: relative(ours[k], v) for k, v in wanted.items() if k.startswith(f"layer{number}.")}
        part = max(errors, key=errors.get)
        worst = max(worst, errors[part])
        print(f"{errors[part]:8.1e}  {part.replace(f'layer{number}.', ''):<18} {keys}")
    print(f"largest {worst:.1e}, bound {BOUND:.0e}")
    return int(not worst <= BOUND)


if __name__ == "__main__":
    sys.exit(main())
