// Runs the whole program.  With the stand-in it runs a copy of the program with that module beside
// it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <regex>

#include "framework/setup/run_setup.h"
#include "tests/cuda/module_under_test.h"
#include "tests/system/system_fixture.h"

namespace dtrain {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kOnDigits[] =
    "train --config $CONFIGS/quickstart.yaml --set data.name=digits --set data.train_samples=128 "
    "--set data.test_samples=16 --set batch=16 --set epochs=1 --set device=cuda ";

// Runs the program with the module under test.
class CudaRunTest : public SystemTest {
 protected:
  void SetUp() override {
    SystemTest::SetUp();
    if (ModuleBesideTests()) return;
    fs::create_directories(folder_ / "bin");
    fs::copy_file(DTRAIN_BINARY_DIR "/dtrain", folder_ / "bin/dtrain");
    fs::create_symlink(DTRAIN_BINARY_DIR "/tests/cuda_standin/libdtrain_cuda.so",
                       folder_ / "bin/libdtrain_cuda.so");
    fs::create_directory_symlink(DTRAIN_SOURCE_DIR "/configs", folder_ / "configs");
  }
  std::string Program() const override {
    return ((ModuleBesideTests() ? ProgramFolder() : folder_ / "bin") / "dtrain").string();
  }
  std::string Configs() const override { return ConfigsFolder().string(); }

  // Returns the largest relative difference (||a - b|| / ||a||) of any tensor between two runs.
  double FarthestOf(const std::string& first, const std::string& second) {
    const Outcome outcome = Run("ckpt diff --json " + first + " " + second);
    double farthest = outcome.code == 0 || outcome.code == 1 ? 0 : 1;
    const nlohmann::json found = nlohmann::json::parse(outcome.out);
    for (const auto& tensor : found.at("tensors")) {
      farthest = std::max(farthest, tensor.at("relative").get<double>());
    }
    return farthest;
  }

  nlohmann::json SummaryOf(const std::string& run) const {
    return nlohmann::json::parse(Slurp(folder_ / run / "summary.json"));
  }

