#include "framework/checkpoint/checkpoint_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include "framework/core/error.h"
#include "tests/checkpoint/checkpoint_sample.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/message_of.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> NamesIn(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

class CheckpointFolderTest : public testing::Test {
 protected:
  fs::path Save(int64_t step, int keep = 2) {
    sample_.info.position.step = step;
    sample_.weights[0] = static_cast<float>(step);
    return CheckpointFolder(folder_, keep).Save(sample_.View());
  }

  void Corrupt(const fs::path& path) {
    const std::string bytes = Slurp(path);
    Spit(path, bytes.substr(0, bytes.size() / 2));
  }

  std::optional<Checkpoint> Resume(const std::string& how) {
    return ResumeFrom(folder_, how, sample_.layout);
  }

  std::string ErrorOf(const std::string& how) {
    return WhatOf<CheckpointError>([&] { Resume(how); });
  }

  CheckpointSample sample_;
  fs::path folder_ = FreshFolder() / "checkpoints";
};

TEST_F(CheckpointFolderTest, NamesSortByStep) {
  EXPECT_EQ(CheckpointName(1832), "step-00001832.h5");
  EXPECT_EQ(CheckpointName(123456789), "step-123456789.h5");
}

TEST_F(CheckpointFolderTest, KeepsTheNewestAndNamesTheLatest) {
  for (const int64_t step : {10, 20, 30, 40}) Save(step);
  EXPECT_THAT(NamesIn(folder_), ElementsAre("latest", "step-00000030.h5", "step-00000040.h5"));
  EXPECT_EQ(Slurp(folder_ / "latest"), "step-00000040.h5\n");
  EXPECT_THAT(CheckpointFolder(folder_, 2).List(),
              ElementsAre(folder_ / "step-00000040.h5", folder_ / "step-00000030.h5"));
}

TEST_F(CheckpointFolderTest, OrdersByAllDigitsOfTheStep) {
  for (const int64_t step : {19'999'999, 20'000'000, 100'000'000}) Save(step);
  EXPECT_THAT(CheckpointFolder(folder_, 2).List(),
              ElementsAre(folder_ / "step-100000000.h5", folder_ / "step-20000000.h5"));
}

TEST_F(CheckpointFolderTest, RemovesRankFilesLeftoversAndAbandonedSteps) {
  Save(10);
  Save(20);
  Save(90);
  Spit(folder_ / "step-00000020.rank-1.h5", "");
  Spit(folder_ / "step-00000010.rank-1.h5", "");
  Spit(folder_ / "step-00000030.h5.tmp", "");
  Spit(folder_ / "notes.txt", "");
  Save(30);  // the run was resumed from step 20
  EXPECT_THAT(NamesIn(folder_), ElementsAre("latest", "notes.txt", "step-00000020.h5",
                                            "step-00000020.rank-1.h5", "step-00000030.h5"));
}

// All other files in the folder are the user's own.
TEST_F(CheckpointFolderTest, RemovesOnlyWhatARunNamesSo) {
  Save(10);
  const std::vector<std::string> others = {"step-5.h5",
                                           "step-00000005.h5.bak",
                                           "step-00000005-mine.h5",
                                           "step-00000005.onnx",
                                           "step-00000005",
                                           "step-00000005.rank-x.h5",
                                           "step--0000005.h5",
                                           "step-00000005.rank-1.h5.old"};
  for (const std::string& name : others) Spit(folder_ / name, "mine");
  fs::create_directories(folder_ / "step-00000006.h5");
  for (const int64_t step : {20, 30}) Save(step);
  for (const std::string& name : others) EXPECT_EQ(Slurp(folder_ / name), "mine") << name;
  EXPECT_TRUE(fs::exists(folder_ / "step-00000006.h5"));
  EXPECT_FALSE(fs::exists(folder_ / "step-00000010.h5"));
}

TEST_F(CheckpointFolderTest, APathInAnotherFolderDoesNotGoOnHere) {
  const fs::path run = folder_.parent_path();
  EXPECT_TRUE(GoesOnIn(run, "auto"));
  EXPECT_FALSE(GoesOnIn(run, "none"));
  EXPECT_TRUE(GoesOnIn(run, Save(10)));
  EXPECT_TRUE(GoesOnIn(run, run));
  fs::create_directories(run / "other");
  fs::create_directory_symlink(run, run / "other/link");
  EXPECT_TRUE(GoesOnIn(run / "other/link", Save(20)));
  EXPECT_FALSE(GoesOnIn(run / "other", Save(30)));
  EXPECT_TRUE(GoesOnIn(run / "other", "/nowhere")) << "another error says that it is not there";
}

