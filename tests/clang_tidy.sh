#!/bin/bash
# Looks at the sources with clang-tidy 16, by the rules of .clang-tidy: the names of CONTRIBUTING.md, and common faults.
#
#   tests/clang_tidy.sh [FOLDER]...      default: framework layers datasets tests tools, more than an hour on two cores
#
# It installs what is missing, configures build/tidy, builds nothing, and looks at as many files at a time as there are
# cores.  Headers are looked at with the sources that include them, and each finding is reported once.  Status 1: there are
# findings.
set -euo pipefail
cd "$(dirname "$0")/.."

folders=("$@")
[ $# -gt 0 ] || folders=(framework layers datasets tests tools)
for folder in "${folders[@]}"; do
  if [ ! -d "$folder" ]; then
    echo "$0: there is no folder $folder" >&2
    exit 2
  fi
done

launch/install-packages.sh --with-clang
# File by file, without precompiled headers, as clang compiles it.
cmake --preset clang -B build/tidy -DCMAKE_UNITY_BUILD=OFF -DDTRAIN_PRECOMPILE=OFF -DDTRAIN_TESTS=ON >/dev/null

# Files of several instruction sets are compiled several times; their text is one.
python3 - "${folders[@]}" <<'END'
import json
import os
import sys

folders = [os.path.abspath(folder) + os.sep for folder in sys.argv[1:]]
entries = {}
for entry in json.load(open("build/tidy/compile_commands.json")):
    if entry["file"].startswith(tuple(folders)):
        entries.setdefault(entry["file"], entry)
os.makedirs("build/tidy/files", exist_ok=True)
json.dump(list(entries.values()), open("build/tidy/files/compile_commands.json", "w"))
open("build/tidy/files/list.txt", "w").writelines(file + "\n" for file in sorted(entries))
END

files=build/tidy/files
ended=0
xargs -a "$files/list.txt" -d '\n' -r -n 1 -P "$(nproc)" clang-tidy-16 --quiet -p "$files" \
  >"$files/said.txt" 2>"$files/errors.txt" || ended=1
# A finding is reported with the lines below it, once, though a header's comes with every file that includes it.
awk -v root="$PWD/" '
  function tell() { if (text != "" && !(text in reported)) { reported[text]; printf "%s", text }; text = "" }
  / (error|warning): .*\[[a-z.,-]+\]$/ { tell(); sub(root, "") }
  { text = text $0 "\n" }
  END { tell() }' "$files/said.txt"
findings=$(grep -E ' (error|warning): .*\[' "$files/said.txt" | sort -u | wc -l || true)
echo "$(wc -l <"$files/list.txt") files looked at, $findings findings"
exit "$ended"
