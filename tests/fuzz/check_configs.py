#!/usr/bin/env python3
"""Runs `dtrain check` on damaged copies of the shipped configs, and checks how it ends.

    tests/fuzz/check_configs.py --count 10000     # about a quarter of an hour on one core
    tests/fuzz/check_configs.py --seed 4711       # repeats one seed and shows the program's output

A config must be accepted (exit code 0) or refused with a message (2; 3 or 6 for errors in its data or weights),
within --seconds and --megabytes.  The script prints a summary, and its exit code is 1 if a config ended otherwise.
"""

import argparse
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build/release/dtrain"
GOOD = (0, 2, 3, 6)

# Pieces of text that a user or a program may put in a wrong place.
PIECES = [b"\xff", b"\0", b"{", b"}", b"[", b"]", b":", b"- ", b"'", b'"', b"&a ", b"*a", b"<<: ", b"!!int ", b"#", b"\t",
          b"\r", b"\n", b"-1", b"0", b"1e308", b".nan", b"9223372036854775807", b"18446744073709551616", b"1" * 400,
          b"null", b"~", b"true", b"auto", b"x" * 5000, b"/dev/zero", b"[" * 80, b"name: ", b"\xe2\x80\xae"]


def mutated(text: bytes, draw: random.Random) -> bytes:
    data = bytearray(text)
    for _ in range(draw.choice((1, 1, 1, 2, 3, 8))):
        at = draw.randrange(len(data) + 1)
        end = min(at + draw.choice((1, 2, 5, 20, 200)), len(data))
        kind = draw.randrange(7)
        if kind == 0:
            data[at:at] = draw.choice(PIECES)
        elif kind == 1:
            data[at:end] = draw.choice(PIECES)
        elif kind == 2:
            del data[at:end]
        elif kind == 3 and at < len(data):
            data[at] ^= 1 << draw.randrange(8)
        elif kind == 4:
            data[at:at] = data[at:end] * draw.choice((1, 2, 50))
        else:  # swaps two lines, or replaces a value
            lines = bytes(data).split(b"\n")
            one, other = draw.randrange(len(lines)), draw.randrange(len(lines))
            if kind == 5:
                lines[one], lines[other] = lines[other], lines[one]
            elif b": " in lines[one]:
                lines[one] = lines[one].split(b": ")[0] + b": " + draw.choice(PIECES)
            data = bytearray(b"\n".join(lines))
    return bytes(data)


def check(seed: int, configs: list, folder: Path):
    draw = random.Random(seed)
    config = draw.choice(configs)
    path = folder / config.name
    path.write_bytes(mutated(config.read_bytes(), draw))
    started = time.monotonic()
    with tempfile.TemporaryFile() as said:
        child = subprocess.Popen([PROGRAM, "check", "--config", path], stdin=subprocess.DEVNULL, stdout=said,
                                 stderr=said, cwd=folder)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        words = said.read().decode(errors="replace")
    return config, child.returncode, time.monotonic() - started, usage.ru_maxrss / 1024, words


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--seed", type=int, help="runs only this seed and shows the program's output")
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--megabytes", type=float, default=500)
    options = parser.parse_args()
    configs = sorted((ROOT / "configs/runs").glob("*.yaml"))
    seeds = [options.seed] if options.seed is not None else range(options.first, options.first + options.count)
    codes, wrong, slowest, largest = {}, 0, 0.0, 0.0
    with tempfile.TemporaryDirectory() as folder:
        for seed in seeds:
            config, code, seconds, megabytes, words = check(seed, configs, Path(folder))
            codes[code] = codes.get(code, 0) + 1
            slowest, largest = max(slowest, seconds), max(largest, megabytes)
            fits = code in GOOD and words.strip() and seconds <= options.seconds and megabytes <= options.megabytes
            if not fits:
                wrong += 1
                print(f"seed {seed}: {config.name}: exit code {code}, {seconds:.2f} s, {megabytes:.0f} MB")
            if options.seed is not None or not fits:
                print(words)
    print(f"{sum(codes.values())} configs; exit codes {dict(sorted(codes.items()))}")
    print(f"the slowest {slowest:.2f} s, the largest {largest:.0f} MB; {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.exit(main())
