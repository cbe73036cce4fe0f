// The commands in the documents for users, and how a test runs each of them.
#pragma once

#include <map>
#include <string>

namespace dtrain {

// A few samples and two steps; a later --set of a key replaces an earlier one.
inline const std::string kFew =
    " --set data.train_samples=256 --set data.test_samples=64 --set max_steps=2";
// The same with digits, instead of a data set that would be downloaded from its publisher.
inline const std::string kDigits = " --set data.name=digits" + kFew;
inline const std::string kTwoSteps = " --set max_steps=2";

// Commands that run, in the order of the documents: the command, and the options that the test appends.
inline const std::map<std::string, std::string> kCommandsRun = {
    // README.md
    {"dtrain doctor", ""},
    {"dtrain check --config mine.yaml", ""},
    {"dtrain train --config mine.yaml --dry-run", ""},
    {"dtrain train --config mine.yaml --output runs/mine", " --set epochs=2"},
    {"dtrain predict --weights runs/mine cat.jpg more/", ""},
    {"dtrain eval --weights runs/mine", ""},
    {"dtrain train --config mine.yaml --set solver.lr=0.02 --set epochs=3 --output runs/faster",
     kTwoSteps},
    {"dtrain sweep --config mine.yaml --set solver.lr=0.01,0.03 --set seed=1,2 --output runs/rates",
     kTwoSteps},
    {"sed 's/outputs: 2}/outputs: 3}/' net.yaml >net3.yaml", ""},
    {"dtrain train --config mine.yaml --set model.name=./net3.yaml --set data.train=others --set "
     "weights.from=runs/mine --set \"weights.except=[fc]\" --set \"weights.freeze=[conv*]\" "
     "--output "
     "runs/tuned",
     kTwoSteps},
    {"dtrain train --config lenet5_mnist", kDigits},
    {"dtrain train --config quickstart --workers 4 --output runs/first", kFew},
    {"dtrain train --config quickstart --workers 4 --set strategy.name=ps_ssp --output runs/second",
     kFew},
    {"dtrain simulate --config stragglers --compare ps_bsp ps_ssp ps_asp", kTwoSteps},
    {"dtrain train --config mine.yaml --output runs/mine --resume auto", " --set epochs=2"},
    {"dtrain report runs/mine runs/faster --output report.html", ""},
    {"dtrain export --weights runs/mine --output mine.safetensors", ""},
    {"dtrain export --weights runs/mine --format onnx --output mine.onnx", ""},
    {"dtrain eval --config mine.yaml --weights mine.safetensors", ""},
    // configs/README.md
    {"dtrain check --config lenet5_mnist --set solver.lr=0.05", ""},
    {"dtrain list datasets", ""},
    {"dtrain list layers", ""},
    {"dtrain list solvers", ""},
    {"dtrain list models", ""},
    {"dtrain data list", ""},
    {"DTRAIN_DATA=/data dtrain train --config lenet5_mnist", kDigits},
    {"dtrain train --config quickstart --set model.name=./small.yaml --output runs/small", kFew},
    {"dtrain train --config lenet5_mnist --set evaluate.every_steps=100 --set stop.target=0.99",
     kDigits},
    {"dtrain train --config lenet5_mnist --set data.validation=0.1 --set stop.patience=5 --set "
     "checkpoint.keep_best=true",
     kDigits},
    {"dtrain train --config lenet5_mnist --seeds 1,2,3", kDigits},
    {"dtrain sweep --config quickstart --set solver.lr=0.01,0.02 --set seed=1,2,3 --jobs 2 "
     "--output runs/grid",
     kFew},
    // configs/studies/README.md
    {"dtrain study digits --jobs 2", " --dry-run"},
    // tools/reproduce/README.md
    {"dtrain study gssp_links --jobs 2 --output tools/reproduce/gssp_links", " --dry-run"},
    {"dtrain study gssp_links --tables --output tools/reproduce/gssp_links", " --dry-run"},
    // configs/strategies.md
    {"dtrain list strategies", ""},
    {"dtrain list compressors", ""},
    {"dtrain list collectives", ""},
    {"dtrain sweep --simulate --config lenet5_mnist_ssp --set "
     "strategy.name=ps_bsp,ps_ssp,ps_asp,inhad,gssp --set solver.lr=0.005,0.01,0.02,0.05 --set "
     "cluster.workers=8 --set \"cluster.slowdown=[1,2]\" --set cluster.step_seconds=0.01 --set "
     "data.validation=0.1 --set evaluate.every_steps=20 --set stop.target=0.98 --output "
     "runs/rates-of-strategies",
     kDigits},
    {"dtrain train --config lenet5_mnist --workers 4 --set strategy.name=mgwfbp",
     kDigits + " --set timeline=true"},
    {"dtrain time --config resnet18_cifar10 --profile resnet18.json",
     " --set batch=2 --iterations 1"},
    {"dtrain plan --profile resnet18.json --workers 8 --set batch=1024 --set "
     "cluster.network.bandwidth_gbit_s=10 --set cluster.network.latency_us=45",
     ""},
    {"dtrain train --config lenet5_mnist_ssp", kDigits},
    {"dtrain train --config lenet5_mnist_ssp --set strategy.name=ps_asp", kDigits},
    {"dtrain train --config lenet5_mnist_ssp --set strategy.name=inhad --set cluster.per_node=2",
     kDigits},
    {"dtrain train --config lenet5_mnist_ssp --set strategy.name=gssp --set strategy.servers=2",
     kDigits},
    {"dtrain train --config quickstart --workers 4 --set strategy.name=local_sgd --set "
     "strategy.period=8",
     kFew},
    {"dtrain train --config quickstart --workers 4 --set strategy.name=easgd", kFew},
    {"dtrain train --config lenet5_mnist_ssp --set strategy.name=gssp --set compress.name=gdtopk",
     kDigits},
    {"dtrain train --config lenet5_mnist_ssp --set strategy.name=ps_asp --set compress.name=topk "
     "--set compress.density=0.01",
     kDigits + " --set timeline=true --set tensorboard=true"},
    {"dtrain train --config quickstart --set compress.name=gaussiank --set gradients.every=50 "
     "--output runs/statistics",
     kFew + " --set gradients.every=1"},
    {"dtrain bench allreduce --workers 4 --collectives ring,hierarchical --per-node 2",
     " --bytes 4096"},
    // launch/README.md
    {"build/release/dtrain doctor", ""},
    {"dtrain train --config lenet5_mnist --workers 4", kDigits},
    {"mpirun -n 4 dtrain train --config lenet5_mnist", kDigits},
    {"dtrain slurm --config lenet5_mnist --workers 8 --nodes 4 --output four_nodes.sbatch", ""},
    {"dtrain slurm --config lenet5_mnist_ssp --set cluster.per_node=2 --servers-apart --output "
     "ssp.sbatch",
     ""},
    {"dtrain train --config lenet5_mnist --workers 8 --dry-run", kDigits},
    {"dtrain train --config lenet5_mnist --workers 4 --output runs/lenet5 --resume auto", kDigits},
    {"dtrain simulate --config quickstart --output runs/virtual --resume auto", kFew},
    // framework/sim/README.md
    {"dtrain time --config quickstart --profile lenet5.json", " --iterations 1"},
    {"dtrain simulate --config stragglers --profile lenet5.json --set \"cluster.slowdown=[1]\" "
     "--set cluster.jitter=0.533 --compare ps_bsp ps_ssp --seeds 1,2,3,4,5",
     kTwoSteps},
    {"dtrain simulate --profile lenet5.json --workers 2048 --set batch=131072 --set "
     "strategy.name=ps_asp --set max_steps=1000",
     kTwoSteps},
    {"dtrain simulate --config quickstart --workers 2 --profile lenet5.json --numeric --set "
     "cluster.per_node=2 --compare allreduce ps_asp",
     kFew},
    {"dtrain simulate --config quickstart --cluster hetero_1_1.3_1.6_2_interleaved --set batch=256 "
     "--set cluster.per_node=4 --compare ps_ssp gssp gssp+gdtopk inhad",
     kTwoSteps},
    {"dtrain bench topk --costs here.json", " --seconds 0 --sizes 1000,100000"},
    {"dtrain simulate --config quickstart --workers 8 --set cluster.compress_costs=./here.json "
     "--compare allreduce allreduce+topk allreduce+gaussiank",
     kTwoSteps},
    {"dtrain simulate --config quickstart --set strategy.name=inhad --set strategy.pull_timeout=1 "
     "--set cluster.workers=4 --set cluster.per_node=2 --set \"cluster.deaths=[{node: 1, "
     "at_seconds: 0.1}]\"",
     " --set \"cluster.deaths=[{node: 1, at_seconds: 0.01}]\" --set data.train_samples=6400 "
     "--set data.test_samples=64 --set epochs=1 --output runs/deaths"},
    {"dtrain bench exchange --config stragglers --set max_steps=100", kTwoSteps},
    {"dtrain simulate --config stragglers --set max_steps=100 --json", kTwoSteps},
    {"dtrain train --config lenet5_mnist_ssp --set strategy.record=true --set epochs=3 --output "
     "runs/ssp",
     kDigits},
    {"dtrain simulate --replay runs/ssp/record.bin", ""},
    // framework/cli/README.md
    {"dtrain check --config quickstart", ""},
    {"dtrain train --config quickstart --dry-run", ""},
    {"dtrain time --config quickstart", " --iterations 1"},
    {"dtrain ckpt info runs/first", ""},
    {"dtrain ckpt verify runs/first", ""},
    {"dtrain ckpt diff runs/first runs/second", ""},
    // tools
    {"tools/bench/account.py --model resnet18 --batch 32 --threads 1",
     " --dtrain build/release/dtrain --model lenet5 --batch 2 --seconds 0.1"},
    {"dtrain bench data --config quickstart", " --set data.train_samples=256"},
    {"dtrain bench allreduce --workers 2 --collectives ordered", " --bytes 4096"},
    {"dtrain bench allreduce --workers 4 --collectives ordered", " --bytes 4096"},
};

// Exit codes other than 0.
inline const std::map<std::string, int> kCodes = {
    {"dtrain ckpt diff runs/first runs/second", 1},
};

inline constexpr char kPublisher[] = "a publisher's server";
inline constexpr char kMachines[] = "other machines";
inline constexpr char kPyTorch[] = "PyTorch";
inline constexpr char kSystem[] = "installs or builds, as tests/run.sh does before this test";
inline constexpr char kLong[] = "takes minutes to hours";

// What each of the other commands needs.
inline const std::map<std::string, std::string> kCommandsNotRun = {
    {"launch/quickstart.sh", kSystem},
    {"launch/install-packages.sh", kSystem},
    {"cmake --preset release -DDTRAIN_TESTS=OFF", kSystem},
    {"cmake --build --preset release", kSystem},
    {"cmake --install build/release --prefix ~/.local", "install_system_test runs it"},
    {"cpack --config build/release/CPackConfig.cmake", kSystem},
    {"tools/bundle.sh", "bundle_test runs it"},
    {"dtrain bench link --workers 2 --fit-only", "eight seconds; comm_mpi_tests has it shorter"},
    {"dtrain train --config lenet5_mnist --hosts a:4,b:4", kMachines},
    {"mpirun -n 8 --host a:4,b:4 dtrain train --config lenet5_mnist", kMachines},
    {"dtrain data fetch mnist", kPublisher},
    {"dtrain data fetch cifar10", kPublisher},
    {"dtrain data fetch multi30k", kPublisher},
    {"dtrain data verify mnist", kPublisher},
    {"dtrain train --config resnet18_cifar10_3epochs --output runs/resnet", kPublisher},
    {"dtrain train --config seq2seq_multi30k --output runs/de-en", kPublisher},
    {"echo \"Zwei Hunde spielen im Schnee.\" | dtrain translate --weights runs/de-en", kPublisher},
    {"dtrain simulate --config topk_resnet20_cifar10 --set epochs=1", kPublisher},
    {"dtrain data fetch mnist --from http://host:8000", kMachines},
    {"sbatch launch/slurm/train.sbatch", "Slurm"},
    {"scp build/release/dtrain-*.tar.xz cluster:", kMachines},
    {"ssh cluster 'tar -xJf dtrain-*.tar.xz && dtrain-*/bin/dtrain doctor'", kMachines},
    {"mpirun -n 4 --host A,B,C,D dtrain bench sums --profile resnet18.json --workers 4 --set "
     "strategy.name=mgwfbp --output resnet18-here.json",
     kMachines},
    {"mpirun -n 2 --host A,B dtrain bench link --fit-only", kMachines},
    {"mpirun -n 4 --host A,B,C,D dtrain bench link --incast", kMachines},
    {"python3 -m venv build/torch && build/torch/bin/pip install torch", kPyTorch},
    {"build/torch/bin/python tools/bench/compare_pytorch.py --dtrain build/release/dtrain --models "
     "resnet18 vgg19_bn --batch 32 128 --threads 1 2 --rounds 2 --seconds 3",
     kPyTorch},
    {"build/torch/bin/python tools/bench/compare_pytorch.py --dtrain build/release/dtrain --models "
     "seq2seq_attention --batch 128 --threads 1 2 --rounds 2 --seconds 3",
     kPyTorch},
    {"build/torch/bin/python tools/bench/compare_pytorch.py --dtrain build/release/dtrain --models "
     "resnet18 --batch 32 --threads 1 2 --precision bf16 --rounds 2 --seconds 3",
     kPyTorch},
    {"build/torch/bin/python tools/bench/compare_pytorch.py --dtrain build/release/dtrain",
     kPyTorch},
    {"build/torch/bin/python tools/bench/compare_images.py --dtrain build/release/dtrain",
     kPyTorch},
};

}  // namespace dtrain
