#!/usr/bin/env python3
"""Makes one mistake in a shipped config or model, and looks at what `dtrain check` says of it.

    tests/fuzz/check_mistakes.py --count 2000     # some minutes on one core
    tests/fuzz/check_mistakes.py --seed 4711      # one again, with what the program says

A key or a value of one line is misspelt, left out, or given another type.  The file must be taken with
the same meaning (the effective config does not change, or changes in the edited key alone), or refused
with exactly one error that stands on the edited line, or on the line of the section around it where a key
is gone, and names the key.  A figure a line at the end; the status is 1 where an edit was answered otherwise.
"""

import argparse
import os
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ.get("DTRAIN", ROOT / "build/release/dtrain"))
KEY = re.compile(r"(?P<before>^\s*(?:- )?|[{,]\s*)(?P<key>[a-z_]+): *(?P<value>\[[^\]]*\]|\"[^\"]*\"|[^,{}\[\]#\n]*)")


def misspelt(word: str, draw: random.Random) -> str:
    at = draw.randrange(len(word))
    kind = draw.randrange(4)
    if kind == 0:
        return word[:at] + word[at + 1:]
    if kind == 1:
        return word[:at] + word[at] + word[at:]
    if kind == 2 and len(word) > 1:
        at = min(at, len(word) - 2)
        return word[:at] + word[at + 1] + word[at] + word[at + 2:]
    return word[:at] + draw.choice("abcdefghijklmnopqrstuvwxyz") + word[at + 1:]


def edited(text: str, draw: random.Random):
    """The text with one edit, its line (from 1), the key, and what was done."""
    lines = text.split("\n")
    spots = [(i, m) for i, line in enumerate(lines) for m in KEY.finditer(line.split(" #")[0]) if not line.startswith("#")]
    i, match = draw.choice(spots)
    line, key, value = lines[i], match["key"], match["value"].strip()
    begin, end = match.span("value")
    end = begin + len(match["value"].rstrip())
    kind = draw.choice(("key", "key", "key", "value", "type", "sign", "word"))
    if kind == "key" or not value:
        kind, new = "key", misspelt(key, draw)
        line = line[:match.start("key")] + new + line[match.end("key"):]
        return "\n".join(lines[:i] + [line] + lines[i + 1:]), i + 1, new, kind
    new = {"value": misspelt(value, draw) if re.fullmatch("[a-z_0-9]+", value) else "three",
           "type": "{a: 1}", "sign": "-1", "word": "nothing"}[kind]
    line = line[:begin] + new + line[end:]
    return "\n".join(lines[:i] + [line] + lines[i + 1:]), i + 1, key, kind


def check(config: Path, folder: Path):
    done = subprocess.run([PROGRAM, "check", "--config", config], capture_output=True, text=True, cwd=folder,
                          timeout=60, check=False)
    return done.returncode, done.stdout, done.stderr


def settings(effective: str) -> list:
    return [line.strip() for line in effective.split("\n")]


def verdict(code: int, said: str, before: str, after: str, name: str, line: int, key: str) -> str:
    """What is wrong with the answer; "" for nothing."""
    if code == 0:
        old, new = settings(before), settings(after)
        changed = [one for one in new if one not in old and not one.startswith("output:")]
        if len(changed) > 1 and not any(key in one or "name:" in one for one in changed):
            return f"taken with another meaning: {changed}"
        return ""
    if code != 2:
        return f"exit code {code}"
    if not re.search(r"^1 error; nothing was started", said, re.MULTILINE):
        told = re.findall(r"^(?:\S+ error )?\S*\.yaml:\d+:\d+: ", said, re.MULTILINE)
        if len(told) != 1:
            return "not exactly one error"
    if not re.search(rf"{re.escape(name)}:{line}:\d+: ", said):
        return f"not on line {line}"
    if key not in said:
        return f"'{key}' is not named"
    return ""


def one(seed: int, configs: list, models: list, folder: Path):
    draw = random.Random(seed)
    of_model = draw.random() < 0.5
    source = draw.choice(models if of_model else configs)
    text, line, key, kind = edited(source.read_text(), draw)
    target = folder / source.name
    target.write_text(text)
    run = target
    if of_model:
        data = {"seq2seq": "multi30k", "lenet5": "mnist"}.get(re.split("_", source.stem)[0], "cifar10")
        run = folder / "run.yaml"
        run.write_text(f"model: {{name: ./{source.name}}}\ndata: {{name: {data}}}\n")
        (folder / "good").mkdir(exist_ok=True)
        good = folder / "good" / "run.yaml"
        good.write_text(run.read_text())
        (folder / "good" / source.name).write_text(source.read_text())
    code, after, said = check(run, folder)
    before = check(source if not of_model else good, folder if not of_model else folder / "good")[1] if code == 0 else ""
    problem = verdict(code, said, before, after, source.name, line, key)
    return f"seed {seed}: {source.name}:{line} {kind} '{key}'", code, problem, said


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--seed", type=int, help="only this one, with what the program says")
    options = parser.parse_args()
    configs = sorted((ROOT / "configs/runs").glob("*.yaml"))
    models = sorted((ROOT / "configs/models").glob("*.yaml"))
    seeds = [options.seed] if options.seed is not None else range(options.first, options.first + options.count)
    codes, wrong = {}, 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in seeds:
            what, code, problem, said = one(seed, configs, models, Path(folder))
            codes[code] = codes.get(code, 0) + 1
            wrong += bool(problem)
            if problem or options.seed is not None:
                print(f"{what}: {problem or 'as it should'}\n{said}")
    print(f"{sum(codes.values())} edits; exit codes {dict(sorted(codes.items()))}; {wrong} answered otherwise")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
