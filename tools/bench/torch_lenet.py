#!/usr/bin/env python3
"""Training steps per second of PyTorch on LeNet-5: the peer that dtrain is measured against.

A step is forward, mean cross-entropy, backward and SGD with momentum, in fp32, on one fixed
synthetic batch (no data loading on either side).  Each setting runs in a process of its own, since
allocator settings are read at start-up, and prints one JSON line:

    {"framework": "pytorch 2.9.0", "model": "lenet5", "setting": "nhwc malloc fused", "threads": 1,
     "batch": 64, "steps_per_second": 240.1, "steps_per_second_max": 244.7, "repeats": 7}

steps_per_second is the median over the repeats.  A setting is a list of words:

    nchw | nhwc   memory format of weights and input (nhwc: torch.channels_last)
    malloc        glibc keeps freed memory and asks for huge pages
    foreach|fused variant of the optimizer (default: PyTorch's own choice)
    keepgrad      zero_grad(set_to_none=False)
    nomkldnn      convolutions and linear layers without oneDNN
    compile       torch.compile; needs a C++ compiler, and is not eager mode

    torch_lenet.py --model lenet5 --threads 1                       all settings
    torch_lenet.py --model lenet5 --threads 1 --setting "nhwc malloc fused"
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

EAGER_SETTINGS = [
    "nchw",
    "nchw malloc",
    "nchw malloc foreach",
    "nchw malloc fused",
    "nchw malloc fused keepgrad",
    "nchw malloc fused nomkldnn",
    "nhwc",
    "nhwc malloc",
    "nhwc malloc foreach",
    "nhwc malloc fused",
    "nhwc malloc fused keepgrad",
    "nhwc malloc fused nomkldnn",
]
COMPILED_SETTINGS = ["nchw malloc fused compile", "nhwc malloc fused compile"]

MALLOC_ENVIRONMENT = {
    "MALLOC_TRIM_THRESHOLD_": str(1 << 34),
    "MALLOC_TOP_PAD_": str(1 << 28),
    "MALLOC_MMAP_THRESHOLD_": str(1 << 34),
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
}


def build_model(name):
    """The nets of the speed comparison, with the input shape of one sample."""
    from torch import nn

    if name == "lenet5":  # 61 706 parameters; padding 2 stands for MNIST resized to 32x32
        layers = [
            nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
            nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10),
        ]
    else:  # lenet5_caffe: 431 080 parameters, no ReLU behind the convolutions
        layers = [
            nn.Conv2d(1, 20, 5), nn.MaxPool2d(2), nn.Conv2d(20, 50, 5), nn.MaxPool2d(2),
            nn.Flatten(), nn.Linear(800, 500), nn.ReLU(), nn.Linear(500, 10),
        ]
    return nn.Sequential(*layers), (1, 28, 28)


def make_step(args, words):
    """A function without arguments that trains one step."""
    import torch
    from torch.nn import functional

    torch.manual_seed(1)
    torch.set_num_threads(args.threads)
    torch.set_flush_denormal(True)
    if "nomkldnn" in words:
        torch.backends.mkldnn.set_flags(False)
    model, sample_shape = build_model(args.model)
    batch = torch.randn(args.batch, *sample_shape)
    labels = torch.randint(0, 10, (args.batch,))
    if "nhwc" in words:
        model = model.to(memory_format=torch.channels_last)
        batch = batch.to(memory_format=torch.channels_last)
    variant = {word: True for word in ("foreach", "fused") if word in words}
    optimizer = torch.optim.SGD(
        model.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4, **variant)
    to_none = "keepgrad" not in words

    def forward_loss(inputs, targets):
        return functional.cross_entropy(model(inputs), targets)

    if "compile" in words:
        forward_loss = torch.compile(forward_loss)

    def step():
        optimizer.zero_grad(set_to_none=to_none)
        forward_loss(batch, labels).backward()
        optimizer.step()

    return step


def measure(args):
    """Runs the setting in this process and returns its JSON record."""
    import torch

    step = make_step(args, args.setting.split())
    for _ in range(20):
        step()
    begin = time.perf_counter()
    for _ in range(20):
        step()
    steps = max(1, round(20 * args.seconds / (time.perf_counter() - begin)))
    rates = []
    for _ in range(args.repeats):
        begin = time.perf_counter()
        for _ in range(steps):
            step()
        rates.append(steps / (time.perf_counter() - begin))
    return {
        "framework": "pytorch " + torch.__version__.split("+")[0],
        "model": args.model,
        "setting": args.setting,
        "threads": args.threads,
        "batch": args.batch,
        "steps_per_second": round(statistics.median(rates), 2),
        "steps_per_second_max": round(max(rates), 2),
        "repeats": args.repeats,
    }


def run_setting(model, setting, threads, batch, seconds, repeats):
    """Runs one setting in a fresh process; its record, or {"setting", "error"}."""
    environment = dict(os.environ, OMP_NUM_THREADS=str(threads))
    if "malloc" in setting.split():
        environment.update(MALLOC_ENVIRONMENT)
    command = [
        sys.executable, os.path.abspath(__file__), "--inside", "--model", model, "--setting", setting,
        "--threads", str(threads), "--batch", str(batch), "--seconds", str(seconds),
        "--repeats", str(repeats),
    ]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if result.returncode == 0:
        return json.loads(result.stdout.splitlines()[-1])
    reason = (result.stderr.strip() or f"status {result.returncode}").splitlines()[-1]
    return {"model": model, "setting": setting, "threads": threads, "error": reason}


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=["lenet5", "lenet5_caffe"], default="lenet5")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--setting", default="", help="one setting instead of all")
    parser.add_argument("--seconds", type=float, default=0.5, help="length of one repeat")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    args = parse_arguments()
    if args.inside:
        print(json.dumps(measure(args)))
        return
    for setting in [args.setting] if args.setting else EAGER_SETTINGS + COMPILED_SETTINGS:
        record = run_setting(
            args.model, setting, args.threads, args.batch, args.seconds, args.repeats)
        print(json.dumps(record), flush=True)


if __name__ == "__main__":
    main()