  // Makes the runs "fp32" and `precision`, which must end near each other.
  void TrainBesideFp32(const std::string& run, const std::string& precision) {
    ASSERT_EQ(Run(run + "--output fp32").code, 0);
    const Outcome rounded = Run(run + "--set precision=" + precision + " --output " + precision);
    ASSERT_EQ(rounded.code, 0) << rounded.err;
    EXPECT_GT(FarthestOf("fp32", precision), 1e-5) << "nothing was rounded";
    const auto loss = [&](const std::string& of) {
      return SummaryOf(of).at("train").at("loss").get<double>();
    };
    EXPECT_NEAR(loss(precision), loss("fp32"), 0.02 * loss("fp32"));
  }
};

TEST_F(CudaRunTest, TrainsAsTheCpuDoes) {
  const Outcome gpu = Run(std::string(kOnDigits) + "--output gpu");
  ASSERT_EQ(gpu.code, 0) << gpu.err;
  EXPECT_EQ(SummaryOf("gpu").at("device"), "cuda");
  ASSERT_EQ(Run(std::string(kOnDigits) + "--set device=cpu --output cpu").code, 0);
  EXPECT_NEAR(SummaryOf("gpu").at("train").at("loss").get<double>(),
              SummaryOf("cpu").at("train").at("loss").get<double>(), 1e-3);
  const Outcome again = Run(std::string(kOnDigits) + "--output again");
  EXPECT_EQ(again.code, 0);
  EXPECT_EQ(WeightsOf("again"), WeightsOf("gpu")) << "the same bits twice";
  const auto plan = nlohmann::json::parse(Slurp(folder_ / "gpu/plan.json"));
  EXPECT_THAT(plan.at("gpu").get<std::string>(), HasSubstr(", cuDNN ")) << "what decided them";
}

TEST_F(CudaRunTest, CheckpointsGoFromOneDeviceToTheOther) {
  ASSERT_EQ(Run(std::string(kOnDigits) + "--set max_steps=4 --output run").code, 0);
  const Outcome cpu =
      Run(std::string(kOnDigits) + "--set device=cpu --resume auto --set max_steps=6 --output run");
  ASSERT_EQ(cpu.code, 0) << cpu.err;
  EXPECT_THAT(cpu.err, HasSubstr("not bit-equal to the undisturbed run"));
  const Outcome gpu = Run(std::string(kOnDigits) + "--resume auto --set max_steps=8 --output run");
  ASSERT_EQ(gpu.code, 0) << gpu.err;
  const Outcome eval = Run("eval --config run/config.yaml --weights run");
  EXPECT_EQ(eval.code, 0) << eval.err;
}

// A run resumes with the solver's vectors of the other device, evaluates, and goes on to the end.
TEST_F(CudaRunTest, ARunGoesOnOnTheOtherDeviceAsOnItsOwn) {
  const std::string run = std::string(kOnDigits) + "--set epochs=2 --set solver.name=adam ";
  const auto on = [&](const std::string& device, const std::string& rest) {
    const Outcome outcome = Run(run + "--set device=" + device + " " + rest);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  };
  on("cpu", "--output whole");
  for (const auto& [first, second] :
       {std::pair{"cuda", "cpu"}, {"cpu", "cuda"}, {"cuda", "cuda"}}) {
    const std::string name = std::string(first) + "-" + second;
    on(first, "--set max_steps=5 --output " + name);
    on(second, "--resume auto --output " + name);
    EXPECT_LE(FarthestOf("whole", name), 1e-3) << name;
  }
}

// The evaluation in the middle must not change the training.
TEST_F(CudaRunTest, EverySolverTrainsAsOnTheCpu) {
  for (const std::string solver : {"sgd --set solver.nesterov=true --set solver.clip_norm=1",
                                   "adam --set solver.clip_norm=1", "adamw"}) {
    const std::string run = std::string(kOnDigits) + "--set epochs=2 --set solver.name=" + solver +
                            " --set accumulate=2 --set data.train_samples=256 --set batch=32 ";
    const std::string name = solver.substr(0, solver.find(' '));
    const Outcome gpu = Run(run + "--output " + name);
    ASSERT_EQ(gpu.code, 0) << gpu.err;
    ASSERT_EQ(Run(run + "--set device=cpu --output cpu-" + name).code, 0);
    EXPECT_LE(FarthestOf("cpu-" + name, name), 1e-3) << solver;
  }
}

TEST_F(CudaRunTest, TrainsInBf16BesideFp32) {
  TrainBesideFp32(std::string(kOnDigits) + "--set epochs=2 ", "bf16");
}

TEST_F(CudaRunTest, TrainsInFp16AndResumesWithItsLossScale) {
  const std::string run =
      std::string(kOnDigits) + "--set epochs=2 --set batch=16 --set data.train_samples=96 ";
  TrainBesideFp32(run, "fp16");
  const std::string half = run + "--set precision=fp16 ";
  EXPECT_GE(SummaryOf("fp16").at("skipped_steps").get<int>(), 0);
  EXPECT_FALSE(SummaryOf("fp32").contains("skipped_steps"));
  ASSERT_EQ(Run(half + "--set max_steps=5 --output resumed").code, 0);
  ASSERT_EQ(Run(half + "--resume auto --output resumed").code, 0);
  EXPECT_EQ(WeightsOf("resumed"), WeightsOf("fp16"));
  const auto scale_of = [&](const std::string& of) {
    const Outcome info = Run("ckpt info --json " + of);
    return nlohmann::json::parse(info.out).value("loss_scale", nlohmann::json());
  };
  const nlohmann::json scale = scale_of("fp16");
  EXPECT_EQ(scale.at("steps").get<int>() + scale.at("skipped").get<int>(), 12) << scale;
  EXPECT_EQ(scale_of("resumed"), scale);
  EXPECT_TRUE(scale_of("fp32").is_null());
}

TEST_F(CudaRunTest, Fp16IsForTrainingInStepsThatStayOnTheGpu) {
  const std::string run = "--set precision=fp16 ";
  const Outcome delayed = Run(kOnDigits + run + "--set cluster.jitter=0.1 --output delayed");
  EXPECT_EQ(delayed.code, 2);
  EXPECT_THAT(delayed.err, HasSubstr("cluster.jitter delays them"));
  const std::string config =
      std::string(kOnDigits).substr(std::string(kOnDigits).find("--config")) + run;
  const Outcome simulated = Run("simulate --numeric " + config + "--output simulated");
  EXPECT_EQ(simulated.code, 2);
  EXPECT_THAT(simulated.err, HasSubstr("does not scale the loss"));
  const Outcome timed = Run("time --iterations 2 " + config);
  EXPECT_EQ(timed.code, 0) << timed.err;
}

TEST_F(CudaRunTest, ALossThatIsNoNumberEndsTheRun) {
  const Outcome outcome = Run(std::string(kOnDigits) + "--set solver.lr=1e30 --output run");
  EXPECT_EQ(outcome.code, 5) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("NaN or infinity in the "));
}

