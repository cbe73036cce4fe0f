#!/usr/bin/env python3
"""Makes one error in a shipped config or model, and checks what `dtrain check` reports.

    tests/fuzz/check_config_errors.py --count 2000     # some minutes on one core
    tests/fuzz/check_config_errors.py --seed 4711      # repeats one seed and shows the program's output
    tests/fuzz/check_config_errors.py --pairs --count 500

A key or a value of one line is misspelt, or gets another type.  The file may be accepted if the value still has
its old type; then the effective config must have the new value and no other change.  Otherwise the file must be
refused with exactly one error, which names the key and the edited line.  The error may name another line if the
edited one cannot be known to be wrong: after a changed name, the first line that refers to the old name; after a
changed number, a layer whose inputs do not fit any more; and if two keys contradict each other, the other key's line.
The script prints a summary, and its exit code is 1 if `dtrain check` answered an edit otherwise.

With --pairs two edits in different lines, each of which gives one error by itself, must give these two errors
together.  Shape errors may be missing: after a layer with an error the shapes are unknown.
"""

import argparse
import dataclasses
import os
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ.get("DTRAIN", ROOT / "build/release/dtrain"))
NUMBER = re.compile(r"-?[0-9.]+(e-?[0-9]+)?")
BEGIN = r"^\S+ error "  # begins each line of an error
PLACE = re.compile(rf"{BEGIN}\S*?([^/\s]+\.yaml):(\d+):\d+: (.*(?:\n\S+ error     .*)*)", re.MULTILINE)
NEGATIVE = {"value", "ignore"}  # keys of models that accept negative numbers
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


@dataclasses.dataclass
class Edit:
    """An edit of line `line` (from 1): a key or its value changed from `old` to `new`."""
    line: int
    kind: str  # key, value, type, sign, word
    key: str  # after the edit
    old: str
    new: str

    def changes_number(self) -> bool:
        return self.kind != "key" and all(NUMBER.fullmatch(text) for text in (self.old, self.new))

    def changes_name(self) -> bool:
        """True if the name of a layer, block or argument changes, to which other lines may refer."""
        named = self.kind == "key" or (self.key in ("name", "arguments") and self.kind in ("value", "word"))
        return named and self.old != self.new


def edited(text: str, draw: random.Random):
    """Returns the text with one edit, and the edit."""
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
        return "\n".join(lines[:i] + [line] + lines[i + 1:]), Edit(i + 1, kind, new, key, new)
    new = {"value": misspelt(value, draw) if re.fullmatch("[a-z_0-9]+", value) else "three",
           "type": "{a: 1}", "sign": "-1", "word": "nothing"}[kind]
    line = line[:begin] + new + line[end:]
    return "\n".join(lines[:i] + [line] + lines[i + 1:]), Edit(i + 1, kind, key, value, new)


def check(config: Path, folder: Path):
    done = subprocess.run([PROGRAM, "check", "--config", config], capture_output=True, text=True, cwd=folder,
                          timeout=60, check=False)
    return done.returncode, done.stdout, done.stderr


def settings(effective: str) -> dict:
    """Returns the values of an effective config by their path."""
    values, path = {}, []
    for line in effective.split("\n"):
        depth = (len(line) - len(line.lstrip())) // 2
        key, _, value = line.strip().partition(":")
        path = path[:depth] + [key]
        if value:
            values[".".join(path)] = value.strip()
    return values


def wrongly_taken(edit: Edit, before: str, after: str, of_model: bool) -> str:
    if edit.old == edit.new:
        return ""
    if edit.kind in ("key", "type"):
        return "taken, though nothing can be meant by it"
    if NUMBER.fullmatch(edit.old) and not edit.changes_number():
        return "taken, though it was a number"
    old, new = settings(before), settings(after)
    changed = sorted(path for path in old.keys() | new.keys() if old.get(path) != new.get(path))
    if of_model:
        if edit.new.startswith("-") and edit.key not in NEGATIVE:
            return "taken, though it is less than nothing"
        if edit.key != "name" and not edit.changes_number():
            return "taken, though it is no name"
        return f"the config has changed: {changed}" if changed else ""
    if [path.split(".")[-1] for path in changed] != [edit.key]:
        return f"taken with another meaning: {changed}"
    reported = new.get(changed[0], "").strip('"')
    if reported != edit.new and not (edit.changes_number() and float(reported) == float(edit.new)):
        return f"taken as {reported}"
    return ""


