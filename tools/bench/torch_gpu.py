#!/usr/bin/env python3
"""Measures training steps a second on a GPU: dtrain, and PyTorch in every way to run a step, in one process.

    python3 tools/bench/torch_gpu.py --dtrain build/release/dtrain --log speed.jsonl

A way is a setting of torch_step.py, to which a word is added here:

    graph   the whole step in one CUDA graph (images only: the sentences' decoder draws on the host)

Each measurement is a line of --log; what is there is not measured again, so a run that was cut goes on.  The ways that
were fastest on an H200 come first, and those that compile last.  At the end there is a table: dtrain beside
PyTorch's best of each model and precision.
"""

import argparse
import gc
import json
import os
import subprocess
import time

CASES = [("resnet18", 128, "cifar10"), ("vgg19_bn", 128, "cifar10"), ("lenet5", 64, "digits"),
         ("seq2seq_attention", 128, "multi30k")]
# Words of a precision, for PyTorch.
PRECISIONS = {"fp32": [""], "tf32": ["tf32"], "bf16": ["allbf16", "autocast"], "fp16": ["autocast16"]}


def ways(model, precision):
    images = not model.startswith("seq2seq")
    layouts = ["nhwc", "nchw"] if images else ["nchw"]
    kinds = ["graph", "", "compile graph", "compile"] if images else ["", "compile"]
    return [" ".join(f"{layout} fused benchmark {numbers} {kind}".split())
            for kind in kinds for numbers in PRECISIONS[precision] for layout in layouts
            if "compile" not in kind or layout == layouts[0]]


def captured(step):
    """Returns a function that repeats `step` as a CUDA graph."""
    import torch

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()

    def repeat(_keep=step):  # model and batch must live as long as the graph
        graph.replay()

    return repeat


def torch_rate(model, batch, setting, seconds):
    import torch
    from torch_step import make_step, run_for

    words = setting.split()
    torch._dynamo.reset()
    step = make_step(argparse.Namespace(model=model, batch=batch, device="cuda", threads=1), words)
    if "graph" in words:
        step = captured(step)
    run_for(step, torch.cuda.synchronize, 0.3, least=5)
    steps = max(1, round(seconds * run_for(step, torch.cuda.synchronize, 0.3, least=3)))
    begin = time.perf_counter()
    for _ in range(steps):
        step()
    torch.cuda.synchronize()
    rate = steps / (time.perf_counter() - begin)
    del step
    gc.collect()
    torch.cuda.empty_cache()
    return rate


def dtrain_rate(program, model, batch, data, precision, seconds):
    command = [program, "bench", "step", "--model", model, "--data", data, "--batch", str(batch),
               "--device", "cuda", "--precision", precision, "--seconds", str(seconds)]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return json.loads(output.splitlines()[-1])["steps_per_second"]


class Log:
    def __init__(self, path):
        self.path, self.rates = path, {}
        if path and os.path.exists(path):
            with open(path, encoding="utf-8") as lines:
                for line in map(json.loads, lines):
                    self.rates[tuple(line["case"])] = line.get("steps_per_second")

    def measure(self, case, function):
        """Measures what is not known yet; an error is a measurement, too."""
        if case in self.rates:
            return
        line = {"case": case}
        try:
            line["steps_per_second"] = round(function(), 2)
        except Exception as error:  # torch.compile has many of its own
            line["error"] = (str(error).splitlines() or [repr(error)])[0][:200]
            if "dtrain" not in case:
                import torch

                torch.cuda.synchronize()  # after some errors nothing works: ends here, and is not noted
        self.rates[case] = line.get("steps_per_second")
        print(json.dumps(line), flush=True)
        if self.path:
            with open(self.path, "a", encoding="utf-8") as lines:
                lines.write(json.dumps(line) + "\n")


def print_table(log):
    print(f"\n{'model':20}{'precision':>10}{'dtrain':>10}{'PyTorch':>10}{'ratio':>8}  PyTorch's best way")
    for model, _, _ in CASES:
        for precision in PRECISIONS:
            ours = log.rates.get((model, precision, "dtrain"))
            theirs = {way: log.rates.get((model, precision, way)) or 0 for way in ways(model, precision)}
            best = max(theirs, key=theirs.get)
            if not ours or not theirs[best]:
                continue
            print(f"{model:20}{precision:>10}{ours:10.1f}{theirs[best]:10.1f}{ours / theirs[best]:8.2f}  {best}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dtrain", default="build/release/dtrain", help="the program to measure")
    parser.add_argument("--log", help="file of measurements")
    parser.add_argument("--seconds", type=float, default=1, help="length of one measurement")
    parser.add_argument("--within", type=float, default=400, help="seconds after which none is begun")
    args = parser.parse_args()
    log, begin = Log(args.log), time.perf_counter()
    work = [((model, precision, "dtrain"),
             lambda m=model, b=batch, d=data, p=precision: dtrain_rate(args.dtrain, m, b, d, p, args.seconds))
            for model, batch, data in CASES for precision in PRECISIONS]
    work += sorted((((model, precision, way),
                     lambda m=model, b=batch, w=way: torch_rate(m, b, w, args.seconds))
                    for model, batch, _ in CASES for precision in PRECISIONS for way in ways(model, precision)),
                   key=lambda case: ("compile" in case[0][2], "graph" not in case[0][2]))
    left = 0
    for case, function in work:
        if time.perf_counter() - begin < args.within:
            log.measure(case, function)
        elif case not in log.rates:
            left += 1
    print_table(log)
    if left:
        print(f"{left} measurements are left: run it again with the same --log")


if __name__ == "__main__":
    main()
