// Runs the real program in a folder of the test's own.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace dtrain {

namespace fs = std::filesystem;

struct Outcome {
  int code = 0;  // 128+n for a signal
  std::string out;
  std::string err;
};

inline std::string Slurp(const fs::path& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

class SystemTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ =
        fs::temp_directory_path() / ("dtrain-system-" + std::to_string(::getpid()) + test->name());
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  virtual std::string Program() const { return DTRAIN_BINARY_DIR "/dtrain"; }
  virtual std::string Configs() const { return DTRAIN_SOURCE_DIR "/configs"; }

  // Runs `dtrain <arguments>` with $OUT for the test's folder and $CONFIGS for configs/runs.
  Outcome Run(const std::string& arguments, const std::string& before = "") {
    const std::string command = "export OUT='" + folder_.string() + "' CONFIGS='" + Configs() +
                                "/runs'; cd \"$OUT\"; " + before + " " + Program() + " " +
                                arguments + " >\"$OUT/out\" 2>\"$OUT/err\"";
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
            Slurp(folder_ / "out"), Slurp(folder_ / "err")};
  }

  std::string WeightsOf(const std::string& run) {
    const std::string summary = Slurp(folder_ / run / "summary.json");
    const size_t at = summary.find("\"weights_sha256\": \"");
    return at == std::string::npos ? "no weights" : summary.substr(at + 19, 64);
  }

  fs::path folder_;
};

inline constexpr char kSmall[] =
    "train --config $CONFIGS/quickstart.yaml --set data.train_samples=2000 "
    "--set data.test_samples=500 --set epochs=3 ";

}  // namespace dtrain