def stands_elsewhere(edit: Edit, text: str, line: int, message: str) -> bool:
    """True if the error may name this other line of the edited text."""
    there = text.split("\n")[line - 1]
    if edit.changes_name() and edit.old in there and edit.old in message:
        return True
    if edit.changes_number() and re.match(r"layer '[^']+' \(", message):
        return True
    return f"line {edit.line}" in message or (edit.key in message and "model is made for" in message)


def verdict(edit: Edit, text: str, code: int, said: str, name: str) -> str:
    """Returns what is wrong with a refusal; "" if it is right."""
    if code != 2:
        return f"exit code {code}"
    reported = PLACE.findall(said)
    counted = re.search(BEGIN + r"(\d+) errors?; nothing was started", said, re.MULTILINE)
    if len(reported) != 1 or (counted and counted[1] != "1"):
        return "not exactly one error"
    file, line, message = reported[0][0], int(reported[0][1]), reported[0][2]
    if file != name:
        return f"not in {name}"
    if line != edit.line:
        return "" if stands_elsewhere(edit, text, line, message) else f"not on line {edit.line}"
    return "" if edit.key in message else f"'{edit.key}' is not named"


def files_of(source: Path, text: str, folder: Path):
    """Writes the text to a file named as the source.  Returns the config to check: that file, or one with the model."""
    (folder / source.name).write_text(text)
    if source.parent.name != "models":
        return folder / source.name
    data = {"seq2seq": "multi30k", "lenet5": "mnist"}.get(re.split("_", source.stem)[0], "cifar10")
    (folder / "run.yaml").write_text(f"model: {{name: ./{source.name}}}\ndata: {{name: {data}}}\n")
    return folder / "run.yaml"


def drawn(draw: random.Random, configs: list, models: list) -> Path:
    return draw.choice(models if draw.random() < 0.5 else configs)


def one(seed: int, configs: list, models: list, folder: Path):
    draw = random.Random(seed)
    source = drawn(draw, configs, models)
    text, edit = edited(source.read_text(), draw)
    code, after, said = check(files_of(source, text, folder), folder)
    if code == 0:
        before = check(files_of(source, source.read_text(), folder), folder)[1]
        problem = wrongly_taken(edit, before, after, source in models)
    else:
        problem = verdict(edit, text, code, said, source.name)
    return f"seed {seed}: {source.name}:{edit.line} {edit.kind} '{edit.key}'", code, problem, said


def pair(seed: int, configs: list, models: list, folder: Path):
    """Does what one() does with two edits; returns code 0 if one of them is not a single error by itself."""
    draw = random.Random(seed)
    source = drawn(draw, configs, models)
    lines = source.read_text().split("\n")
    alone, both, edits = [], list(lines), []
    for _ in range(2):
        text, edit = edited("\n".join(lines), draw)
        both[edit.line - 1] = text.split("\n")[edit.line - 1]
        edits.append(edit)
        alone.append(PLACE.findall(check(files_of(source, text, folder), folder)[2]))
    what = f"seed {seed}: {source.name}: " + " and ".join(f"{e.line} {e.kind} '{e.key}'" for e in edits)
    if edits[0].line == edits[1].line or any(len(reported) != 1 for reported in alone):
        return what, 0, "", ""
    code, _, said = check(files_of(source, "\n".join(both), folder), folder)
    reported = PLACE.findall(said)
    lost = [error for error, in alone if error[:2] not in [other[:2] for other in reported]]
    if len(reported) + len(lost) > 2:
        return what, code, "more than the two errors", said
    lost = [message for _, _, message in lost if not re.match(r"layer '[^']+' \(", message)]
    return what, code, f"lost: {lost}" if lost else "", said


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--seed", type=int, help="runs only this seed and shows the program's output")
    parser.add_argument("--pairs", action="store_true", help="two errors at a time")
    options = parser.parse_args()
    configs = sorted((ROOT / "configs/runs").glob("*.yaml"))
    models = sorted((ROOT / "configs/models").glob("*.yaml"))
    seeds = [options.seed] if options.seed is not None else range(options.first, options.first + options.count)
    codes, wrong = {}, 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in seeds:
            what, code, problem, said = (pair if options.pairs else one)(seed, configs, models, Path(folder))
            codes[code] = codes.get(code, 0) + 1
            wrong += bool(problem)
            if problem or options.seed is not None:
                print(f"{what}: {problem or 'as it should'}\n{said}")
    what = "pairs" if options.pairs else "edits"
    print(f"{sum(codes.values())} {what}; exit codes {dict(sorted(codes.items()))}; {wrong} answered otherwise")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
