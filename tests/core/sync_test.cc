// Tests what WriteFileDurably syncs to the disk, and when.  The fsync defined below replaces the C
// library's: it records the file and then makes the system call.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "tests/support/message_of.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

struct Synced {
  fs::path what;
  std::string content;    // a file's content; "" for a folder
  std::string at_target;  // content of the target at this moment
};

struct Watch {
  fs::path target;
  int fails = -1;  // number of the call that fails, from 0; -1: none
  std::vector<Synced> calls;
};
Watch* watch = nullptr;

std::string ContentOf(const fs::path& path) {
  return fs::is_regular_file(path) ? ReadFile(path) : "";
}

}  // namespace
}  // namespace dtrain

extern "C" int fsync(int fd) {
  using namespace dtrain;
  if (watch != nullptr) {
    const fs::path what = fs::read_symlink("/proc/self/fd/" + std::to_string(fd));
    watch->calls.push_back({what, ContentOf(what), ContentOf(watch->target)});
    if (static_cast<int>(watch->calls.size()) - 1 == watch->fails) {
      errno = EIO;
      return -1;
    }
  }
  return static_cast<int>(::syscall(SYS_fsync, fd));
}

namespace dtrain {
namespace {

class SyncTest : public ::testing::Test {
 protected:
  SyncTest() {
    std::string pattern = (fs::temp_directory_path() / "dtrain-sync-XXXXXX").string();
    folder_ = fs::canonical(mkdtemp(pattern.data()));
    watch_.target = folder_ / "a";
    WriteFileDurably(watch_.target, "old");
    watch = &watch_;
  }
  ~SyncTest() override {
    watch = nullptr;
    fs::remove_all(folder_);
  }

  fs::path folder_;
  Watch watch_;
};

// The whole file is synced first, while the target is still the old one, then the folder with the
// new name.
TEST_F(SyncTest, TheFileIsSyncedBeforeItsNameAndTheFolderBehindIt) {
  WriteFileDurably(watch_.target, "new");
  ASSERT_EQ(watch_.calls.size(), 2u);
  EXPECT_EQ(watch_.calls[0].what, folder_ / "a.tmp");
  EXPECT_EQ(watch_.calls[0].content, "new");
  EXPECT_EQ(watch_.calls[0].at_target, "old");
  EXPECT_EQ(watch_.calls[1].what, folder_);
  EXPECT_EQ(watch_.calls[1].at_target, "new");
}

TEST_F(SyncTest, AFileThatCannotBeSyncedIsNotPublished) {
  watch_.fails = 0;
  EXPECT_THAT(MessageOf<CheckpointError>([&] { WriteFileDurably(watch_.target, "new"); }),
              HasSubstr("cannot sync " + (folder_ / "a.tmp").string() + ": Input/output error"));
  EXPECT_EQ(ReadFile(watch_.target), "old");
  EXPECT_FALSE(fs::exists(folder_ / "a.tmp"));
}

TEST_F(SyncTest, AFolderThatCannotBeSyncedIsAnError) {
  watch_.fails = 1;
  EXPECT_THAT(MessageOf<CheckpointError>([&] { WriteFileDurably(watch_.target, "new"); }),
              HasSubstr("cannot sync folder " + folder_.string() + ": Input/output error"));
}

}  // namespace
}  // namespace dtrain
