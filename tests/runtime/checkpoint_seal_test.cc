#include "framework/runtime/checkpoint_seal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

namespace dtrain {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// SHA-256 of "abc", as FIPS 180-2 gives it.
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

TEST(CheckpointSeal, ProblemsNameTheFirstLineThatDiffers) {
  const std::string good = SealOf("abc") + "abc";
  EXPECT_EQ(SealProblem(good + "d"), "its first block says \"bytes 3\", its bytes say \"bytes 4\"");
  EXPECT_EQ(SealProblem(good.substr(0, 513)),
            "its first block says \"bytes 3\", its bytes say \"bytes 1\"");
  EXPECT_EQ(SealProblem(good.substr(0, 100)), "it is truncated to 100 bytes");
  std::string bad = good;
  bad[512] = 'x';
  EXPECT_THAT(SealProblem(bad),
              StartsWith(fmt::format("its first block says \"sha256 {}", kOfAbc)));
  bad = good;
  bad[0] = '\0';
  EXPECT_THAT(SealProblem(bad), HasSubstr("says \"\\x00train checkpoint\""));
  bad = good;
  bad[400] = ' ';
  EXPECT_NE(SealProblem(bad), "");
}

TEST(CheckpointSeal, KindsAreToldByTheFirstBytes) {
  EXPECT_EQ(KindOf(SealOf("abc") + "abc"), FileKind::kSealed);
  EXPECT_EQ(KindOf("dtrain checkpoint\n"), FileKind::kSealed);  // truncated
  EXPECT_EQ(KindOf(Hdf5Start() + "more"), FileKind::kHdf5);
  EXPECT_EQ(KindOf(""), FileKind::kOther);
  EXPECT_EQ(KindOf("dtrain checkpoints"), FileKind::kOther);
  EXPECT_EQ(KindOf(Hdf5Start().substr(0, 7)), FileKind::kOther);
}

// A file that has lost its first word is a damaged sealed one, not one from before there were
// seals.
TEST(CheckpointSeal, ADamagedFirstWordDoesNotMakeAnOlderFile) {
  std::string file = SealOf(Hdf5Start()) + Hdf5Start();
  file[3] = 'R';
  EXPECT_EQ(KindOf(file), FileKind::kSealed);
  EXPECT_NE(SealProblem(file), "");
}

}  // namespace
}  // namespace dtrain
