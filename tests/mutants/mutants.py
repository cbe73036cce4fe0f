#!/usr/bin/env python3
"""Plants errors in the source, one at a time, and reports which of them the tests notice.

  tests/mutants/mutants.py check                        the edits of known.toml fit the source
  tests/mutants/mutants.py known [NAME...]              plants these edits
  tests/mutants/mutants.py draw --seed N --count 30 FOLDER...
                                                        plants changes drawn at random from the
                                                        .cc files of these folders: an operator, a
                                                        bound or a constant
  tests/mutants/mutants.py list --seed N --count 30 FOLDER...
                                                        lists what would be drawn

A copy of the source is edited and built in build/mutants; the tree itself is never changed.  For each
mutant, the tests whose programs the edit changed run until one fails, those of its own area first.
Results are kept in build/mutants/results.jsonl, so that an interrupted run can continue.
The exit status is 0 if every mutant was noticed, 1 if one was not, 2 for an invalid request.
"""

import argparse
import fcntl
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORK = ROOT / "build" / "mutants"
COPY = WORK / "source"
BUILD = WORK / "build"

# Areas of ctest, the cheap ones first; the program of each is <area>_tests, except for those in PROGRAMS.
AREAS = ["core", "config", "solver", "device", "kernels", "strategies", "compress", "exchange", "comm", "data", "sim",
         "faults", "checkpoint", "real_data", "nn", "onnx", "report", "study", "cli", "golden", "fuzz", "runtime", "comm_mpi", "system"]
PROGRAMS = {"system": "dtrain"}
SECONDS_FOR_AN_AREA = 1500  # without a mutant
USUAL_TIMES = 10  # with a mutant: the limit is this many times the time without; it ends a mutant that loops for ever
SECONDS_AT_LEAST = 30


class MutantError(Exception):
    """The request cannot be carried out."""


# ------------------------------------------------------------------ edits


def replace_once(text, old, new, where):
    found = text.count(old)
    if found != 1:
        raise MutantError(f"{where}: the text to replace stands there {found} times instead of once")
    return text.replace(old, new)


def known_mutants():
    with open(ROOT / "tests" / "mutants" / "known.toml", "rb") as file:
        return tomllib.load(file)["mutant"]


def edit_of(mutant, root):
    """Returns the edited text of the mutant's file."""
    text = (root / mutant["file"]).read_text()
    if "line" not in mutant:
        return replace_once(text, mutant["old"], mutant["new"], f"{mutant['name']}: {mutant['file']}")
    lines = text.split("\n")
    line = lines[mutant["line"] - 1]
    begin = mutant["column"]
    if not line.startswith(mutant["old"], begin):
        raise MutantError(f"{mutant['name']}: the source has changed since the mutant was drawn")
    lines[mutant["line"] - 1] = line[:begin] + mutant["new"] + line[begin + len(mutant["old"]):]
    return "\n".join(lines)


# Binary operators have a blank on either side (clang-format); templates and references have none.
CHANGES = {
    " < ": [" <= ", " > "], " <= ": [" < "], " > ": [" >= ", " < "], " >= ": [" > "],
    " == ": [" != "], " != ": [" == "], " && ": [" || "], " || ": [" && "],
    " + ": [" - "], " - ": [" + "], " * ": [" + "], " / ": [" * "], " % ": [" / "],
    " += ": [" -= ", " = "], " -= ": [" += "], " |= ": [" = "], " &= ": [" = "],
    "std::min(": ["std::max("], "std::max(": ["std::min("], "++": ["--"],
    "true": ["false"], "false": ["true"], "!": [""],
}
OPERATOR = re.compile(r" (?:<|<=|>|>=|==|!=|&&|\|\||\+|-|\*|/|%|\+=|-=|\|=|&=) "
                      r"|std::(?:min|max)\(|\+\+|\btrue\b|\bfalse\b|!(?=[a-z(])")
