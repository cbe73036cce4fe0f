// A run folder with hand-written files for the report's tests.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include <fmt/format.h>

namespace dtrain {

class ReportFolder : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::temp_directory_path() /
              fmt::format("dtrain-report-{}-{}", ::getpid(), test->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // Writes a file of a run into the test's folder.
  void Put(const std::string& run, const std::string& file, const std::string& text) const {
    std::filesystem::create_directories(folder_ / run);
    std::ofstream(folder_ / run / file) << text;
  }

  std::filesystem::path folder_;
};

}  // namespace dtrain
