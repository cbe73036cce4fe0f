#!/usr/bin/env python3
"""Compares dtrain with PyTorch: one step of each with the same weights and batch, in fp32.

    python3 tools/pytorch/compare.py --build build/release [MODEL ...]
    python3 tools/pytorch/compare.py --build build/release --golden tests/golden      (writes the files)

For each model it compares loss and logits in training and in evaluation, every gradient tensor, the
batch-norm statistics after the step, and each layer alone with PyTorch's own inputs and upstream gradients;
first with direct convolutions, then with the default ones (Winograd's).  Bounds: loss and logits 1e-4; a
gradient ||d|| <= 5e-3 ||g|| + 1e-6 ||all gradients||; a layer alone 1e-5, a Winograd convolution 1e-4, and
5e-4 for the logits of VGG's training through 15 of those.  The exit code is 1 if a bound is exceeded.  Needs
torch, numpy, safetensors, and a build with tests (the program step_dump).

PyTorch's gradients are computed with the same open ReLUs and the same maxima as dtrain's (for the reason see
kinks.py).  Where PyTorch alone decides otherwise, the distance from the kink must be at most 1e-4 of the
deviation of the layer's values.  The difference of the gradients without that, and of PyTorch's own fp32
from its float64, is also printed.

--weights counted  from names and counters (counted.py), torch (PyTorch's own initialisers), or a
                   safetensors file, as written by `dtrain export`
--golden DIR       writes DIR/<model>_step.json, which tests/golden checks without PyTorch: numbers in
                   float64, with counted weights
"""

import argparse
import copy
import functools
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import nn

import counted
import kinks
from models import MODELS, PAD, Seq2Seq

ROOT = pathlib.Path(__file__).resolve().parents[2]
NEAR = 1e-5  # rounding error of a layer's values in fp32, as a part of their deviation
GOLDEN_BATCH = {"lenet5": 16, "resnet18": 4, "vgg19_bn": 8, "vgg19_gssp": 8, "seq2seq_attention": 4}


def fill(model, weights):
    if weights == "torch":
        return
    if weights != "counted":
        model.load_state_dict(load_file(weights), strict=True)
        return
    state = {name: t if t.dtype == torch.int64 else torch.from_numpy(counted.tensor(name, t.shape))
             for name, t in model.state_dict().items()}
    model.load_state_dict(state, strict=True)


def statistics(model):
    return {name: b for name, b in model.named_buffers() if b.is_floating_point()}


def relative(ours, theirs):
    theirs = theirs.double()
    norm = theirs.norm().item()
    return (ours.double() - theirs).norm().item() / (norm if norm > 0 else 1)


class Capture:
    """Records the inputs and output of every leaf module, and the gradient of its output."""

    def __init__(self, model):
        self.calls = {}
        self.handles = [m.register_forward_hook(self.note(name)) for name, m in model.named_modules()
                        if name and not list(m.children()) and name != "shortcut"]

    def note(self, name):
        def hook(module, inputs, output):
            if isinstance(module, nn.Sequential):
                return
            self.calls[name] = [module, [i.detach() for i in inputs], output]
            if output.requires_grad:
                output.retain_grad()
        return hook

    def close(self):
        for handle in self.handles:
            handle.remove()


def inputs_of(model, batch, dtype=torch.float32):
    """Returns the model's inputs by name; the last one is its labels."""
    if isinstance(model, Seq2Seq):
        (source, target), places = model.vocabularies, model.places
        of, to = counted.sentences("source", batch, source, places), counted.sentences("target", batch, target, places)
        fields = {"source": counted.padded(of, [2], [3], places), "target": counted.padded(to, [2], [], places),
                  "label": counted.padded(to, [], [3], places)}
        return {name: torch.from_numpy(field) for name, field in fields.items()}
    return {"data": torch.from_numpy(counted.images(batch, model.sample, model.classes)).to(dtype),
            "label": torch.from_numpy(counted.labels(batch, model.classes))}


def forward(model, inputs):
    """Returns loss and logits."""
    *given, label = [t.long() if t.dtype == torch.int32 else t for t in inputs.values()]
    logits = model(*given)
    ignored = PAD if isinstance(model, Seq2Seq) else -100
    return nn.functional.cross_entropy(logits.flatten(0, -2), label.flatten(), ignore_index=ignored), logits


def terms(model, inputs):
    return int((inputs["label"] != PAD).sum()) if isinstance(model, Seq2Seq) else len(inputs["label"])


def tensors_of(model, inputs):
    """Returns the tensors in step_dump's input file."""
    tensors = {n: t.clone() for n, t in model.state_dict().items() if t.is_floating_point()}
    tensors |= {f"input.{name}": t for name, t in inputs.items()}
    return tensors | {"terms": torch.tensor([terms(model, inputs)])}


