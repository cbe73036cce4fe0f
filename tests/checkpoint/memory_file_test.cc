#include "framework/hdf5/memory_file.h"

#include <gtest/gtest.h>

#include <fstream>

namespace dtrain {
namespace {

TEST(MemoryFile, HoldsWhatIsWrittenToItsPath) {
  MemoryFile file;
  EXPECT_EQ(file.Content(), "");
  std::ofstream(file.path()) << "first";
  EXPECT_EQ(file.Content(), "first");
  std::ofstream(file.path()) << "the second one";
  EXPECT_EQ(file.Content(), "the second one");
}

TEST(MemoryFile, IsGoneAfterwards) {
  std::filesystem::path path;
  {
    MemoryFile file;
    path = file.path();
    EXPECT_TRUE(std::filesystem::exists(path));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace dtrain
