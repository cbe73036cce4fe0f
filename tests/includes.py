#!/usr/bin/env python3
"""Checks that every file includes the project's header of each name that it uses, directly or by way of other headers.

    tests/includes.py [root]        default: the tree that this file is in

A unity build hides a missing include, and to compile each file by itself takes as long as all else (alone.py, which
tests/nightly.sh runs).  This check reads the text: it finds 9 of 10 such faults in a few seconds.  It knows the names
that headers declare outside of functions and classes, as clang-format leaves them: at the beginning of a line.  It
does not know overloads, members and headers of other libraries.
"""
import os
import re
import subprocess
import sys

FOLDERS = ("framework/", "layers/", "datasets/", "tests/", "tools/")
NAME = r"(?:[A-Z]\w*[a-z]\w*|k[A-Z]\w+|DT(?:RAIN)?_[A-Z_]+)"  # types, functions and constants; macros
DECLARATIONS = [re.compile(pattern, re.MULTILINE) for pattern in (
    r"^(?:template <.*>\s)?(?:class|struct|enum class|enum) (\w+)\b(?!;)",
    r"^(?:template <.*>\s)?using (\w+) =",
    r"^(?:inline )?(?:constexpr|const) [^=;(]*\b(k[A-Z]\w+)",
    r"^#define (\w+)",
    r"^DTRAIN_ISA_DECLARE\([^,]+,\s*(\w+)",
    r"^[a-z\[A-Z][^\n(=;]*[ &*]([A-Z]\w*[a-z]\w*)\(",
)]
# Words before a name that is used, where a type would stand before one that is declared.
NO_TYPES = {"return", "new", "else", "throw", "case", "co_return", "in", "const", "goto", "public", "private", "protected"}
OTHERS = {"std", "testing", "fs", "fe", "cudnn_frontend", "fmt", "nlohmann", "spdlog", "CLI"}  # namespaces of other libraries


def without_comments(text):
    text = re.sub(r'R"\w*\((?:.|\n)*?\)\w*"', '""', text)
    text = re.sub(r"//[^\n]*|/\*(?:.|\n)*?\*/", "", text)
    return re.sub(r'"(?:\\.|[^"\\\n])*"', '""', text)


def is_local(name, text):
    """True where the file declares the name itself, in whatever scope."""
    if re.search(r"\b(?:class|struct|enum|union|using|typename|concept|namespace|define)\s+(?:class\s+)?" + name + r"\b", text):
        return True
    if name[0] == "k" and re.search(r"[,{]\s*" + name + r"\s*=", text):
        return True
    if re.search(r"\btemplate\b[^;{}=()]*[\s&*<,]" + name + r"\b|#define \w+\([^)]*\b" + name + r"\b", text):
        return True
    if re.search(r"\benum\b[^;{}]*\{[^{}]*\b" + name + r"\b", text):
        return True
    before = re.finditer(r"([\w:>\]]+)[ \n]*[&*]*[ \n]+[&*]*" + name + r"\b", text)
    return any(match[1] not in NO_TYPES for match in before)


class Tree:
    def __init__(self, root):
        listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=root, check=True,
                                capture_output=True, text=True).stdout.split()
        raw = {path: open(os.path.join(root, path), encoding="utf-8").read() for path in listed
               if path.startswith(FOLDERS) and path.endswith((".h", ".cc", ".cu")) and os.path.exists(os.path.join(root, path))}
        self.included = {path: [name for name in re.findall(r'^#include "([^"]+)"', text, re.MULTILINE) if name in raw]
                         for path, text in raw.items()}
        self.texts = {path: without_comments(re.sub(r"^#include.*$", "", text, flags=re.MULTILINE))
                      for path, text in raw.items()}
        self.headers = {}  # by the names that they declare
        for path in filter(lambda path: path.endswith(".h"), raw):
            for pattern in DECLARATIONS:
                for name in pattern.findall(self.texts[path]):
                    self.headers.setdefault(name, set()).add(path)
        words = {path: set(re.findall(r"\b" + NAME + r"\b", self.texts[path])) for path in raw if path.endswith(".h")}
        self.given = {path: {name for name in words[path] if name in self.headers and
                             (path in self.headers[name] or is_local(name, self.texts[path]))} for path in words}

    def reached(self, path, without=None):
        """The path and all headers that it includes, but for its own include of `without`."""
        found, left = {path}, [name for name in self.included[path] if name != without]
        while left:
            name = left.pop()
            if name not in found:
                found.add(name)
                left += self.included[name]
        return found

    def missing(self, path, without=None):
        text, reached = self.texts[path], self.reached(path, without)
        own = os.path.splitext(path)[0] + ".h"
        if path.endswith(".cc") and own in self.texts and own not in reached:
            return [own]
        code = re.sub(r"\b(?:TYPED_TEST|TEST(?:_F|_P)?|INSTANTIATE_TEST_SUITE_P)\([^)]*\)", "", text)
        used = set(re.findall(r"(?<![\w.:])(?<!->)(" + NAME + r")\b", code))
        used |= {name for space, name in re.findall(r"\b([a-z_]+)::(" + NAME + r")\b", code) if space not in OTHERS}
        used |= set(re.findall(r"\bTEST_[FP]\((\w+)", text))
        given = set().union(*(self.given.get(name, set()) for name in reached))
        product = not path.startswith("tests/")
        return sorted(name for name in used - given if name in self.headers and not is_local(name, code) and
                      not (product and all(header.startswith("tests/") for header in self.headers[name])))


def main():
    tree = Tree(sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    faults = 0
    for path in sorted(tree.texts):
        for name in tree.missing(path):
            faults += 1
            headers = ", ".join(sorted(tree.headers.get(name, {name})))
            print(f"{path} uses {name} and does not include its header ({headers})")
    print(f"{len(tree.texts)} files looked at, {faults} missing includes")
    return 1 if faults or not tree.texts else 0


if __name__ == "__main__":
    sys.exit(main())
