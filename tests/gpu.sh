#!/bin/bash
# Tests dtrain on a GPU, from a build tree or from a bundle (tools/bundle.sh); where there is PyTorch, both
# are measured beside each other.  The most telling part comes first; each takes nine minutes at most.
#
#   tests/gpu.sh [--build FOLDER] [--logs FOLDER] [--standin] [PART...]
#
#   layers     every layer against its reference in double, the captured step, the solvers
#   models     every shipped model: first losses, gradients and statistics beside the CPU's
#   speed      steps a second of four models in fp32, tf32, bf16 and fp16, beside PyTorch's best way to run a step
#   kernels    the kernels of one step of each model, with their times on the device
#   runs       whole runs: training, resuming, several ranks, every family of strategies
#   ranks      several ranks on one GPU: the sums in its memory, and steps a second of ResNet-18 with 1, 2 and 4 ranks
#   simulate   simulations whose gradients are computed on the GPU: milliseconds of one of ResNet-18 with 64 images
#   select     selections of one value in a thousand, beside torch.topk on the GPU
#   full       accuracies: LeNet-5 12 epochs, ResNet-18 and VGG-19 30, Seq2Seq 10
#   studies    configs/studies/gssp_{resnet18,vgg19,seq2seq}.yaml on the GPU
#   sanitizer  layers and kernels under compute-sanitizer, three minutes at most
#
# Without PART all but full and studies are run.  These two need DTRAIN_DATA; they, and speed, go on from --logs
# (gpu-logs), where each part leaves what it said as PART.log.
# $PYTHON (python3) is the Python that is asked for PyTorch.  --standin runs the parts on what stands in for
# CUDA's libraries, to test this script.  Ends with 77 where there is no GPU, with 1 where a part fails.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
build=$root/build/release
[ ! -e "$root/bundle.txt" ] || build=$root/bin
standin=""
logs=gpu-logs
all="layers models speed kernels runs ranks simulate select full studies sanitizer"
parts=()
while [ $# -gt 0 ]; do
  case $1 in
    --build) build=$(cd "${2:?--build needs a folder}" && pwd) && shift ;;
    --logs) logs=${2:?--logs needs a folder} && shift ;;
    --standin) standin=yes ;;
    *)
      [[ " $all " == *" $1 "* ]] || { echo "$0: there is no part '$1' (${all// /, })" >&2 && exit 2; }
      parts+=("$1")
      ;;
  esac
  shift
done
[ ${#parts[@]} -gt 0 ] || parts=(layers models speed kernels runs ranks simulate select sanitizer)
mkdir -p "$logs"
logs=$(cd "$logs" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The same folder again, with the stand-in in the place of the module.  Copies, since a program finds its
# module where it lies itself.
take_standin() {
  local entry
  for entry in "$root"/{bundle.txt,lib,libexec,etc,share,configs,tools}; do
    [ ! -e "$entry" ] || ln -s "$entry" "$work/"
  done
  mkdir "$work/bin"
  cp "$build/dtrain" "$build/cuda_tests" "$work/bin/"
  for entry in "$build"/{mpirun,orted}; do
    [ ! -e "$entry" ] || ln -s "$entry" "$work/bin/"
  done
  ln -s "$(find "$build/tests" "$root/tests" -path '*/cuda_standin/libdtrain_cuda.so' 2>/dev/null | head -n 1)" \
    "$work/bin/libdtrain_cuda.so"
  build=$work/bin
}
[ -z "$standin" ] || take_standin

dtrain=$build/dtrain
python=${PYTHON:-python3}
for file in "$dtrain" "$build/cuda_tests" "$build/libdtrain_cuda.so"; do
  [ -e "$file" ] || { echo "$0: there is no $file" >&2; exit 2; }
done
# PyTorch's CUDA libraries, where $PYTHON is none that the program looks at by itself.
packages=${DTRAIN_CUDA_LIBRARIES:-}
if [ -z "$packages" ]; then
  packages=$("$python" -c 'import nvidia, os; print(os.path.dirname(list(nvidia.__path__)[0]))' 2>/dev/null) || packages=""
  [ -z "$packages" ] || export DTRAIN_CUDA_LIBRARIES=$packages
fi
export DTRAIN_TEST_GPU=1
injected=$build/libkernel_times.so
doctor=$("$dtrain" doctor | sed -n 's/^GPU  *//p')
echo "GPU: $doctor"
case $doctor in
  *"no GPU: "* | "the module "* | "not built in")
    echo "nothing was tested: no GPU"
    exit 77
    ;;
esac

# Of a part: when it has to end, and whether something in it failed.
end=0
failed=""
limited() {
  local left=$((end - SECONDS)) code=0
  timeout --kill-after=10 "$((left > 1 ? left : 1))" "$@" || code=$?
  [ "$code" = 0 ] || failed=yes
  [ "$code" != 124 ] || echo "not done in its time: $*"
}
# Runs a command that goes on from its folder at the next call: a run that is ended saves a checkpoint first.
part_of() {
  local left=$((end - SECONDS - 20)) code=0
  [ "$left" -gt 10 ] || { echo "left for the next call: $*" && return; }
  timeout --kill-after=20 "$left" "$@" || code=$?
  [ "$code" != 124 ] || { echo "goes on at the next call: $*" && return; }
  [ "$code" = 0 ] || failed=yes
}

tests() { limited "$build/cuda_tests" --gtest_brief=1 "--gtest_filter=$1"; }

has_torch() {
  [ -z "$standin" ] && "$python" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' 2>/dev/null
}

# Model, batch and precisions, without PyTorch.
speed_alone() {
  local model=$1 batch=$2 seconds=2 precision data=digits
  shift 2
  case $model in
    resnet* | vgg*) data=cifar10 ;;
    seq2seq*) data=multi30k ;;
  esac
  [ -z "$standin" ] || { batch=2 && seconds=0.1; }
  for precision in "$@"; do
    limited "$dtrain" bench step --model "$model" --data "$data" --batch "$batch" --device cuda \
      --precision "$precision" --seconds "$seconds"
  done
}

