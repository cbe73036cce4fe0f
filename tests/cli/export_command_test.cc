// Tests `dtrain export` of a trained run, in this process: the files of each format, output, exit codes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "framework/checkpoint/checkpoint_folder.h"
#include "framework/checkpoint/weights_file.h"
#include "framework/onnx/export/onnx_export.h"
#include "framework/onnx/file/onnx_file.h"
#include "tests/checkpoint/checkpoint_sample.h"
#include "tests/cli/command_outcome.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ExportCommand : public ::testing::Test {
 protected:
  // Trains LeNet on drawn digits for a few steps.
  void SetUp() override {
    const CommandOutcome trained =
        RunCommand({"train", "--config", "quickstart", "--workers", "1", "--set",
                    "data.train_samples=64", "--set", "data.test_samples=16", "--set", "batch=16",
                    "--set", "epochs=1", "--output", Path("run")});
    ASSERT_EQ(trained.code, 0) << trained.err;
  }

  std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  CommandOutcome Export(const std::string& from, const std::string& format,
                        const std::string& to) const {
    return RunCommand(
        {"export", "--weights", Path(from), "--format", format, "--output", Path(to), "--json"});
  }

  fs::path folder_ = FreshFolder();
};

TEST_F(ExportCommand, OnnxHasTheRunsLastWeights) {
  if (!HasOnnx()) GTEST_SKIP() << "built without the ONNX library";
  const CommandOutcome outcome = Export("run", "onnx", "m.onnx");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json said = IndentedJson(outcome.out);
  EXPECT_EQ(said["format"], "onnx");
  EXPECT_THAT(said["outputs"], ElementsAre(Path("m.onnx")));
  const json summary = json::parse(Slurp(folder_ / "run/summary.json"));
  const StoredWeights stored = ReadStoredWeights(FindWeights(Path("run")));
  EXPECT_EQ(said["parameters"], stored.layout.parameters.size());
  EXPECT_EQ(stored.info.position.step, summary["step"]);
  EXPECT_EQ(Slurp(folder_ / "m.onnx"), OnnxBytes(OnnxOf(stored, "run").at(0)));
}

TEST_F(ExportCommand, SafetensorsComeBackAsTheSameWeights) {
  ASSERT_EQ(Export("run", "safetensors", "m.safetensors").code, 0);
  const StoredWeights there = ReadStoredWeights(FindWeights(Path("run")));
  const StoredWeights back = ReadStoredWeights(Path("m.safetensors"));
  ASSERT_EQ(back.layout.parameters.size(), there.layout.parameters.size());
  EXPECT_EQ(Arranged(back.weights, back.layout.parameters, there.layout.parameters, "m"),
            there.weights);
}

// Otherwise a safetensors file could overwrite an ONNX file.
TEST_F(ExportCommand, TheEndingSaysTheFormatWhereNobodyElseDoes) {
  for (const auto& [name, format] :
       std::vector<std::pair<std::string, std::string>>{{"m.onnx", "onnx"},
                                                        {"m.h5", "hdf5"},
                                                        {"m.safetensors", "safetensors"},
                                                        {"m", "safetensors"}}) {
    if (format == "onnx" && !HasOnnx()) continue;
    const CommandOutcome outcome =
        RunCommand({"export", "--weights", Path("run"), "--output", Path(name), "--json"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(json::parse(outcome.out)["format"], format) << name;
  }
}

// Otherwise m.pt would hold safetensors, which PyTorch's load() does not read.
TEST_F(ExportCommand, AnEndingOfNoFormatIsRefused) {
  for (const char* const name : {"m.pt", "m.bin", "m.safetensor"}) {
    const CommandOutcome outcome =
        RunCommand({"export", "--weights", Path("run"), "--output", Path(name)});
    EXPECT_EQ(outcome.code, 2) << name;
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("no files that end in ."),
                                   HasSubstr(".safetensors, .onnx, .h5, .hdf5")));
    EXPECT_FALSE(fs::exists(folder_ / name)) << name;
  }
  EXPECT_EQ(Export("run", "safetensors", "m.bin").code, 0);
}

TEST_F(ExportCommand, WhatIsNoCheckpointLeavesNoFile) {
  Spit(folder_ / "damaged.h5", "no HDF5");
  for (const char* const format : {"safetensors", "onnx"}) {
    if (std::string(format) == "onnx" && !HasOnnx()) continue;
    const CommandOutcome outcome = Export("damaged.h5", format, "m");
    EXPECT_EQ(outcome.code, 6) << format;
    EXPECT_THAT(outcome.err, HasSubstr("damaged.h5"));
    EXPECT_FALSE(fs::exists(folder_ / "m")) << format;
  }
}

TEST_F(ExportCommand, AnotherFormatIsAUsageError) {
  const CommandOutcome outcome = Export("run", "tflite", "m");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("safetensors"));
}

}  // namespace
}  // namespace dtrain
