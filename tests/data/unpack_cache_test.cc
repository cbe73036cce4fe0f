#include "framework/data/files/unpack_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <fstream>
#include <thread>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/stop_request.h"
#include "framework/data/files/file_lock.h"
#include "tests/data/temp_folder.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class UnpackCacheTest : public testing::Test {
 protected:
  UnpackCacheTest() { folder_.Write("a.tar", "archive"); }

  // Fills two parts: the first with `value`, the second with the number of times that the archive
  // was unpacked.
  std::vector<int> Fill(uint8_t value, const std::string& kind = "tiny-v1", bool there = true) {
    std::vector<uint8_t> first(3), second(1);
    const std::span<uint8_t> parts[] = {first, second};
    said_.clear();
    const UnpackCache cache(folder_.path() / "cache", [this](log::Level level, const auto& line) {
      said_.push_back((level == log::Level::kWarning ? "warning: " : "") + line);
    });
    EXPECT_EQ(cache.Fill(archive(), kind, parts,
                         [&] {
                           ++unpacked_;
                           std::fill(first.begin(), first.end(), value);
                           second[0] = static_cast<uint8_t>(unpacked_);
                           return there;
                         }),
              there);
    return {first[0], first[2], second[0]};
  }

  fs::path archive() const { return folder_.path() / "a.tar"; }
  // Makes the folder beforehand, with permissions for its user only.
  void MakeCache() const { MakePrivateFolder(folder_ / "cache"); }
  std::vector<fs::path> Kept(const std::string& ending = ".bin") const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder_.path() / "cache")) {
      if (entry.path().extension() == ending) files.push_back(entry.path());
    }
    return files;
  }

  TempFolder folder_;
  std::vector<std::string> said_;
  int unpacked_ = 0;
};

TEST_F(UnpackCacheTest, UnpacksOnce) {
  EXPECT_THAT(Fill(7), ElementsAre(7, 7, 1));
  EXPECT_THAT(said_, ElementsAre(HasSubstr("unpacking")));
  EXPECT_THAT(Fill(9), ElementsAre(7, 7, 1));
  EXPECT_THAT(said_, IsEmpty());
  EXPECT_EQ(Kept().size(), 1u);
}

TEST_F(UnpackCacheTest, AChangedArchiveIsUnpackedAgainAndReplacesTheOld) {
  Fill(7);
  Fill(7, "other-v1");
  folder_.Write("a.tar", "another archive");
  EXPECT_THAT(Fill(9), ElementsAre(9, 9, 3));
  EXPECT_EQ(Kept().size(), 2u) << "the other kind's stays";
}

TEST_F(UnpackCacheTest, ADamagedFileIsMadeAgain) {
  for (const bool cut : {false, true}) {
    Fill(7);
    const fs::path kept = Kept().at(0);
    if (cut) {
      fs::resize_file(kept, 2);
    } else {
      std::fstream(kept, std::ios::in | std::ios::out).put('x');
    }
    Fill(8);
    EXPECT_THAT(said_[0], HasSubstr("is damaged"));
    EXPECT_EQ(Fill(9)[0], 8);
  }
}

TEST_F(UnpackCacheTest, WhatIsNotThereIsNotKept) {
  Fill(7, "tiny-v1", false);
  EXPECT_THAT(Kept(), IsEmpty());
}

TEST_F(UnpackCacheTest, AnErrorOfTheArchiveKeepsNothing) {
  std::vector<uint8_t> part(3);
  const std::span<uint8_t> parts[] = {part};
  const UnpackCache cache(folder_.path() / "cache", [](log::Level, const std::string&) {});
  EXPECT_THROW(cache.Fill(archive(), "tiny-v1", parts,
                          []() -> bool { throw DataError("byte 7 is damaged"); }),
               DataError);
  EXPECT_THAT(Kept(), IsEmpty());
  EXPECT_THAT(Fill(5), ElementsAre(5, 5, 1)) << "the lock is free again";
}

TEST_F(UnpackCacheTest, AFolderThatCannotBeMadeCostsNothingElse) {
  folder_.Write("cache", "a file is in the way");
  EXPECT_THAT(Fill(7), ElementsAre(7, 7, 1));
  EXPECT_THAT(said_, ElementsAre(HasSubstr("warning: nothing can be kept in " +
                                           (folder_ / "cache").string()),
                                 HasSubstr("unpacking")));
  EXPECT_THAT(Fill(9), ElementsAre(9, 9, 2));
}

