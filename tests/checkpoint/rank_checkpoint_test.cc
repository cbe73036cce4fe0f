// Tests the contents of rank files, and which of them are refused.
#include "framework/checkpoint/rank_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/checkpoint/checkpoint_folder.h"
#include "framework/core/error.h"
#include "framework/hdf5/hdf5_file.h"
#include "tests/checkpoint/checkpoint_sample.h"
#include "tests/checkpoint/foreign_hdf5.h"
#include "tests/support/message_of.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

class RankCheckpointTest : public testing::Test {
 protected:
  static RankCheckpoint FileOf(int64_t rank) {
    RankCheckpoint file;
    file.rank = rank;
    file.step = 1832;
    file.samples_applied = 117248;
    file.role = "worker 0, server 0";
    file.holds = "server 0 has 3 gradients";
    file.actors = "strategy:\n  name: gssp\n";
    file.placement = "workers: 2\n";
    file.exchange.fields = {
        {"worker 0", "clock", StateField::Kind::kInt, {7}, {}},
        {"worker 0", "arriving entries", StateField::Kind::kInts, {0, -1, 1LL << 60}, {}},
        {"worker 0", "residual", StateField::Kind::kFloats, {}, {-0.0F, 1.5F, 3e-40F}},
        {"server 0", "acc", StateField::Kind::kFloats, {}, {static_cast<float>(rank)}},
        {"server 0", "empty", StateField::Kind::kFloats, {}, {}}};
    file.host.fields = {{"", "steps", StateField::Kind::kInt, {5}, {}}};
    return file;
  }
  // Saves a checkpoint of two ranks at `step`.
  fs::path Save(int64_t step) {
    const fs::path main = folder_ / CheckpointName(step);
    sample_.info.position.step = step;
    sample_.info.rank_files.clear();
    for (const int64_t rank : {0, 1}) {
      sample_.info.rank_files.push_back(WriteRankCheckpoint(main, FileOf(rank)));
    }
    sample_.weights[0] = static_cast<float>(step);
    return CheckpointFolder(folder_, 3).Save(sample_.View());
  }
  static void Damage(const fs::path& path) {
    std::string bytes = Slurp(path);
    bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
    Spit(path, bytes);
  }
  std::string ErrorOf(const fs::path& main, int64_t rank) const {
    return WhatOf<CheckpointError>(
        [&] { ReadRankCheckpoint(main, rank, sample_.info.rank_files.at(rank)); });
  }

  CheckpointSample sample_;
  fs::path folder_ = FreshFolder() / "checkpoints";
};

TEST_F(RankCheckpointTest, HoldsEveryFieldToTheBit) {
  const fs::path main = Save(10);
  const fs::path path = RankFileOf(main, 1);
  EXPECT_EQ(path.filename(), "step-00000010.rank-1.h5");
  MemoryFile bytes;
  bytes.CopyFrom(path);
  EXPECT_EQ(Hdf5Reader(bytes, path).IntAttribute("/rank", "format"), 1);
  const RankCheckpoint read = ReadRankCheckpoint(main, 1, sample_.info.rank_files[1]);
  const RankCheckpoint written = FileOf(1);
  EXPECT_EQ(read.exchange, written.exchange);
  EXPECT_TRUE(std::signbit(read.exchange.fields[2].floats[0]));
  EXPECT_EQ(read.host, written.host);
  EXPECT_EQ(read.role, written.role);
  EXPECT_EQ(read.holds, written.holds);
  EXPECT_EQ(read.actors, written.actors);
  EXPECT_EQ(read.placement, written.placement);
  EXPECT_EQ(read.samples_applied, 117248);
  EXPECT_EQ(ReadCheckpoint(main, sample_.layout).info, sample_.info);
}

