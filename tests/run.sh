#!/bin/bash
# Installs what is missing, builds everything and runs every test.
#
#   tests/run.sh [--preset release|dev|asan|tsan] [ctest arguments...]
#
# The arithmetic is tested three times: as it is, and with this machine's instruction set capped at AVX2 and
# at AVX.  Then each file is compiled by itself (alone.py), what reads files runs under AddressSanitizer and
# UBSan, and what runs in threads under ThreadSanitizer.  With --preset asan or tsan all tests run under these, once.
#
# Tests on real data need DTRAIN_DATA; a shared/data beside the repository is taken by itself.  Skipped
# tests are counted by their reasons; one that tests/skips.txt does not name, or not for this machine,
# is a failure.
set -euo pipefail
cd "$(dirname "$0")/.."

preset=release
if [ "${1:-}" = --preset ]; then
  preset=${2:?--preset needs a name: release, dev, asan or tsan}
  shift 2
fi
build=build/$preset
logs=$build

if [ -z "${DTRAIN_DATA:-}" ] && [ -d ../shared/data ]; then
  DTRAIN_DATA=$(cd ../shared/data && pwd)
  export DTRAIN_DATA
fi

# Tests of two threads run beside other tests: a waiting thread must not hold a core.
export OMP_WAIT_POLICY=passive

run=()
sanitize() {  # preset; the sanitizers' settings, and how programs are started under them
  case $1 in
    asan)
      export LSAN_OPTIONS="suppressions=$PWD/tests/lsan.supp:print_suppressions=0"
      export UBSAN_OPTIONS=print_stacktrace=1
      ;;
    tsan)
      # Open MPI, HDF5 and oneDNN are not instrumented.
      export TSAN_OPTIONS=ignore_noninstrumented_modules=1
      # The tool's memory map does not fit where addresses are randomised widely.
      if setarch -R true 2>/dev/null; then run=(setarch -R); fi
      ;;
  esac
}
sanitize "$preset"

test_pass() {  # name, ctest arguments
  local name=$1 ended=0
  shift
  # The whole output of a test that passes: the reasons of skips are in it.  Of three tests at a time one mostly waits.
  "${run[@]}" ctest --test-dir "$build" --output-on-failure --test-output-size-passed 1000000 \
    -j3 "$@" | tee "$logs/tests-$name.log" || ended=$?
  tests/check_skips.sh "$build/Testing/Temporary/LastTest.log" >"$logs/skips-$name.txt" || ended=1
  return "$ended"
}

sanitized_pass() {  # preset, folders of tests; of other folders nothing is built
  local build=build/$1 targets=("${@:2}")
  targets=("${targets[@]/%/_tests}")
  local -x DTRAIN_SEEDS=${DTRAIN_SEEDS:-100}  # each takes ten times as long
  sanitize "$1"
  cmake --preset "$1" -DDTRAIN_TESTS=ON &&
    "${run[@]}" cmake --build "$build" --target "${targets[@]}" &&
    test_pass "$1" -R "^($(IFS='|'; echo "${*:2}"))\\."
}

launch/install-packages.sh --with-tests
cmake --preset "$preset" -DDTRAIN_TESTS=ON
"${run[@]}" cmake --build "$build"

rm -f "$logs"/tests-*.log "$logs"/skips-*.txt
status=0
test_pass all "$@" || status=$?
if [ "$preset" = release ] || [ "$preset" = dev ]; then
  ONEDNN_MAX_CPU_ISA=AVX2 test_pass avx2 -R '^(device|kernels|solver|nn|comm|compress|golden)\.' || status=$?
  # Tianhe-2's CPUs.  Without what needs no instruction set, and the two slowest cases.
  GTEST_FILTER='-*CentralDifferences*:*Bf16*:*two_groups_of_images__rows_in_turn*' \
    ONEDNN_MAX_CPU_ISA=AVX test_pass avx -R '^(device|kernels|solver|nn|compress|golden)\.' || status=$?
  # Joined files and precompiled headers hide a missing include.
  { cmake --preset dev -DDTRAIN_TESTS=ON && tests/alone.py build/dev; } || status=$?
  # What reads files, and what runs in threads; by hand, --preset asan and tsan take all there is.
  sanitized_pass asan core config data weights || status=$?
  # The simulator is one thread, and its prices are the longest of its tests.
  GTEST_FILTER='-*Price*' sanitized_pass tsan comm exchange strategies sim || status=$?
fi

# The end is what is read first: what failed, with its own words.
echo
awk '
  function tell() { if (failed && lines < 300) printf "%s", test; lines += count; test = ""; count = 0 }
  function add() { test = test $0 "\n"; count++ }
  /^ *(Start +[0-9]+:|[0-9]+\/[0-9]+ Test +#)/ { tell(); failed = /\*\*\*(Failed|Timeout|Exception)/; add(); tell(); next }
  !failed { next }
  /^\[ RUN / { test = ""; count = 0 }
  { add() }
  /^\[ +(OK|SKIPPED) \]/ { test = ""; count = 0 }  # of a part, only what failed
  /^\[  FAILED / { tell() }
  END { tell() }' "$logs"/tests-*.log
grep -H 'tests passed' "$logs"/tests-*.log
for skips in "$logs"/skips-*.txt; do
  echo "$skips:"
  cat "$skips"
done
exit "$status"
