#!/usr/bin/env python3
"""Shows how the time of a training step is spent, and how much could be gained.

    tools/bench/account.py --model resnet18 --batch 32 --threads 1

Runs `dtrain bench layers`, adds up the layers of each kind, and prints beside each the lower bound of its
time: its products at the peak of the arithmetic, or reading its tensors once at the memory bandwidth,
whichever takes longer.  A winograd kernel's products count as a quarter of the direct ones', its best
case (F(4,3); other tilings need more).  Give --gflops and --gbytes for the machine (for one thread; n
threads count n times as much), and --amx-gflops for its bf16 products.
"""

import argparse
import json
import subprocess
from collections import OrderedDict, namedtuple

DATA = {"lenet5": "digits", "lenet5_caffe": "digits", "resnet18": "cifar10", "vgg19_bn": "cifar10",
        "vgg19_gssp": "cifar10", "seq2seq_attention": "multi30k"}

# The fraction of products that winograd F(4, 3) needs: 36 instead of 144 for sixteen outputs.
WINOGRAD_SHARE = 0.25

Row = namedtuple("Row", "layers seconds gflop arithmetic memory")


def run_layers(args):
    command = [args.dtrain, "bench", "layers", "--model", args.model, "--data", DATA[args.model],
               "--batch", str(args.batch), "--threads", str(args.threads), "--precision", args.precision,
               "--seconds", str(args.seconds)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [json.loads(line) for line in output.splitlines()]


def row_of(line, args):
    peak = args.amx_gflops if line["kernel"] == "amx" else args.gflops
    gflops, gbytes = peak * args.threads, args.gbytes * args.threads
    share = WINOGRAD_SHARE if line["kernel"] == "winograd" else 1
    seconds = (line["forward_min_us"] + line["backward_min_us"]) * 1e-6
    moved = (line["forward_bytes"] + line["backward_bytes"]) * 1e-9
    return Row(1, seconds, line["gflop"], share * line["gflop"] / gflops, moved / gbytes)


def add(a, b):
    return Row(*(x + y for x, y in zip(a, b)))


def print_table(rows):
    whole = sum(row.seconds for row in rows.values())
    print("| layers | kernel | | ms | share | GFLOP/s | bound ms | bound by | left ms |")
    print("| --- | --- | --: | --: | --: | --: | --: | --- | --: |")
    left_of_all = 0
    for (kind, kernel), row in sorted(rows.items(), key=lambda item: -item[1].seconds):
        bound = max(row.arithmetic, row.memory)
        left = max(0, row.seconds - bound)
        left_of_all += left
        print(f"| {kind} | {kernel} | {row.layers} | {row.seconds * 1e3:.1f} "
              f"| {100 * row.seconds / whole:.0f} % | {row.gflop / row.seconds:.0f} "
              f"| {bound * 1e3:.1f} | {'arithmetic' if row.arithmetic > row.memory else 'memory'} "
              f"| {left * 1e3:.1f} |")
    print(f"| all | | {sum(row.layers for row in rows.values())} | {whole * 1e3:.1f} | 100 % | "
          f"| {(whole - left_of_all) * 1e3:.1f} | | {left_of_all * 1e3:.1f} |")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dtrain", default="build/release/dtrain")
    parser.add_argument("--model", default="resnet18", choices=list(DATA))
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--gflops", type=float, default=170, help="fp32 peak of a core")
    parser.add_argument("--amx-gflops", type=float, default=2700, help="bf16 peak of a core with AMX")
    parser.add_argument("--gbytes", type=float, default=12, help="memory bandwidth of a core")
    parser.add_argument("--each", action="store_true", help="print every layer")
    args = parser.parse_args()
    rows = OrderedDict()
    for line in run_layers(args):
        kind = line["layer"] if args.each else line["type"]
        key = (kind, line["kernel"])
        row = row_of(line, args)
        rows[key] = add(rows[key], row) if key in rows else row
    print_table(rows)


if __name__ == "__main__":
    main()
