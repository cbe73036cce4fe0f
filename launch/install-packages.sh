#!/bin/sh
# Installs the packages that dtrain needs to build and run on Debian 12; with --with-tests also those of its tests, and
# with --with-clang also clang 16 and its tools for the longer checks (tests/fuzz/run.sh, tests/coverage.sh,
# tests/clang_tidy.sh).  It runs as root or with sudo, which may ask for a password on a terminal; without either it
# prints what is missing and ends with status 1.
set -eu

packages="g++ cmake ninja-build pkg-config openmpi-bin libopenmpi-dev libyaml-cpp-dev libcli11-dev
  libhdf5-dev libdnnl-dev libspdlog-dev libfmt-dev nlohmann-json3-dev libarchive-dev
  zlib1g-dev libcurl4-openssl-dev ca-certificates libssl-dev libturbojpeg0-dev libpng-dev libstb-dev
  libjs-chart.js libonnx-dev libprotobuf-dev"
case ${1:-} in
  "") ;;
  --with-tests | --with-clang)
    packages="$packages libgtest-dev libgmock-dev procps python3 python3-pil python3-numpy
      python3-h5py python3-pandas shellcheck clang-format patchelf xz-utils"
    [ "$1" = --with-tests ] ||
      packages="$packages clang-16 clang-tidy-16 libclang-rt-16-dev libfuzzer-16-dev libomp-16-dev llvm-16"
    ;;
  *)
    echo "$0: no such option: $1 (there are --with-tests and --with-clang)" >&2
    exit 2
    ;;
esac

# Where CUDA's compiler is, the CUDA module can be built.  It needs cudnn-frontend, too, which pip fetches.
frontend=$(dirname "$0")/install-cudnn-frontend.sh
if command -v nvcc >/dev/null 2>&1 || [ -x /usr/local/cuda/bin/nvcc ]; then
  if [ "$(id -u)" = 0 ] && ! python3 -m pip --version >/dev/null 2>&1; then
    packages="$packages python3-pip"
  else
    "$frontend" || echo "$0: there is no CUDA module without cudnn-frontend" >&2
    frontend=""
  fi
else
  frontend=""
fi

missing=""
for package in $packages; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' ||
    missing="$missing $package"
done
[ -z "$missing" ] && exit 0

may_sudo() {
  command -v sudo >/dev/null 2>&1 || return 1
  sudo -n true 2>/dev/null && return 0
  [ -t 0 ] && sudo -v  # a password can be typed only on a terminal
}

if [ "$(id -u)" = 0 ]; then
  sudo=""
elif may_sudo; then
  sudo="sudo"
else
  echo "These packages are missing:$missing" >&2
  echo "Install them as root:  apt-get install -y$missing" >&2
  exit 1
fi
echo "Installing:$missing" >&2
# Uses env, since sudo drops the caller's variables.
apt="$sudo env DEBIAN_FRONTEND=noninteractive apt-get"
# shellcheck disable=SC2086  # the lists are meant to be split into words
{
  $apt -o DPkg::Lock::Timeout=300 update -qq
  $apt -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends $missing
} >/dev/null
[ -z "$frontend" ] || "$frontend" || echo "$0: there is no CUDA module without cudnn-frontend" >&2
