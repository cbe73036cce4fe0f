#include "framework/checkpoint/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <limits>

#include "framework/checkpoint/weights_file.h"
#include "framework/data/text/sentence_pairs.h"
#include "tests/checkpoint/checkpoint_sample.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/message_of.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

std::string ReadError(const fs::path& path, const ModelLayout& layout) {
  return WhatOf<CheckpointError>([&] { ReadCheckpoint(path, layout); });
}

TEST(Checkpoint, KeepsEveryBit) {
  CheckpointSample sample;
  sample.weights[0] = -0.0F;
  sample.weights[1] = std::numeric_limits<float>::denorm_min();
  sample.weights[2] = std::bit_cast<float>(0x7fc12345);
  sample.info.position.loss_scale = {.factor = 512, .steps = 7, .skipped = 3};
  const fs::path path = FreshFolder() / "c.h5";
  WriteCheckpoint(path, sample.View());
  const Checkpoint read = ReadCheckpoint(path, sample.layout);
  EXPECT_EQ(read.info, sample.info);
  EXPECT_TRUE(SameBits(read.weights, sample.weights));
  EXPECT_TRUE(SameBits(read.state, sample.state));
  ASSERT_EQ(read.solver.size(), 1U);
  EXPECT_TRUE(SameBits(read.solver.at("momentum"), sample.momentum));
}

TEST(Checkpoint, KeepsEveryVectorOfTheSolver) {
  const CheckpointSample sample;
  const fs::path path = FreshFolder() / "c.h5";
  CheckpointView view = sample.View();
  view.solver = {{"first", sample.momentum.data()}, {"second", sample.weights.data()}};
  WriteCheckpoint(path, view);
  const Checkpoint read = ReadCheckpoint(path, sample.layout);
  ASSERT_EQ(read.solver.size(), 2U);
  EXPECT_TRUE(SameBits(read.solver.at("first"), sample.momentum));
  EXPECT_TRUE(SameBits(read.solver.at("second"), sample.weights));
}

TEST(Checkpoint, LargeParametersAreCutIntoChunks) {
  CheckpointSample sample;
  sample.layout.parameters = LayoutOf({{"ip.weight", {3, 1 << 20}}});
  sample.weights.assign(3 << 20, 0);
  for (size_t i = 0; i < sample.weights.size(); ++i) sample.weights[i] = static_cast<float>(i);
  const fs::path path = FreshFolder() / "c.h5";
  CheckpointView view = sample.View();
  view.solver.clear();
  WriteCheckpoint(path, view);
  EXPECT_TRUE(SameBits(ReadCheckpoint(path, sample.layout).weights, sample.weights));
}

TEST(Checkpoint, WeightsAloneLeaveTheSolverOut) {
  const CheckpointSample sample;
  const fs::path path = FreshFolder() / "c.h5";
  WriteCheckpoint(path, sample.View());
  const Checkpoint read = ReadWeights(path, sample.layout);
  EXPECT_TRUE(SameBits(read.weights, sample.weights));
  EXPECT_TRUE(SameBits(read.state, sample.state));
  EXPECT_TRUE(read.solver.empty());
}

TEST(Checkpoint, ModelsWithoutStateNeedNone) {
  CheckpointSample sample;
  sample.layout.state = {};
  const fs::path path = FreshFolder() / "c.h5";
  CheckpointView view = sample.View();
  view.state = nullptr;
  WriteCheckpoint(path, view);
  EXPECT_TRUE(ReadCheckpoint(path, sample.layout).state.empty());
}