def torch_step(model, inputs):
    """Returns loss, logits and gradients of one training step; it updates the batch-norm statistics."""
    model.train()
    model.zero_grad()
    loss, logits = forward(model, inputs)
    loss.backward()
    return loss.item(), logits.detach(), {n: p.grad.clone() for n, p in model.named_parameters()}


def torch_evaluate(model, inputs):
    model.eval()
    with torch.no_grad():
        loss, logits = forward(model, inputs)
        return loss.item(), logits


class Dump:
    """Runs step_dump, dtrain's half of the comparison, on files in a folder of its own."""

    def __init__(self, options, name, folder, kernels=(), vocabularies=()):
        self.program, self.folder = pathlib.Path(options.build) / "step_dump", folder
        self.arguments = [f"threads={options.threads}", *kernels]
        text = (ROOT / "configs" / "models" / f"{name}.yaml").read_text()
        self.model = folder / f"{name}.yaml"
        for one, other in zip(Seq2Seq.vocabularies, vocabularies):
            text = text.replace(f"classes: {one}", f"classes: {other}")
        text = re.sub(r", ratio: [0-9.]+", "", text).replace("type: dropout", "type: dropout, ratio: 0")
        text = re.sub(r" dropout: [0-9.]+, teacher_forcing: [0-9.]+", " dropout: 0, teacher_forcing: 1", text)
        self.model.write_text(text)

    def run(self, what, tensors):
        given, result = self.folder / "in.safetensors", self.folder / "out.safetensors"
        save_file({k: (v.float() if v.is_floating_point() else v.int()).contiguous().clone()
                   for k, v in tensors.items()}, given)
        subprocess.run([self.program, what, self.model, given, result, *self.arguments], check=True)
        dumped = load_file(result)
        broken = [k for k, v in dumped.items() if v.is_floating_point() and not v.isfinite().all()]
        if broken:
            raise SystemExit(f"{self.model.stem}: NaN or infinity in {', '.join(broken)}")
        return dumped


class Report:
    def __init__(self):
        self.broken = 0

    def check(self, model, what, value, bound):
        ok = value <= bound
        self.broken += not ok
        print(f"{model:<17} {what:<72} {value:9.2e}  bound {bound:.0e}{'' if ok else '  BROKEN'}")

    def note(self, what, value):
        print(f"{'':<17} {what:<72} {value:9.2e}")


def expected_alone(module, inputs, upstream):
    """Returns output, input gradients and parameter gradients of one layer in PyTorch."""
    module = copy.deepcopy(module)
    module.train()
    for p in module.parameters():
        p.grad = None
    inputs = [i.clone().requires_grad_() for i in inputs]
    output = module(*inputs)
    output.backward(upstream)
    return output.detach(), [i.grad for i in inputs], {n: p.grad for n, p in module.named_parameters()}


def compare_layers(name, dump, what, bound, capture, tensors, logits, label, report, wanted=lambda module: True):
    given = dict(tensors)
    for layer, (_, inputs, output) in capture.calls.items():
        for k, value in enumerate(inputs):
            given[f"{layer}.input.{k}"] = value
        given[f"{layer}.output_gradient"] = output.grad
    given["loss.input.0"], given["loss.input.1"] = logits, label
    ours = dump.run("layers", given)
    worst = {}
    for layer, (module, inputs, output) in capture.calls.items():
        if f"{layer}.output" not in ours or not wanted(module):
            continue
        y, dx, dw = expected_alone(module, inputs, output.grad)
        errors = {"output": relative(ours[f"{layer}.output"], y)}
        for k, gradient in enumerate(dx):
            errors[f"input gradient {k}"] = relative(ours[f"{layer}.input_gradient.{k}"], gradient)
        for parameter, gradient in dw.items():
            # The gradient of a bias before batch norm is only rounding errors: the terms of its sum give the scale.
            ours_gradient = ours[f"{layer}.gradient.{layer}.{parameter}"]
            scale = max(gradient.norm().item(), output.grad.norm().item() if parameter == "bias" else 0)
            errors[parameter] = (ours_gradient - gradient).norm().item() / max(scale, 1e-30)
        for part, error in errors.items():
            kind = f"{type(module).__name__} {part}"
            if kind not in worst or worst[kind][0] < error:
                worst[kind] = (error, layer)
    if wanted(nn.CrossEntropyLoss()):
        leaf = logits.clone().requires_grad_()
        losses = nn.functional.cross_entropy(leaf, label.long(), reduction="none")
        losses.mean().backward()
        worst["CrossEntropyLoss output"] = (relative(ours["loss.output"], losses.detach()), "loss")
        worst["CrossEntropyLoss input gradient 0"] = (relative(ours["loss.input_gradient.0"], leaf.grad), "loss")
    for kind, (error, layer) in worst.items():
        report.check(name, f"{what}: {kind} (worst: {layer})", error, bound)


