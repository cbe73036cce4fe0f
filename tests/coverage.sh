#!/bin/bash
# Line coverage: builds tests so that their lines are counted, runs them, and says of each folder of the sources how many
# lines they ran, the lowest share first.
#
#   tests/coverage.sh [--folders FOLDER,...] [ctest arguments]      default: all but cuda, real_data, scripts, system and tidy,
#                                                                   an hour on two cores, most of it building
#
# A line counts as run when a copy for any instruction set ran it.  Folders without a source in the programs of these
# tests are not named.  The last line is the command that shows the lines of one file.  Status 1: a test failed.
set -euo pipefail
cd "$(dirname "$0")/.."

folders=(core config device solver kernels nn data comm comm_mpi compress strategies exchange sim faults checkpoint onnx
  report runtime cli golden fuzz)
if [ "${1:-}" = --folders ]; then
  IFS=, read -ra folders <<<"${2:?--folders needs names of folders of tests/}"
  shift 2
fi
# shellcheck source=tests/passes.sh
. tests/passes.sh

launch/install-packages.sh --with-clang
cmake --preset coverage -DDTRAIN_TESTS=ON
programs=("${folders[@]/%/_tests}")
# What tests start, too.
[[ " ${folders[*]} " != *" cli "* ]] || programs+=(dtrain)
build coverage "${programs[@]}"

counts=$PWD/build/coverage/counts
rm -rf "$counts"
# Processes of one program add to common files, eight so that they seldom wait.
export LLVM_PROFILE_FILE=$counts/%8m.profraw
status=0
test_pass coverage lines -R "^($(IFS='|'; echo "${folders[*]}"))\\." -E '^faults\.injections' "$@" || status=$?
tell_failures

llvm-profdata-16 merge -sparse "$counts"/*.profraw -o build/coverage/lines.profdata
objects=()
for program in "${programs[@]}"; do objects+=(-object "build/coverage/$program"); done
llvm-cov-16 export -summary-only -instr-profile=build/coverage/lines.profdata "${objects[@]}" >build/coverage/lines.json
python3 - <<'END'
import collections
import json
import os

root = os.getcwd() + os.sep
folders = collections.defaultdict(lambda: [0, 0])
for file in json.load(open("build/coverage/lines.json"))["data"][0]["files"]:
    path = file["filename"].removeprefix(root)
    # *_cases.cc are of the tests.
    if path.startswith(("framework/", "layers/", "datasets/")) and not path.endswith("_cases.cc"):
        counted = folders[os.path.dirname(path)]
        counted[0] += file["summary"]["lines"]["covered"]
        counted[1] += file["summary"]["lines"]["count"]
print(f"\n{'share':>7}  {'run':>6}  {'lines':>6}  folder")
for folder, (run, lines) in sorted(folders.items(), key=lambda item: item[1][0] / max(item[1][1], 1)):
    print(f"{100 * run / max(lines, 1):5.1f} %  {run:6}  {lines:6}  {folder}")
run, lines = (sum(counted[i] for counted in folders.values()) for i in (0, 1))
print(f"{100 * run / max(lines, 1):5.1f} %  {run:6}  {lines:6}  all of them")
END
echo
echo "llvm-cov-16 show -instr-profile=build/coverage/lines.profdata ${objects[*]} -sources FILE"
exit "$status"
