#include "framework/core/model_profile.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "framework/core/error.h"
#include "tests/data/temp_folder.h"
#include "tests/support/message_of.h"

namespace dtrain {
namespace {

ModelProfile SampleProfile() {
  return {.model = "lenet5",
          .device = "cpu",
          .batch = 64,
          .threads = 1,
          .layers = {{"conv1", 520, 2080, 0.0011, 0.0022, 1.5e8},
                     {"ip1", 400500, 1602000, 0.003, 0.006, 2e8}}};
}

std::string ErrorOf(const std::string& from, const std::string& to) {
  std::string text = ToJson(SampleProfile());
  text.replace(text.find(from), from.size(), to);
  return WhatOf<ConfigError>([&] { ProfileFromJson(text, "p.json"); });
}

TEST(ModelProfile, SurvivesJsonToTheBit) {
  EXPECT_EQ(ProfileFromJson(ToJson(SampleProfile()), "p.json"), SampleProfile());
}

TEST(ModelProfile, MayHoldReadyTimesAndTimesOfSums) {
  ModelProfile profile = SampleProfile();
  profile.layers[1].ready_seconds = 0.0123456789012345;
  profile.sums = {{"ordered", 4, {{64, 0.00012}, {80'000, 0.003}}}, {"topk 0.01 by gather", 2, {}}};
  const std::string text = ToJson(profile);
  EXPECT_EQ(ProfileFromJson(text, "p.json"), profile);
  const auto error_of = [&](const std::string& from, const std::string& to) {
    std::string edited = text;
    edited.replace(edited.find(from), from.size(), to);
    return WhatOf<ConfigError>([&] { ProfileFromJson(edited, "p.json"); });
  };
  EXPECT_EQ(error_of("80000", "64"),
            "p.json: sums[0]: times[1]: bytes: not above those of the entry before");
  EXPECT_EQ(error_of("0.0123456789012345", "-1"), "p.json: layers[1]: ready_seconds: negative");
  EXPECT_EQ(error_of("\"by\"", "\"how\""), "p.json: sums[0]: key 'by' is missing");
}

TEST(ModelProfile, Sums) {
  EXPECT_EQ(SampleProfile().params(), 401020);
  EXPECT_EQ(SampleProfile().bytes(), 1604080);
  EXPECT_DOUBLE_EQ(SampleProfile().forward_seconds(), 0.0041);
  EXPECT_DOUBLE_EQ(SampleProfile().backward_seconds(), 0.0082);
}

TEST(ModelProfile, BadJsonIsNamed) {
  EXPECT_EQ(ErrorOf("0.0011", "-1"), "p.json: layers[0]: forward_seconds: negative");
  EXPECT_EQ(ErrorOf("0.006", "\"fast\""), "p.json: layers[1]: backward_seconds: not a number");
  EXPECT_EQ(ErrorOf("\"layers\": [", "\"layers\": 3, \"x\": ["), "p.json: layers: not a list");
  EXPECT_EQ(ErrorOf("\"flops\"", "\"flop\""), "p.json: layers[0]: key 'flops' is missing");
}

TEST(ModelProfile, ReadsAFile) {
  const TempFolder folder;
  const std::filesystem::path path = folder / "p.json";
  std::ofstream(path) << ToJson(SampleProfile());
  EXPECT_EQ(ReadProfile(path), SampleProfile());
  EXPECT_THROW(ReadProfile(folder / "missing.json"), DataError);
}

}  // namespace
}  // namespace dtrain