TEST_F(CheckpointFolderTest, ARunBelowTheOutputFolderIsAnotherRun) {
  const fs::path run = folder_.parent_path();
  EXPECT_FALSE(GoesOnIn(run.parent_path(), Save(10)));
  EXPECT_FALSE(GoesOnIn(run.parent_path(), run));
  EXPECT_TRUE(GoesOnIn(run, folder_));
  EXPECT_TRUE(GoesOnIn(run / "", run / ""));
  EXPECT_TRUE(GoesOnIn(run, folder_ / "../checkpoints/step-00000010.h5"));
  fs::create_directories(run / "checkpoints-of-others");
  EXPECT_FALSE(GoesOnIn(run, run / "checkpoints-of-others"));
  // The checkpoints may be on another disk.
  fs::create_directories(run / "linked");
  fs::create_directory_symlink(folder_, run / "linked/checkpoints");
  EXPECT_TRUE(GoesOnIn(run / "linked", Save(20)));
}

TEST_F(CheckpointFolderTest, ResumeNoneAndAutoWithoutCheckpoints) {
  EXPECT_FALSE(Resume("auto").has_value());
  Save(10);
  EXPECT_FALSE(Resume("none").has_value());
}

TEST_F(CheckpointFolderTest, ResumeAutoTakesTheNewest) {
  Save(10);
  Save(20);
  EXPECT_EQ(Resume("auto")->info.position.step, 20);
  fs::remove(folder_ / "latest");  // killed before it was moved
  EXPECT_EQ(Resume("auto")->info.position.step, 20);
}

TEST_F(CheckpointFolderTest, ResumeAutoPassesOverACorruptOneAndSaysSo) {
  Save(10);
  Corrupt(Save(20));
  testing::internal::CaptureStderr();
  const std::optional<Checkpoint> resumed = Resume("auto");
  const std::string said = testing::internal::GetCapturedStderr();
  ASSERT_TRUE(resumed.has_value());
  EXPECT_EQ(resumed->info.position.step, 10);
  EXPECT_EQ(resumed->weights[0], 10);
  EXPECT_THAT(said, AllOf(HasSubstr("step-00000020.h5"), HasSubstr("is damaged"),
                          HasSubstr("going on from step-00000010.h5")));
}

TEST_F(CheckpointFolderTest, ResumeAutoPassesOverAFlippedByte) {
  Save(10);
  const fs::path newest = Save(20);
  const std::string good = Slurp(newest);
  for (const size_t at : {size_t{3}, size_t{600}, good.size() / 2, good.size() - 1}) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    Spit(newest, bad);
    testing::internal::CaptureStderr();
    const std::optional<Checkpoint> resumed = Resume("auto");
    EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("step-00000020.h5 is damaged: "));
    ASSERT_TRUE(resumed.has_value());
    EXPECT_EQ(resumed->info.position.step, 10) << "byte " << at;
    EXPECT_EQ(resumed->weights[0], 10);
  }
}

TEST_F(CheckpointFolderTest, ResumeAutoFailsWhenAllAreCorrupt) {
  Corrupt(Save(10));
  Corrupt(Save(20));
  EXPECT_THAT(ErrorOf("auto"),
              AllOf(HasSubstr("no checkpoint of " + folder_.string() + " can be used"),
                    HasSubstr("step-00000010.h5"), HasSubstr("step-00000020.h5")));
}

TEST_F(CheckpointFolderTest, ResumeAutoDoesNotFallBackFromAnotherModel) {
  Save(10);
  Save(20);
  sample_.layout.parameters.entries[0].shape = {1, 3};
  EXPECT_THROW(Resume("auto"), CheckpointMismatch);
}