// Jitter delays some of the steps: these are not part of a captured step.
TEST_F(CudaRunTest, StepsWithJitterEndWithTheSameWeights) {
  const std::string run = std::string(kOnDigits) + "--set epochs=4 ";
  ASSERT_EQ(Run(run + "--output even").code, 0);
  const Outcome jitter = Run(run + "--set cluster.jitter=0.1 --output jitter");
  ASSERT_EQ(jitter.code, 0) << jitter.err;
  EXPECT_EQ(FarthestOf("even", "jitter"), 0);
}

TEST_F(CudaRunTest, SeveralRanksShareAGpuUnderEveryFamilyOfStrategies) {
  for (const std::string strategy : {"strategy.name=allreduce", "strategy.name=ps_ssp",
                                     "strategy.name=gssp", "strategy.name=inhad"}) {
    const std::string name = strategy.substr(strategy.find('=') + 1);
    const Outcome outcome =
        Run(std::string(kOnDigits) + "--workers 2 --set " + strategy + " --output " + name);
    EXPECT_EQ(outcome.code, 0) << name << ": " << outcome.err;
  }
}

// Processes map each other's memory.  A run that records gradients has them in host memory.
TEST_F(CudaRunTest, RanksAddTheirGradientsOnTheGpuToTheSameBits) {
  for (const auto& [workers, strategy] : {std::pair("2", "mgwfbp"), std::pair("4", "allreduce")}) {
    const std::string run = std::string(kOnDigits) + "--workers " + workers +
                            " --set strategy.name=" + strategy + " --set solver.name=adam ";
    for (const char* name : {"there", "parts", "here"}) fs::remove_all(folder_ / name);
    const Outcome there = Run(run + "--output there");
    ASSERT_EQ(there.code, 0) << there.err;
    EXPECT_THAT(there.err, HasSubstr("in the memory of the GPU, by ordered"));
    ASSERT_EQ(Run(run + "--output parts --set max_steps=3").code, 0);
    const Outcome on = Run(run + "--output parts --resume auto");
    ASSERT_EQ(on.code, 0) << on.err;
    EXPECT_EQ(WeightsOf("parts"), WeightsOf("there")) << strategy;
    const Outcome here = Run(run + "--output here --set gradients.every=1000");
    ASSERT_EQ(here.code, 0) << here.err;
    EXPECT_THAT(here.err, Not(HasSubstr("in the memory of the GPU")));
    EXPECT_EQ(WeightsOf("here"), WeightsOf("there")) << strategy;
  }
}

