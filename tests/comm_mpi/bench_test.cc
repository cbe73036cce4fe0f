// Tests the bench functions over MPI and over local: every case is printed once, as JSON.  The measured times are not
// checked.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "framework/bench/network/bench_allreduce.h"
#include "framework/bench/network/bench_link.h"
#include "framework/bench/network/link_fit.h"
#include "framework/comm/local/local_world.h"
#include "framework/core/error.h"
#include "tests/comm_mpi/mpi_fixture.h"

namespace dtrain {
namespace {

std::vector<nlohmann::json> LinesOf(const std::ostringstream& out) {
  std::vector<nlohmann::json> lines;
  std::istringstream in(out.str());
  for (std::string line; std::getline(in, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

TEST(BenchAllreduce, PrintsALineForEachCollectiveAndSizeBesidePlainMpi) {
  Transport& transport = SharedTransport();
  std::ostringstream out;
  EXPECT_EQ(BenchAllreduce(transport, {.sizes_bytes = {4096, 200'000}, .samples = 2}, out), 0);
  const auto lines = LinesOf(out);
  if (transport.rank() != 0) {
    EXPECT_TRUE(lines.empty());
    return;
  }
  ASSERT_EQ(lines.size(), 2 * CollectiveNames().size()) << "all, unless others are asked for";
  EXPECT_EQ(lines.front()["collective"], "ordered");
  EXPECT_EQ(lines.back()["collective"], "mpi");
  for (const auto& line : lines) {
    EXPECT_EQ(line["bench"], "allreduce");
    EXPECT_EQ(line["ranks"], transport.size());
    EXPECT_EQ(line["samples"], 2);
    EXPECT_GT(line["p50_us"].get<double>(), 0);
    EXPECT_NEAR(line["speedup"].get<double>(),
                line["plain_mpi_p50_us"].get<double>() / line["p50_us"].get<double>(), 1e-6);
  }
}

TEST(BenchAllreduce, HasNothingToCompareWithOverLocal) {
  LocalWorld::Run(2, [](Transport& transport) {
    std::ostringstream out;
    BenchAllreduce(transport, {.collectives = {"ordered"}, .sizes_bytes = {4096}, .samples = 1},
                   out);
    const auto lines = LinesOf(out);
    ASSERT_EQ(lines.size(), transport.rank() == 0 ? 1 : 0);
    for (const auto& line : lines) EXPECT_FALSE(line.contains("speedup"));
  });
}

TEST(BenchLink, PrintsALineForEachPeerAndSizeThenTheFit) {
  Transport& transport = SharedTransport();
  std::ostringstream out;
  EXPECT_EQ(
      BenchLink(transport, {.sizes_bytes = {1, 100'000}, .samples = 3, .fit_seconds = 0}, out), 0);
  const auto lines = LinesOf(out);
  const size_t cases = 3 * static_cast<size_t>(transport.size() - 1);
  ASSERT_EQ(lines.size(), transport.rank() == 0 ? cases : 0);
  for (size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(lines[i]["to"], 1 + i / 3);
    EXPECT_TRUE(lines[i]["same_node"].get<bool>());
    EXPECT_GT(lines[i]["latency_us"].get<double>(), 0);
    EXPECT_EQ(lines[i]["bench"], i % 3 == 2 ? "link_fit" : "link");
    EXPECT_EQ(lines[i].value("bytes", 0), std::vector<int>({1, 100'000, 0})[i % 3]);
  }
}

TEST(BenchLink, TheFitHasTheKeysOfANetworkSection) {
  LocalWorld::Run(2, [](Transport& transport) {
    std::ostringstream out;
    EXPECT_EQ(BenchLink(transport, {.sizes_bytes = {}, .fit_seconds = 0}, out), 0);
    const auto lines = LinesOf(out);
    ASSERT_EQ(lines.size(), transport.rank() == 0 ? 1 : 0);
    for (const auto& line : lines) {
      EXPECT_EQ(line["bench"], "link_fit");
      EXPECT_EQ(line["transport"], "local");
      EXPECT_GT(line["bandwidth_gbit_s"].get<double>(), 0);
      EXPECT_GE(line["line_gbit_s"].get<double>(), line["bandwidth_gbit_s"].get<double>());
      EXPECT_TRUE(line["bucket_bytes"].is_number_integer());
    }
  });
}

// The streams arrive complete and in order, whatever the offset between the clocks of the ranks.
TEST(LinkStream, EveryMessageIsStamped) {
  LocalWorld::Run(2, [](Transport& transport) {
    if (transport.rank() == 1) return TakeStreams(transport);
    const auto streams = StreamTo(transport, 1, 0, 2);
    ASSERT_EQ(streams.size(), 2u);
    for (const Arrivals& arrivals : streams) {
      ASSERT_GE(arrivals.size(), 64u);
      for (size_t i = 0; i < arrivals.size(); ++i) {
        EXPECT_EQ(arrivals[i].bytes, arrivals[0].bytes * static_cast<int64_t>(i + 1));
        EXPECT_GE(arrivals[i].seconds, arrivals[i == 0 ? 0 : i - 1].seconds);
      }
    }
  });
}

TEST(BenchLink, NeedsTwoRanks) {
  LocalWorld world(1);
  const auto alone = world.Connect(0);
  std::ostringstream out;
  try {
    BenchLink(*alone, {}, out);
    FAIL() << "no error";
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "bench link needs at least 2 ranks, here is 1");
  }
}

}  // namespace
}  // namespace dtrain
