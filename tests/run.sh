#!/bin/bash
# Installs what is missing, builds, and runs every test, each folder of tests/ for one purpose:
#
#   release   numbers, processes and whole commands (every folder that is not below)
#   asan      logic, under AddressSanitizer and UBSan
#   tsan      threads, under ThreadSanitizer
#
#   tests/run.sh                                                    as continuous integration does
#   tests/run.sh --preset release|dev|asan|tsan [ctest arguments]   every folder in one build
#
# What takes longer is in tests/nightly.sh.  Random histories begin at a hash of the commit (DTRAIN_FIRST_SEED), a
# hundred of each kind (DTRAIN_SEEDS).  The seconds of each folder are compared with tests/times.tsv.
#
# Tests on real data need DTRAIN_DATA; a shared/data beside the repository is taken by itself.  Skipped
# tests are counted by their reasons; one that tests/skips.txt does not name, or not for this machine,
# is a failure.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=tests/passes.sh
. tests/passes.sh

logic=(core config data checkpoint strategies)
threads=(comm exchange)
nightly='^(faults\.injections|system\.DocumentsSystemTest\.|[a-z_]+\.nightly$)'

status=0
launch/install-packages.sh --with-tests
if [ "${1:-}" = --preset ]; then
  preset=${2:?--preset needs a name: release, dev, asan or tsan}
  shift 2
  configure "$preset" && build "$preset" all && test_pass "$preset" all "$@" || status=$?
else
  export DTRAIN_SEEDS=${DTRAIN_SEEDS:-100}
  # Without a GPU the CUDA module is only compiled.  PTX for one architecture shows that, and need not be fast.
  if [ ! -e /dev/nvidiactl ]; then
    options=(-DDTRAIN_CUDA_ARCHS=90-virtual)
    fast=--Ofast-compile=max  # of CUDA 12.9 and later
    nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
    if "$nvcc" --help 2>/dev/null | grep -- "${fast%=*}" >/dev/null; then
      options+=("-DCMAKE_CUDA_FLAGS=$fast" "-DCMAKE_CUDA_FLAGS_RELEASE=-O0 -DNDEBUG")  # the level is that of host code
    fi
  fi
  configure release "${logic[@]}" "${threads[@]}" && build release all &&
    test_pass release all -E "$nightly" "$@" || status=$?
  # Their reports name functions, which suffices to see what failed; tables of lines take a fifth of compiling.
  options=(-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O0)
  configure asan && build asan "${logic[@]/%/_tests}" &&
    test_pass asan logic -R "^($(IFS='|'; echo "${logic[*]}"))\\." || status=$?
  options=(-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1)
  configure tsan && build tsan "${threads[@]/%/_tests}" &&
    test_pass tsan threads -R "^($(IFS='|'; echo "${threads[*]}"))\\." || status=$?
fi
tell_failures
tell_times
tell_skips
exit "$status"
