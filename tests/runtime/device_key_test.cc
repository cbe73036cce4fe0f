// Tests a run's key `device`: its values, and the errors where CUDA is not available.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "framework/core/error.h"
#include "framework/core/process.h"
#include "framework/device/cuda/module.h"
#include "framework/device/cuda/open_library.h"
#include "framework/setup/run_setup.h"
#include "framework/train/training_step.h"
#include "tests/data/temp_folder.h"
#include "tests/support/message_of.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

RunConfig Read(const std::string& device, bool with_model) {
  const std::string model = with_model ? "model: lenet5\ndata: digits\n" : "";
  config::Document document = config::Document::FromText(
      model + "seed: 3\ndevice: " + device + "\n", DTRAIN_SOURCE_DIR "/configs/runs/small.yaml");
  return with_model ? ReadRunConfig(document) : ReadGhostConfig(document);
}

TEST(DeviceKey, AutoIsAGpuThatIsThere) {
  for (const char* device : {"auto", "cpu"}) {
    const RunConfig config = Read(device, true);
    EXPECT_EQ(config.device, device);
    const ExecutionPlan plan = DecidePlan(config, ReadModel(config), 1, 1);
    EXPECT_EQ(plan.device, NameOf(DeviceKindOf(device)));
    EXPECT_EQ(DeviceOf(plan).kind, DeviceKindOf(device));
  }
  EXPECT_EQ(DeviceKindOf("cpu"), DeviceKind::kCpu);
  EXPECT_EQ(WhyNoAutoGpu(false), "this machine has no NVIDIA driver");
  if (const auto lack = WhyNoCuda()) {
    EXPECT_EQ(WhyNoAutoGpu(true), lack->why);
  }
}

// With the module built, a config for a GPU is accepted on any machine; a run without a GPU is refused.
TEST(DeviceKey, CudaIsRefusedWithWhatToDo) {
  const auto lack = WhyNoCuda();
  if (!lack) return CheckDevice(Read("cuda", true));
  if (!lack->of_the_machine) {
    EXPECT_THAT(WhatOf<ConfigError>([] { Read("cuda", true); }),
                AllOf(HasSubstr("small.yaml:4:1: device 'cuda' is not available: "),
                      HasSubstr("libdtrain_cuda.so"), HasSubstr("device: cpu")));
    return;
  }
  const RunConfig config = Read("cuda", true);
  EXPECT_THAT(config.warnings,
              Contains("device 'cuda' is not available on this machine: " + lack->why));
  EXPECT_THAT(WhatOf<ConfigError>([&] { CheckDevice(config); }),
              AllOf(StartsWith("device 'cuda' is not available on "), EndsWith(": " + lack->why)));
  EXPECT_THROW(DeviceOf({.device = "cuda"}), ConfigError);
}

TEST(DeviceKey, ASimulationOfAProfileComputesNothing) {
  EXPECT_EQ(Read("cuda", false).device, "cuda");
}

TEST(DeviceKey, AnotherWordIsNoDevice) {
  EXPECT_EQ(WhatOf<ConfigError>([] { DeviceOf({.device = "abacus"}); }),
            "no device is called 'abacus'");
}

class CudaModule : public ::testing::Test {
 protected:
  CudaModule() { fs::create_directories(folder_); }
  ~CudaModule() override { fs::remove_all(folder_); }

  const fs::path folder_ =
      fs::temp_directory_path() / ("dtrain-cuda-module-" + std::to_string(::getpid()));
  const fs::path file_ = folder_ / "libdtrain_cuda.so";
};

TEST_F(CudaModule, WhereItIsMissingTheFolderIsNamed) {
  const CudaLack lack = *WhyNoCuda(folder_);
  EXPECT_EQ(lack.why, "there is no libdtrain_cuda.so in " + folder_.string());
  EXPECT_THAT(lack.hint, HasSubstr("CUDA toolkit"));
}

