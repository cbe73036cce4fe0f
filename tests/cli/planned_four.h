// `dtrain plan` for a model of four layers, for its tests.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "framework/core/model_profile.h"
#include "tests/cli/command_outcome.h"
#include "tests/data/temp_folder.h"

namespace dtrain {

// Four layers of 4 MB and 10 ms of backward pass each; at 1 Gbit/s a layer's sum takes longer than that.
inline CommandOutcome Plan(const TempFolder& folder, const std::vector<std::string>& arguments,
                           const std::vector<SumProfile>& sums = {},
                           const std::vector<double>& ready = {}) {
  ModelProfile profile{.model = "four", .device = "cpu", .batch = 8};
  for (const char* name : {"a", "b", "c", "d"}) {
    profile.layers.push_back({name, 1'000'000, 4'000'000, 0.005, 0.01, 0});
  }
  for (size_t i = 0; i < ready.size(); ++i) profile.layers[i].ready_seconds = ready[i];
  profile.sums = sums;
  const std::string file = folder.Write("profile.json", ToJson(profile));
  std::vector<std::string> words = {"plan",      "--profile", file,
                                    "--workers", "4",         "--set",
                                    "batch=32",  "--set",     "cluster.network.bandwidth_gbit_s=1"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return RunCommand(words);
}

inline std::vector<nlohmann::json> Rows(const CommandOutcome& outcome) {
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return nlohmann::json::parse(outcome.out)["predictions"];
}

}  // namespace dtrain
