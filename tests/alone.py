#!/usr/bin/env python3
"""Checks that every source file and header compiles by itself, with what it includes and nothing else.

    tests/alone.py [build folder]        default: build/dev, as `cmake --preset dev` configures it

Unity builds and precompiled headers hide a missing include, so the folder must have neither.  Nothing is
built: the compiler parses each file (-fsyntax-only), as many at a time as there are cores.  A header that no
source includes first is parsed with the flags of a source that uses it.
"""
import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDERS = ("framework/", "layers/", "datasets/", "tests/", "tools/")


def commands(build):
    """Path from the root -> (folder, arguments) of its first entry; a source of several instruction sets has more."""
    found = {}
    for entry in json.load(open(os.path.join(build, "compile_commands.json"))):
        path = os.path.relpath(entry["file"], ROOT)
        arguments = shlex.split(entry["command"])
        if path.startswith(FOLDERS) and "-c" in arguments and "nvcc" not in arguments[0]:
            at = arguments.index("-o")
            del arguments[at:at + 2]
            found.setdefault(path, (entry["directory"], [a for a in arguments if a not in ("-c", entry["file"])]))
    return found


def headers(sources):
    """Header -> source whose flags it takes, without those that a source includes first, which checks them."""
    first, user = set(), {}
    for source in sorted(sources):
        names = re.findall(r'^#include "([^"]+)"', open(os.path.join(ROOT, source)).read(), re.MULTILINE)
        first.update(names[:1])
        for name in names:
            user.setdefault(name, source)
    files = subprocess.run(["git", "ls-files", "*.h"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    taken = {}
    for header in set(files.split()) - first:
        beside = [source for source in sources if os.path.dirname(source) == os.path.dirname(header)]
        if header in user or beside:
            taken[header] = user.get(header) or beside[0]
    return taken


def parse(name, folder, arguments):
    result = subprocess.run(arguments + ["-fsyntax-only", "-w", "-x", "c++", os.path.join(ROOT, name)],
                            cwd=folder, capture_output=True, text=True)
    return name, result.returncode, result.stderr


def main():
    build = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "build/dev"))
    sources = commands(build)
    files = {name: name for name in sources}
    files.update(headers(sources))
    broken = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, status, said in pool.map(lambda name: parse(name, *sources[files[name]]), sorted(files)):
            if status != 0:
                broken += 1
                print(f"{name} does not compile by itself:\n{said}", flush=True)
    print(f"{len(files)} files looked at, {broken} do not compile by themselves")
    return 1 if broken or not files else 0


if __name__ == "__main__":
    sys.exit(main())
