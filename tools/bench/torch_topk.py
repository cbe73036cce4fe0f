#!/usr/bin/env python3
"""Measures torch.topk for the k largest magnitudes, for comparison with `dtrain bench topk`.

Prints one JSON line for each size, for one thread or a GPU; `seconds` is the least of the measured times, as in
dtrain:

    {"framework": "pytorch 2.9.0", "bench": "topk", "device": "cpu", "d": 1000000, "density": 0.001,
     "samples": 130, "seconds": 0.0074}

    torch_topk.py --sizes 1000000 10000000 100000000 --density 0.001 --seconds 1 --device cpu
"""

import argparse
import json
import time

import torch

LEAST_SAMPLES = 3


def least_seconds(work, seconds):
    """Returns (the least time of a call, calls), from at least three calls within `seconds`."""
    times, begin = [], time.perf_counter()
    while len(times) < LEAST_SAMPLES or time.perf_counter() - begin < seconds:
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times), len(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10**6, 10**7, 10**8])
    parser.add_argument("--density", type=float, default=0.001)
    parser.add_argument("--seconds", type=float, default=1, help="length of the measurement of each size")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    for d in args.sizes:
        values, k = torch.randn(d, device=args.device), max(1, int(args.density * d))

        def select():
            torch.topk(values.abs(), k, sorted=False)
            if args.device == "cuda":
                torch.cuda.synchronize()

        seconds, samples = least_seconds(select, args.seconds)
        print(json.dumps({"framework": f"pytorch {torch.__version__}", "bench": "topk", "device": args.device, "d": d,
                          "density": args.density, "samples": samples, "seconds": seconds}), flush=True)


if __name__ == "__main__":
    main()
