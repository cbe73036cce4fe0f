#!/usr/bin/env python3
"""The LeNet-5 speed table: dtrain beside the best of PyTorch's eager settings, interleaved.

    python3 -m venv build/torch && build/torch/bin/pip install torch
    build/torch/bin/python tools/bench/compare_lenet.py --dtrain build/release/dtrain

First every PyTorch setting (torch_lenet.py) runs once and the fastest few stay.  Then come rounds: each
round runs the settings that stayed and `dtrain bench step`, one after the other, each in a process
of its own, so that a slow phase of a shared machine hits both sides.  The table gives the medians
over the rounds; the ratio is to the PyTorch setting with the best median.
"""

import argparse
import json
import statistics
import subprocess

from torch_lenet import COMPILED_SETTINGS, EAGER_SETTINGS, run_setting

MODELS = ["lenet5", "lenet5_caffe"]


def run_dtrain(args, model):
    """Steps per second of one `dtrain bench step` process."""
    command = [
        args.dtrain, "bench", "step", "--model", model, "--batch", str(args.batch),
        "--threads", str(args.threads),
    ]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: status {result.returncode}\n{result.stderr}")
    return json.loads(result.stdout.splitlines()[-1])["steps_per_second"]


def run_torch(args, model, setting):
    """Steps per second of one PyTorch process; 0 where the setting does not work here."""
    record = run_setting(model, setting, args.threads, args.batch, seconds=0.4, repeats=3)
    if "error" in record:
        print(f"  {model}: '{setting}' left out: {record['error']}", flush=True)
        return 0.0
    return record["steps_per_second"]


def fastest_settings(args, model):
    settings = EAGER_SETTINGS + (COMPILED_SETTINGS if args.compiled else [])
    rates = {setting: run_torch(args, model, setting) for setting in settings}
    ranked = sorted((s for s in settings if rates[s] > 0), key=lambda s: -rates[s])
    if not ranked:
        raise SystemExit("no PyTorch setting works here; is torch installed for this python?")
    return ranked[: args.keep]


def compare(args, model):
    """Rates by name ('dtrain' or a PyTorch setting), one entry a round."""
    settings = fastest_settings(args, model)
    rates = {name: [] for name in ["dtrain"] + settings}
    for _ in range(args.rounds):
        rates["dtrain"].append(run_dtrain(args, model))
        for setting in settings:
            rates[setting].append(run_torch(args, model, setting))
    return rates


def print_table(args, model, rates):
    medians = {name: statistics.median(values) for name, values in rates.items()}
    best = max((name for name in medians if name != "dtrain"), key=medians.get)
    print(f"\n{model}, batch {args.batch}, fp32, {args.threads} thread(s), {args.rounds} rounds")
    print(f"  {'':32}{'median':>10}{'min':>10}{'max':>10}  steps/s")
    for name, values in rates.items():
        label = name if name == "dtrain" else f"pytorch {name}"
        print(f"  {label:32}{medians[name]:10.1f}{min(values):10.1f}{max(values):10.1f}")
    per_round = sorted(ours / theirs for ours, theirs in zip(rates["dtrain"], rates[best]))
    print(f"  dtrain / best pytorch ('{best}'): {medians['dtrain'] / medians[best]:.2f}"
          f"  (by round {per_round[0]:.2f} to {per_round[-1]:.2f})", flush=True)


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dtrain", default="build/release/dtrain", help="the program to measure")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--keep", type=int, default=3, help="PyTorch settings in the rounds")
    parser.add_argument("--compiled", action="store_true", help="torch.compile takes part too")
    return parser.parse_args()


def main():
    args = parse_arguments()
    for model in args.models:
        print_table(args, model, compare(args, model))


if __name__ == "__main__":
    main()