TEST_F(UnpackCacheTest, ALockThatCannotBeHadCostsNothingElse) {
  MakeCache();
  fs::create_directories(folder_ / "cache/tiny-v1.lock");
  EXPECT_THAT(Fill(7), ElementsAre(7, 7, 1));
  EXPECT_THAT(said_,
              ElementsAre(HasSubstr("tiny-v1.lock: Is a directory"), HasSubstr("unpacking")));
}

// Another user with write permission could place a file there with a matching checksum and name.
TEST_F(UnpackCacheTest, AFolderThatOthersMayWriteIntoIsNotUsed) {
  Fill(7);
  for (const mode_t mode : {0777, 01777, 0770, 0702}) {
    ASSERT_EQ(::chmod((folder_ / "cache").c_str(), mode), 0);
    EXPECT_EQ(Fill(8)[0], 8) << mode;
    EXPECT_THAT(said_, ElementsAre(AllOf(HasSubstr("warning: " + (folder_ / "cache").string() +
                                                   " may be written by others"),
                                         HasSubstr("is not used"), HasSubstr("chmod go-w")),
                                   HasSubstr("unpacking")));
  }
  ASSERT_EQ(::chmod((folder_ / "cache").c_str(), 0700), 0);
  EXPECT_EQ(Fill(9)[0], 7) << "nothing was kept meanwhile";
}

TEST_F(UnpackCacheTest, AFileThatOthersMayWriteIsMadeAgain) {
  Fill(7);
  ASSERT_EQ(::chmod(Kept().at(0).c_str(), 0666), 0);
  EXPECT_EQ(Fill(8)[0], 8);
  EXPECT_THAT(said_[0], HasSubstr("may be written by others (mode 0666); it is made again"));
  EXPECT_EQ(WhyNotTrusted(Kept().at(0)), "");
  EXPECT_EQ(Fill(9)[0], 8);
}

// Another user owns first the cached file, then the folder.
TEST_F(UnpackCacheTest, WhatBelongsToAnotherUserIsNotBelieved) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  Fill(7);
  const fs::path kept = Kept().at(0);
  ASSERT_EQ(::chown(kept.c_str(), 65534, 65534), 0);
  EXPECT_EQ(Fill(8)[0], 8);
  EXPECT_THAT(said_[0], HasSubstr("belongs to another user (number 65534)"));
  ASSERT_EQ(::chown((folder_ / "cache").c_str(), 65534, 65534), 0);
  EXPECT_EQ(Fill(9)[0], 9);
  EXPECT_THAT(said_[0], HasSubstr("cache belongs to another user"));
}

TEST_F(UnpackCacheTest, ALinkToAFileIsNotFollowed) {
  Fill(7);
  const fs::path kept = Kept().at(0), elsewhere = folder_ / "elsewhere";
  fs::rename(kept, elsewhere);
  fs::create_symlink(elsewhere, kept);
  EXPECT_EQ(Fill(8)[0], 8);
  EXPECT_FALSE(fs::is_symlink(kept));
}

TEST_F(UnpackCacheTest, TheFolderIsTheUsersAlone) {
  const mode_t before = ::umask(0);
  Fill(7);
  ::umask(before);
  EXPECT_EQ(fs::status(folder_ / "cache").permissions(), fs::perms{0700});
  EXPECT_FALSE(fs::exists(folder_ / "cache/tiny-v1.lock"))
      << "it is there while the archive is unpacked";
  EXPECT_EQ(Fill(8)[0], 7);
}

// For example, an administrator may have filled a read-only folder for all users.
TEST_F(UnpackCacheTest, AFolderThatCannotBeWrittenIsRead) {
  Fill(7);
  fs::remove(folder_ / "cache/tiny-v1.lock");
  ASSERT_EQ(::chmod((folder_ / "cache").c_str(), 0555), 0);
  EXPECT_EQ(Fill(8)[0], 7);
  EXPECT_THAT(said_, IsEmpty());
  ASSERT_EQ(::chmod((folder_ / "cache").c_str(), 0700), 0);
}