TEST(Checkpoint, VocabulariesStayWithTheWeights) {
  TextInfo info;
  info.source = Vocabulary::Of({{"a", "b"}}, 1);
  CheckpointSample sample;
  sample.info.text = info.ToText();
  const fs::path path = FreshFolder() / "c.h5";
  WriteCheckpoint(path, sample.View());
  EXPECT_EQ(ReadStoredInfo(path), sample.info);
  EXPECT_NO_THROW(ReadCheckpoint(path, sample.layout));
  sample.layout.text = info.ToText();
  EXPECT_NO_THROW(ReadCheckpoint(path, sample.layout));
  const std::string there = info.Hash().substr(0, 12);
  info.source = Vocabulary::Of({{"a", "c", "d"}}, 1);
  sample.layout.text = info.ToText();
  const std::string here = info.Hash().substr(0, 12);
  EXPECT_THAT(ReadError(path, sample.layout),
              testing::StartsWith("checkpoint " + path.string() +
                                  " has other vocabularies than the data set: 6 and 4 words, " +
                                  there + " there, 7 and 4 words, " + here + " here"));
}

TEST(Checkpoint, OfAnotherModelNamesTheFirstDifference) {
  const CheckpointSample sample;
  const fs::path path = FreshFolder() / "c.h5";
  WriteCheckpoint(path, sample.View());
  const std::string start = "checkpoint " + path.string() + " is of another model ('lenet5'): ";

  ModelLayout wider = sample.layout;
  wider.parameters = LayoutOf(
      {{"ip1.bias", {4}}, {"ip1.weight", {3, 8}}, {"scale", {}}, {"conv1.weight", {6, 1, 5, 5}}});
  EXPECT_EQ(ReadError(path, wider),
            start + "'conv1.weight' is [2, 1, 5, 5] there and [6, 1, 5, 5] here");

  ModelLayout longer = sample.layout;
  longer.parameters.entries.push_back({"conv0.weight", {7}, {78, 85}});
  EXPECT_EQ(ReadError(path, longer), start + "it lacks 'conv0.weight' [7]");

  ModelLayout shorter = sample.layout;
  shorter.state = {};
  EXPECT_EQ(ReadError(path, shorter), start + "it has 'bn1.mean' [2], which this model lacks");
  EXPECT_THROW(ReadCheckpoint(path, shorter), CheckpointMismatch);
}

TEST(Checkpoint, AFlippedByteIsFound) {
  const CheckpointSample sample;
  const fs::path folder = FreshFolder();
  WriteCheckpoint(folder / "c.h5", sample.View());
  const std::string good = Slurp(folder / "c.h5");
  for (size_t at = 0; at < good.size(); at += 11) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    Spit(folder / "bad.h5", bad);
    EXPECT_THAT(ReadError(folder / "bad.h5", sample.layout),
                HasSubstr((folder / "bad.h5").string() + " is damaged: "))
        << "byte " << at;
  }
}

TEST(Checkpoint, TruncatedForeignAndMissingFilesAreNamed) {
  const CheckpointSample sample;
  const fs::path folder = FreshFolder();
  WriteCheckpoint(folder / "c.h5", sample.View());
  const std::string good = Slurp(folder / "c.h5");
  Spit(folder / "short.h5", good.substr(0, good.size() / 2));
  EXPECT_THAT(ReadError(folder / "short.h5", sample.layout), HasSubstr("is damaged: it has "));
  Spit(folder / "foreign.h5", "not HDF5");
  EXPECT_THAT(ReadError(folder / "foreign.h5", sample.layout),
              HasSubstr("it is neither a checkpoint nor a safetensors file"));
  EXPECT_THAT(ReadError(folder / "none.h5", sample.layout), HasSubstr("No such file"));
}

TEST(Checkpoint, AFailedWriteKeepsTheOldFile) {
  CheckpointSample sample;
  const fs::path folder = FreshFolder();
  WriteCheckpoint(folder / "c.h5", sample.View());
  const std::string before = Slurp(folder / "c.h5");
  sample.weights[0] = 42;
  {
    const FileSizeLimit limit(4096);
    try {
      WriteCheckpoint(folder / "c.h5", sample.View());
      FAIL() << "no error";
    } catch (const CheckpointError& error) {
      EXPECT_EQ(error.code(), ExitCode::kCheckpoint);
      EXPECT_THAT(error.what(), HasSubstr("cannot build"));
    }
  }
  EXPECT_EQ(Slurp(folder / "c.h5"), before);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 1) << "a temporary file is left";
}

}  // namespace
}  // namespace dtrain
