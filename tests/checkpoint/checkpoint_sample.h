// A small model for the checkpoint tests, and a folder for their files.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "framework/checkpoint/checkpoint.h"

namespace dtrain {

inline ArenaLayout LayoutOf(
    const std::vector<std::pair<std::string, std::vector<int64_t>>>& entries) {
  ArenaLayout layout;
  for (const auto& [name, shape] : entries) {
    int64_t count = 1;
    for (const int64_t n : shape) count *= n;
    layout.entries.push_back({name, shape, {layout.size(), layout.size() + count}});
  }
  return layout;
}

// A parameter arena in backward order with a scalar in it, a momentum vector and batch-norm state.
struct CheckpointSample {
  ModelLayout layout = {LayoutOf({{"ip1.bias", {3}},
                                  {"ip1.weight", {3, 8}},
                                  {"scale", {}},
                                  {"conv1.weight", {2, 1, 5, 5}}}),
                        LayoutOf({{"bn1.mean", {2}}, {"bn1.variance", {2}}})};
  CheckpointInfo info = {
      {2, 1832, 117248}, 0xffffffffffffffff, "lenet5", "sgd", "model: {name: lenet5}\n", "{}\n",
      "abc123"};
  std::vector<float> weights, momentum, state;

  CheckpointSample() {
    for (int64_t i = 0; i < layout.parameters.size(); ++i) {
      weights.push_back(0.1F * static_cast<float>(i));
      momentum.push_back(-0.7F * static_cast<float>(i));
    }
    for (int64_t i = 0; i < layout.state.size(); ++i) state.push_back(3.0F + static_cast<float>(i));
  }

  CheckpointView View() const {
    return {info, layout, weights.data(), {{"momentum", momentum.data()}}, state.data()};
  }
};

// True if all values are equal to the bit, -0 and NaN included.
inline bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// Makes a new folder named after the test, inside one that belongs to this process until it ends.
inline std::filesystem::path FreshFolder() {
  struct OfProcess {
    OfProcess() { path = ::mkdtemp(path.data()); }
    ~OfProcess() {
      if (::getpid() == pid) std::filesystem::remove_all(path);
    }
    const pid_t pid = ::getpid();
    std::string path = (std::filesystem::temp_directory_path() / "dtrain-tests-XXXXXX").string();
  };
  static const OfProcess own;
  const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
  const std::filesystem::path folder =
      std::filesystem::path(own.path) / (std::string(test.test_suite_name()) + "." + test.name());
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

inline std::string Slurp(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream content;
  content << in.rdbuf();
  return content.str();
}

inline void Spit(const std::filesystem::path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

}  // namespace dtrain
