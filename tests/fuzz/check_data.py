#!/usr/bin/env python3
"""Trains one step on damaged copies of real data files, and checks how the program ends.

    tests/fuzz/check_data.py --count 2000         # about a quarter of an hour on one core
    tests/fuzz/check_data.py --seed 4711          # repeats one seed and shows the program's output

The first images of MNIST and sentences of Multi30k (DTRAIN_DATA) are written as .gz and as plain files, and one
file at a time is damaged.  A .gz file whose content is lost must be refused (exit code 3).  Any other file may be
accepted or refused; the program must not end otherwise.
"""

import argparse
import gzip
import os
import random
import resource
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build/release/dtrain"
IMAGES, SENTENCES = 256, 400

MNIST = {"train-images-idx3-ubyte": 784, "train-labels-idx1-ubyte": 1,
         "t10k-images-idx3-ubyte": 784, "t10k-labels-idx1-ubyte": 1}


def idx_head(content: bytes, bytes_each: int) -> bytes:
    header = 16 if bytes_each > 1 else 8
    return content[:4] + IMAGES.to_bytes(4, "big") + content[8:header + IMAGES * bytes_each]


def write_good(folder: Path, data: Path) -> dict:
    """Writes the undamaged files, as .gz and as plain files.  Returns the content of each by its name."""
    files = {}
    for name, each in MNIST.items():
        files[f"mnist/{name}"] = idx_head(gzip.decompress((data / "mnist" / f"{name}.gz").read_bytes()), each)
    for path in sorted((data / "multi30k/raw").glob("*.gz")):
        lines = gzip.decompress(path.read_bytes()).split(b"\n")[:SENTENCES]
        files[f"multi30k/raw/{path.stem}"] = b"\n".join(lines) + b"\n"
    for kind in ("gz", "plain"):
        for name, content in files.items():
            path = folder / kind / (name + (".gz" if kind == "gz" else ""))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(gzip.compress(content, mtime=0) if kind == "gz" else content)
    return files


def damaged(content: bytes, draw: random.Random) -> bytes:
    data = bytearray(content)
    at = draw.randrange(len(data))
    kind = draw.randrange(8)
    if kind == 0:
        del data[at:]
    elif kind == 1:  # a .gz ends with its checksum and length
        del data[-draw.randrange(1, 9):]
    elif kind == 2:
        data[at] ^= 1 << draw.randrange(8)
    elif kind == 3:
        at = draw.randrange(min(len(data), 20))
        data[at] = draw.randrange(256)
    elif kind == 4:
        data[at:at + 512] = bytes(len(data[at:at + 512]))
    elif kind == 5:
        data += draw.randbytes(draw.choice((1, 4, 500)))
    elif kind == 6:
        data = data[len(data) // 2:] + data[:len(data) // 2]
    else:
        data = data[:at] if draw.randrange(2) else bytearray()
    return bytes(data)


def content_of(packed: bytes):
    """Returns the content without trailing bytes after the end, which gzip(1) ignores as well."""
    stream = zlib.decompressobj(wbits=31)
    try:
        content = stream.decompress(packed)
    except zlib.error:
        return None
    return content if stream.eof else None


def train(root: Path, name: str):
    settings = {"mnist": ["model.name=lenet5"], "multi30k": ["model.name=seq2seq_attention", "data.text=raw"]}[name]
    keys = [f"data.name={name}", "data.limit=64", "batch=64", "epochs=1", "evaluate.every_epochs=1", *settings]
    command = [PROGRAM, "train", "--config", root / "run.yaml", "--output", root / "output"]
    for key in keys:
        command += ["--set", key]
    (root / "run.yaml").write_text("model: {name: lenet5}\ndata: {name: mnist}\nsolver: {name: sgd, lr: 0.01}\n")
    subprocess.run(["rm", "-rf", root / "output"], check=True)
    environment = {**os.environ, "DTRAIN_DATA": str(root), "XDG_CACHE_HOME": str(root / "cache")}
    ended = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120, check=False)
    return ended.returncode, ended.stdout + ended.stderr


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--seed", type=int, help="runs only this seed and shows the program's output")
    options = parser.parse_args()
    if "DTRAIN_DATA" not in os.environ:
        sys.exit("DTRAIN_DATA must name the folder that has mnist and multi30k")
    seeds = [options.seed] if options.seed is not None else range(options.first, options.first + options.count)
    codes, wrong, unpacked = {}, 0, 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        files = write_good(folder, Path(os.environ["DTRAIN_DATA"]))
        for kind in ("gz", "plain"):
            for name in ("mnist", "multi30k"):
                code, words = train(folder / kind, name)
                if code != 0:
                    sys.exit(f"undamaged, {name} as {kind} ended with {code}:\n{words}")
        for seed in seeds:
            draw = random.Random(seed)
            kind = draw.choice(("gz", "gz", "plain"))
            # The test sentences of 2017 are not read in this run.
            name = draw.choice([file for file in files if "2017" not in file])
            path = folder / kind / (name + (".gz" if kind == "gz" else ""))
            good = path.read_bytes()
            bad = damaged(good, draw)
            path.write_bytes(bad)
            code, words = train(folder / kind, name.split("/")[0])
            path.write_bytes(good)
            codes[code] = codes.get(code, 0) + 1
            lost = kind == "gz" and content_of(bad) != files[name]
            unpacked += lost
            fits = code in ((3,) if lost else (0, 3)) and (code == 0 or words.strip())
            wrong += not fits
            if not fits or options.seed is not None:
                print(f"seed {seed}: {name} as {kind}, {len(good)} -> {len(bad)} bytes: exit code {code}\n{words}")
    print(f"{sum(codes.values())} damaged files; exit codes {dict(sorted(codes.items()))}")
    print(f"{unpacked} were .gz whose content was lost; {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.exit(main())
