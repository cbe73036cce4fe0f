#!/usr/bin/env python3
"""Prints the speed table: dtrain compared with the best of PyTorch's eager settings, in interleaved runs.

    python3 -m venv build/torch && build/torch/bin/pip install torch
    build/torch/bin/python tools/bench/compare_pytorch.py --dtrain build/release/dtrain
    build/torch/bin/python tools/bench/compare_pytorch.py --models resnet18 vgg19_bn --batch 32 128 \\
        --threads 1 2
    build/torch/bin/python tools/bench/compare_pytorch.py --models resnet18 --batch 32 --precision bf16
    build/torch/bin/python tools/bench/compare_pytorch.py --models resnet18 --batch 128 --device cuda --precision tf32

First every PyTorch setting (torch_step.py) runs once and the fastest few are kept.  Then each round runs
the kept settings and `dtrain bench step`, one after the other, each in a process of its own, so that a
slow phase of a shared machine affects both sides.  The table gives the medians
over the rounds and the peak memory of a process; the ratio is to the PyTorch setting with the best
median.  With --precision bf16 both sides compute their convolutions in bf16 (on a GPU all products), with
tf32 (a GPU) their products in tf32.
"""

import argparse
import json
import statistics
from collections import namedtuple

from torch_step import (BF16_COMPILED_SETTINGS, BF16_SETTINGS, COMPILED_SETTINGS, CUDA_SETTINGS,
                        EAGER_SETTINGS, MODELS, run_process, run_setting)

# Data sets whose samples have the model's shape; the numbers are synthetic.
DATA = {"lenet5": "digits", "lenet5_caffe": "digits", "resnet18": "cifar10", "vgg19_bn": "cifar10",
        "seq2seq_attention": "multi30k"}

# The fields that identify a table.
Case = namedtuple("Case", "model batch threads")


def run_dtrain(args, case):
    """Returns (steps per second, peak MiB) of one `dtrain bench step` process."""
    command = [
        args.dtrain, "bench", "step", "--model", case.model, "--data", DATA[case.model],
        "--batch", str(case.batch), "--threads", str(case.threads), "--seconds", str(args.seconds),
        "--precision", args.precision, "--device", args.device,
    ]
    status, output, errors, peak_mib = run_process(command)
    if status != 0:
        raise SystemExit(f"{' '.join(command)}: status {status}\n{errors}")
    return json.loads(output.splitlines()[-1])["steps_per_second"], peak_mib


def run_torch(args, case, setting, repeats=3):
    """Returns the same of one PyTorch process; (0, 0) if the setting does not work here."""
    record = run_setting(case.model, setting, case.threads, case.batch,
                         seconds=args.seconds / repeats, repeats=repeats, device=args.device)
    if "error" in record:
        print(f"  {case.model}: '{setting}' left out: {record['error']}", flush=True)
        return 0.0, 0.0
    return record["steps_per_second"], record["peak_mib"]


def usual_settings(args):
    if args.device == "cuda":
        settings = CUDA_SETTINGS + (COMPILED_SETTINGS if args.compiled else [])
        words = {"fp32": [""], "tf32": [" tf32"], "bf16": [" autocast", " allbf16"]}[args.precision]
        return [setting + word for setting in settings for word in words]
    bf16 = args.precision == "bf16"
    settings = list(BF16_SETTINGS if bf16 else EAGER_SETTINGS)
    if args.compiled:
        settings += BF16_COMPILED_SETTINGS if bf16 else COMPILED_SETTINGS
    return settings


def fastest_settings(args, case):
    settings = usual_settings(args)
    if case.model == "seq2seq_attention":
        settings = [setting for setting in settings if "nhwc" not in setting.split()]
    rates = {setting: run_torch(args, case, setting, repeats=1)[0] for setting in settings}
    ranked = sorted((s for s in settings if rates[s] > 0), key=lambda s: -rates[s])
    if not ranked:
        raise SystemExit("no PyTorch setting works here; is torch installed for this python?")
    return ranked[: args.keep]


def compare(args, case):
    """Returns lists of (rate, peak MiB), one entry per round, by name ('dtrain' or a PyTorch setting)."""
    settings = args.settings or fastest_settings(args, case)
    results = {name: [] for name in ["dtrain"] + settings}
    for _ in range(args.rounds):
        results["dtrain"].append(run_dtrain(args, case))
        for setting in settings:
            results[setting].append(run_torch(args, case, setting))
    return results


def print_table(args, case, results):
    rates = {name: [rate for rate, _ in runs] for name, runs in results.items()}
    peaks = {name: max(peak for _, peak in runs) for name, runs in results.items()}
    medians = {name: statistics.median(values) for name, values in rates.items()}
    best = max((name for name in medians if name != "dtrain"), key=medians.get)
    print(f"\n{case.model}, batch {case.batch}, {args.device}, {args.precision}, {case.threads} thread(s), {args.rounds} rounds")
    print(f"  {'steps/s':32}{'median':>10}{'min':>10}{'max':>10}{'peak MiB':>10}")
    for name, values in rates.items():
        label = name if name == "dtrain" else f"pytorch {name}"
        print(f"  {label:32}{medians[name]:10.3f}{min(values):10.3f}{max(values):10.3f}"
              f"{peaks[name]:10.0f}")
    per_round = sorted(ours / theirs for ours, theirs in zip(rates["dtrain"], rates[best]))
    print(f"  dtrain / best pytorch ('{best}'): {medians['dtrain'] / medians[best]:.2f}"
          f"  (by round {per_round[0]:.2f} to {per_round[-1]:.2f})", flush=True)


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dtrain", default="build/release/dtrain", help="the program to measure")
    parser.add_argument("--models", nargs="+", choices=list(MODELS),
                        default=["lenet5", "lenet5_caffe"])
    parser.add_argument("--batch", type=int, nargs="+", default=[64])
    parser.add_argument("--threads", type=int, nargs="+", default=[1])
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--precision", choices=["fp32", "bf16", "tf32"], default="fp32",
                        help="tf32: on a GPU")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=2, help="length of one measurement")
    parser.add_argument("--settings", nargs="+", help="PyTorch settings, instead of trying all")
    parser.add_argument("--keep", type=int, default=3, help="PyTorch settings in the rounds")
    parser.add_argument("--compiled", action="store_true", help="also measure torch.compile")
    return parser.parse_args()


def main():
    args = parse_arguments()
    for model in args.models:
        for batch in args.batch:
            for threads in args.threads:
                case = Case(model, batch, threads)
                print_table(args, case, compare(args, case))


if __name__ == "__main__":
    main()
