# shellcheck shell=bash
# Passes of ctest over builds, for run.sh and nightly.sh, which source this file in the root of the repository.

if [ -z "${DTRAIN_DATA:-}" ] && [ -d ../shared/data ]; then
  DTRAIN_DATA=$(cd ../shared/data && pwd)
  export DTRAIN_DATA
fi

# Tests of two threads run beside other tests: a waiting thread must not hold a core.
export OMP_WAIT_POLICY=passive

# Each commit meets other random histories; a failure names its seed.
commit=$(git rev-parse --short=7 HEAD 2>/dev/null || echo 1)
export DTRAIN_FIRST_SEED=${DTRAIN_FIRST_SEED:-$((16#$commit))}

logs=build/test-logs
rm -rf "$logs"
mkdir -p "$logs"

run=()
sanitize() {  # preset; the sanitizers' settings, and how programs are started under them
  run=()
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

options=(-UDTRAIN_CUDA_ARCHS -UCMAKE_CUDA_FLAGS -UCMAKE_CUDA_FLAGS_RELEASE)  # of cmake; here as for users
configure() {  # preset, folders of tests that are run in another build
  cmake --preset "$1" "${options[@]}" -DDTRAIN_TESTS=ON -DDTRAIN_CUDA=AUTO -DDTRAIN_TESTS_ELSEWHERE="$(IFS=';'; echo "${*:2}")"
}

build() {  # preset, targets
  sanitize "$1"
  local started=$SECONDS
  "${run[@]}" cmake --build "build/$1" --target "${@:2}" || return
  printf 'building\t%s\t%d\n' "$1" $((SECONDS - started)) >>"$logs/times.tsv"
}

test_pass() {  # preset, name, ctest arguments
  local preset=$1 name=$2 ended=0
  shift 2
  sanitize "$preset"
  # The whole output of a test that passes: the reasons of skips are in it.  Of six tests at a time most wait.
  "${run[@]}" ctest --test-dir "build/$preset" --output-on-failure --test-output-size-passed 1000000 \
    -j6 "$@" | tee "$logs/$preset-$name.log" || ended=$?
  tests/check_skips.sh "build/$preset/Testing/Temporary/LastTest.log" >"$logs/skips-$preset-$name.txt" || ended=1
  awk -v pass="$preset-$name" '
    match($0, /Test +#[0-9]+: [^. ]+/) && / sec *$/ {
      folder = substr($0, RSTART, RLENGTH); sub(/.*: /, "", folder); seconds[folder] += $(NF - 1)
    }
    END { for (folder in seconds) printf "%s\t%s\t%.0f\n", folder, pass, seconds[folder] }' \
    "$logs/$preset-$name.log" | sort >>"$logs/times.tsv"
  return "$ended"
}

# The end is what is read first: what failed, with its own words.
tell_failures() {
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
    END { tell() }' "$logs"/*.log
  grep -H 'tests passed' "$logs"/*.log || true
}

# Seconds of processes, not of the clock: six run at a time.  A machine that is slower is so for all folders: a folder
# is named if its share of the whole has grown by a quarter.
tell_times() {
  echo 'seconds by folder:'
  awk -F'\t' '
    FNR == NR { if ($0 !~ /^#/) usual[$1 "\t" $2] = $3; next }
    { now[$1 "\t" $2] = $3; if ($1 "\t" $2 in usual) { before += usual[$1 "\t" $2]; after += $3 } }
    END {
      scale = before > 0 ? after / before : 1
      for (key in now) {
        printf "  %6d  %s", now[key], key
        expected = usual[key] * scale
        if (key in usual && now[key] > 1.25 * expected && now[key] > expected + 5) printf "\tmore than usual: %.0f", expected
        print ""
      }
    }' tests/times.tsv "$logs/times.tsv" | sort -k1,1 -k2,2nr
}

tell_skips() {
  local skips
  for skips in "$logs"/skips-*.txt; do
    echo "$skips:"
    cat "$skips"
  done
}
