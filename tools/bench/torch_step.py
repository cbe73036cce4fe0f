#!/usr/bin/env python3
"""Measures the training steps per second of PyTorch, for comparison with dtrain.

A step is forward, mean cross-entropy, backward and SGD with momentum, in fp32 unless the setting has another
precision, on one fixed synthetic batch (no data loading on either side).  Each setting runs in a process of its own,
since allocator settings are read at start-up, and prints one JSON line:

    {"framework": "pytorch 2.9.0", "model": "lenet5", "setting": "nhwc malloc fused", "threads": 1,
     "batch": 64, "steps_per_second": 240.1, "steps_per_second_max": 244.7, "repeats": 7}

steps_per_second is the median over the repeats.  A setting is a list of words:

    nchw | nhwc   memory format of weights and input (nhwc: torch.channels_last; images only)
    malloc        glibc keeps freed memory and asks for huge pages
    foreach|fused variant of the optimizer (default: PyTorch's own choice)
    keepgrad      zero_grad(set_to_none=False)
    nomkldnn      convolutions and linear layers without oneDNN
    compile       torch.compile; needs a C++ compiler, and is not eager mode
    autocast      convolutions and linear layers in bf16 (torch.autocast), weights in fp32
    autocast16    the same in fp16, with a GradScaler (a GPU)
    allbf16       weights, activations and all else in bf16
    tf32          products in tf32 (a GPU; without it they are fp32)
    benchmark     cuDNN tries its algorithms and takes the fastest (a GPU)

With --device cuda model and batch are on the GPU, and a measurement ends when the GPU has finished.

    torch_step.py --model lenet5 --threads 1                       all settings
    torch_step.py --model lenet5 --threads 1 --setting "nhwc malloc fused"
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
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
BF16_SETTINGS = [
    f"{layout}{malloc} fused {numbers}"
    for numbers in ("autocast", "allbf16") for layout in ("nchw", "nhwc") for malloc in ("", " malloc")
]
CUDA_SETTINGS = [
    f"{layout}{variant}{benchmark}"
    for layout in ("nchw", "nhwc") for variant in ("", " fused") for benchmark in ("", " benchmark")
]
BF16_COMPILED_SETTINGS = ["nhwc malloc fused compile autocast", "nhwc malloc fused compile allbf16"]

MALLOC_ENVIRONMENT = {
    "MALLOC_TRIM_THRESHOLD_": str(1 << 34),
    "MALLOC_TOP_PAD_": str(1 << 28),
    "MALLOC_MMAP_THRESHOLD_": str(1 << 34),
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
}


def build_lenet5():
    """61 706 parameters; padding 2 replaces resizing MNIST to 32x32."""
    from torch import nn

    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))


def build_lenet5_caffe():
    """431 080 parameters, no ReLU after the convolutions."""
    from torch import nn

    return nn.Sequential(
        nn.Conv2d(1, 20, 5), nn.MaxPool2d(2), nn.Conv2d(20, 50, 5), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(800, 500), nn.ReLU(), nn.Linear(500, 10))


def build_resnet18():
    """11 173 962 parameters: configs/models/resnet18.yaml, written as PyTorch users do."""
    from torch import nn
    from torch.nn import functional

    class Block(nn.Module):
        def __init__(self, channels, width, stride):
            super().__init__()
            self.conv1 = nn.Conv2d(channels, width, 3, stride, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(width)
            self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(width)
            self.shortcut = nn.Sequential()
            if stride > 1:
                self.shortcut = nn.Sequential(
                    nn.Conv2d(channels, width, 1, stride, bias=False), nn.BatchNorm2d(width))

        def forward(self, x):
            y = functional.relu(self.bn1(self.conv1(x)), inplace=True)
            return functional.relu(self.bn2(self.conv2(y)) + self.shortcut(x), inplace=True)

    layers = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True)]
    channels = 64
    for width in (64, 128, 256, 512):
        layers += [Block(channels, width, 1 if width == 64 else 2), Block(width, width, 1)]
        channels = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))


def build_vgg19_bn():
    """20 040 522 parameters: configs/models/vgg19_bn.yaml."""
    from torch import nn

    layers, channels = [], 3
    for width, repeat in ((64, 2), (128, 2), (256, 4), (512, 4), (512, 4)):
        for _ in range(repeat):
            layers += [nn.Conv2d(channels, width, 3, padding=1), nn.BatchNorm2d(width),
                       nn.ReLU(inplace=True)]
            channels = width
        layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(512, 10))


def build_seq2seq_attention():
    """20 518 405 parameters."""
    from torch_seq2seq import Seq2Seq

    return Seq2Seq()


def images(*shape):
    """Returns a function from a batch size to (images, labels)."""
    def make_batch(samples):
        import torch

        return torch.randn(samples, *shape), torch.randint(0, 10, (samples,))

    return make_batch


def sentences(samples):
    from torch_seq2seq import make_batch

    return make_batch(samples)


# Model -> functions that build it and a batch for it.
MODELS = {
    "lenet5": (build_lenet5, images(1, 28, 28)),
    "lenet5_caffe": (build_lenet5_caffe, images(1, 28, 28)),
    "resnet18": (build_resnet18, images(3, 32, 32)),
    "vgg19_bn": (build_vgg19_bn, images(3, 32, 32)),
    "seq2seq_attention": (build_seq2seq_attention, sentences),
}


def on_device(part, device):
    """Moves a tensor, or a tuple of tensors, to the device."""
    if isinstance(part, tuple):
        return tuple(on_device(tensor, device) for tensor in part)
    return part.to(device)


def make_step(args, words):
    """Returns a function without arguments that trains one step."""
    import torch
    from torch.nn import functional

    torch.manual_seed(1)
    torch.set_num_threads(args.threads)
    torch.set_flush_denormal(True)
    if "nomkldnn" in words:
        torch.backends.mkldnn.set_flags(False)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = "tf32" in words
    torch.backends.cudnn.benchmark = "benchmark" in words
    build, make_batch = MODELS[args.model]
    model = build().to(args.device)
    batch, labels = (on_device(part, args.device) for part in make_batch(args.batch))
    if "nhwc" in words:
        model = model.to(memory_format=torch.channels_last)
        batch = batch.to(memory_format=torch.channels_last)
    if "allbf16" in words:
        model = model.to(torch.bfloat16)
        batch = batch if isinstance(batch, tuple) else batch.to(torch.bfloat16)  # token numbers keep their type
    fp16 = "autocast16" in words
    autocast = torch.autocast(args.device, dtype=torch.float16 if fp16 else torch.bfloat16,
                              enabled=fp16 or "autocast" in words)
    scaler = torch.amp.GradScaler(args.device) if fp16 else None
    variant = {word: True for word in ("foreach", "fused") if word in words}
    optimizer = torch.optim.SGD(
        model.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4, **variant)
    to_none = "keepgrad" not in words

    def forward_loss(inputs, targets):
        with autocast:
            return functional.cross_entropy(model(inputs), targets)

    if "compile" in words:
        forward_loss = torch.compile(forward_loss)

    def step():
        optimizer.zero_grad(set_to_none=to_none)
        loss = forward_loss(batch, labels)
        if scaler is None:
            loss.backward()
            optimizer.step()
        else:
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()

    return step


def run_for(step, finish, seconds, least):
    """Returns the steps per second of a run of `seconds`, with `least` steps at least."""
    steps, begin = 0, time.perf_counter()
    while steps < least or time.perf_counter() - begin < seconds:
        step()
        steps += 1
        finish()
    return steps / (time.perf_counter() - begin)


def measure(args):
    """Runs the setting in this process and returns its JSON record."""
    import torch

    step = make_step(args, args.setting.split())
    finish = torch.cuda.synchronize if args.device == "cuda" else lambda: None
    run_for(step, finish, 0.3, least=3)
    steps = round(args.seconds * run_for(step, finish, 0.3, least=1)) or 1
    rates = []
    for _ in range(args.repeats):
        begin = time.perf_counter()
        for _ in range(steps):
            step()
        finish()
        rates.append(steps / (time.perf_counter() - begin))
    return {
        "framework": "pytorch " + torch.__version__.split("+")[0],
        "model": args.model,
        "setting": args.setting,
        "device": args.device,
        "threads": args.threads,
        "batch": args.batch,
        "steps_per_second": round(statistics.median(rates), 4),
        "steps_per_second_max": round(max(rates), 4),
        "repeats": args.repeats,
    }


def run_process(command, environment=None):
    """Returns (exit status, stdout, stderr, peak resident memory in MiB) of a process."""
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=errors)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        errors.seek(0)
        return process.returncode, output.read(), errors.read(), usage.ru_maxrss / 1024


def run_setting(model, setting, threads, batch, seconds, repeats, device="cpu"):
    """Runs one setting in a new process.  Returns its record with the peak memory, or {"setting", "error"}."""
    environment = dict(os.environ, OMP_NUM_THREADS=str(threads))
    if "malloc" in setting.split():
        environment.update(MALLOC_ENVIRONMENT)
    command = [
        sys.executable, os.path.abspath(__file__), "--inside", "--model", model, "--setting", setting,
        "--threads", str(threads), "--batch", str(batch), "--seconds", str(seconds),
        "--repeats", str(repeats), "--device", device,
    ]
    status, output, errors, peak_mib = run_process(command, environment)
    if status == 0:
        return dict(json.loads(output.splitlines()[-1]), peak_mib=peak_mib)
    reason = (errors.strip() or f"status {status}").splitlines()[-1]
    return {"model": model, "setting": setting, "threads": threads, "error": reason}


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=list(MODELS), default="lenet5")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
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
    usual = CUDA_SETTINGS if args.device == "cuda" else EAGER_SETTINGS + COMPILED_SETTINGS
    for setting in [args.setting] if args.setting else usual:
        record = run_setting(
            args.model, setting, args.threads, args.batch, args.seconds, args.repeats, args.device)
        print(json.dumps(record), flush=True)


if __name__ == "__main__":
    main()