TEST_F(UnpackCacheTest, WhoWaitsHearsAStop) {
  MakeCache();
  const FileLock other(folder_ / "cache/tiny-v1.lock", [](const std::string&) {}, {});
  RequestStop(SIGTERM);
  EXPECT_THAT(WhatOf<StoppedError>([&] { Fill(7); }),
              AllOf(HasSubstr("stopped by SIGTERM while waiting for "), HasSubstr("tiny-v1.lock")));
  ForgetStopRequest();
  EXPECT_EQ(unpacked_, 0);
}

// A file size limit makes the write fail, as a full disk would.
TEST_F(UnpackCacheTest, WhatCannotBeWrittenLeavesNoPart) {
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{20, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  const std::vector<int> filled = Fill(7);
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_THAT(filled, ElementsAre(7, 7, 1));
  EXPECT_THAT(said_, ElementsAre(HasSubstr("unpacking"),
                                 AllOf(HasSubstr("warning: what "), HasSubstr(" is not kept: "),
                                       HasSubstr("File too large"))));
  EXPECT_THAT(Kept(".part"), IsEmpty());
  EXPECT_THAT(Fill(8), ElementsAre(8, 8, 2));
}

TEST_F(UnpackCacheTest, WhatCannotBeNamedLeavesNoPart) {
  Fill(7);
  const fs::path kept = Kept().at(0);
  fs::remove(kept);
  fs::create_directories(kept / "in the way");
  EXPECT_THAT(Fill(8), ElementsAre(8, 8, 2));
  EXPECT_THAT(said_.back(), HasSubstr("warning: what "));
  EXPECT_THAT(Kept(".part"), IsEmpty());
}

TEST_F(UnpackCacheTest, APartOfAKilledProcessIsRemoved) {
  MakeCache();
  folder_.Write("cache/tiny-v1-0123456789abcdef.bin.77.part", "half");
  folder_.Write("cache/other-v1-0123456789abcdef.bin.77.part", "of somebody else");
  Fill(7);
  EXPECT_THAT(Kept(".part"), ElementsAre(folder_ / "cache/other-v1-0123456789abcdef.bin.77.part"));
}

TEST_F(UnpackCacheTest, WhatItDidNotNameStays) {
  MakeCache();
  for (const char* name : {"tiny-v1-mine.bin", "tiny-v1-0123.bin", "tiny-v1-mine.part",
                           "tiny-v1-0123456789abcdef.bin.part", "tiny-v1-0123456789abcdef-2.bin"}) {
    folder_.Write(std::string("cache/") + name, "mine");
  }
  Fill(7);
  EXPECT_EQ(Kept().size(), 4u);
  EXPECT_EQ(Kept(".part").size(), 2u);
}

TEST_F(UnpackCacheTest, AnArchiveThatIsGoneIsTheUnpackersError) {
  fs::remove(archive());
  std::vector<uint8_t> part(3);
  const std::span<uint8_t> parts[] = {part};
  const UnpackCache cache(folder_ / "cache", [](log::Level, const std::string&) {});
  EXPECT_THAT(MessageOf<DataError>([&] {
                cache.Fill(archive(), "tiny-v1", parts,
                           []() -> bool { throw DataError("no archive"); });
              }),
              HasSubstr("no archive"));
}

// The ranks of a node do this.
TEST_F(UnpackCacheTest, ManyAtOnceUnpackOnce) {
  std::atomic<int> unpacked = 0, right = 0;
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 6; ++rank) {
    ranks.emplace_back([&] {
      std::vector<uint8_t> part(1000);
      const std::span<uint8_t> parts[] = {part};
      const UnpackCache cache(folder_ / "cache", [](log::Level, const std::string&) {});
      const bool there = cache.Fill(archive(), "tiny-v1", parts, [&] {
        std::fill(part.begin(), part.end(), static_cast<uint8_t>(7 + unpacked++));
        return true;
      });
      right += there && part == std::vector<uint8_t>(1000, 7);
    });
  }
  for (std::thread& rank : ranks) rank.join();
  EXPECT_EQ(unpacked, 1);
  EXPECT_EQ(right, 6);
  EXPECT_EQ(Kept().size(), 1u);
}

}  // namespace
}  // namespace dtrain
