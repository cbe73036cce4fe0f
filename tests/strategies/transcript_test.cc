// Replays every file in transcripts/ and compares the effects.  DTRAIN_REGENERATE=1 rewrites the files; review the
// changes.
#include "tests/strategies/transcript.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "framework/core/file.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> TranscriptNames() {
  std::vector<std::string> names;
  for (const auto& file :
       fs::directory_iterator(DTRAIN_SOURCE_DIR "/tests/strategies/transcripts")) {
    names.push_back(file.path().stem());
  }
  std::sort(names.begin(), names.end());
  return names;
}

class Transcripts : public ::testing::TestWithParam<std::string> {};

TEST_P(Transcripts, AreWhatHappens) {
  const fs::path path = DTRAIN_SOURCE_DIR "/tests/strategies/transcripts/" + GetParam() + ".txt";
  const std::string written = ReadFile(path);
  const std::string happens = Replay(written);
  if (std::getenv("DTRAIN_REGENERATE") != nullptr) std::ofstream(path) << happens;
  EXPECT_EQ(happens, written);
}

INSTANTIATE_TEST_SUITE_P(Ps, Transcripts, ::testing::ValuesIn(TranscriptNames()),
                         [](const auto& info) { return info.param; });

TEST(Replay, RefusesWhatCannotHappen) {
  const std::string run = "run 1 worker, 4 parameters, strategy {name: ps_asp}\n";
  EXPECT_THROW(Replay(run + "deliver w0 s0\n"), std::runtime_error);
  EXPECT_THROW(Replay(run + "begin w1\n"), std::runtime_error);
  EXPECT_THROW(Replay(run + "stop w0\n"), std::runtime_error);
}

}  // namespace
}  // namespace dtrain
