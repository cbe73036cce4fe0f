#include "framework/data/files/unpack_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/resource.h>

#include <atomic>
#include <csignal>
#include <fstream>
#include <thread>

#include "framework/core/error.h"
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

  // Two parts that unpacking fills with `value` and with the number of times it was asked.
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
  fs::create_directories(folder_ / "cache/tiny-v1.lock");
  EXPECT_THAT(Fill(7), ElementsAre(7, 7, 1));
  EXPECT_THAT(said_,
              ElementsAre(HasSubstr("tiny-v1.lock: Is a directory"), HasSubstr("unpacking")));
}

// As on a full disk: here the limit on file sizes ends the write.
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
  folder_.Write("cache/tiny-v1-0123.bin.77.part", "half");
  folder_.Write("cache/other-v1-0123.bin.77.part", "of somebody else");
  Fill(7);
  EXPECT_THAT(Kept(".part"), ElementsAre(folder_ / "cache/other-v1-0123.bin.77.part"));
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

// As the ranks of a node do.
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
