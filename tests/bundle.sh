#!/bin/bash
# Trains from a bundle (tools/bundle.sh) in a minimal Debian 12 without further packages, and without a
# network: with one worker and with two.
#
#   tests/bundle.sh ARCHIVE
#
# As root, with debootstrap; $DEBOOTSTRAP_MIRROR names another package server.  Ends with 77 where it cannot
# make the machine, with 1 where the bundle fails.
set -euo pipefail

archive=$(realpath "${1:?an archive of tools/bundle.sh}")
if [ "$(id -u)" != 0 ] || ! command -v debootstrap >/dev/null || ! unshare --mount --net true 2>/dev/null; then
  echo "nothing was tested: this needs root with its rights, and debootstrap"
  exit 77
fi

work=$(mktemp -d)
trap 'rm -rf --one-file-system "$work"' EXIT
root=$work/root
if ! debootstrap --variant=minbase bookworm "$root" ${DEBOOTSTRAP_MIRROR:+"$DEBOOTSTRAP_MIRROR"} >"$work/log" 2>&1; then
  tail -n 5 "$work/log"
  echo "nothing was tested: debootstrap failed"
  exit 77
fi
mkdir -p "$root/opt"
xz -dc "$archive" | tar -C "$root/opt" -x

# In the root: what is below.  Its mounts end with it; no network, no variable of this shell.
inside() {
  # shellcheck disable=SC2016
  env -i unshare --mount --net --pid --fork sh -c '
    mount -t proc proc "$0/proc" && mkdir -p "$0/dev/shm" && mount -t tmpfs tmpfs "$0/dev/shm" || exit 1
    ip link set lo up 2>/dev/null
    exec chroot "$0" /usr/bin/env -i PATH=/usr/bin:/bin HOME=/root sh -ec "$1"' "$root" "$1"
}

for workers in 1 2; do
  echo "== $workers worker(s)"
  inside "cd /tmp && /opt/dtrain-*/bin/dtrain train --config /opt/dtrain-*/configs/runs/quickstart.yaml \
    --workers $workers --output run-$workers"
  accuracy=$(tr -d ' \n' <"$root/tmp/run-$workers/summary.json" | sed -n 's/.*"test":{[^}]*"accuracy":\([0-9.]*\).*/\1/p')
  echo "accuracy $accuracy"
  awk -v accuracy="$accuracy" 'BEGIN { exit !(accuracy > 0.95) }'
done
echo "== doctor"
inside "/opt/dtrain-*/bin/dtrain doctor"