// NCCL gives no order of the additions; of two terms there is one.
TEST_F(CudaRunTest, NcclAddsTheGradientsOfRanksWithAGpuEach) {
  if (ModuleBesideTests()) return;  // one GPU there
  const std::string nccl =
      "DTRAIN_NCCL=" DTRAIN_BINARY_DIR "/tests/cuda_standin/libstandin_nccl.so";
  const std::string run = std::string(kOnDigits) + "--workers 2 --set collective=";
  ASSERT_EQ(Run(run + "ordered --output ordered").code, 0);
  const std::string gpus = "env DTRAIN_STANDIN_GPUS=2 " + nccl;
  for (const std::string strategy : {"allreduce", "mgwfbp"}) {
    const Outcome there =
        Run(run + "nccl --set strategy.name=" + strategy + " --output " + strategy, gpus);
    ASSERT_EQ(there.code, 0) << there.err;
    EXPECT_THAT(there.err, HasSubstr("in the memory of the GPU, by nccl"));
    EXPECT_EQ(WeightsOf(strategy), WeightsOf("ordered")) << strategy;
  }
  const std::string topk = " --set 'compress={name: topk, density: 0.02, dense_steps: 2}' ";
  ASSERT_EQ(Run(run + "ordered" + topk + "--output ordered_topk").code, 0);
  ASSERT_EQ(Run(run + "nccl" + topk + "--output topk", gpus).code, 0);
  EXPECT_EQ(WeightsOf("topk"), WeightsOf("ordered_topk"));
  const Outcome four =
      Run(std::string(kOnDigits) + "--workers 4 --set collective=nccl --output four",
          "env DTRAIN_STANDIN_GPUS=4 " + nccl);
  EXPECT_EQ(four.code, 0) << four.err;
  const auto refused = [&](const std::string& arguments, const std::string& prefix) {
    const Outcome outcome = Run(run + "nccl --output refused " + arguments, prefix);
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    return outcome.err;
  };
  EXPECT_THAT(refused("", "env " + nccl), HasSubstr("ranks 0 and 1 share a GPU"));
  EXPECT_THAT(refused("--device cpu", gpus), HasSubstr("a rank computes on the CPU"));
  EXPECT_THAT(refused("--set compress=ef_signsgd", gpus),
              HasSubstr("its gradients are compressed"));
  EXPECT_THAT(refused("", "env DTRAIN_STANDIN_GPUS=2 DTRAIN_NCCL=/nowhere"),
              AllOf(HasSubstr("NCCL cannot be opened"), HasSubstr("collective: ordered")));
}

// The residual and the selection are in the GPU's memory, except in a run that records gradients,
// which has them in host memory.  Both kinds of run select the same values: from the first step,
// after dense steps, and after a resume.
TEST_F(CudaRunTest, WhatIsSelectedOnTheGpuIsWhatTheCpuSelects) {
  for (const std::string compress :
       {"{name: topk, density: 0.02}", "{name: topk, density: 0.02, scope: model, exchange: gtopk}",
        "{name: topk, density: 0.02, dense_steps: 3, scope: layer, exchange: oktopk}",
        "{name: dgc, density: 0.02, density_warmup: [0.6, 0.1]}", "{name: randk, density: 0.1}"}) {
    const std::string run =
        std::string(kOnDigits) +
        "--workers 2 --set batch=8 --set data.train_samples=64 --set epochs=2 --set 'compress=" +
        compress + "' ";
    fs::remove_all(folder_ / "there");
    fs::remove_all(folder_ / "here");
    const Outcome there = Run(run + "--output there --set max_steps=7");
    ASSERT_EQ(there.code, 0) << there.err;
    const Outcome on = Run(run + "--output there --resume auto --set max_steps=12");
    ASSERT_EQ(on.code, 0) << on.err;
    const Outcome here = Run(run + "--output here --set gradients.every=1000 --set max_steps=12");
    ASSERT_EQ(here.code, 0) << here.err;
    EXPECT_EQ(WeightsOf("there"), WeightsOf("here")) << compress;
  }
}

