// Tests `dtrain bench topk`: a JSON line for each compressor and size.  Measured times are not checked.
#include "framework/bench/selection/bench_topk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "framework/bench/selection/plain_read.h"
#include "framework/core/error.h"
#include "tests/support/message_of.h"

namespace dtrain {
namespace {

TEST(BenchTopk, PrintsALineForEachCompressorAndSize) {
  for (const char* distribution : {"normal", "laplace"}) {
    std::ostringstream out;
    const BenchTopkOptions options{.compressors = {"topk", "gaussiank:loop=published", "gdtopk"},
                                   .sizes = {1001, 20'000},
                                   .densities = {0.01},
                                   .distribution = distribution,
                                   .seconds = 0};
    EXPECT_EQ(BenchTopk(options, {}, out), 0);
    std::istringstream in(out.str());
    std::vector<nlohmann::json> lines;
    for (std::string line; std::getline(in, line);) lines.push_back(nlohmann::json::parse(line));
    ASSERT_EQ(lines.size(), 6u);
    for (size_t i = 0; i < lines.size(); ++i) {
      EXPECT_EQ(lines[i]["bench"], "topk");
      EXPECT_EQ(lines[i]["compressor"], options.compressors[i % 3]);
      EXPECT_EQ(lines[i]["d"], options.sizes[i / 3]);
      EXPECT_EQ(lines[i]["distribution"], distribution);
      EXPECT_EQ(lines[i]["samples"], 3);
      const double seconds = lines[i]["seconds"], read = lines[i]["read_seconds"];
      EXPECT_NEAR(lines[i]["ratio"].get<double>(), seconds / read, 1e-9);
      EXPECT_GT(lines[i]["selected"], 0);
    }
    EXPECT_EQ(lines[0]["selected"], 10);
    EXPECT_EQ(lines[3]["selected"], 200);
  }
}

// Densities for selections, workers for coders, neither for casts.
TEST(BenchTopk, CastsAndCodersAreMeasuredToo) {
  std::ostringstream out;
  std::vector<CompressCost> costs;
  const BenchTopkOptions options{.compressors = {"topk", "bf16", "powersgd:rank=2", "powersgd"},
                                 .sizes = {1001},
                                 .densities = {0.1, 0.01},
                                 .workers = {3},
                                 .seconds = 0};
  EXPECT_EQ(BenchTopk(options, {}, out, &costs), 0);
  ASSERT_EQ(costs.size(), 4u);
  EXPECT_EQ(costs[0].samples[0].density, 0.01) << "ascending";
  EXPECT_EQ(costs[0].samples[1].density, 0.1);
  EXPECT_EQ(costs[1].compressor, "bf16");
  EXPECT_EQ(costs[1].samples[0].density, 0);
  EXPECT_EQ(costs[2].compressor, "powersgd:rank=2");
  EXPECT_EQ(costs[3].samples[0].workers, 3);
  EXPECT_EQ(costs[3].samples[0].entries, 1001);
}

TEST(BenchTopk, ErrorsComeBeforeAnyMeasurement) {
  const auto error_of = [](const std::string& compressor) {
    std::ostringstream out;
    const std::string error = WhatOf<std::exception>([&] {
      BenchTopk({.compressors = {"topk", compressor}, .sizes = {10}}, {}, out);
    });
    EXPECT_EQ(out.str(), "");
    return error;
  };
  EXPECT_THAT(error_of("topq"), ::testing::HasSubstr("topq"));
  EXPECT_THAT(error_of("gaussiank:loop=twice"), ::testing::HasSubstr("loop"));
  EXPECT_THAT(error_of("none"), ::testing::HasSubstr("without a compressor"));
}

// Returns the xor of all bits, for any width of a register.
TEST(BenchTopk, APlainReadReadsEveryValue) {
  for (int64_t n = 0; n < 200; ++n) {
    std::vector<float> values(static_cast<size_t>(n), 1.0f);
    const uint32_t before = DTRAIN_ISA_SELECT(CpuIsa(), PlainRead)(values.data(), n);
    for (float& value : values) {
      value = -1.0f;
      EXPECT_EQ(DTRAIN_ISA_SELECT(CpuIsa(), PlainRead)(values.data(), n), before ^ 0x80000000u);
      value = 1.0f;
    }
  }
}

}  // namespace
}  // namespace dtrain
