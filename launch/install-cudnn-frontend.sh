#!/bin/sh
# Fetches NVIDIA's cudnn-frontend, the headers by which the CUDA module calls cuDNN's graph API, into
# build/cudnn-frontend, with Python's pip.  It does nothing if this version is there.
set -eu
cd "$(dirname "$0")/.."

version=1.32.0
sha256=c6006556017a4d1c914c52a556c71b1267f2d6a0500f742e7b4edef539878df0
folder=build/cudnn-frontend
[ "$(cat "$folder/version" 2>/dev/null)" != "$version" ] || exit 0

room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
echo "nvidia-cudnn-frontend==$version --hash=sha256:$sha256" >"$room/requirements.txt"
# The headers are the same for every version of Python; the hash is that of one of them.
python3 -m pip download --quiet --retries 1 --timeout 20 --no-deps --require-hashes --only-binary=:all: \
  --python-version 3.11 --implementation cp --abi cp311 --platform manylinux_2_28_x86_64 \
  --dest "$room" --requirement "$room/requirements.txt"
python3 -m zipfile -e "$room"/*.whl "$room/wheel"
mkdir -p build
rm -rf "$folder"
mkdir "$folder"
mv "$room/wheel/include" "$folder"
mv "$room"/wheel/*.dist-info "$folder/license"
echo "$version" >"$folder/version"
# The folder belongs to the user who builds in it, with sudo as well.
[ -z "${SUDO_UID:-}" ] || chown -R "$SUDO_UID:${SUDO_GID:-}" build