// The frozen layers stay the same with the solver on the GPU, and on the GPU after steps on the
// CPU.
TEST_F(CudaRunTest, WhatIsFrozenStaysToTheBit) {
  std::ofstream(folder_ / "model.yaml") << R"(
name: frozen
layers:
  - {name: conv1, type: convolution, outputs: 4, kernel: 5, stride: 3}
  - {name: bn1, type: batch_norm}
  - {name: relu1, type: relu}
  - {name: conv2, type: convolution, outputs: 6, kernel: 3, bias: false}
  - {name: bn2, type: batch_norm}
  - {name: relu2, type: relu}
  - {name: flat, type: flatten}
  - {name: fc, type: inner_product, outputs: 10}
  - {name: loss, type: softmax_cross_entropy, input: [fc, label]}
)";
  const std::string run = std::string(kOnDigits) + "--set model.name=$OUT/model.yaml ";
  ASSERT_EQ(Run(run + "--output before").code, 0);
  const std::string frozen = run +
                             "--set weights.from=before --set 'weights.freeze=[conv1, bn*]' "
                             "--set solver.weight_decay=0.1 ";
  const auto differing = [&](const std::string& name) {
    const Outcome outcome = Run("ckpt diff --json before " + name);
    const nlohmann::json found = nlohmann::json::parse(outcome.out);
    std::vector<std::string> tensors;
    for (const auto& tensor : found.at("tensors")) tensors.push_back(tensor.at("name"));
    std::erase(tensors, "rank files");  // `before` has none
    return tensors;
  };
  for (const std::string keys :
       {"", "--set solver.name=adam --set accumulate=2", "--workers 2",
        "--workers 2 --set batch_norm=sync", "--workers 2 --set compress.name=topk",
        "--workers 3 --set strategy.name=gssp --set strategy.servers=2"}) {
    const Outcome outcome = Run(frozen + keys + " --output run");
    ASSERT_EQ(outcome.code, 0) << keys << ": " << outcome.err;
    EXPECT_THAT(differing("run"), ElementsAre("conv2.weight", "fc.bias", "fc.weight")) << keys;
    fs::remove_all(folder_ / "run");
  }
  ASSERT_EQ(Run(frozen + "--device cpu --set max_steps=3 --output run").code, 0);
  ASSERT_EQ(Run(frozen + "--resume auto --output run").code, 0);
  EXPECT_THAT(differing("run"), ElementsAre("conv2.weight", "fc.bias", "fc.weight"));
}

