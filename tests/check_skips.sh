#!/bin/bash
# Counts the skipped tests in logs of ctest by their reasons, and fails where a reason is not one of
# the list's, or its condition does not hold here.
#
#   tests/check_skips.sh [--list FILE] LOG...     logs as ctest's Testing/Temporary/LastTest.log
set -euo pipefail

list=$(dirname "$0")/skips.txt
if [ "${1:-}" = --list ]; then
  list=${2:?--list needs a file}
  shift 2
fi

mounts_tmpfs() {
  local folder status=0
  folder=$(mktemp -d)
  mount -t tmpfs tmpfs "$folder" 2>/dev/null && umount "$folder" || status=1
  rmdir "$folder"
  return $status
}

has_flags() {
  local flag
  for flag in "$@"; do
    grep -qsw "$flag" /proc/cpuinfo || return 1
  done
}

# Whether a condition of the list holds here.
holds() {
  case $1 in
    no-data) [ -z "${DTRAIN_DATA:-}" ] ;;
    no-amx) ! has_flags amx_tile amx_bf16 avx512_bf16 ;;
    capped) [ -n "${ONEDNN_MAX_CPU_ISA:-}" ] ;;
    ever) true ;;
    no-mount) ! mounts_tmpfs ;;
    no-root) [ "$(id -u)" != 0 ] ;;
    no-other-user) [ "$(id -u)" = 0 ] && ! setpriv --reuid 65534 true 2>/dev/null ;;
    no-gpu) [ ! -e /dev/nvidia0 ] ;;
    no-patchelf) ! command -v patchelf >/dev/null ;;
    no-pil) ! /usr/bin/python3 -c 'import PIL, numpy' 2>/dev/null ;;
    no-pandas) ! /usr/bin/python3 -c 'import numpy, pandas' 2>/dev/null ;;
    no-h5py) ! /usr/bin/python3 -c 'import numpy, h5py' 2>/dev/null ;;
    no-numpy) ! /usr/bin/python3 -c 'import numpy' 2>/dev/null ;;
    no-dev-full) [ ! -e /dev/full ] ;;
    small-shm) [ "$(df --output=avail -k /dev/shm | tail -1)" -lt 10240 ] ;;
    *)
      echo "$list: no condition is named '$1'" >&2
      exit 2
      ;;
  esac
}

# A line "REASON<tab>TEST" for each skipped test of a log.  GoogleTest writes "FILE:LINE: Skipped" and
# below it what the test says; at the end it names the skipped tests once more, without a time.
skips() {
  awk '
    function tell() {
      if (skipped) print (reason == "" ? "no reason given" : reason) "\t" test
      skipped = expected = 0; reason = ""
    }
    / Test: / && /^[0-9]+\/[0-9]+ Test: / { tell(); entry = $0; sub(/^[^:]*: /, "", entry); test = entry }
    /^\[ RUN  / { tell(); test = entry (entry ~ /\.part[0-9]$/ ? " " $4 : "") }
    expected { if (reason == "") reason = $0; expected = 0 }
    /: Skipped$/ { expected = 1 }
    /^\[  SKIPPED \].* ms\)$/ { skipped = 1 }
    END { tell() }' "$1"
}

# The condition of a reason; fails where the list has none.
condition_of() {
  local line condition
  while IFS= read -r line; do
    case $line in '' | '#'*) continue ;; esac
    condition=${line%%: *}
    if printf '%s\n' "$1" | grep -Eqx -- "${line#*: }"; then
      echo "$condition"
      return
    fi
  done <"$list"
  return 1
}

for log in "$@"; do
  [ -r "$log" ] || { echo "no log $log" >&2; exit 2; }
done

found=$(for log in "$@"; do skips "$log"; done | sort)
echo "skipped: $(printf '%s' "$found" | grep -c . || true)"
[ -n "$found" ] || exit 0

status=0
while IFS=$'\t' read -r count reason; do
  printf '%6d  %s' "$count" "$reason"
  if ! condition=$(condition_of "$reason"); then
    printf '  <- not in %s' "$list"
    status=1
  elif ! (holds "$condition"); then
    printf '  <- in %s for %s alone, which does not hold here' "$list" "$condition"
    status=1
  fi
  echo
done < <(printf '%s\n' "$found" | awk -F '\t' '{ ++count[$1] } END { for (r in count) print count[r] "\t" r }' | sort -k 2)

if [ "$status" != 0 ]; then
  echo "Skipped, each with its reason:"
  printf '%s\n' "$found" | awk -F '\t' '{ print "  " $2 ": " $1 }'
fi
exit "$status"
