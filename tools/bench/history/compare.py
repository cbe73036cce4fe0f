#!/usr/bin/env python3
"""Compares two lines of figures and reports which differ by more than the noise of their rounds.

    tools/bench/history/compare.py A B [--machine KIND]

A and B are revisions in <machine kind>.jsonl beside this file (a prefix is enough), `last`, or files; of several
lines the last one is used.  The ratio is B's least time to A's: below 1, B is faster.  The noise of a figure is the
distance of the median of its rounds from the least, the larger one of A and B, and at least 3 %.  Lines of two
machines are refused.  The exit status is 1 if a figure is slower, 2 if there is nothing to compare.
"""
import argparse
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
LEAST_NOISE = 0.03


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()]


def refuse(why):
    print(why, file=sys.stderr)
    sys.exit(2)


def entry(name, machine):
    """Returns the last line of a file or revision; refuses if there is none, or if several machines have one."""
    if pathlib.Path(name).is_file():
        found = lines_of(pathlib.Path(name))
    else:
        paths = [HERE / f"{machine}.jsonl"] if machine else sorted(HERE.glob("*.jsonl"))
        found = [line for path in paths for line in lines_of(path) if name == "last" or line["revision"].startswith(name)]
    if not found:
        refuse(f"there is no line of revision '{name}'; record.py makes one")
    kinds = sorted({line["machine"] for line in found})
    if len(kinds) > 1:
        refuse(f"revision '{name}' was measured on several machines; choose by --machine: {', '.join(kinds)}")
    return found[-1]


def noise_of(figure):
    return figure["median_seconds"] / figure["min_seconds"] - 1


def verdict(ratio, noise):
    if ratio > 1 + noise:
        return "slower"
    return "faster" if ratio < 1 / (1 + noise) else "within the noise"


def show(seconds):
    for unit, scale in (("s", 1), ("ms", 1e-3)):
        if seconds >= scale:
            return f"{seconds / scale:.4g} {unit}"
    return f"{seconds * 1e6:.4g} us"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("a")
    parser.add_argument("b")
    parser.add_argument("--machine", help="kind of machine: only its lines are compared")
    args = parser.parse_args()
    a, b = entry(args.a, args.machine), entry(args.b, args.machine)
    if a["machine"] != b["machine"]:
        refuse(f"the lines are of two machines, {a['machine']} and {b['machine']}: their ratio would be of the machines")
    print(f"A: {a['revision']} of {a['date']}, load {a['load']}\nB: {b['revision']} of {b['date']}, load {b['load']}\n")
    slower = False
    for name in list(a["figures"]) + [name for name in b["figures"] if name not in a["figures"]]:
        of_a, of_b = a["figures"].get(name), b["figures"].get(name)
        if of_a is None or of_b is None:
            print(f"{name:55}  only {'A' if of_b is None else 'B'} has it")
            continue
        ratio = of_b["min_seconds"] / of_a["min_seconds"]
        noise = max(noise_of(of_a), noise_of(of_b), LEAST_NOISE)
        says = verdict(ratio, noise)
        slower = slower or says == "slower"
        print(f"{name:55} {show(of_a['min_seconds']):>9} {show(of_b['min_seconds']):>9}  {ratio:5.2f}  "
              f"+-{100 * noise:3.0f} %  {says}")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