// Some batches are of 8 images, of which the stand-in computes a gradient by another engine than that of the plan.
TEST_F(CudaRunTest, TheEnginesOfAPlanAreFollowed) {
  std::ofstream(folder_ / "model.yaml") << R"(
name: wide
layers:
  - {name: conv1, type: convolution, outputs: 32, kernel: 3, stride: 2}
  - {name: conv2, type: convolution, outputs: 32, kernel: 3}
  - {name: flat, type: flatten}
  - {name: fc, type: inner_product, outputs: 10}
  - {name: loss, type: softmax_cross_entropy, input: [fc, label]}
)";
  const std::string run = std::string(kOnDigits) +
                          "--set model.name=$OUT/model.yaml --set data.train_samples=20 "
                          "--set batch=8 --set epochs=2 --set precision=tf32 ";
  const auto kernel = [&](const std::string& file) {
    const auto plan = nlohmann::json::parse(Slurp(folder_ / file));
    return plan.at("kernels").at("conv2").get<std::string>();
  };
  // Runs it undisturbed, and in two parts, which must have the same bits.
  const auto in_parts = [&](const std::string& name, const std::string& keys) {
    ASSERT_EQ(Run(run + keys + "--output " + name).code, 0);
    ASSERT_EQ(Run(run + keys + "--set max_steps=2 --output " + name + "2").code, 0);
    const Outcome resumed = Run(run + keys + "--resume auto --output " + name + "2");
    ASSERT_EQ(resumed.code, 0) << resumed.err;
    EXPECT_THAT(resumed.err, Not(HasSubstr("not bit-equal")));
    EXPECT_EQ(WeightsOf(name + "2"), WeightsOf(name)) << name;
    EXPECT_EQ(kernel(name + "2/plan.json"), kernel(name + "/plan.json"));
  };
  in_parts("rule", "");
  EXPECT_THAT(kernel("rule/plan.json"), StartsWith("cudnn:eng"));
  ASSERT_EQ(Run("time --config rule/config.yaml --iterations 2 --tune tuned.json").code, 0);
  in_parts("tuned", "--set plan=tuned.json ");
  EXPECT_EQ(kernel("tuned/plan.json"), kernel("tuned.json"));
  ASSERT_EQ(Run(run + "--set plan=measure --output measured").code, 0);
  EXPECT_THAT(kernel("measured/plan.json"), StartsWith("cudnn:eng"));

  std::string other = Slurp(folder_ / "tuned.json");
  other.replace(other.find("cudnn:eng"), 9, "cudnn:eng99");
  std::ofstream(folder_ / "other.json") << other;
  const Outcome elsewhere = Run(run + "--output other --set plan=other.json");
  ASSERT_EQ(elsewhere.code, 0) << elsewhere.err;
  EXPECT_THAT(elsewhere.err,
              AllOf(HasSubstr("not bit-equal to the runs of the plan: layer 'conv2' is computed by "
                              "cudnn:"),
                    HasSubstr("not by cudnn:eng99")));
  if (ModuleBesideTests()) return;  // what follows names an engine of the stand-in
  const std::string file = Slurp(folder_ / "rule/plan.json"), rule = kernel("rule/plan.json");
  std::string slow = file;
  slow.replace(slow.find(rule), rule.size(), "cudnn:eng4,eng4,eng1_k2=0");
  std::ofstream(folder_ / "slow.json") << slow;
  in_parts("slow", "--set plan=slow.json ");
  EXPECT_NE(WeightsOf("slow"), WeightsOf("rule"));
  const Outcome replayed = Run(run +
                               "--workers 2 --set strategy.name=ps_asp --set strategy.record=true "
                               "--set plan=measure --output record");
  ASSERT_EQ(replayed.code, 0) << replayed.err;
  EXPECT_EQ(Run("simulate --replay record/record.bin").code, 0);
  EXPECT_EQ(
      Run(run + "--workers 2 --set strategy.name=auto --set plan=measure --output chosen").code, 0);
}

// For every command --device means what the key `device` of a config means.
TEST_F(CudaRunTest, ComputesWhereDeviceSays) {
  ASSERT_EQ(Run(std::string(kOnDigits) + "--set device=cpu --device cuda --output run").code, 0);
  EXPECT_EQ(SummaryOf("run").at("device"), "cuda");
  EXPECT_THAT(Run("bench step --seconds 0.1 --device cuda").out, HasSubstr("\"device\":\"cuda\""));
  EXPECT_THAT(Run("bench step --seconds 0.1 --device cpu").out, HasSubstr("\"device\":\"cpu\""));
  EXPECT_THAT(Run("bench topk --seconds 0 --sizes 20000 --device cuda").out,
              AllOf(HasSubstr("\"compressor\":\"topk\""), HasSubstr("\"device\":\"cuda\""),
                    HasSubstr("\"selected\":20")));
  for (const char* const device : {"cpu", "cuda"}) {
    const std::string on = std::string("--config run/config.yaml --device ") + device;
    EXPECT_EQ(Run("eval --weights run " + on).code, 0);
    EXPECT_EQ(Run("simulate --numeric --set max_steps=3 " + on).code, 0);
    EXPECT_EQ(Run("time --iterations 2 --profile profile.json " + on).code, 0);
    EXPECT_EQ(nlohmann::json::parse(Slurp(folder_ / "profile.json")).at("device"), device);
    const Outcome bench = Run(std::string("bench step --model lenet5 --data digits --batch 4 "
                                          "--seconds 0.1 --device ") +
                              device);
    ASSERT_EQ(bench.code, 0) << bench.err;
    EXPECT_GT(nlohmann::json::parse(bench.out).at("steps_per_second"), 0);
    EXPECT_THAT(bench.err, Not(HasSubstr("not captured")));
  }
}

