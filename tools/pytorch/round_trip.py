#!/usr/bin/env python3
"""Weights from dtrain to PyTorch and back: both programs must give the same logits with them.

    python3 tools/pytorch/round_trip.py --build build/release [MODEL ...]

For each model: `dtrain train` makes a few steps, `dtrain export` writes safetensors, PyTorch's
load_state_dict(strict=True) takes them, and both evaluate the same batch.  Then PyTorch trains one step
and saves; `dtrain export` takes that to HDF5, `dtrain ckpt diff` finds it equal, both evaluate again.
Needs what compare.py needs, and the data sets cifar10 and multi30k.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

import torch
from safetensors.torch import load_file, save_file

from compare import ROOT, Dump, Report, inputs_of, tensors_of, torch_evaluate, torch_step
from models import MODELS

DATA = {"lenet5": "digits", "seq2seq_attention": "multi30k"}
RUN = """
model: {{name: {model}}}
data: {{name: {data}, limit: 64}}
batch: 16
max_steps: 4
solver: {{name: sgd, lr: 0.01, momentum: 0.9}}
evaluate: {{every_epochs: 0}}
output: {folder}/run
"""


def dtrain(options, *arguments):
    subprocess.run([pathlib.Path(options.build) / "dtrain", *map(str, arguments)], check=True, cwd=ROOT,
                   stdout=subprocess.DEVNULL)


def same_logits(name, what, model, dump, inputs, report):
    logits = torch_evaluate(model, inputs)[1]
    ours = dump.run("evaluate", tensors_of(model, inputs))["logits"]
    report.check(name, f"{what}: logits", (ours - logits).abs().max().item(), 1e-4)


def round_trip(name, options, report):
    model = MODELS[name]().float()
    inputs = inputs_of(model, 16)
    with tempfile.TemporaryDirectory() as text:
        folder = pathlib.Path(text)
        dump = Dump(options, name, folder)
        config, out, back = folder / "run.yaml", folder / "dtrain.safetensors", folder / "torch.safetensors"
        config.write_text(RUN.format(model=name, data=DATA.get(name, "cifar10"), folder=folder))
        dtrain(options, "train", "--config", config)
        dtrain(options, "export", "--weights", folder / "run", "--output", out)
        weights = load_file(out)
        model.load_state_dict(weights, strict=True)
        same_logits(name, "dtrain to PyTorch", model, dump, inputs, report)
        torch_step(model, inputs)
        torch.optim.SGD(model.parameters(), lr=0.01).step()
        save_file(model.state_dict(), back)
        dtrain(options, "export", "--weights", back, "--format", "hdf5", "--output", folder / "back.h5")
        dtrain(options, "ckpt", "diff", back, folder / "back.h5")
        dtrain(options, "ckpt", "verify", folder / "back.h5", out)
        dtrain(options, "export", "--weights", folder / "back.h5", "--output", folder / "again.safetensors")
        model.load_state_dict(load_file(folder / "again.safetensors"), strict=True)
        same_logits(name, "PyTorch to dtrain", model, dump, inputs, report)
        dtrain(options, "eval", "--config", config, "--weights", back)
        dtrain(options, "train", "--config", config, "--weights", back, "--output", folder / "more")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=", ".join(MODELS))
    parser.add_argument("--build", default="build/release", help="folder of dtrain and step_dump")
    options = parser.parse_args()
    options.build = pathlib.Path(options.build).resolve()
    options.threads, options.kernels = 1, []
    report = Report()
    for name in options.models or MODELS:
        round_trip(name, options, report)
    return 1 if report.broken else 0


if __name__ == "__main__":
    sys.exit(main())
