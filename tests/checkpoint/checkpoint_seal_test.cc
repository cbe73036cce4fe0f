#include "framework/checkpoint/checkpoint_seal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

namespace dtrain {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// This is the SHA-256 of "abc", as FIPS 180-2 gives it.
constexpr char kOfAbc[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

std::string Hdf5Start() { return std::string("\x89HDF\r\n\x1a\n", 8); }

TEST(CheckpointSeal, IsTheTextThatTheHeaderShows) {
  std::string expected = fmt::format("dtrain checkpoint\nversion 1\nbytes 3\nsha256 {}\n", kOfAbc);
  expected.append(512 - expected.size(), '\n');
  EXPECT_EQ(SealOf("abc"), expected);
  EXPECT_EQ(SealProblem(expected + "abc"), "");
  EXPECT_EQ(SealVersionOf(expected), 1);
}

TEST(CheckpointSeal, EveryFlippedBitIsFound) {
  const std::string good = SealOf("abc") + "abc";
  for (size_t bit = 0; bit < 8 * good.size(); ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    EXPECT_NE(SealProblem(bad), "") << "bit " << bit;
  }
}

TEST(CheckpointSeal, ProblemsSayWhatIsDamaged) {
  const std::string good = SealOf("abc") + "abc";
  EXPECT_EQ(SealProblem(good + "d"),
            "it has 4 bytes behind its first 512, not as many as were written");
  EXPECT_EQ(SealProblem(good.substr(0, 513)),
            "it has 1 byte behind its first 512, not as many as were written");
  EXPECT_EQ(SealProblem(good.substr(0, 100)), "it is truncated to 100 bytes");
  const auto with = [&](size_t at, char byte) {
    std::string bad = good;
    bad[at] = byte;
    return SealProblem(bad);
  };
  EXPECT_EQ(with(512, 'x'), "its bytes do not match the SHA-256 in its first block");
  EXPECT_EQ(with(good.find("bytes"), 'B'), "its first 512 bytes are not as they were written");
  EXPECT_NE(with(0, '\0'), "");
  EXPECT_NE(with(400, ' '), "");
}

TEST(CheckpointSeal, KindsAreKnownByTheFirstBytes) {
  EXPECT_EQ(KindOf(SealOf("abc") + "abc"), FileKind::kSealed);
  EXPECT_EQ(KindOf("dtrain checkpoint\n"), FileKind::kSealed);  // truncated
  EXPECT_EQ(KindOf(Hdf5Start() + "more"), FileKind::kHdf5);
  EXPECT_EQ(KindOf(""), FileKind::kOther);
  EXPECT_EQ(KindOf("dtrain checkpoints"), FileKind::kOther);
  EXPECT_EQ(KindOf(Hdf5Start().substr(0, 7)), FileKind::kOther);
}

// A file with a damaged first word is a damaged sealed file, not one from before seals existed.
TEST(CheckpointSeal, ADamagedFirstWordDoesNotMakeAnOlderFile) {
  std::string file = SealOf(Hdf5Start()) + Hdf5Start();
  file[3] = 'R';
  EXPECT_EQ(KindOf(file), FileKind::kSealed);
  EXPECT_NE(SealProblem(file), "");
}

TEST(CheckpointSeal, AVersionIsANumberAlone) {
  const std::string sealed = SealOf("content");
  const auto with = [&](const std::string& version) {
    std::string text = sealed;
    const size_t at = text.find("version ");
    return text.replace(at, text.find('\n', at) - at, version);
  };
  EXPECT_EQ(SealVersionOf(with("version 12")), 12);
  for (const char* other : {"version ", "version x", "version 1 ", "version 1.5", "verse 1"}) {
    EXPECT_EQ(SealVersionOf(with(other)), 0) << other;
  }
  EXPECT_EQ(SealVersionOf(sealed.substr(1)), 0);
  EXPECT_EQ(SealVersionOf(""), 0);
}

}  // namespace
}  // namespace dtrain
