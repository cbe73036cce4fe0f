#!/bin/bash
# Fuzzes the parsers: installs what is missing, builds the targets and runs them one after the other.
#
#   tests/fuzz/run.sh [--seconds N] [--keep FOLDER] [target...]
#
# Without names all targets of tests/fuzz run, each for N seconds (default 600) on one core.  They start from the
# corpus in tests/fuzz/corpus and, for configs and models, from the files that dtrain ships.  New inputs that
# libFuzzer keeps are stored in build/fuzz/found/<target> (or FOLDER/<target>), and the next run starts from them too.
# For each target a line reports the number of executions, executions per second, peak memory, and how many lines
# of the parser's own sources were reached.  An input that shows a defect is stored in build/fuzz/defects, and the
# exit code is then 1.
set -euo pipefail
cd "$(dirname "$0")/../.."

seconds=600
keep=$PWD/build/fuzz/found
while [[ ${1:-} == --* ]]; do
  case $1 in
    --seconds) seconds=${2:?--seconds needs a number} ;;
    --keep) keep=$(realpath -m "${2:?--keep needs a folder}") ;;
    *)
      echo "$0: no such option: $1 (there are --seconds and --keep)" >&2
      exit 2
      ;;
  esac
  shift 2
done

targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
  for folder in tests/fuzz/corpus/*/; do targets+=("$(basename "$folder")"); done
fi

# Prints the sources of a target whose lines are counted.
sources_of() {
  case $1 in
    plan) echo framework/core/{execution_plan,json_fields}.cc ;;
    profile) echo framework/core/{model_profile,json_fields}.cc ;;
    idx) echo framework/data/images/idx.cc ;;
    cifar) echo framework/data/images/cifar.cc ;;
    image) echo framework/data/images/{image_file,decode_png,decode_jpeg,pixels,exif,image_info}.cc ;;
    archive) echo framework/data/files/archive.cc ;;
    http) echo framework/data/files/download.cc ;;
    parallel_text) echo framework/data/text/{text_file,parallel_text,tokenizer}.cc ;;
    vocabulary) echo framework/data/text/{vocabulary,sentence_pairs}.cc ;;
    npy) echo framework/data/tables/npy.cc ;;
    csv) echo framework/data/tables/csv.cc framework/data/text/text_file.cc ;;
    safetensors) echo framework/checkpoint/{safetensors,weights_file}.cc ;;
    checkpoint) echo framework/checkpoint/{checkpoint_content,checkpoint_seal,stored_checkpoint}.cc framework/hdf5/hdf5_file.cc ;;
    rank_checkpoint) echo framework/checkpoint/{rank_checkpoint,checkpoint_seal}.cc ;;
    status_record) echo framework/launch/status_record.cc ;;
    run_record) echo framework/results/run_record.cc framework/exchange/event_log.cc ;;
    metrics) echo framework/results/{metrics,json_lines}.cc ;;
    model) echo framework/config/{parse,tree,convert,schema,reader}.cc framework/nn/{graph,blocks}.cc ;;
    run_config) echo framework/config/{parse,tree,convert,schema,reader,document,dump,override}.cc framework/setup/run_{config,inputs}.cc ;;
    *)
      echo "$0: no such target: $1" >&2
      exit 2
      ;;
  esac
}

# Prints the files of the repository that are valid inputs of a target.
shipped_for() {
  case $1 in
    model) echo configs/models ;;
    run_config) echo configs/runs ;;
  esac
}

# These limit the memory, time and size of an input.  The entropic schedule is off: it takes more time than the
# parsers.
limits=(-rss_limit_mb=1536 -malloc_limit_mb=512 -timeout=10 -max_len=4096 -entropic=0)

fuzz() {  # target
  local found=$keep/$1 log=build/fuzz/$1.log shipped
  mkdir -p "$found" build/fuzz/defects
  read -ra shipped <<<"$(shipped_for "$1")"
  LLVM_PROFILE_FILE=/dev/null "build/fuzz/fuzz_$1" "${limits[@]}" -max_total_time="$seconds" \
    -print_final_stats=1 -artifact_prefix="build/fuzz/defects/$1-" \
    "$found" "tests/fuzz/corpus/$1" "${shipped[@]}" >"$log" 2>&1
}

figure() {  # target, name
  sed -n "s/^stat::$2: *//p" "build/fuzz/$1.log"
}

coverage() {  # target: "120 of 150 lines"
  local profile=build/fuzz/$1.profraw sources shipped
  read -ra sources <<<"$(sources_of "$1")"
  read -ra shipped <<<"$(shipped_for "$1")"
  # Runs each input of all folders once.
  LLVM_PROFILE_FILE=$profile "build/fuzz/fuzz_$1" "${limits[@]}" -runs=0 \
    "$keep/$1" "tests/fuzz/corpus/$1" "${shipped[@]}" >/dev/null 2>&1
  llvm-profdata-16 merge -sparse "$profile" -o "build/fuzz/$1.profdata"
  llvm-cov-16 export -summary-only -instr-profile="build/fuzz/$1.profdata" "build/fuzz/fuzz_$1" "${sources[@]}" |
    python3 -c 'import json, sys
lines = json.load(sys.stdin)["data"][0]["totals"]["lines"]
print(lines["covered"], "of", lines["count"], "lines")'
}

launch/install-packages.sh --with-clang
for target in "${targets[@]}"; do sources_of "$target" >/dev/null; done
cmake --preset fuzz >/dev/null
cmake --build build/fuzz --target "${targets[@]/#/fuzz_}"

status=0
for target in "${targets[@]}"; do
  ended=0
  fuzz "$target" || ended=$?
  printf '%s: %s executions, %s a second, %s MB, %s\n' "$target" "$(figure "$target" number_of_executed_units)" \
    "$(figure "$target" average_exec_per_sec)" "$(figure "$target" peak_rss_mb)" "$(coverage "$target" || echo 'coverage not known')"
  if [ "$ended" != 0 ]; then
    status=1
    echo "$target: a defect (status $ended); the end of build/fuzz/$target.log:" >&2
    grep -E 'what\(\)|runtime error|ERROR|SUMMARY|Test unit' "build/fuzz/$target.log" >&2 || tail -n 5 "build/fuzz/$target.log" >&2
  fi
done
exit "$status"
