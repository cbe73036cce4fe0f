// Whole training runs in one process: a folder for each test, ranks as threads.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "framework/comm/local/local_world.h"
#include "framework/core/error.h"
#include "framework/setup/run_exchange.h"
#include "framework/train/trainer.h"
#include "framework/train/training_step.h"

namespace dtrain {

class RunFixture : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    std::string name =
        fmt::format("dtrain-{}-{}-{}", ::getpid(), test->test_suite_name(), test->name());
    // A test with parameters has slashes in its name.
    std::replace(name.begin(), name.end(), '/', '-');
    folder_ = std::filesystem::temp_directory_path() / name;
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // LeNet-5 on 400 digits in batches of 64: 7 steps an epoch, the last with 16 samples.  It writes to folder_/output;
  // `settings`, followed by `more`, are --set overrides.
  RunConfig OnDigits(const std::string& output, std::vector<std::string> settings,
                     const std::vector<std::string>& more) const {
    settings.push_back("output=" + (folder_ / output).string());
    settings.insert(settings.end(), more.begin(), more.end());
    config::Document document = config::Document::FromText(
        "model: {name: " DTRAIN_SOURCE_DIR
        "/configs/models/lenet5.yaml}\n"
        "data: {name: digits, train_samples: 400, test_samples: 300}\nbatch: 64\n"
        "solver: {name: sgd, lr: 0.01, momentum: 0.9}\n",
        "run.yaml", settings);
    return ReadRunConfig(document);
  }

  // Returns the result of rank 0.
  static TrainResult Run(const RunConfig& config, const TrainRequest& request = {}) {
    TrainResult root;
    LocalWorld::Run(PlacementOf(config).ranks(), [&](Transport& transport) {
      const TrainResult result = Train(config, request, transport);
      if (transport.rank() == 0) root = result;
    });
    return root;
  }

  // Returns the lines of this kind in metrics.jsonl of the run in folder_/output.
  std::vector<nlohmann::json> Lines(const std::string& output, const std::string& kind) const {
    std::vector<nlohmann::json> lines;
    std::ifstream in(folder_ / output / "metrics.jsonl");
    for (std::string line; std::getline(in, line);) {
      const auto json = nlohmann::json::parse(line);
      if (json["kind"] == kind) lines.push_back(json);
    }
    return lines;
  }

  // Returns "exit code: text | hint" of the Error that `body` throws, or "no error".
  template <class Body>
  static std::string MessageOf(const Body& body) {
    try {
      body();
    } catch (const Error& error) {
      return fmt::format("{}: {} | {}", static_cast<int>(error.code()), error.what(), error.hint());
    }
    return "no error";
  }

  std::filesystem::path folder_;
};

}  // namespace dtrain
