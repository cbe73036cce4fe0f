// Every compressor in every strategy family that accepts it: a run that is interrupted in the middle of an epoch
// resumes to the same bits.  A registered compressor is tested automatically.
#include <gtest/gtest.h>

#include <cctype>
#include <map>

#include "framework/compress/compressor.h"
#include "framework/strategies/strategy.h"
#include "tests/runtime/resume_fixture.h"

namespace dtrain {
namespace {

// Other keys that change the selection of a compressor.
const std::multimap<std::string, std::string> kOtherKeys = {{"gaussiank", "loop: published"},
                                                            {"dgc", "momentum_correction: false"},
                                                            {"randk", "seeds: same"},
                                                            {"trimmed", "selector: search"},
                                                            {"powersgd", "rank: 2"}};

// Returns a section `compress` for every compressor, at a density that leaves large residuals.
std::vector<std::string> Sections() {
  std::vector<std::string> sections;
  for (const auto& [name, entry] : CompressorRegistry::All()) {
    const std::unique_ptr<Compressor> compressor = entry.make();
    const bool has_density = compressor->sends_entries() && !compressor->density_by_strategy();
    const std::string section = "{name: " + name + (has_density ? ", density: 0.05" : "");
    sections.push_back(section + "}");
    const auto [begin, end] = kOtherKeys.equal_range(name);
    for (auto keys = begin; keys != end; ++keys) {
      sections.push_back(section + ", " + keys->second + "}");
    }
  }
  return sections;
}

std::string NameIn(const std::string& section) {
  return section.substr(7, section.find_first_of(",}") - 7);
}

// Returns one strategy of each group with the same timing of steps and the same compressors: the last by name, so wfbp
// of the synchronous ones, with a bucket per layer.  Strategies that plan by measured times are left out: two runs may
// have other buckets.
std::vector<std::string> OneOfEachFamily(const std::string& compressor) {
  std::map<std::pair<bool, std::vector<std::string>>, std::string> families;
  for (const std::string& name : StrategiesOf(compressor)) {
    const std::unique_ptr<Strategy> strategy = StrategyRegistry::Get("strategy", name).make();
    if (strategy->PlansByTime()) continue;
    families[{strategy->traits().lockstep, CompressorsOf(*strategy)}] = name;
  }
  std::vector<std::string> names;
  for (const auto& [family, name] : families) names.push_back(name);
  return names;
}

class CompressorResumeTest : public ResumeFixture, public testing::WithParamInterface<std::string> {
 protected:
  RunConfig ConfigOf(const std::string& output, const std::string& strategy,
                     std::vector<std::string> more) const {
    more.insert(more.begin(),
                {"strategy={name: " + strategy + "}", "compress=" + GetParam(),
                 "checkpoint.every_epochs=0", "checkpoint.every_steps=5", "epochs=1"});
    return Config(output, more);
  }

  // Leaves in folder_/again what the run in folder_/whole had written half-way.
  void Interrupt() const {
    const std::vector<std::filesystem::path> checkpoints = Checkpoints("whole");
    ASSERT_GE(checkpoints.size(), 3u);
    CopyUpTo("whole", checkpoints[1], "again");
    std::filesystem::remove_all(folder_ / "whole");
  }
};

TEST_P(CompressorResumeTest, SimulatedRunsGoOnToTheSameBits) {
  const std::vector<std::string> strategies = OneOfEachFamily(NameIn(GetParam()));
  ASSERT_FALSE(strategies.empty());
  for (const std::string& strategy : strategies) {
    SCOPED_TRACE(strategy);
    const Summary whole = Simulate(ConfigOf("whole", strategy, {}), "none");
    Interrupt();
    ExpectSame(Simulate(ConfigOf("again", strategy, {}), "auto"), whole);
  }
}

// Only runs whose result does not depend on the order of messages: synchronous ones, or one worker.
TEST_P(CompressorResumeTest, RealRunsGoOnToTheSameBits) {
  for (const std::string& name : OneOfEachFamily(NameIn(GetParam()))) {
    SCOPED_TRACE(name);
    const bool in_step = StrategyRegistry::Get("strategy", name).make()->traits().lockstep;
    const std::vector<std::string> cluster = {
        "cluster={}", std::string("cluster.workers=") + (in_step ? "3" : "1")};
    const TrainResult whole = Run(ConfigOf("whole", name, cluster));
    Interrupt();
    const TrainResult again =
        Run(ConfigOf("again", name, cluster), {.resume = "auto", .weights = ""});
    EXPECT_EQ(again.summary.weights_sha256, whole.summary.weights_sha256);
  }
}

INSTANTIATE_TEST_SUITE_P(Registry, CompressorResumeTest, testing::ValuesIn(Sections()),
                         [](const auto& info) {
                           std::string name = info.param.substr(7);
                           std::erase_if(name, [](char c) {
                             return !std::isalnum(static_cast<unsigned char>(c));
                           });
                           return name;
                         });

}  // namespace
}  // namespace dtrain
