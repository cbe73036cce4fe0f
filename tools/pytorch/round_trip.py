#!/usr/bin/env python3
"""Moves weights from dtrain to PyTorch and back, and checks that both programs give the same logits.

    python3 tools/pytorch/round_trip.py --build build/release [MODEL ...]

For each model `dtrain train` makes a few steps, `dtrain export` writes safetensors, PyTorch's
load_state_dict(strict=True) loads them, and both evaluate the same batch.  Then PyTorch trains one step
and saves; `dtrain eval` loads that, `dtrain export` converts it to HDF5 and back to safetensors, both
evaluate, and dtrain continues training.  Prints the largest differences; the exit code is 1 if one of
logits is above 1e-4, or if a weight has changed.  Needs what compare.py needs, and the data sets
cifar10 and multi30k.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

import torch
from safetensors.torch import load_file, save_file

from compare import ROOT, Dump, inputs_of, tensors_of, torch_evaluate, torch_step
from models import MODELS, Seq2Seq

DATA = {"lenet5": "digits", "seq2seq_attention": "multi30k"}
RUN = """
model: {{name: {model}}}
data: {{name: {data}, limit: 64}}
threads: 1
batch: 16
max_steps: 4
solver: {{name: sgd, lr: 0.01, momentum: 0.9}}
evaluate: {{every_epochs: 0}}
output: {folder}/run
"""


def dtrain(options, *arguments):
    subprocess.run([pathlib.Path(options.build) / "dtrain", *map(str, arguments)], check=True, cwd=ROOT,
                   stdout=subprocess.DEVNULL)


def logits_apart(model, dump, inputs):
    logits = torch_evaluate(model, inputs)[1]
    return (dump.run("evaluate", tensors_of(model, inputs))["logits"] - logits).abs().max().item()


def weights_apart(path, model):
    """Returns the largest difference between a number in the file and in the model; inf for a missing tensor."""
    there = load_file(path)
    state = {n: t for n, t in model.state_dict().items() if t.is_floating_point()}
    return max((there[n].double() - t.double()).abs().max().item() if n in there else float("inf")
               for n, t in state.items())


def model_for(name, weights):
    """Returns PyTorch's model; the size of a vocabulary is that of the weights."""
    if name != "seq2seq_attention":
        return MODELS[name]().float(), ()
    words = tuple(weights[f"{half}.embedding.weight"].shape[0] for half in ("encoder", "decoder"))
    model = Seq2Seq(*words).float()
    model.vocabularies = words
    return model, words


def round_trip(name, options):
    """Returns the differences by what they compare."""
    torch.manual_seed(1)
    apart = {}
    with tempfile.TemporaryDirectory() as text:
        folder = pathlib.Path(text)
        config, out, back = folder / "run.yaml", folder / "dtrain.safetensors", folder / "torch.safetensors"
        config.write_text(RUN.format(model=name, data=DATA.get(name, "cifar10"), folder=folder))
        dtrain(options, "train", "--config", config)
        dtrain(options, "export", "--weights", folder / "run", "--output", out)
        weights = load_file(out)
        model, words = model_for(name, weights)
        dump = Dump(options, name, folder, vocabularies=words)
        inputs = inputs_of(model, 16)
        model.load_state_dict(weights, strict=True)
        apart["dtrain to PyTorch: logits"] = logits_apart(model, dump, inputs)
        torch_step(model, inputs)
        torch.optim.SGD(model.parameters(), lr=0.01).step()
        save_file(model.state_dict(), back)
        dtrain(options, "eval", "--config", config, "--weights", back, "--split", "train")
        dtrain(options, "export", "--weights", back, "--format", "hdf5", "--output", folder / "back.h5")
        dtrain(options, "ckpt", "diff", back, folder / "back.h5")
        dtrain(options, "ckpt", "verify", folder / "back.h5", out)
        again = folder / "again.safetensors"
        dtrain(options, "export", "--weights", folder / "back.h5", "--output", again)
        apart["PyTorch to dtrain and back: weights"] = weights_apart(again, model)
        model.load_state_dict(load_file(again), strict=True)
        apart["PyTorch to dtrain: logits"] = logits_apart(model, dump, inputs)
        dtrain(options, "train", "--config", config, "--weights", back, "--output", folder / "more")
    return apart


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=", ".join(MODELS))
    parser.add_argument("--build", default="build/release", help="folder of dtrain and step_dump")
    options = parser.parse_args()
    options.build = pathlib.Path(options.build).resolve()
    options.threads = 1
    broken = False
    for name in options.models or MODELS:
        for what, value in round_trip(name, options).items():
            ok = value <= (0 if "weights" in what else 1e-4)
            broken |= not ok
            print(f"{name:<18} {what:<36} {value:9.2e}{'' if ok else '  BROKEN'}", flush=True)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
