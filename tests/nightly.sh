#!/bin/bash
# Runs what takes too long for every push: before an issue ends and before a release, by hand or at night.
#
#   tests/nightly.sh [STEP]...     default: all, some three hours on two cores
#
#   documents    every command of the documents for users
#   long         whole runs that take long (NIGHTLY in tests/CMakeLists.txt)
#   isa          all folders of numbers with the instruction set capped at AVX2 and at AVX
#   seeds        ten thousand random histories of each kind
#   injections   real harm to 100 runs under --workers and to 30 under mpirun
#   alone        every file compiled by itself (preset dev)
#   release      the folders that tests/run.sh runs under a sanitizer, in release
#   asan         the other folders under AddressSanitizer and UBSan, without those of long loops (nn, cuda, real_data) and
#                those that start mpirun or whole commands (comm_mpi, system, scripts)
#   clang        everything compiled by clang, whose warnings are errors
#
# The summary is the last that it prints, and build/nightly.txt.
# shellcheck disable=SC2317  # the steps are called by their names
set -uo pipefail
cd "$(dirname "$0")/.." || exit
# shellcheck source=tests/passes.sh
. tests/passes.sh

documents() { test_pass release documents -R '^system\.DocumentsSystemTest\.'; }
long() { test_pass release long -R '^[a-z_]+\.nightly$'; }
isa() {
  local ended=0
  ONEDNN_MAX_CPU_ISA=AVX2 test_pass release avx2 -R '^(device|kernels|solver|nn|comm|compress|golden)\.' || ended=1
  # Without what needs no instruction set, and the two slowest cases.
  GTEST_FILTER='-*CentralDifferences*:*Bf16*:*two_groups_of_images__rows_in_turn*' ONEDNN_MAX_CPU_ISA=AVX \
    test_pass release avx -R '^(device|kernels|solver|nn|compress|golden)\.' || ended=1
  return "$ended"
}
seeds() {  # sim is run in parts, whose tests a filter of their own chooses
  local names='Histor|Deaths|Seeds|SimulatedFaults|Resume|Quiescence'
  GTEST_FILTER="*${names//|/*:*}*" DTRAIN_SEEDS=10000 \
    test_pass release seeds -R "^((strategies|faults|exchange)\\..*($names)|sim\\.part)"
}
injections() {
  python3 -B tests/faults/inject.py --count 100 --first "$DTRAIN_FIRST_SEED" &&
    python3 -B tests/faults/inject.py --count 30 --first "$DTRAIN_FIRST_SEED" --mpirun
}
alone() { configure dev && tests/alone.py build/dev; }
release() { test_pass release rest -R '^(core|config|data|checkpoint|strategies|comm|exchange)\.' -E '^faults\.injections'; }
asan() { configure asan && build asan all && test_pass asan rest -E '^(core|config|data|checkpoint|strategies|comm_mpi|nn|cuda|real_data|system|scripts)\.'; }
clang() { launch/install-packages.sh --with-clang && cmake --preset clang -DDTRAIN_TESTS=ON && build clang all; }

steps=(documents long isa seeds injections alone release asan clang)
[ $# = 0 ] || steps=("$@")
launch/install-packages.sh --with-tests || exit
configure release && build release all || exit
summary=build/nightly.txt
git describe --always --dirty=+ >"$summary"
status=0
for step in "${steps[@]}"; do
  started=$SECONDS
  if "$step"; then result=passed; else result=FAILED status=1; fi
  printf '%-12s %s in %d s\n' "$step" "$result" $((SECONDS - started)) >>"$summary"
done
tell_failures
tell_skips
cat "$summary"
exit $status