def has_winograd(module):
    """Returns whether the kernel `winograd` can run it: all 3x3 convolutions except those of the image."""
    return isinstance(module, nn.Conv2d) and module.kernel_size == (3, 3) and module.in_channels % 16 == 0


def over_bound(ours, gradients):
    """Returns the worst ||d|| / (5e-3 ||g|| + 1e-6 ||all||), and the name of its parameter."""
    whole = sum(g.double().norm().item() ** 2 for g in gradients.values()) ** 0.5
    worst = (0, "")
    for parameter, gradient in gradients.items():
        distance = (ours[parameter].double() - gradient.double()).norm().item()
        worst = max(worst, (distance / (5e-3 * gradient.double().norm().item() + 1e-6 * whole), parameter))
    return worst


def taken(kinks_given, trace):
    """Returns dtrain's decision at each kink, computed from the output of the last unfused layer before it: a ReLU
    that was fused into that layer, or into a pooling after it, has no output of its own."""
    decisions = {}
    for name, (module, _, source) in kinks_given.items():
        while f"{source}.output" not in trace:
            source = kinks_given[source][2]
        own = trace.get(f"{name}.output") if isinstance(module, nn.ReLU) else None
        decisions[name] = kinks.decision(module, trace[f"{source}.output"] if own is None else own)
    return decisions


def compare_gradients(name, dump, model, inputs, report):
    tensors = tensors_of(model, inputs)
    trace = dump.run("trace", tensors)
    ours = {n.removeprefix("gradient."): g for n, g in trace.items() if n.startswith("gradient.")}
    exact = copy.deepcopy(model).double()
    plain = copy.deepcopy(model)
    decided = {}
    given = kinks.inputs_of_kinks(plain, lambda: decided.update(gradients=torch_step(plain, inputs)[2]))
    modules = kinks.kinks_of(plain)
    given = {n: (modules[n], x, source) for n, (x, source) in given.items()}
    decisions = taken(given, trace)
    alike = torch_step(kinks.forced(model, decisions), inputs)[2]
    worst = over_bound(ours, alike)
    report.check(name, f"gradients over their bound (worst: {worst[1]})", worst[0], 1)
    if not given:
        return
    turned = {n: kinks.flipped(module, x, decisions[n]) for n, (module, x, _) in given.items()}
    farthest = max((distance, n) for n, (_, distance) in turned.items())
    count = sum(n for n, _ in turned.values())
    report.check(name, f"{count} kinks turned: distance (worst: {farthest[1]})", farthest[0], 1e-4)
    truth = torch_step(exact, {k: t.double() if t.is_floating_point() else t for k, t in inputs.items()})[2]
    report.note("  with kinks as each decides: gradients over their bound", over_bound(ours, decided["gradients"])[0])
    report.note("  the same from float64", over_bound(ours, truth)[0])
    report.note("  PyTorch's fp32 from float64", over_bound(decided["gradients"], truth)[0])


def compare_step(name, dump, what, bound, model, inputs, report):
    model = copy.deepcopy(model)
    tensors = tensors_of(model, inputs)
    loss, logits = torch_evaluate(model, inputs)
    ours = dump.run("evaluate", tensors)
    report.check(name, f"{what}, evaluation: loss", abs(ours["loss"].item() - loss), 1e-4)
    report.check(name, f"{what}, evaluation: logits", (ours["logits"] - logits).abs().max().item(), 1e-4)
    loss, logits, _ = torch_step(model, inputs)
    ours = dump.run("step", tensors)
    report.check(name, f"{what}, training: loss", abs(ours["loss"].item() - loss), 1e-4)
    report.check(name, f"{what}, training: logits", (ours["logits"] - logits).abs().max().item(), bound)
    if statistics(model):
        worst = max((relative(ours[f"state.{n}"], b), n) for n, b in statistics(model).items())
        report.check(name, f"{what}, statistics after the step (worst: {worst[1]})", worst[0], 1e-5)


