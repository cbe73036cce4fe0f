#!/bin/sh
# Installs what dtrain needs to build and run on Debian 12 or Ubuntu 22.04 and later.
# As root or with sudo; without either it says what is missing and ends with status 1.
set -eu

packages="g++ cmake ninja-build pkg-config openmpi-bin libopenmpi-dev libyaml-cpp-dev libcli11-dev
  libhdf5-dev libgtest-dev libgmock-dev libdnnl-dev libspdlog-dev libfmt-dev nlohmann-json3-dev
  libarchive-dev libcurl4-openssl-dev libssl-dev"

missing=""
for package in $packages; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' ||
    missing="$missing $package"
done
[ -z "$missing" ] && exit 0

if [ "$(id -u)" = 0 ]; then
  sudo=""
elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
  sudo="sudo"
else
  echo "These packages are missing:$missing" >&2
  echo "Install them as root:  apt-get install -y$missing" >&2
  exit 1
fi
echo "Installing:$missing" >&2
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086  # the list is meant to be split into words
{
  $sudo apt-get -o DPkg::Lock::Timeout=300 update -qq
  $sudo apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends $missing
} >/dev/null
