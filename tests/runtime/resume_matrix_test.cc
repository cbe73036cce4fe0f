// Asynchronous strategies that are interrupted and resumed: at the end of an epoch, in the middle of one, and killed
// while they write a checkpoint.  A simulated run equals the uninterrupted one to the bit; in a real run every count is
// exact.
#include <gtest/gtest.h>

#include "framework/checkpoint/rank_checkpoint.h"
#include "framework/checkpoint/weights_file.h"
#include "tests/runtime/resume_fixture.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

struct Case {
  std::string name;
  std::vector<std::string> keys;
};

void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }

const Case kCases[] = {
    {"ps_asp", {"strategy={name: ps_asp, servers: 2}"}},
    {"ps_asp_topk",
     {"strategy={name: ps_asp, placement: colocated}", "compress={name: topk, density: 0.05}"}},
    {"ps_ssp", {"strategy={name: ps_ssp, servers: 2, staleness: 1}"}},
    {"gssp", {"strategy={name: gssp, servers: 2, exchange_every: 3}"}},
    {"gssp_gdtopk",
     {"strategy={name: gssp, servers: 2, exchange_every: 3}", "compress={name: gdtopk}"}},
    {"inhad", {"strategy={name: inhad, in_interval: 5}", "cluster.per_node=2"}},
    {"easgd", {"strategy={name: easgd, servers: 2, period: 3}"}},
    {"local_sgd", {"strategy={name: local_sgd, period: 3}"}},
    // Other synchronous strategies write rank files only in simulations.
    {"allreduce", {"strategy={name: allreduce}"}},
    {"mgwfbp_oktopk",
     {"strategy={name: mgwfbp}", "compress={name: gaussiank, density: 0.05}",
      "compress.exchange=oktopk"}},
    {"allreduce_powersgd",
     {"strategy={name: allreduce, fusion_bytes: 0}", "compress={name: powersgd, rank: 2}"}},
    {"allreduce_ef_signsgd", {"strategy={name: allreduce}", "compress={name: ef_signsgd}"}},
    {"ps_bsp", {"strategy={name: ps_bsp, servers: 2}"}}};

class ResumeMatrixTest : public ResumeFixture, public testing::WithParamInterface<Case> {
 protected:
  RunConfig ConfigOf(const std::string& output, const std::vector<std::string>& more) const {
    std::vector<std::string> keys = GetParam().keys;
    keys.insert(keys.end(), more.begin(), more.end());
    return Config(output, keys);
  }

  // Resumes a simulated run from every checkpoint and, for one of them, from every state of the folder after a kill -9
  // while the next checkpoint is written.
  void CheckSimulated(const std::vector<std::string>& keys) const {
    const RunConfig whole_config = ConfigOf("whole", keys), again_config = ConfigOf("again", keys);
    const Summary whole = Simulate(whole_config, "none");
    const std::vector<fs::path> checkpoints = Checkpoints("whole");
    ASSERT_GE(checkpoints.size(), 3u);
    for (const fs::path& newest : checkpoints) {
      SCOPED_TRACE(newest.filename().string());
      CopyUpTo("whole", newest, "again");
      ExpectSame(Simulate(again_config, "auto"), whole);
      ExpectSameMetrics("again", "whole");
    }
    for (const std::string left :
         {"rank files", "half a rank file", "no main file", "half a main"}) {
      SCOPED_TRACE(left);
      const fs::path& newest = checkpoints[1];
      CopyUpTo("whole", newest, "again");
      Interrupt(folder_ / "again/checkpoints" / newest.filename(), left);
      ExpectSame(Simulate(again_config, "auto"), whole);
    }
  }

  // Leaves a step as a killed run does; each of its files appears at once, the main file last.
  static void Interrupt(const fs::path& main, const std::string& left) {
    if (left == "half a main") return fs::resize_file(main, fs::file_size(main) / 2);
    fs::remove(main);
    if (left == "rank files") fs::remove(RankFileOf(main, 2));
    if (left != "half a rank file") return;
    fs::rename(RankFileOf(main, 1), RankFileOf(main, 1).string() + ".tmp");
    fs::remove(RankFileOf(main, 2));
  }
};

TEST_P(ResumeMatrixTest, SimulatedFromTheEndOfAnEpoch) { CheckSimulated({}); }

TEST_P(ResumeMatrixTest, SimulatedFromTheMiddleOfAnEpoch) {
  CheckSimulated({"checkpoint.every_epochs=0", "checkpoint.every_steps=5", "epochs=2"});
}

INSTANTIATE_TEST_SUITE_P(All, ResumeMatrixTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace dtrain