TEST_F(CudaModule, WhatDoesNotLoadIsQuoted) {
  std::ofstream(file_) << "no library";
  EXPECT_THAT(WhyNoCuda(folder_)->why, AllOf(StartsWith("the module does not load: "),
                                             EndsWith("(" + file_.string() + ")")));
}

fs::path Built(const std::string& kind) { return DTRAIN_BINARY_DIR "/tests/cuda_module/" + kind; }

TEST(CudaModules, AnotherVersionIsCalledSo) {
  EXPECT_THAT(WhyNoCuda(Built("strange"))->why, StartsWith("the module is of another version ("));
}

// A module of another build may have other definitions of layers and errors, so it is not called.
TEST(CudaModules, OneOfAnotherBuildIsNotUsed) {
  const CudaLack lack = *WhyNoCuda(Built("earlier"));
  EXPECT_THAT(lack.why, StartsWith("the module is of another build, 0.0.9 abacus; the program is " +
                                   Version() + " " + SourceRevision()));
  EXPECT_FALSE(lack.of_the_machine);
  EXPECT_THROW(OpenCuda(Precision::kFp32, Built("earlier")), ConfigError);
}

// pip installs CUDA's libraries with PyTorch in folders where the loader does not look.
TEST(CudaModules, WhatTheLoaderDoesNotFindComesFromPackages) {
  {
    const TempFolder empty;
    const ScopedVariable nowhere("DTRAIN_CUDA_LIBRARIES", empty.path().c_str());
    const CudaLack lack = *WhyNoCuda(Built("needy"));
    EXPECT_THAT(lack.why, AllOf(StartsWith("the module does not load: libdtrain_needed.so: "),
                                HasSubstr("No such file")));
    EXPECT_THAT(lack.hint, AllOf(HasSubstr("the folder of libdtrain_needed.so"),
                                 HasSubstr("in DTRAIN_CUDA_LIBRARIES")));
  }
  const ScopedVariable packages("DTRAIN_CUDA_LIBRARIES", Built("packages").c_str());
  EXPECT_THAT(WhyNoCuda(Built("needy"))->why, StartsWith("the module is of another build, 0.0.9"));
}

TEST(CudaLibraries, AreLookedForInThePackagesOfThePythonsAtHand) {
  const TempFolder folder;
  const fs::path lib = folder.path() / "lib/python3.11/site-packages/nvidia/cudnn/lib";
  fs::create_directories(lib);
  fs::create_directories(folder.path() / "lib/python3.11/site-packages/nvidia/without");
  const ScopedVariable none("DTRAIN_CUDA_LIBRARIES", nullptr);
  const ScopedVariable environment("VIRTUAL_ENV", folder.path().c_str());
  EXPECT_EQ(CudaLibraryFolders().front(), lib);
  const ScopedVariable given("DTRAIN_CUDA_LIBRARIES", "/a:/b");
  EXPECT_THAT(CudaLibraryFolders(), ElementsAre("/a", "/b")) << "what is named counts alone";
}

// Tests the real module; cuda_tests have the other tests.
TEST(Gpu, TakesAStepAsTheCpu) {
  if (const auto lack = WhyNoCuda()) GTEST_SKIP() << "no GPU: " << lack->why;
  const RunConfig config = Read("cuda", true);
  const Graph graph = ReadModel(config);
  std::vector<float> weights(static_cast<size_t>(graph.weights().size()));
  graph.InitializeWeights(1, weights.data());
  Batch batch(config.data.source->fields(), 8);
  batch.Resize(8);
  batch.global_samples = 8;
  double losses[2];
  for (const char* const device : {"cpu", "cuda"}) {
    Net net(graph, DeviceOf({.device = device}));
    std::vector<float> gradients(weights.size());
    losses[device == std::string("cuda")] =
        net.Step(weights.data(), gradients.data(), nullptr, InputOf(batch, 1), nullptr).loss_sum;
  }
  EXPECT_NEAR(losses[1], losses[0], 1e-4 * losses[0]);
}

}  // namespace
}  // namespace dtrain
