#!/usr/bin/env python3
"""Predicts training steps a second on an H200 from what the stand-in for CUDA counts.

    DTRAIN_TABLES=1 build/release/cuda_tests --gtest_filter='*StepCounts*' | python3 tools/bench/predict_gpu.py

A kernel takes the time of its bytes at the rate of a copy on that card, and two microseconds at least; one more passes
before the next.  cuDNN's and cuBLAS's take the time of their arithmetic, at rates that were measured on it
(framework/device/cuda/README.md), or of their bytes, whichever is longer.  What this assumes, and what only a GPU can
show: kernels of our own reach the card's rate, and bf16 is as much faster in every pass of a convolution as it was in
one that was measured.
"""

import re
import sys

BYTES_PER_SECOND = 4.3e12
LEAST, GAP = 2e-6, 1e-6  # seconds of a kernel, and to the next
# FLOP/s of ResNet-18's convolutions at batch 128 in tf32: 142 GFLOP took .71 ms for the images' gradients and 1.29 for the
# weights'.  A pair of kernels was 1.9 times as fast in bf16.  In fp32 PyTorch's whole steps on plain images tell the rate:
# 14.9 ms of ResNet-18 and 10.9 of VGG-19, of which some 1.9 and .9 are other passes.
TF32 = {"convolution forward": 200e12, "convolution data gradient": 200e12,
        "convolution weight gradient": 110e12, "a product of matrices": 150e12}
FACTOR = {"tf32": 1, "bf16": 1.9, "fp16": 1.9, "fp32": 0.2}
# FLOPs of convolutions and products in a step, of which the passes take a third each.
FLOPS = {"resnet18": 3.329e9 * 128, "resnet20": 0.245e9 * 128, "vgg19_bn": 2.385e9 * 128, "lenet5": 2.3e6 * 64,
         "seq2seq_attention": 1.70e9 * 128}
AIMS = {("resnet18", "bf16"): 450, ("resnet18", "tf32"): 270, ("resnet18", "fp32"): 67,
        ("vgg19_bn", "bf16"): 500, ("lenet5", "fp32"): 9000, ("seq2seq_attention", "tf32"): 250}

ROW = re.compile(r"^(\S.*?) +(\d+) calls +([\d.]+) MB read +([\d.]+) MB written")
END = re.compile(r"^(\w+), (\w+): \d+ launches, (\d+) kernels")


def seconds_of(model, precision, rows):
    total = 0.0
    for name, calls, megabytes in rows:
        seconds = max(megabytes * 1e6 / BYTES_PER_SECOND, calls * LEAST)
        if name in TF32:
            share = 1 if name.startswith("a product") else 1 / 3
            if name.startswith("a product") and model != "seq2seq_attention":
                share = 0  # a classifier's: as good as nothing
            seconds = max(seconds, share * FLOPS[model] / TF32[name] / FACTOR[precision])
        total += seconds + calls * GAP
    return total


def main():
    rows = []
    print(f"{'model':20}{'precision':>10}{'kernels':>9}{'ms':>8}{'steps/s':>9}{'aim':>7}")
    for line in sys.stdin:
        if row := ROW.match(line):
            rows.append((row[1], int(row[2]), float(row[3]) + float(row[4])))
        elif end := END.match(line):
            if not rows:
                sys.exit("there is no table of kernels: set DTRAIN_TABLES=1")
            model, precision = end[1], end[2]
            seconds = seconds_of(model, precision, rows)
            aim = AIMS.get((model, precision), "")
            print(f"{model:20}{precision:>10}{end[3]:>9}{1e3 * seconds:8.2f}{1 / seconds:9.0f}{aim:>7}")
            rows = []


if __name__ == "__main__":
    main()