NUMBER = re.compile(r"(?<![\w.'])(\d+)(?![\w.'])")
# Lines that are not mutated: messages, checks of invariants and of the results of libraries, declarations of text,
# sizes of buffers, lengths of waits, results before the call that writes them, guards against a division by 0, and
# a negative indentation, which means "one line" whatever its value.
PASSED_OVER = re.compile(r"^\s*(#|//|static_assert|using |template|namespace)|DT_CHECK|log::|fmt::format|"
                         r"\bthrow\b|\bFail\(|Help\(|MutantError\(|reserve\(|DTRAIN_|operator[<>=]|\b1\}? << \d|"
                         r"\bEINTR\b|\bH5[A-Z]+\w+\(|\bfd_? < 0|\b(micro|milli)?seconds[({]\d|"
                         r"^\s*(off_t|ssize_t|hsize_t|hid_t|herr_t) \w+ = -?\d+;|std::max\([^,]+, 1e-\d+\)|"
                         r"\bdump\(-1\b")


def code_of(line):
    """Returns the line with strings, characters and comments blanked out, in the same length."""
    line = re.sub(r'"(?:\\.|[^"\\])*"|' r"'(?:\\.|[^'\\])'",
                  lambda m: m.group()[0] + " " * (len(m.group()) - 2) + m.group()[-1], line)
    comment = line.find("//")
    return line if comment < 0 else line[:comment]


def sites_in(path, text):
    for number, line in enumerate(text.split("\n"), 1):
        if PASSED_OVER.search(line):
            continue
        code = code_of(line)
        for match in OPERATOR.finditer(code):
            for new in CHANGES[match.group()]:
                yield path, number, match.start(), match.group(), new
        for match in NUMBER.finditer(code):
            value = int(match.group())
            for new in {value + 1, max(value - 1, 0)} - {value}:
                yield path, number, match.start(), match.group(), str(new)


def drawn_mutants(folders, seed):
    """Yields all possible mutants of the folders, in the order in which this seed draws them."""
    sites = []
    for folder in folders:
        files = sorted((ROOT / folder).rglob("*.cc")) if (ROOT / folder).is_dir() else [ROOT / folder]
        files = [f for f in files if not f.name.endswith(("_cases.cc", "_cuda.cc"))]
        if not files or not files[0].exists():
            raise MutantError(f"{folder} holds no .cc file")
        for path in files:
            sites += sites_in(str(path.relative_to(ROOT)), path.read_text())
    random.Random(seed).shuffle(sites)
    seen = set()
    for path, line, column, old, new in sites:
        if (path, line) in seen:  # at most one mutant per line
            continue
        seen.add((path, line))
        yield {"name": f"{path}:{line}:{column + 1} '{old.strip()}' -> '{new.strip()}'", "file": path,
               "line": line, "column": column, "old": old, "new": new}


# ------------------------------------------------------------------ building and testing


def run(command, log, seconds=None):
    """Returns the command's status; after a timeout kills it with its children and returns None."""
    environment = os.environ | {"OMP_WAIT_POLICY": "passive"}
    with open(log, "a") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=environment,
                                   start_new_session=True)
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return None


def make_copy():
    WORK.mkdir(parents=True, exist_ok=True)
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others",
                             "--exclude-standard"], capture_output=True, check=True)
    wanted = {name for name in listed.stdout.decode().split("\0") if name and (ROOT / name).is_file()}
    for name in wanted:
        source, copy = ROOT / name, COPY / name
        if copy.is_file() and copy.read_bytes() == source.read_bytes():
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, copy)
    for copy in [path for path in COPY.rglob("*") if path.is_file()]:
        if str(copy.relative_to(COPY)) not in wanted:
            copy.unlink()


