// All sources are formatted as clang-format does with the .clang-format file at the root.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/data/temp_folder.h"
#include "tests/tidy/source_tree.h"

namespace dtrain {
namespace {

std::string OutputOf(const std::string& command) {
  std::string output;
  FILE* const pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return output;
  std::array<char, 4096> part;
  while (const size_t count = std::fread(part.data(), 1, part.size(), pipe)) {
    output.append(part.data(), count);
  }
  ::pclose(pipe);
  return output;
}

// Other versions break lines differently.
bool IsVersion14(const std::string& version) {
  return version.find("version 14.") != std::string::npos;
}

bool Formatted(const std::string& paths) {
  const std::string command =
      "cd " DTRAIN_SOURCE_DIR " && clang-format --dry-run --Werror " + paths + " >&2";
  return std::system(command.c_str()) == 0;
}

TEST(Format, EverySourceIsAsClangFormatLeavesIt) {
  const std::string version = OutputOf("clang-format --version");
  ASSERT_NE(version, "") << "launch/install-packages.sh --with-tests installs it";
  if (!IsVersion14(version)) GTEST_SKIP() << "clang-format here is not version 14, but " << version;
  std::string paths;
  int count = 0;
  for (const tidy::SourceFile& file : tidy::LoadSourceTree(DTRAIN_SOURCE_DIR)) {
    if (!tidy::IsHeader(file) && !tidy::IsSource(file)) continue;
    paths += " " + file.path;
    ++count;
  }
  EXPECT_GT(count, 400);
  EXPECT_TRUE(Formatted(paths));
}

TEST(Format, APlantedErrorIsSeen) {
  const TempFolder folder;
  EXPECT_TRUE(Formatted("--style=Google " + folder.Write("sound.cc", "int a;\n").string()));
  EXPECT_FALSE(Formatted("--style=Google " + folder.Write("loose.cc", "int   a;\n").string()));
}

}  // namespace
}  // namespace dtrain
