#include "framework/core/file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <thread>

#include <fmt/format.h>

#include "framework/core/error.h"
#include "tests/support/as_nobody.h"
#include "tests/support/message_of.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class FileTest : public ::testing::Test {
 protected:
  FileTest() {
    std::string pattern = (fs::temp_directory_path() / "dtrain-file-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~FileTest() override { fs::remove_all(folder_); }

  int Entries() const {
    return static_cast<int>(std::distance(fs::directory_iterator(folder_), {}));
  }

  fs::path folder_;
};

TEST_F(FileTest, WhatIsWrittenIsRead) {
  const std::string content("two\nlines \0 and a zero", 22);
  WriteFileDurably(folder_ / "a", content);
  EXPECT_EQ(ReadFile(folder_ / "a"), content);
  WriteFileDurably(folder_ / "a", "");
  EXPECT_EQ(ReadFile(folder_ / "a"), "");
  EXPECT_EQ(Entries(), 1);
}

TEST_F(FileTest, AMissingFileIsADataError) {
  EXPECT_THAT(MessageOf<DataError>([&] { ReadFile(folder_ / "none"); }),
              HasSubstr("cannot read " + (folder_ / "none").string() + ": No such file"));
}

TEST_F(FileTest, PublishReplacesInOneStep) {
  WriteFileDurably(folder_ / "model.h5", "old");
  WriteFileDurably(folder_ / "half", "new");
  PublishDurably(folder_ / "half", folder_ / "model.h5");
  EXPECT_EQ(ReadFile(folder_ / "model.h5"), "new");
  EXPECT_EQ(Entries(), 1);
}

TEST_F(FileTest, PublishNamesAMissingTemporary) {
  EXPECT_THAT(MessageOf<CheckpointError>([&] { PublishDurably(folder_ / "none", folder_ / "b"); }),
              HasSubstr("cannot open " + (folder_ / "none").string()));
}

TEST_F(FileTest, AFileThatCannotBeWrittenNamesPathAndReason) {
  EXPECT_THAT(MessageOf<CheckpointError>([&] { WriteFileDurably(folder_ / "no" / "a", "x"); }),
              HasSubstr("cannot write " + (folder_ / "no" / "a.tmp").string() +
                        ": No such file or directory"));
}

// A file size limit makes the write fail half-way, as a full disk would.
TEST_F(FileTest, AFailedWriteLeavesTheOldFileAndNothingElse) {
  WriteFileDurably(folder_ / "a", "old");
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{1000, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  const std::string message =
      MessageOf<CheckpointError>([&] { WriteFileDurably(folder_ / "a", std::string(5000, 'x')); });
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_THAT(message,
              HasSubstr("cannot write " + (folder_ / "a.tmp").string() + ": File too large"));
  EXPECT_EQ(ReadFile(folder_ / "a"), "old");
  EXPECT_EQ(Entries(), 1);
}

TEST_F(FileTest, AFullDiskHasAHint) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  EXPECT_EQ(MessageOf<CheckpointError>([&] { WriteOutput("/dev/full", "x"); }),
            "cannot write /dev/full: No space left on device | the disk is full: free some space "
            "and start "
            "again with --resume auto");
}

TEST_F(FileTest, MakeFolderMakesAllOfThem) {
  MakeFolder(folder_ / "a" / "b");
  MakeFolder(folder_ / "a" / "b");
  EXPECT_TRUE(fs::is_directory(folder_ / "a" / "b"));
}

TEST_F(FileTest, MakeFolderNamesWhatIsInTheWay) {
  WriteFileDurably(folder_ / "a", "");
  EXPECT_THAT(MessageOf<CheckpointError>([&] { MakeFolder(folder_ / "a" / "b"); }),
              HasSubstr("cannot create folder " + (folder_ / "a" / "b").string()));
}

TEST_F(FileTest, MakeFolderRefusesAFolderThatCannotBeWritten) {
  fs::permissions(folder_, fs::perms::owner_read | fs::perms::owner_exec);
  std::string message;
  {
    const AsNobody nobody;
    if (!nobody.done()) GTEST_SKIP() << "root here cannot be somebody else";
    message = MessageOf<CheckpointError>([&] { MakeFolder(folder_); });
  }
  fs::permissions(folder_, fs::perms::owner_all);
  EXPECT_EQ(message, "cannot write into folder " + folder_.string() +
                         ": Permission denied | choose another folder with --output");
}

struct stat Status(uid_t owner, mode_t mode) {
  struct stat status = {};
  status.st_uid = owner;
  status.st_mode = mode;
  return status;
}

TEST(WhyNotTrusted, WhatOthersMayHaveWrittenIsNot) {
  const uid_t user = 1000;
  for (const mode_t mode : {0600, 0644, 0700, 0755, 0444}) {
    EXPECT_EQ(WhyNotTrusted(Status(user, mode), user), "") << mode;
    EXPECT_EQ(WhyNotTrusted(Status(0, mode), user), "") << mode;
    EXPECT_EQ(WhyNotTrusted(Status(1001, mode), user), "belongs to another user (number 1001)");
  }
  for (const mode_t mode : {0664, 0620, 0602, 0777, 01777}) {
    EXPECT_THAT(WhyNotTrusted(Status(user, mode), user), HasSubstr("may be written by others"))
        << mode;
    EXPECT_THAT(WhyNotTrusted(Status(0, mode), user), HasSubstr("may be written by others"))
        << mode;
  }
  EXPECT_EQ(WhyNotTrusted(Status(1001, 0644), 0), "belongs to another user (number 1001)")
      << "root";
}

TEST_F(FileTest, APrivateFolderIsTheUsersAlone) {
  const mode_t before = ::umask(0);
  MakePrivateFolder(folder_ / "a" / "b");
  MakePrivateFolder(folder_ / "c", 0755);
  ::umask(before);
  EXPECT_EQ(fs::status(folder_ / "a" / "b").permissions(), fs::perms{0700});
  EXPECT_EQ(fs::status(folder_ / "a").permissions(), fs::perms{0755});
  EXPECT_EQ(fs::status(folder_ / "c").permissions(), fs::perms{0755});
  EXPECT_EQ(WhyNotTrusted(folder_ / "a"), "");
  WriteFileDurably(folder_ / "file", "");
  EXPECT_THAT(MessageOf<CheckpointError>([&] { MakePrivateFolder(folder_ / "file" / "b"); }),
              HasSubstr("cannot create folder " + (folder_ / "file" / "b").string()));
}

// A process with write access to the folder cannot get another file published in its place.
TEST_F(FileTest, ANewFileIsWrittenThroughOneDescriptor) {
  {
    NewFile file(folder_ / "a", folder_ / "part");
    file.Write("ours ");
    fs::rename(folder_ / "part", folder_ / "moved");
    WriteFileDurably(folder_ / "part", "theirs");
    file.Write("alone");
  }
  EXPECT_EQ(ReadFile(folder_ / "moved"), "ours alone");
  {
    NewFile file(folder_ / "a");
    file.Write("whole");
    EXPECT_FALSE(fs::exists(folder_ / "a"));
    file.Publish();
  }
  EXPECT_EQ(ReadFile(folder_ / "a"), "whole");
  EXPECT_FALSE(fs::exists(folder_ / "a.tmp"));
}

TEST_F(FileTest, WhatIsNoRegularFileIsNamed) {
  EXPECT_EQ(WhyNoFile(folder_ / "none", "there is none"), "there is none");
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  fs::create_symlink("pipe", folder_ / "link");
  EXPECT_EQ(WhyNoFile(folder_ / "link", ""),
            (folder_ / "link").string() + " is a pipe, not a regular file");
  EXPECT_EQ(WhyNoFile("/dev/null", ""), "/dev/null is a device, not a regular file");
}

// Tests a pipe without a writer, an endless device and a folder.
TEST_F(FileTest, WhatIsNoFileIsRefusedAtOnce) {
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(MessageOf<DataError>([&] { ReadFile(pipe); }), HasSubstr("pipe: it is a pipe"));
  EXPECT_THAT(MessageOf<DataError>([&] { ReadFile(folder_); }), HasSubstr("it is a folder"));
  for (const auto& read : {ReadFile, ReadText}) {
    EXPECT_THAT(MessageOf<DataError>([&] { read("/dev/zero"); }),
                HasSubstr("/dev/zero: it is a device"));
  }
  fs::create_symlink("loop", folder_ / "loop");
  EXPECT_THAT(MessageOf<DataError>([&] { ReadText(folder_ / "loop"); }),
              HasSubstr("Too many levels of symbolic links"));
}

TEST_F(FileTest, ATextMayComeThroughAPipe) {
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::thread writer([&] {
    std::ofstream out(pipe);
    out << "model: ";
    out.flush();
    ::usleep(50'000);
    out << "lenet5\n";
  });
  EXPECT_EQ(ReadText(pipe), "model: lenet5\n");
  writer.join();
}

TEST_F(FileTest, ATextHasAMegabyteAtMost) {
  WriteFileDurably(folder_ / "a", std::string(1 << 20, 'x'));
  EXPECT_EQ(ReadText(folder_ / "a").size(), size_t{1} << 20);
  WriteFileDurably(folder_ / "a", std::string((1 << 20) + 1, 'x'));
  EXPECT_THAT(MessageOf<DataError>([&] { ReadText(folder_ / "a"); }),
              HasSubstr("longer than 1 MB"));
}

TEST_F(FileTest, LinksInARunFolderAreReplacedAndNotFollowed) {
  WriteFileDurably(folder_ / "others", "mine");
  fs::create_symlink("others", folder_ / "latest");
  fs::create_symlink("others", folder_ / "latest.tmp");
  WriteFileDurably(folder_ / "latest", "step-1");
  EXPECT_EQ(ReadFile(folder_ / "latest"), "step-1");
  EXPECT_FALSE(fs::is_symlink(folder_ / "latest"));
  EXPECT_EQ(ReadFile(folder_ / "others"), "mine");
}

// For example, a user may name /dev/null as an output by mistake.
TEST_F(FileTest, WhatIsNoFileIsNotReplaced) {
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(WhatOf<CheckpointError>([&] { CreateFile(folder_ / "pipe"); }),
            "cannot write " + (folder_ / "pipe").string() + ": it is a pipe");
  EXPECT_TRUE(fs::is_fifo(folder_ / "pipe"));
}

TEST_F(FileTest, AnOutputIsWrittenWhereItsLinkLeads) {
  WriteFileDurably(folder_ / "real", "old");
  fs::create_symlink("real", folder_ / "link");
  WriteOutput(folder_ / "link", "new");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(ReadFile(folder_ / "real"), "new");
  fs::create_symlink("yet-to-come", folder_ / "dangling");
  WriteOutput(folder_ / "dangling", "made");
  EXPECT_EQ(ReadFile(folder_ / "yet-to-come"), "made");
}

TEST_F(FileTest, AnOutputTouchesNothingElseInItsFolderAndKeepsItsMode) {
  WriteFileDurably(folder_ / "a.tmp", "mine");
  const std::string first = fmt::format(".dtrain-{}-0.tmp", ::getpid());
  WriteFileDurably(folder_ / first, "mine, too");
  WriteOutput(folder_ / "a", "old");
  ::chmod((folder_ / "a").c_str(), 0640);
  WriteOutput(folder_ / "a", "new");
  EXPECT_EQ(ReadFile(folder_ / "a"), "new");
  EXPECT_EQ(fs::status(folder_ / "a").permissions(), fs::perms(0640));
  EXPECT_EQ(ReadFile(folder_ / "a.tmp"), "mine");
  EXPECT_EQ(ReadFile(folder_ / first), "mine, too");
  EXPECT_EQ(Entries(), 3);
}

// A process on another machine may have the same process id.  It creates a file with our temporary
// name as soon as that name is free.
TEST_F(FileTest, AnOutputThatIsThereLeavesAnotherProcessesFileOfItsFormerName) {
  const fs::path name = folder_ / fmt::format(".dtrain-{}-0.tmp", ::getpid());
  for (int i = 0; i < 300; ++i) {
    std::atomic<bool> is_written = false;
    std::atomic<int> fd = -1;
    std::thread other([&] {
      while (!is_written && !fs::exists(name)) {
      }
      while (fd < 0 && !is_written) fd = ::open(name.c_str(), O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    });
    WriteOutput(folder_ / "a", "mine");
    is_written = true;
    other.join();
    if (fd < 0) continue;
    EXPECT_TRUE(fs::exists(name)) << "at try " << i;
    ::close(fd);
    fs::remove(name);
  }
}

TEST_F(FileTest, AFileThatGrowsIsNoLinkAndNoPipe) {
  for (const char* text : {"a", "b"}) {
    const int fd = OpenToAppend(folder_ / "log");
    EXPECT_EQ(::write(fd, text, 1), 1);
    ::close(fd);
  }
  EXPECT_EQ(ReadFile(folder_ / "log"), "ab");
  fs::create_symlink("log", folder_ / "link");
  EXPECT_EQ(WhatOf<RunFileError>([&] { OpenToAppend(folder_ / "link"); }),
            "cannot write " + (folder_ / "link").string() + ": Too many levels of symbolic links");
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const std::string refusal = "cannot write " + pipe.string() + ": it is a pipe";
  EXPECT_EQ(WhatOf<RunFileError>([&] { OpenToAppend(pipe); }), refusal);
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  EXPECT_EQ(WhatOf<RunFileError>([&] { OpenToAppend(pipe); }), refusal);
  ::close(reader);
  EXPECT_EQ(WhatOf<RunFileError>([&] { OpenToAppend(folder_); }),
            "cannot write " + folder_.string() + ": it is a folder");
}

TEST_F(FileTest, AnOutputLeavesDevicesAndPipesAsTheyAre) {
  fs::create_symlink("/dev/null", folder_ / "null");
  WriteOutput(folder_ / "null", "gone");
  EXPECT_TRUE(fs::is_symlink(folder_ / "null"));
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(MessageOf<RunFileError>([&] { WriteOutput(pipe, "x"); }), HasSubstr("No such device"))
      << "nobody reads it";
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  WriteOutput(pipe, "read");
  char text[5] = {};
  EXPECT_EQ(::read(reader, text, 4), 4);
  EXPECT_STREQ(text, "read");
  ::close(reader);
  EXPECT_TRUE(fs::is_fifo(pipe));
}

}  // namespace
}  // namespace dtrain
