#include "framework/core/sha256.h"

#include <gtest/gtest.h>

namespace dtrain {
namespace {

// These are the example messages of FIPS 180-4.
TEST(Sha256, GivesThePublishedDigests) {
  EXPECT_EQ(Sha256::Of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256::Of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Sha256::Of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST(Sha256, TheDigestSoFarEndsNothing) {
  Sha256 hash;
  hash.Update("ab");
  EXPECT_EQ(hash.DigestSoFar(), Sha256::Of("ab"));
  EXPECT_EQ(hash.DigestSoFar(), Sha256::Of("ab"));
  hash.Update("c");
  EXPECT_EQ(hash.HexDigest(), Sha256::Of("abc"));
}

TEST(Sha256, PiecesGiveTheDigestOfTheWhole) {
  const std::string text(1000, 'x');
  Sha256 hash;
  hash.Update(text.data(), 1);
  hash.Update(std::string_view(text).substr(1, 700));
  hash.Update("");
  hash.Update(std::string_view(text).substr(701));
  EXPECT_EQ(hash.HexDigest(), Sha256::Of(text));
}

}  // namespace
}  // namespace dtrain