def build(*targets):
    """Builds these targets of the copy, or all.  Returns None, "compiler" for a compile error, or "start" if a test
    program crashes when it is asked for the names of its tests."""
    log = WORK / "build.log"
    log.unlink(missing_ok=True)
    if not (BUILD / "build.ninja").exists():
        if run(["cmake", "-S", COPY, "-B", BUILD, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                "-DDTRAIN_CUDA=OFF"], log) != 0:
            raise MutantError(f"the copy cannot be configured; see {log}")
    if run(["cmake", "--build", BUILD, "--target", *(targets or ["all"])], log) == 0:
        return None
    return "compiler" if re.search(r": (fatal )?error: ", log.read_text()) else "start"


def program_of(area):
    return BUILD / PROGRAMS.get(area, f"{area}_tests")


def hash_of(area):
    """Returns a hash of the area's program; the same source gives the same bytes."""
    return hashlib.sha256(program_of(area).read_bytes()).hexdigest()


def programs():
    return {area: hash_of(area) for area in AREAS}


def ctest(seconds, *arguments):
    log = WORK / "test.log"
    log.unlink(missing_ok=True)
    status = run(["ctest", "--test-dir", BUILD, "-j4", "--timeout", str(seconds), *arguments], log, seconds)
    return status, log.read_text()


def failing_test(area, seconds):
    """Returns a test of the area that fails twice, a sentence if the area does not end in time, or ""."""
    status, output = ctest(seconds, "--stop-on-failure", "-R", rf"^{area}\.")
    if status is None:
        return f"{area}, which does not end within {seconds} s"
    if status == 0:
        return ""
    failed = [re.search(r"Test +#\d+: (\S+)", line) for line in output.split("\n")
              if re.search(r"\*\*\*(Failed|Timeout|Exception)|Subprocess aborted", line)]
    for name in [match.group(1) for match in failed if match]:
        if ctest(seconds, "-R", rf"^{re.escape(name)}")[0] != 0:
            return name
    # A test that failed only once proves nothing: run the whole area again.
    return "" if ctest(seconds, "-R", rf"^{area}\.")[0] == 0 else f"{area}: see {WORK / 'test.log'}"


def area_of(path):
    """Returns the test area of a source file, by the name of its folder."""
    parts = pathlib.Path(path).parts
    if parts[0] == "layers":
        return "nn"
    return parts[1] if len(parts) > 1 else ""


NOT_COMPILED = "does not compile"
NO_CHANGE = "compiles to the same program"


def noticed_by(mutant, clean, usual):
    """Returns a test that fails with the mutant, "" if none does, or why the edit does not count as a mutant.

    `usual` has the seconds of each area without a mutant."""
    path = COPY / mutant["file"]
    original = path.read_text()
    changed = False
    try:
        path.write_text(edit_of(mutant, COPY))

        # Most are noticed by the tests of their own area, for which the other programs need not be linked.
        own = area_of(mutant["file"])
        parts = [([program_of(own).name], [own])] if own in AREAS else []
        for targets, areas in [*parts, (["all"], [area for area in AREAS if area != own])]:
            problem = build(*targets)
            if problem is not None:
                return NOT_COMPILED if problem == "compiler" else "the start of a test program"
            for area in areas:
                if hash_of(area) == clean[area]:
                    continue
                changed = True
                failed = failing_test(area, max(SECONDS_AT_LEAST, round(USUAL_TIMES * usual[area])))
                if failed:
                    return failed
        return "" if changed else NO_CHANGE
    finally:
        path.write_text(original)