TEST_F(RankCheckpointTest, AnotherRanksFileIsRefused) {
  const fs::path main = Save(10);
  fs::copy_file(RankFileOf(main, 0), RankFileOf(main, 1), fs::copy_options::overwrite_existing);
  EXPECT_THAT(ErrorOf(main, 1),
              AllOf(HasSubstr("step-00000010.rank-1.h5 is damaged"),
                    HasSubstr("it is not the one that step-00000010.h5 was written with")));
  // The file is refused also when the main file names its hash.
  sample_.info.rank_files[1] = sample_.info.rank_files[0];
  EXPECT_THAT(ErrorOf(main, 1), HasSubstr("it is the file of rank 0"));
}

// A resumed run writes the same step again and is killed before the main file is written.
TEST_F(RankCheckpointTest, AFileOfAnotherRunOfTheSameStepIsRefused) {
  const fs::path main = Save(10);
  RankCheckpoint other = FileOf(1);
  other.host.fields[0].ints = {6};
  WriteRankCheckpoint(main, other);
  EXPECT_THAT(ErrorOf(main, 1), HasSubstr("not the one that step-00000010.h5 was written with"));
}

TEST_F(RankCheckpointTest, AutoTakesTheStepBeforeAndNamesTheFile) {
  for (const bool lost : {false, true}) {
    const fs::path good = Save(10), bad = Save(20);
    const fs::path file = RankFileOf(bad, 1);
    lost ? static_cast<void>(fs::remove(file)) : Damage(file);
    testing::internal::CaptureStderr();
    const std::optional<Checkpoint> resumed = ResumeFrom(folder_, "auto", sample_.layout);
    EXPECT_THAT(testing::internal::GetCapturedStderr(),
                AllOf(HasSubstr("step-00000020.rank-1.h5"), HasSubstr(lost ? "missing" : "damaged"),
                      HasSubstr("going on from step-00000010.h5")));
    ASSERT_TRUE(resumed.has_value());
    EXPECT_EQ(resumed->weights[0], 10);
    EXPECT_EQ(resumed->path, good);
    EXPECT_THAT(WhatOf<CheckpointError>([&] { ResumeFrom(folder_, bad, sample_.layout); }),
                HasSubstr("step-00000020.rank-1.h5"));
  }
}

TEST_F(RankCheckpointTest, KeepRemovesThemWithTheirStep) {
  for (const int64_t step : {10, 20, 30, 40}) Save(step);
  EXPECT_FALSE(fs::exists(folder_ / "step-00000010.rank-0.h5"));
  EXPECT_FALSE(fs::exists(folder_ / "step-00000010.rank-1.h5"));
  for (const int64_t step : {20, 30, 40}) {
    EXPECT_TRUE(fs::exists(RankFileOf(folder_ / CheckpointName(step), 1))) << step;
  }
}

TEST_F(RankCheckpointTest, AStepThatIsWrittenAgainWithFewerRanksLeavesNoStranger) {
  const fs::path main = Save(10);
  sample_.info.rank_files.resize(1);
  CheckpointFolder(folder_, 3).Save(sample_.View());
  EXPECT_TRUE(fs::exists(RankFileOf(main, 0)));
  EXPECT_FALSE(fs::exists(RankFileOf(main, 1)));
  EXPECT_TRUE(ResumeFrom(folder_, "auto", sample_.layout).has_value());
}

// An attacker may have sealed the file and written a main file with its hash.
TEST_F(RankCheckpointTest, AVectorInAnotherFileIsRefusedByName) {
  for (const Elsewhere where : kEverywhere) {
    const fs::path main = Save(10), path = RankFileOf(main, 0);
    MoveTo(path, "fields", "2", {3}, where, "/etc/passwd");
    SealAgain(path);
    sample_.info.rank_files[0] = HashInSeal(Slurp(path));
    EXPECT_THAT(ErrorOf(main, 0),
                AllOf(HasSubstr("cannot read " + path.string()), HasSubstr("/fields/")));
  }
}

}  // namespace
}  // namespace dtrain