TEST_F(CudaRunTest, AutoIsTheGpuOfTheModule) {
  const fs::path folder = ModuleBesideTests() ? ProgramFolder() : folder_ / "bin";
  EXPECT_EQ(WhyNoAutoGpu(true, folder), std::nullopt);
  EXPECT_NE(WhyNoAutoGpu(false, folder), std::nullopt);
}

// These tests need output that only the stand-in is sure to give.
class CudaStandinTest : public CudaRunTest {};

TEST_F(CudaStandinTest, TheDoctorNamesItAndItsMemory) {
  const Outcome outcome = Run("doctor");
  EXPECT_THAT(outcome.out, AllOf(HasSubstr(", driver for CUDA 13."),
                                 HasSubstr("a stand-in for tests that computes on the CPU (16 "
                                           "GiB, 16 free)")));
}

TEST_F(CudaStandinTest, NoRoomOnTheGpuSaysWhatWantedHowMuch) {
  const std::string run =
      std::string(kOnDigits) + "--output run --set data.train_samples=1024 --set batch=1024 ";
  const Outcome tiny =
      Run(run + "--set batch=8 --set data.test_samples=3000 ", "DTRAIN_STANDIN_MIB=1");
  EXPECT_EQ(tiny.code, 2);
  EXPECT_THAT(tiny.err,
              AllOf(HasSubstr("GPU 0 has no room for "), HasSubstr(" MiB of 1.0 MiB are free"),
                    HasSubstr("samples that are evaluated at a time: a smaller model")));
  const Outcome small = Run(run, "DTRAIN_STANDIN_MIB=11");
  EXPECT_EQ(small.code, 2);
  std::smatch found;
  ASSERT_TRUE(
      std::regex_search(small.err, found,
                        std::regex("room for (\\d+) of the 1024 samples that are trained on at a "
                                   "time: a smaller batch, or accumulate: (\\d+)")))
      << small.err;
  const int most = std::stoi(found[1]);
  const auto fits = [&](const std::string& keys) {
    return Run(run + keys, "DTRAIN_STANDIN_MIB=11").code == 0;
  };
  EXPECT_TRUE(fits("--set accumulate=" + found.str(2)));
  fs::remove_all(folder_ / "run");
  EXPECT_TRUE(fits(fmt::format("--set max_steps=1 --set batch={}", most)));
  fs::remove_all(folder_ / "run");
  EXPECT_FALSE(fits(fmt::format("--set batch={}", most * 5 / 4)));
}

TEST_F(CudaStandinTest, AnOldGpuHasNoTensorCoresForTheseNumbers) {
  const std::string old = "DTRAIN_STANDIN_CAPABILITY=75",
                    run = std::string(kOnDigits) + "--output ";
  for (const std::string precision : {"tf32", "bf16"}) {
    const Outcome outcome = Run(run + "r --set precision=" + precision, old);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_THAT(outcome.err, HasSubstr("precision " + precision +
                                       " needs a GPU of compute capability 8.0; GPU 0 has 7.5"));
  }
  EXPECT_EQ(Run(run + "fp32", old).code, 0);
  EXPECT_EQ(Run(run + "fp16 --set precision=fp16", old).code, 0);
  const Outcome older = Run(run + "r --set precision=fp16", "DTRAIN_STANDIN_CAPABILITY=60");
  EXPECT_EQ(older.code, 2);
  EXPECT_THAT(older.err, HasSubstr("precision fp16 needs a GPU of compute capability 7.0"));
}

}  // namespace
}  // namespace dtrain