def take_the_copy():
    """Locks the copy, so that one process at a time edits it.  The lock ends with the process."""
    WORK.mkdir(parents=True, exist_ok=True)
    lock = open(WORK / "lock", "w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise MutantError(f"another run works in {WORK}") from None
    return lock


def prepare():
    """Builds the copy without a mutant and runs all its tests.  Returns its programs and the seconds of each area."""
    make_copy()
    if build() is not None:
        raise MutantError(f"the source does not build; see {WORK / 'build.log'}")
    clean = programs()
    # A test that fails without a mutant (because of the location of the copy, say) would notice every mutant.
    passed = WORK / "passed.json"
    if passed.exists():
        before = json.loads(passed.read_text())
        if before.get("programs") == clean:
            return clean, before["seconds"]
    usual = {}
    for area in AREAS:
        began = time.monotonic()
        failed = failing_test(area, SECONDS_FOR_AN_AREA)
        if failed:
            raise MutantError(f"{failed} fails without a mutant; see {WORK / 'test.log'}")
        usual[area] = time.monotonic() - began
    passed.write_text(json.dumps({"programs": clean, "seconds": usual}))
    return clean, usual


def key_of(mutant):
    """Returns a hash of what a result depends on: the mutant and the tests.  A new test needs a new run."""
    tests = hashlib.sha256()
    for path in sorted((COPY / "tests").rglob("*")):
        if path.is_file() and path.parent.name != "mutants":
            tests.update(path.read_bytes())
    source = hashlib.sha256((COPY / mutant["file"]).read_bytes()).hexdigest()
    return hashlib.sha256(f"{mutant['name']}\0{mutant['new']}\0{source}\0{tests.hexdigest()}".encode()).hexdigest()[:16]


def earlier_results():
    results = WORK / "results.jsonl"
    if not results.exists():
        return {}
    return {entry["key"]: entry["test"] for entry in map(json.loads, results.read_text().splitlines())}


def plant(mutants, count):
    """Plants mutants until `count` of them have been tested; edits without an effect do not count."""
    lock = take_the_copy()
    clean, usual = prepare()
    known = earlier_results()
    tested, missed = 0, []
    for mutant in mutants:
        if tested == count:
            break
        key = key_of(mutant)
        began = time.monotonic()
        if key not in known:
            # The previous mutant's file is restored; one build removes that mutant and makes this one.
            known[key] = noticed_by(mutant, clean, usual)
            with open(WORK / "results.jsonl", "a") as out:
                out.write(json.dumps({"key": key, "name": mutant["name"], "test": known[key]}) + "\n")
        test = known[key]
        if test in (NOT_COMPILED, NO_CHANGE):
            print(f"  -  {mutant['name']}: {test}", flush=True)
            continue
        tested += 1
        verdict = f"noticed by {test}" if test else "NOT NOTICED"
        print(f"{tested:3}  {mutant['name']}: {verdict}  ({time.monotonic() - began:.0f} s)", flush=True)
        if not test:
            missed.append(mutant["name"])
    print(f"{tested - len(missed)} of {tested} mutants noticed")
    for name in missed:
        print(f"not noticed: {name}")
    lock.close()
    return 1 if missed else 0


# ------------------------------------------------------------------ commands


def check():
    mutants = known_mutants()
    names = [mutant["name"] for mutant in mutants]
    if len(set(names)) != len(names):
        raise MutantError("known.toml gives a name twice")
    for mutant in mutants:
        if edit_of(mutant, ROOT) == (ROOT / mutant["file"]).read_text():
            raise MutantError(f"{mutant['name']} changes nothing")
    print(f"{len(mutants)} edits fit the source")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("check")
    commands.add_parser("known").add_argument("names", nargs="*")
    for name in ("draw", "list"):
        drawing = commands.add_parser(name)
        drawing.add_argument("--seed", type=int, required=True)
        drawing.add_argument("--count", type=int, default=30)
        drawing.add_argument("folders", nargs="+")
    options = parser.parse_args()
    if options.command == "check":
        return check()
    if options.command == "known":
        mutants = [m for m in known_mutants() if not options.names or m["name"] in options.names]
        if len(mutants) < len(set(options.names)):
            raise MutantError("known.toml lacks one of these names")
        return plant(mutants, len(mutants))
    mutants = drawn_mutants(options.folders, options.seed)
    if options.command == "draw":
        return plant(mutants, options.count)
    for mutant, _ in zip(mutants, range(options.count)):
        print(mutant["name"])
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except MutantError as error:
        print(f"mutants.py: {error}", file=sys.stderr)
        sys.exit(2)
