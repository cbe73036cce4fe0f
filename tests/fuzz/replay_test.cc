// Runs every fuzz target on its corpus and on some hundred simple mutations of each file, so that
// defects which libFuzzer found once stay fixed in every build.  DTRAIN_FUZZ_MUTATIONS sets the
// number of mutations per file (default 200).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "framework/core/file.h"
#include "framework/core/random.h"
#include "tests/fuzz/fuzz_target.h"

namespace dtrain::fuzz {
namespace {

namespace fs = std::filesystem;

uint64_t Mutations() {
  const char* const given = std::getenv("DTRAIN_FUZZ_MUTATIONS");
  return given == nullptr ? 200 : std::strtoull(given, nullptr, 10);
}

const fs::path& CorpusFolder() {
  static const fs::path folder = fs::path(DTRAIN_SOURCE_DIR) / "tests" / "fuzz" / "corpus";
  return folder;
}

std::vector<fs::path> FilesOf(const std::string& target) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(CorpusFolder() / target)) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// Returns mutation `number` of a text, which is always the same: bytes are deleted, repeated or
// replaced, and parts are cut out or written twice.
std::string Mutated(std::string text, uint64_t number) {
  const Random random(number, Purpose::kSelfTest);
  uint64_t next = 0;
  const auto below = [&](size_t limit) { return static_cast<size_t>(random.Below(next++, limit)); };
  for (size_t left = 1 + below(6); left > 0 && !text.empty(); --left) {
    const size_t at = below(text.size()),
                 length = 1 + below(std::min<size_t>(64, text.size() - at));
    switch (below(6)) {
      case 0:
        text.erase(at, 1);
        break;
      case 1:
        text.insert(at, 1, text[at]);
        break;
      case 2:
        text[at] = static_cast<char>(below(256));
        break;
      case 3:
        text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
        break;
      case 4:
        text.erase(at, length);
        break;
      default:
        text.insert(at, text.substr(at, length));
    }
  }
  return text;
}

class Replay : public ::testing::TestWithParam<std::string> {
 protected:
  const fuzz::Run run_ = Targets().at(GetParam());
};

TEST_P(Replay, TakesAndRefusesFilesOfTheCorpus) {
  std::set<bool> taken;
  for (const fs::path& file : FilesOf(GetParam())) {
    EXPECT_NO_THROW(taken.insert(run_(ReadFile(file)))) << file;
  }
  EXPECT_EQ(taken.size(), 2u) << "the corpus needs an input that is taken, and one that is not";
}

TEST_P(Replay, NoMutationBreaksTheParser) {
  uint64_t refused = 0;
  for (const fs::path& file : FilesOf(GetParam())) {
    const std::string good = ReadFile(file);
    for (uint64_t number = 0; number < Mutations(); ++number) {
      EXPECT_NO_THROW(refused += run_(Mutated(good, number)) ? 0 : 1)
          << file << ", mutation " << number;
    }
  }
  EXPECT_GT(refused, 0u);
}

std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (const auto& [name, run] : Targets()) names.push_back(name);
  return names;
}

// Static initialisers of other files register the targets in an unspecified order, so Names() is
// called only when the tests begin.
INSTANTIATE_TEST_SUITE_P(AllTargets, Replay, ::testing::ValuesIn(Names()),
                         [](const auto& info) { return info.param; });

TEST(Corpus, HasAFolderForEachTargetAndNoOther) {
  std::set<std::string> folders, names;
  for (const auto& entry : fs::directory_iterator(CorpusFolder())) {
    folders.insert(entry.path().filename());
  }
  for (const std::string& name : Names()) names.insert(name);
  EXPECT_EQ(folders, names);
}

}  // namespace
}  // namespace dtrain::fuzz