# Model, batch, data set and precision.
kernels_of() {
  LD_LIBRARY_PATH=${cupti%/*} CUDA_INJECTION64_PATH=$injected limited "$dtrain" bench step --model "$1" --batch "$2" --data "$3" \
    --precision "$4" --device cuda --seconds 0.3 2>"$logs/kernels-$1-$4.txt"
  tail -n 40 "$logs/kernels-$1-$4.txt"
  grep -q 'kernels and copies' "$logs/kernels-$1-$4.txt" || failed=yes
}

# Name, config and settings.
train_full() {
  local name=$1
  shift
  local summary=$logs/full-$name/summary.json
  if grep -qs '"status": *"completed"' "$summary"; then
    echo "$name is done:" && grep -oE '"(accuracy|bleu|perplexity)": *[0-9.]+' "$summary" | tail -n 3
    return
  fi
  part_of "$dtrain" train --device cuda --resume auto --output "$logs/full-$name" --config "$@"
}

# Ranks and collective.
steps_of_ranks() {
  local run=$work/ranks-$1-$2 short=(--set max_steps=300)
  [ -z "$standin" ] || short=(--set max_steps=2 --set batch=8 --set data.limit=32)
  limited "$dtrain" train --config "$root/configs/runs/resnet18_cifar10.yaml" --workers "$1" --set collective="$2" --set precision=tf32 \
    --device cuda --output "$run" "${short[@]}" -q
  echo "$1 ranks by $2: $(grep -oE '"samples_per_second": *[0-9.]+' "$run/summary.json" | head -n 1) with batches of 128"
}

# Strategy, and the steps of a short and of a longer run of four virtual workers: what both have in common, the start and the
# evaluation, does not count.
virtual_gradients() {
  local strategy=$1 steps began config=resnet18_cifar10 images=64 short=() took=()
  shift
  [ -z "$standin" ] || { config=lenet5_mnist && images=2 && short=(--set data.limit=32); }
  for steps in "$@"; do
    began=$(date +%s%N)
    limited "$dtrain" simulate --numeric --config "$root/configs/runs/$config.yaml" --workers 4 \
      --set batch=$((4 * images)) --set strategy.name="$strategy" --set max_steps="$steps" --set precision=tf32 --device cuda \
      "${short[@]}" -q >/dev/null
    took+=($(($(date +%s%N) - began)))
  done
  awk -v strategy="$strategy" -v images="$images" -v gradients=$((4 * ($2 - $1))) -v ns=$((took[1] - took[0])) \
    'BEGIN { printf "%s: %.2f ms for a virtual gradient of %d images, with its update\n", strategy, ns / gradients / 1e6, images }'
}

layers='Layers/LayerSuite.*:Layers/LayerKernels.*:Layers/LayerBatches.*:BadValues.*:DropoutMasks.*:GpuS*:StepGraphs.*:LossScaling.*:DeviceDataset.*:Rules/*:*PooledConvolution*:ConvolutionEngines.*:Cuda*:*OnTheGpu.*:-CudaRunTest.*:CudaStandinTest.*'

run_part() {
  case $1 in
    layers) tests "$layers" ;;
    models) tests 'Models/*' ;;
    speed)
      if has_torch; then
        limited "$python" "$root/tools/bench/torch_gpu.py" --dtrain "$dtrain" --log "$logs/speed.jsonl" --within 400
      else
        echo "no PyTorch here that sees a GPU: dtrain alone"
        speed_alone resnet18 128 fp32 tf32 bf16 fp16
        speed_alone vgg19_bn 128 fp32 tf32 bf16 fp16
        speed_alone lenet5 64 fp32 tf32 bf16 fp16
        speed_alone seq2seq_attention 128 fp32 tf32 bf16 fp16
      fi
      ;;
    kernels)
      # CUPTI is where the toolkit or PyTorch has it.
      local cupti
      cupti=$(find /usr/local/cuda*/ ${packages:+"$packages"} -name 'libcupti.so.13*' 2>/dev/null | head -n 1) || true
      if [ -n "$standin" ] || [ ! -e "$injected" ] || [ -z "$cupti" ]; then
        echo "no CUPTI here: left out"
      else
        kernels_of resnet18 128 cifar10 bf16
        kernels_of resnet18 128 cifar10 tf32
        kernels_of lenet5 64 digits fp32
        kernels_of vgg19_bn 128 cifar10 bf16
        kernels_of seq2seq_attention 128 multi30k tf32
      fi
      ;;
    runs) tests 'CudaRunTest.*' ;;
    ranks)
      tests '*PeerCollective*:*RanksOnAGpu*:CudaRunTest.RanksAdd*:CudaRunTest.SeveralRanks*'
      if [ -z "${DTRAIN_DATA:-}" ]; then
        echo "DTRAIN_DATA names no folder of data sets: speeds are left out"
        return
      fi
      steps_of_ranks 1 ordered
      steps_of_ranks 2 ordered
      steps_of_ranks 4 ordered
      steps_of_ranks 2 ring  # in host memory
      ;;
    simulate)
      tests 'SimulationOnAGpu.*:CudaRunTest.TheEnginesOfAPlanAreFollowed'
      if [ -z "${DTRAIN_DATA:-}" ]; then
        echo "DTRAIN_DATA names no folder of data sets: times are left out"
        return
      fi
      virtual_gradients allreduce 20 120
      virtual_gradients ps_asp 20 120
      ;;
    select)
      local sizes=1000000,10000000,100000000
      [ -z "$standin" ] || sizes=50000
      limited "$dtrain" bench topk --device cuda --sizes "$sizes"
      if has_torch; then
        limited "$python" "$root/tools/bench/torch_topk.py" --device cuda --sizes ${sizes//,/ }
      else
        echo "no PyTorch here that sees a GPU: dtrain alone"
      fi
      ;;
    full)
      local runs=$root/configs/runs
      local short=()
      [ -z "$standin" ] || short=(--set max_steps=2 --set batch=4 --set data.limit=16)
      if [ -z "${DTRAIN_DATA:-}" ]; then
        echo "DTRAIN_DATA names no folder of data sets: left out"
        return
      fi
      train_full lenet5 "$runs/lenet5_mnist.yaml" --set epochs=12 "${short[@]}"
      train_full resnet18 "$runs/resnet18_cifar10.yaml" --set epochs=30 --set precision=bf16 \
        --set 'solver.schedule={name: one_cycle}' "${short[@]}"
      train_full vgg19 "$runs/vgg19_cifar10.yaml" --set epochs=30 --set precision=bf16 "${short[@]}"
      train_full seq2seq "$runs/seq2seq_multi30k.yaml" --set epochs=10 --set precision=tf32 "${short[@]}"
      ;;
    studies)
      local study
      for study in gssp_resnet18 gssp_vgg19 gssp_seq2seq; do
        if [ -n "$standin" ] || [ -z "${DTRAIN_DATA:-}" ]; then
          limited "$dtrain" study "$root/configs/studies/$study.yaml" --dry-run --output "$logs/$study" >"$logs/$study.txt"
          head -n 1 "$logs/$study.txt"
        else
          part_of "$dtrain" study "$root/configs/studies/$study.yaml" --device cuda --output "$logs/$study"
        fi
      done
      ;;
    sanitizer)
      local tool
      [ "$end" -lt $((SECONDS + 180)) ] || end=$((SECONDS + 180))
      tool=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
      if [ -n "$standin" ] || [ ! -x "$tool" ]; then
        echo "no compute-sanitizer here: left out"
      else
        limited "$tool" --error-exitcode 1 "$build/cuda_tests" --gtest_brief=1 \
          "--gtest_filter=$layers"
      fi
      ;;
  esac
}

status=0
for part in "${parts[@]}"; do
  echo
  echo "== $part"
  begin=$SECONDS
  end=$((begin + 540))
  failed=""
  run_part "$part" > >(tee "$logs/$part.log") 2>&1
  timeout 20 tail --pid=$! -f /dev/null || true  # for what it said
  verdict=passed
  [ -z "$failed" ] || verdict=FAILED
  echo "== $part: $verdict in $((SECONDS - begin)) s"
  [ -z "$failed" ] || status=1
done
exit "$status"
