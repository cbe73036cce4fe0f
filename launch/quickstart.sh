#!/bin/sh
# Trains a first model in a fresh clone: installs missing packages, builds dtrain, trains LeNet-5 with two
# workers on the generated `digits` images, and prints its accuracy and the folder of the results.
#
#   launch/quickstart.sh [--set key=value]...      further arguments are passed to `dtrain train`
set -eu
cd "$(dirname "$0")/.."

launch/install-packages.sh
# Without the CUDA module, which takes nvcc a minute or two; `cmake --preset release -DDTRAIN_CUDA=AUTO` adds it.
cuda=OFF
[ ! -e /dev/nvidiactl ] || cuda=AUTO
cmake --preset release -DDTRAIN_TESTS=OFF -DDTRAIN_CUDA=$cuda
cmake --build build/release

output="runs/quickstart-$(date +%Y%m%d-%H%M%S)"
build/release/dtrain train --config configs/runs/quickstart.yaml --workers 2 --output "$output" "$@"

accuracy=$(tr -d ' \n' <"$output/summary.json" | sed -n 's/.*"test":{[^}]*"accuracy":\([0-9.]*\).*/\1/p')
echo
echo "Test accuracy: $accuracy"
echo "Results:       $output   (summary.json, metrics.jsonl, checkpoints/)"