TEST_F(CheckpointFolderTest, ResumePathTakesAFileOrARunFolder) {
  const fs::path older = Save(10);
  Save(20);
  EXPECT_EQ(Resume(older.string())->info.position.step, 10);
  EXPECT_EQ(Resume(folder_.parent_path().string())->info.position.step, 20);
  Corrupt(folder_ / "step-00000020.h5");
  EXPECT_THAT(ErrorOf(folder_.string()), HasSubstr("is damaged"));
  const std::string missing = folder_ / "missing";
  EXPECT_EQ(ErrorOf(missing), "there is no checkpoint at " + missing);
}

TEST_F(CheckpointFolderTest, FindsTheLatest) {
  const fs::path older = Save(10);
  const fs::path newer = Save(20);
  EXPECT_EQ(FindCheckpoint(folder_.parent_path()), newer);
  EXPECT_EQ(FindCheckpoint(older), older);
  Spit(folder_ / "latest", "step-00000010.h5\n");
  EXPECT_EQ(FindCheckpoint(folder_), older);
  Spit(folder_ / "latest", "step-00000077.h5\n");
  EXPECT_EQ(FindCheckpoint(folder_), newer);
}

TEST_F(CheckpointFolderTest, AnUnwritableFolderIsNamed) {
  Spit(folder_.parent_path() / "checkpoints", "a file is in the way");
  EXPECT_THROW(Save(10), CheckpointError);
}

// A checkpoint is published at the end by renaming its file.  A non-empty folder with that name
// makes only the rename fail.
TEST_F(CheckpointFolderTest, LatestNamesTheOlderFileWhenACheckpointFailsAtItsEnd) {
  Save(10);
  fs::create_directories(folder_ / "step-00000020.h5" / "full");
  EXPECT_THROW(Save(20), CheckpointError);
  EXPECT_EQ(Slurp(folder_ / "latest"), "step-00000010.h5\n");
  EXPECT_EQ(FindCheckpoint(folder_), folder_ / "step-00000010.h5");
  EXPECT_EQ(Resume("auto")->info.position.step, 10);
  EXPECT_FALSE(fs::exists(folder_ / "step-00000020.h5.tmp"));
}

// The write fails before all bytes are written.
TEST_F(CheckpointFolderTest, LatestNamesTheOlderFileWhenACheckpointFailsHalfWay) {
  Save(10);
  const std::string said = WhatOf<CheckpointError>([&] {
    const FileSizeLimit limit(1000);
    Save(20);
  });
  EXPECT_THAT(said, HasSubstr("File too large"));
  EXPECT_EQ(Slurp(folder_ / "latest"), "step-00000010.h5\n");
  EXPECT_THAT(NamesIn(folder_), ElementsAre("latest", "step-00000010.h5"));
  EXPECT_EQ(Resume("auto")->info.position.step, 10);
}

// A real full disk, if this process may mount one.
class SmallDisk {
 public:
  explicit SmallDisk(const fs::path& where) : where_(where) {
    fs::create_directories(where);
    mounted_ = ::mount("tmpfs", where.c_str(), "tmpfs", 0, "size=128k") == 0;
  }
  ~SmallDisk() {
    if (mounted_) ::umount2(where_.c_str(), MNT_DETACH);
  }
  bool mounted() const { return mounted_; }

 private:
  fs::path where_;
  bool mounted_;
};

TEST_F(CheckpointFolderTest, AFullDiskKeepsTheCheckpointBefore) {
  const SmallDisk disk(folder_);
  if (!disk.mounted()) GTEST_SKIP() << "needs the right to mount a tmpfs";
  Save(10);
  Spit(folder_ / "filler", std::string(64 << 10, 'x'));
  sample_.layout.parameters = LayoutOf({{"big", {100, 200}}});
  sample_.weights.assign(20000, 1.0F);
  sample_.momentum = sample_.weights;
  try {
    Save(20);
    FAIL() << "no error";
  } catch (const CheckpointError& error) {
    EXPECT_EQ(error.code(), ExitCode::kCheckpoint);
    EXPECT_THAT(error.what(), HasSubstr("No space left on device"));
    EXPECT_THAT(error.hint(), HasSubstr("--resume auto"));
  }
  EXPECT_THAT(NamesIn(folder_), ElementsAre("filler", "latest", "step-00000010.h5"));
  EXPECT_EQ(ResumeFrom(folder_, "auto", CheckpointSample().layout)->info.position.step, 10);
}

}  // namespace
}  // namespace dtrain
