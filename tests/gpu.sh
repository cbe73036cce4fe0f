#!/bin/bash
# Tests dtrain on a GPU, from a build tree or from a bundle (tools/bundle.sh); where there is PyTorch, both
# are measured beside each other.  The most telling part comes first; each takes ten minutes at most, and
# no data but what the program makes.
#
#   tests/gpu.sh [--build FOLDER] [--standin] [PART...]
#
#   layers     every layer against its reference in double
#   models     every shipped model: first losses, gradients and statistics beside the CPU's
#   resnet     steps a second of ResNet-18 at batch 128, beside PyTorch's
#   runs       whole runs: training, resuming, several ranks, every family of strategies
#   torch      steps a second of all models in fp32, tf32 and bf16, beside PyTorch's
#   select     selections of one value in a thousand, beside torch.topk on the GPU
#   sanitizer  layers and kernels under compute-sanitizer (one minute on an H100)
#
# $PYTHON (python3) is the Python that is asked for PyTorch.  --standin runs the parts on what stands in for
# CUDA's libraries, to test this script.  Ends with 77 where there is no GPU, with 1 where a part fails.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
build=$root/build/release
[ ! -e "$root/bundle.txt" ] || build=$root/bin
standin=""
parts=()
while [ $# -gt 0 ]; do
  case $1 in
    --build) build=$(cd "${2:?--build needs a folder}" && pwd) && shift ;;
    --standin) standin=yes ;;
    layers | models | resnet | runs | torch | select | sanitizer) parts+=("$1") ;;
    *)
      echo "$0: there is no part '$1' (layers, models, resnet, runs, torch, select, sanitizer)" >&2
      exit 2
      ;;
  esac
  shift
done
[ ${#parts[@]} -gt 0 ] || parts=(layers models resnet runs torch select sanitizer)
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
if [ -z "${DTRAIN_CUDA_LIBRARIES:-}" ]; then
  packages=$("$python" -c 'import nvidia, os; print(os.path.dirname(list(nvidia.__path__)[0]))' 2>/dev/null) || packages=""
  [ -z "$packages" ] || export DTRAIN_CUDA_LIBRARIES=$packages
fi
export DTRAIN_TEST_GPU=1
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
  [ "$code" != 124 ] || echo "not done in ten minutes: $*"
}

tests() { limited "$build/cuda_tests" --gtest_brief=1 "--gtest_filter=$1"; }

has_torch() {
  [ -z "$standin" ] && "$python" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' 2>/dev/null
}

# Model, batch and precisions: beside PyTorch's where it is, else alone.
speed() {
  local model=$1 batch=$2 seconds=2 precision data=digits
  shift 2
  case $model in
    resnet* | vgg*) data=cifar10 ;;
    seq2seq*) data=multi30k ;;
  esac
  [ -z "$standin" ] || { batch=2 && seconds=0.1; }
  for precision in "$@"; do
    if has_torch; then
      limited "$python" "$root/tools/bench/compare_pytorch.py" --dtrain "$dtrain" --device cuda --models "$model" \
        --batch "$batch" --precision "$precision" --rounds 3 --seconds 1
    else
      limited "$dtrain" bench step --model "$model" --data "$data" --batch "$batch" --device cuda \
        --precision "$precision" --seconds "$seconds"
    fi
  done
}

layers='Layers/LayerSuite.*:Layers/LayerKernels.*:Layers/LayerBatches.*:BadValues.*:DropoutMasks.*:Cuda*:*OnTheGpu.*:-CudaRunTest.*:CudaStandinTest.*'

run_part() {
  case $1 in
    layers) tests "$layers" ;;
    models) tests 'Models/*' ;;
    resnet) speed resnet18 128 fp32 tf32 bf16 ;;
    runs) tests 'CudaRunTest.*' ;;
    torch)
      has_torch || echo "no PyTorch here that sees a GPU: dtrain alone"
      speed lenet5 64 fp32 tf32 bf16
      speed vgg19_bn 128 fp32 tf32 bf16
      speed seq2seq_attention 128 fp32 tf32 bf16
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
    sanitizer)
      local tool
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
  end=$((SECONDS + 600))
  failed=""
  run_part "$part"
  verdict=passed
  [ -z "$failed" ] || verdict=FAILED
  echo "== $part: $verdict in $((600 + SECONDS - end)) s"
  [ -z "$failed" ] || status=1
done
exit "$status"
