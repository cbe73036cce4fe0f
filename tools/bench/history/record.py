#!/usr/bin/env python3
"""Adds one line of speed figures to this folder: the times of a short list of benchmarks with one build of dtrain.

    tools/bench/history/record.py --dtrain build/release/dtrain [--out FILE] [--rounds 5]

The list runs in rounds, each benchmark in a process of its own, so that a slow phase of the machine affects all of
them.  A figure of a round is the least time that its process measured.  The line has the least and the median of the
rounds, and the rounds themselves.  It is appended to <machine kind>.jsonl beside this file; five rounds take two
minutes.
"""
import argparse
import datetime
import json
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]

# The layers of a small model, in the format of `dtrain time --profile`: the simulator's work is equal at every commit.
PROFILE = {
    "schema": 1, "model": "lenet5", "device": "cpu", "batch": 64, "threads": 1,
    "layers": [
        {"name": "conv1", "params": 156, "bytes": 624, "forward_seconds": 5e-4, "backward_seconds": 4e-4, "flops": 3e7},
        {"name": "conv2", "params": 2416, "bytes": 9664, "forward_seconds": 3e-4, "backward_seconds": 8e-4, "flops": 9e7},
        {"name": "fc1", "params": 48120, "bytes": 192480, "forward_seconds": 1e-4, "backward_seconds": 4e-4, "flops": 2e7},
        {"name": "fc2", "params": 10164, "bytes": 40656, "forward_seconds": 3e-5, "backward_seconds": 2e-4, "flops": 4e6},
        {"name": "fc3", "params": 850, "bytes": 3400, "forward_seconds": 7e-6, "backward_seconds": 4e-5, "flops": 3e5},
    ],
}


def step(model, data, batch, threads):
    name = f"step {model}, {batch}, {threads} thread{'s' if threads > 1 else ''}"
    return name, ["bench", "step", "--model", model, "--data", data, "--batch", str(batch), "--threads", str(threads),
                  "--seconds", "1"], lambda line: {"": line["min_us"] * 1e-6}


def benchmarks(profile):
    """Returns (name, arguments, line -> {suffix of the name: seconds}); without the last, the process is timed."""
    return [
        step("lenet5", "digits", 64, 1),
        step("lenet5", "digits", 64, 2),
        step("resnet18", "cifar10", 4, 1),
        step("seq2seq_attention", "multi30k", 4, 1),
        ("allreduce of 2 ranks", ["bench", "allreduce", "--workers", "2", "--collectives", "ring,halving_doubling",
                                  "--bytes", "65536,4194304"],
         lambda line: {f", {line['collective']}, {line['bytes']} bytes": line["min_us"] * 1e-6}),
        ("selection", ["bench", "topk", "--compressors", "topk", "gaussiank", "dgc", "--sizes", "1000000",
                       "--seconds", "0.3"],
         lambda line: {f" by {line['compressor']} of {line['d']}": line["seconds"]}),
        ("simulation, allreduce, 256 workers", ["simulate", "--profile", profile, "--workers", "256",
                                                "--set", "batch=16384", "--set", "max_steps=300"], None),
        ("simulation, ps_asp, 512 workers", ["simulate", "--profile", profile, "--workers", "512", "--set", "batch=32768",
                                             "--set", "strategy.name=ps_asp", "--set", "max_steps=40"], None),
    ]


def run_round(dtrain, profile, figures):
    for name, arguments, read in benchmarks(profile):
        begin = time.perf_counter()
        result = subprocess.run([dtrain, *arguments], cwd=ROOT, capture_output=True, text=True)
        seconds = time.perf_counter() - begin
        if result.returncode != 0:
            sys.exit(f"{' '.join([dtrain, *arguments])} ended with status {result.returncode}:\n{result.stderr}")
        found = {"": seconds}
        if read is not None:
            found = {}
            for line in result.stdout.splitlines():
                if line.startswith("{"):
                    found.update(read(json.loads(line)))
        for ending, value in found.items():
            figures.setdefault(name + ending, []).append(value)


def of_cpu(key, otherwise):
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.partition(":")[0].strip() == key:
            return line.partition(":")[2].strip()
    return otherwise


def cpu_name():
    return of_cpu("model name", platform.machine())


def machine_kind():
    """Returns the CPU (its model number if its name is hidden) and the number of usable cores, as a file name."""
    words = re.sub(r"\((R|TM)\)|CPU|Processor|@.*", " ", cpu_name())
    kind = re.sub(r"[^a-z0-9]+", "-", f"{words} model {of_cpu('model', '')}".lower()).strip("-")
    return f"{kind}-{len(os.sched_getaffinity(0))}-cores"


def short(seconds):
    return float(f"{seconds:.5g}")


def revision(dtrain):
    """Returns the commit that the program was built from, with + if files differed: "dtrain 0.1.0 (5b306622+)"."""
    said = subprocess.run([dtrain, "--version"], check=True, capture_output=True, text=True).stdout
    found = re.search(r"\(([^)]+)\)", said)
    return found.group(1) if found else said.strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dtrain", default="build/release/dtrain", help="the program to measure")
    parser.add_argument("--out", type=pathlib.Path, help="the file that gets the line (default: <machine kind>.jsonl)")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    dtrain = str(pathlib.Path(args.dtrain).resolve())
    figures = {}
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        profile = os.path.join(folder, "profile.json")
        pathlib.Path(profile).write_text(json.dumps(PROFILE))
        for number in range(args.rounds):
            run_round(dtrain, profile, figures)
            print(f"round {number + 1} of {args.rounds} is done", file=sys.stderr)
    entry = {
        "revision": revision(dtrain),
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "machine": machine_kind(),
        "cpu": cpu_name(),
        "cores": len(os.sched_getaffinity(0)),
        "load": round(load, 2),
        "figures": {name: {"min_seconds": short(min(rounds)), "median_seconds": short(statistics.median(rounds)),
                           "rounds": [short(value) for value in rounds]} for name, rounds in figures.items()},
    }
    out = args.out or HERE / f"{machine_kind()}.jsonl"
    with open(out, "a") as file:
        file.write(json.dumps(entry) + "\n")
    print(f"{len(figures)} figures of {entry['revision']} are in {out}")


if __name__ == "__main__":
    main()