def compare(name, options, report):
    torch.manual_seed(1)
    model = MODELS[name]().float()
    fill(model, options.weights)
    inputs = inputs_of(model, options.batch)
    with tempfile.TemporaryDirectory() as folder:
        dump_of = functools.partial(Dump, options, name, pathlib.Path(folder))
        direct, by_rule = dump_of(["convolution=onednn", *options.kernels]), dump_of(options.kernels)
        compare_step(name, direct, "direct", 1e-4, model, inputs, report)
        if any(isinstance(m, nn.Conv2d) for m in model.modules()):
            compare_step(name, by_rule, "by rule", 5e-4 if name.startswith("vgg") else 1e-4, model, inputs, report)
        if options.logits_only:
            return
        compare_gradients(name, direct, model, inputs, report)
        if isinstance(model, Seq2Seq):
            return  # seq2seq_layers.py tests its layers alone
        inputs = inputs_of(model, min(options.batch, options.layer_batch))
        tensors = tensors_of(model, inputs)
        capture = Capture(model)
        logits = torch_step(model, inputs)[1]
        capture.close()
        alone = (capture, tensors, logits, inputs["label"], report)
        compare_layers(name, direct, "alone", 1e-5, *alone)
        count = sum(has_winograd(m) for m in model.modules())
        if count > 0:
            compare_layers(name, dump_of(["convolution=winograd"]), f"Winograd, {count} layers alone", 1e-4, *alone,
                           wanted=has_winograd)


def jumps_of(model, inputs, gradients):
    """Returns how far each gradient moves if all kinks within rounding (NEAR) are decided the other way."""
    plain = copy.deepcopy(model)
    given = kinks.inputs_of_kinks(plain, lambda: torch_step(plain, inputs))
    modules = kinks.kinks_of(plain)
    turned = {n: kinks.near(modules[n], x, NEAR) for n, (x, _) in given.items()}
    moved = torch_step(kinks.forced(model, turned), inputs)[2]
    return {n: (moved[n] - g).norm().item() for n, g in gradients.items()}


def golden(name):
    """Returns the content of the file for tests/golden/model_step_test.cc: float64 values, the reference for fp32."""
    model = MODELS[name]().double()
    fill(model, "counted")
    smooth = kinks.without_kinks(copy.deepcopy(model))
    batch = GOLDEN_BATCH[name]
    inputs = inputs_of(model, batch, torch.float64)
    evaluation = torch_evaluate(model, inputs)
    initial = copy.deepcopy(model)
    loss, logits, gradients = torch_step(model, inputs)
    jumps = jumps_of(initial, inputs, gradients)
    first = next(iter(gradients))

    def some(logits):
        return logits.flatten(0, -2)[:2, :10].tolist()

    def summary(tensor, key):
        tensor = tensor.double().numpy()
        return {"norm": float(np.linalg.norm(tensor)), "projections": counted.projections(key, tensor)}

    single = MODELS[name]().float()
    fill(single, "counted")
    fp32 = torch_step(single, inputs_of(single, batch))[2]
    return {
        "made_by": "tools/pytorch/compare.py --golden, torch " + torch.__version__.split("+")[0],
        "model": name, "batch": batch,
        "inputs_check": {"parameter": first, "values": model.get_parameter(first).flatten()[:4].tolist(),
                         "inputs": {n: t.flatten()[:4].tolist() for n, t in inputs.items()}},
        "evaluation": {"loss": evaluation[0], "logits": some(evaluation[1])},
        "training": {"loss": loss, "logits": some(logits)},
        "pytorch_fp32_over_bound": over_bound(fp32, gradients)[0],
        "gradients": {n: summary(g, n) | {"jump": jumps[n]} for n, g in gradients.items()},
        "gradients_without_kinks": {n: summary(g, n) for n, g in torch_step(smooth, inputs)[2].items()},
        "state": {n: summary(b, n) for n, b in statistics(model).items()},
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=", ".join(MODELS))
    parser.add_argument("--build", default="build/release", help="folder of step_dump")
    parser.add_argument("--batch", type=int, default=16, help="batch of the whole step")
    parser.add_argument("--layer-batch", type=int, default=16, help="batch of the layers alone")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--weights", default="counted")
    parser.add_argument("--kernels", nargs="*", default=[], metavar="TYPE=IMPLEMENTATION")
    parser.add_argument("--logits-only", action="store_true", help="compare loss, logits and statistics, but no gradients")
    parser.add_argument("--golden", metavar="DIR")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    report = Report()
    for name in options.models or MODELS:
        if options.golden:
            path = pathlib.Path(options.golden) / f"{name}_step.json"
            text = json.dumps(golden(name), indent=1)
            lists = re.sub(r"\[[^\[\]]*\]", lambda m: " ".join(m[0].split()), text)
            path.write_text(lists + "\n")
        else:
            compare(name, options, report)
    return 1 if report.broken else 0


if __name__ == "__main__":
    sys.exit(main())
