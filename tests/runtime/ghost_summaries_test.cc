// Compares the whole summary.json of a ghost simulation for each strategy with ghost_summaries.json: every count of
// messages and bytes, staleness and virtual seconds.  An intended change shows in the diff of that file; an unintended
// one is found here even if no other test looks.  There is no jitter, because it depends on the logarithm of the C
// library.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "framework/core/file.h"
#include "framework/simulate/simulated_run.h"

namespace dtrain {
namespace {

using nlohmann::ordered_json;

RunConfig Config(const std::string& strategy, const std::vector<std::string>& more) {
  std::vector<std::string> overrides = {"strategy.name=" + strategy};
  overrides.insert(overrides.end(), more.begin(), more.end());
  config::Document document = config::Document::FromText(
      "model: {name: lenet5}\ndata: {name: digits}\n"
      "batch: 96\nmax_steps: 30\nseed: 1\noutput: unused\n"
      "cluster: {workers: 6, step_seconds: 0.01, slowdown: [1, 1.25, 1.5, 1, 2, 3], "
      "memory_gbyte_s: 8,\n"
      "          network: {bandwidth_gbit_s: 0.5, latency_us: 40}}\n",
      "ghost.yaml", overrides);
  return ReadRunConfig(document);
}

TEST(GhostSummaries, AreThoseWrittenDown) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> runs = {
      {"allreduce", {"strategy.fusion_bytes=100000"}},
      {"allreduce", {"collective=ring", "cluster.per_node=2"}},
      {"allreduce", {"collective=halving_doubling", "strategy.fusion_bytes=100000"}},
      {"allreduce", {"collective=hierarchical", "cluster.per_node=2"}},
      {"allreduce", {"collective=double_trees"}},
      {"allreduce",
       {"overlap_buckets=true", "strategy.fusion_bytes=1000", "cluster.network.latency_us=5000"}},
      {"ps_bsp", {"strategy.servers=2"}},
      {"ps_asp", {"cluster.network.queue=fifo"}},
      {"ps_asp", {"compress.name=topk", "compress.density=0.01"}},
      {"ps_ssp", {"strategy.staleness=2", "strategy.servers=2"}},
      {"ps_dssp", {}},
      {"gssp", {"strategy.groups=2", "strategy.servers=2"}},
      {"gssp", {"strategy.servers=3", "compress.name=gdtopk"}},
      {"gssp", {"strategy.servers=2", "strategy.groups=2", "strategy.inside=bsp"}},
      {"inhad", {"cluster.per_node=2"}},
      {"inhad", {"cluster.per_node=3", "strategy.n=3", "strategy.s_max=2", "strategy.late=drop"}},
      {"inhad", {"cluster.per_node=2", "strategy.pipelined=true", "strategy.in_interval=20"}},
      {"inhad", {"cluster.per_node=2", "strategy.lockstep=true"}},
  };
  ordered_json found = ordered_json::array();
  for (const auto& [strategy, more] : runs) {
    SCOPED_TRACE(strategy);
    ordered_json one = {{"strategy", strategy}, {"settings", more}};
    const Summary summary = SimulatedRun(Config(strategy, more), std::nullopt, false).Run();
    one["summary"] = ordered_json::parse(ToJson(summary));
    one["summary"].erase("config_sha256");  // it changes with every new key
    found.push_back(std::move(one));
  }
  const std::filesystem::path golden =
      std::filesystem::path(DTRAIN_SOURCE_DIR) / "tests" / "runtime" / "ghost_summaries.json";
  const auto written_down =
      std::filesystem::exists(golden) ? ordered_json::parse(ReadFile(golden)) : ordered_json();
  if (found == written_down) return;
  const auto now = std::filesystem::temp_directory_path() / "ghost_summaries.json";
  std::ofstream(now) << found.dump(1) << '\n';
  ADD_FAILURE() << "differs from " << golden << ": "
                << ordered_json::diff(written_down, found).dump(1)
                << "\nwhat is found now: " << now;
}

}  // namespace
}  // namespace dtrain
