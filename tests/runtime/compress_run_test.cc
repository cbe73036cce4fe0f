// Whole runs with a compressor: the config, the learnt model and the summary.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/core/file.h"
#include "framework/core/timeline_file.h"
#include "framework/setup/run_exchange.h"
#include "framework/simulate/simulated_run.h"
#include "tests/runtime/run_fixture.h"

namespace dtrain {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class CompressRunTest : public RunFixture {
 protected:
  // The strategy is ps_asp unless `more` begins with a section `strategy`.
  RunConfig Config(const std::string& output, const std::vector<std::string>& more) {
    std::vector<std::string> settings = {"epochs=3", "threads=1"};
    if (more.empty() || !more[0].starts_with("strategy=")) {
      settings.insert(settings.end(), {"strategy.name=ps_asp", "strategy.placement=colocated"});
    }
    return OnDigits(output, settings, more);
  }
  nlohmann::json SummaryOf(const std::string& output) const {
    return nlohmann::json::parse(ReadFile(folder_ / output / "summary.json"));
  }
};

TEST_F(CompressRunTest, AtDensityOneTheWeightsAreThoseOfTheDenseRun) {
  const std::string dense = Run(Config("dense", {})).summary.weights_sha256;
  EXPECT_EQ(Run(Config("all", {"compress.name=topk", "compress.density=1"})).summary.weights_sha256,
            dense);
  EXPECT_NE(
      Run(Config("some", {"compress.name=topk", "compress.density=0.5"})).summary.weights_sha256,
      dense);
}

TEST_F(CompressRunTest, OneEntryInAHundredLearnsAllTheSame) {
  const TrainResult result =
      Run(Config("run", {"compress.name=topk", "compress.density=0.01", "epochs=12"}));
  EXPECT_GT(*result.summary.test->accuracy, 0.4);  // guessing gives 0.1
  const nlohmann::json summary = SummaryOf("run");
  EXPECT_EQ(summary["compressor"], "topk");
  EXPECT_NEAR(summary["communication"]["density"], 0.01, 1e-4);
  EXPECT_GT(summary["communication"]["compress_seconds"], 0);
}

TEST_F(CompressRunTest, TwoWorkersAndTwoServersSendWhatTheDensitySays) {
  const std::vector<std::string> two = {"cluster.workers=2", "strategy.servers=2",
                                        "strategy.placement=dedicated"};
  std::vector<std::string> sparse = two;
  sparse.insert(sparse.end(), {"compress.name=topk", "compress.density=0.02"});
  Run(Config("dense", two));
  Run(Config("sparse", sparse));
  const nlohmann::json all = SummaryOf("dense"), some = SummaryOf("sparse");
  // Only the gradients are compressed: of two gradients and two sets of weights, the weights and little more remain.
  const double bytes = some["communication"]["bytes_sent"],
               before = all["communication"]["bytes_sent"];
  EXPECT_NEAR(bytes / before, 0.52, 0.06);
  EXPECT_FALSE(all.contains("compressor"));
  EXPECT_FALSE(all["communication"].contains("density"));
  EXPECT_FALSE(all["communication"].contains("compress_seconds"));
}

TEST_F(CompressRunTest, AStrategyThatTakesNoneSaysWhichDo) {
  const auto error_of = [&](std::vector<std::string> more) {
    return MessageOf([&] { Config("run", std::move(more)); });
  };
  EXPECT_THAT(
      error_of({"strategy.name=ps_bsp", "compress.name=topk"}),
      AllOf(HasSubstr("strategy 'ps_bsp' takes no compressor"),
            HasSubstr("topk goes with allreduce, auto, mgwfbp, naive, ps_asp, ps_dssp, ps_ssp, "
                      "single, wfbp")));
  EXPECT_THAT(error_of({"compress.name=gdtopk"}),
              AllOf(HasSubstr("strategy 'ps_asp' takes no compressor 'gdtopk'"),
                    HasSubstr("ps_asp takes bf16, dgc, fp16, gaussiank, randk, topk, trimmed")));
  EXPECT_THAT(error_of({"compress.name=topk", "compress.density=0"}),
              HasSubstr("compress.density must be > 0"));
  EXPECT_EQ(error_of({"compress.name=topk", "strategy.name=ps_ssp"}), "no error");
  EXPECT_EQ(error_of({"compress.name=none", "strategy.name=ps_bsp"}), "no error");
  EXPECT_THAT(error_of({"compress.name=topk", "compress.exchange=gtopk"}),
              HasSubstr("'exchange'"));  // messages go to servers
}

// The workers have the momentum and the solver has none; it is saved with the residuals.
TEST_F(CompressRunTest, DgcTakesOverTheMomentumOfSgd) {
  const auto of = [&](const std::string& output, std::vector<std::string> more) {
    more.insert(more.begin(), {"strategy={name: wfbp}", "compress={name: dgc, density: 0.05}",
                               "cluster.workers=2"});
    return Config(output, more);
  };
  const RunConfig config = of("whole", {});
  EXPECT_EQ(config.compress.momentum, 0.9);
  EXPECT_TRUE(config.solver.solver->StateNames().empty());
  const std::string whole = Run(config).summary.weights_sha256;
  Run(of("part", {"max_steps=10"}));
  EXPECT_EQ(Run(of("part", {}), {.resume = "auto", .weights = ""}).summary.weights_sha256, whole);
  const RunConfig plain = of("plain", {"compress.momentum_correction=false"});
  EXPECT_EQ(plain.compress.momentum, 0);
  EXPECT_FALSE(plain.solver.solver->StateNames().empty());
  EXPECT_NE(Run(plain).summary.weights_sha256, whole);
  EXPECT_THAT(MessageOf([&] { of("adam", {"solver={name: adam}"}); }),
              HasSubstr("takes over the momentum of plain sgd; solver 'adam' has another kind"));
  EXPECT_EQ(Config("asp", {"compress={name: dgc, density: 0.05}"}).compress.momentum, 0);
}

// The factors of powersgd are state of a rank and belong to their number of columns.
TEST_F(CompressRunTest, AnotherRankBeginsItsFactorsAnew) {
  const auto of = [&](const std::string& rank, const std::string& steps) {
    return Config("run", {"strategy={name: wfbp}", "compress={name: powersgd, rank: " + rank + "}",
                          "cluster.workers=2", "max_steps=" + steps});
  };
  Run(of("2", "5"));
  ::testing::internal::CaptureStderr();
  const Summary summary = Run(of("3", "10"), {.resume = "auto", .weights = ""}).summary;
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("rank: 2"), HasSubstr("rank: 3"),
                    HasSubstr("worker 0 takes over the sum of all residuals")));
  EXPECT_EQ(summary.status, "completed");
  EXPECT_EQ(summary.step, 10);
}

// At density 1 every entry is sent, so a run of dgc is the dense run, its weight decay included.
TEST_F(CompressRunTest, DgcThatSendsAllDecaysAsTheDenseRun) {
  const auto loss = [&](const std::string& output, const std::string& compress) {
    return Run(Config(output, {"strategy={name: wfbp}", "compress=" + compress,
                               "solver.weight_decay=0.3", "cluster.workers=2"}))
        .summary.test->loss;
  };
  const double dense = loss("dense", "none");
  EXPECT_NEAR(loss("dgc", "{name: dgc, density: 1}"), dense, 1e-4 * dense);
}

TEST_F(CompressRunTest, AnAsynchronousStrategyHasOneDensity) {
  const auto error_of = [&](const std::string& key) {
    return MessageOf([&] { Config("run", {"compress.name=topk", "compress." + key}); });
  };
  const auto refused = HasSubstr("strategy 'ps_asp' has one density all the time");
  EXPECT_THAT(error_of("density_warmup=[0.25, 0.0625]"), refused);
  EXPECT_THAT(error_of("dense_steps=5"), refused);
  EXPECT_EQ(error_of("dense_steps=0"), "no error");
}

// Real and simulated runs with each sparse collective.  A resumed run continues with each rank's residual, and with the
// thresholds and regions of oktopk.
class SumsOfSelectionsTest : public CompressRunTest,
                             public testing::WithParamInterface<const char*> {
 protected:
  RunConfig Of(const std::string& output, std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"strategy={name: allreduce, fusion_bytes: 100000}",
                               "compress={name: topk, density: 0.02}", "cluster.workers=3",
                               std::string("compress.exchange=") + GetParam()});
    return Config(output, more);
  }
};

TEST_P(SumsOfSelectionsTest, GoOnToTheSameBitsAfterAResume) {
  const TrainResult whole = Run(Of("whole"));
  EXPECT_NEAR(SummaryOf("whole")["communication"]["density"], 0.02, 2e-3);
  Run(Of("part", {"max_steps=9"}));
  const TrainResult rest = Run(Of("part"), {.resume = "auto", .weights = ""});
  EXPECT_EQ(rest.summary.weights_sha256, whole.summary.weights_sha256);
}

TEST_P(SumsOfSelectionsTest, HaveTheBitsOfARealRunInVirtualTime) {
  const RunConfig config = Of("simulated");
  SimulatedRun simulated(config, std::nullopt, true);
  EXPECT_EQ(simulated.Run().weights_sha256, Run(Of("real")).summary.weights_sha256);
}

// With another sparse collective, or other units, a run resumes with the model's weights and the sum of the residuals.
TEST_P(SumsOfSelectionsTest, MayChangeOnResume) {
  for (const std::string change : {GetParam() == std::string("gather") ? "compress.exchange=oktopk"
                                                                       : "compress.exchange=gather",
                                   "compress.scope=model", "compress.density=1"}) {
    Run(Of("part", {"max_steps=9", "output=" + (folder_ / change).string()}));
    const TrainResult rest = Run(Of("part", {change, "output=" + (folder_ / change).string()}),
                                 {.resume = "auto", .weights = ""});
    EXPECT_EQ(rest.code, ExitCode::kDone) << change;
  }
}

// The first steps are dense, then two densities follow, with thresholds kept from step to step.
TEST_P(SumsOfSelectionsTest, FollowTheDensitiesOfTheEpochs) {
  const std::vector<std::string> keys = {"compress.name=gaussiank", "compress.dense_steps=2",
                                         "compress.density_warmup=[0.5, 0.1]"};
  const std::string whole = Run(Of("whole", keys)).summary.weights_sha256;
  // Of 21 steps, 2 dense ones are not counted; 5 have density 0.5, 7 have 0.1 and 7 have 0.02.  gaussiank may be off by
  // a third.
  EXPECT_NEAR(SummaryOf("whole")["communication"]["density"], (5 * 0.5 + 7 * 0.1 + 7 * 0.02) / 19,
              0.06);
  std::vector<std::string> part = keys;
  part.emplace_back("max_steps=10");
  Run(Of("part", part));
  EXPECT_EQ(Run(Of("part", keys), {.resume = "auto", .weights = ""}).summary.weights_sha256, whole);
  const RunConfig config = Of("simulated", keys);
  SimulatedRun simulated(config, std::nullopt, true);
  EXPECT_EQ(simulated.Run().weights_sha256, whole);
}

INSTANTIATE_TEST_SUITE_P(Exchanges, SumsOfSelectionsTest,
                         testing::Values("gather", "gtopk", "oktopk"));

// Casts send half the bytes; a simulated run and a resumed run have the same bits as the real one.
class CastRunTest : public CompressRunTest, public testing::WithParamInterface<std::string> {
 protected:
  RunConfig Of(const std::string& output, const std::string& strategy,
               std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"strategy=" + strategy, "compress={name: " + GetParam() + "}"});
    return Config(output, more);
  }
};

TEST_P(CastRunTest, SynchronousOnesRepeatInVirtualTimeAndBehindAResume) {
  const std::string strategy = "{name: allreduce, fusion_bytes: 100000}";
  const std::vector<std::string> three = {"cluster.workers=3", "gradients.every=4"};
  const TrainResult whole = Run(Of("whole", strategy, three));
  EXPECT_EQ(SummaryOf("whole")["communication"]["density"], 1);
  EXPECT_EQ(SummaryOf("whole")["compressor"], GetParam());
  std::vector<std::string> part = three;
  part.emplace_back("max_steps=9");
  Run(Of("part", strategy, part));
  const TrainResult rest = Run(Of("part", strategy, three), {.resume = "auto", .weights = ""});
  EXPECT_EQ(rest.summary.weights_sha256, whole.summary.weights_sha256);

  const RunConfig config = Of("simulated", strategy, three);
  std::filesystem::create_directories(folder_ / "simulated");
  SimulatedRun simulated(config, std::nullopt, true);
  simulated.StudyGradients(folder_ / "simulated");
  const Summary virtual_one = simulated.Run();
  EXPECT_EQ(virtual_one.weights_sha256, whole.summary.weights_sha256);
  EXPECT_NEAR(static_cast<double>(virtual_one.communication->bytes_sent),
              static_cast<double>(whole.summary.communication->bytes_sent), 1000);
  EXPECT_EQ(ReadFile(folder_ / "simulated" / "gradients.jsonl"),
            ReadFile(folder_ / "whole" / "gradients.jsonl"));

  std::vector<std::string> dense = three;
  dense.emplace_back("compress={name: none}");
  Run(Of("dense", strategy, dense));
  const double bytes = SummaryOf("whole")["communication"]["bytes_sent"],
               before = SummaryOf("dense")["communication"]["bytes_sent"];
  EXPECT_NEAR(bytes / before, 0.5, 0.01);
}

// The weights return uncast.
TEST_P(CastRunTest, MessagesToServersHaveHalfTheBytes) {
  const std::string strategy = "{name: ps_asp, servers: 2}";
  Run(Of("short", strategy, {"cluster.workers=2"}));
  Run(Of("dense", strategy, {"cluster.workers=2", "compress={name: none}"}));
  const nlohmann::json some = SummaryOf("short"), all = SummaryOf("dense");
  EXPECT_NEAR(some["communication"]["bytes_sent"].get<double>() /
                  all["communication"]["bytes_sent"].get<double>(),
              0.75, 0.03);
  EXPECT_GT(some["test"]["accuracy"], 0.15);
}

TEST_P(CastRunTest, OneWorkerBesideItsServerRepeatsInVirtualTime) {
  const std::string strategy = "{name: ps_asp, placement: colocated}";
  const TrainResult whole = Run(Of("whole", strategy));
  Run(Of("part", strategy, {"max_steps=9"}));
  EXPECT_EQ(Run(Of("part", strategy), {.resume = "auto", .weights = ""}).summary.weights_sha256,
            whole.summary.weights_sha256);
  const RunConfig config = Of("simulated", strategy);
  SimulatedRun simulated(config, std::nullopt, true);
  EXPECT_EQ(simulated.Run().weights_sha256, whole.summary.weights_sha256);
}

TEST_P(CastRunTest, WhatIsNotFiniteEndsTheRun) {
  for (const char* strategy : {"{name: wfbp}", "{name: ps_asp, placement: colocated}"}) {
    EXPECT_EQ(Run(Of("run", strategy, {"solver.lr=1e30", "checkpoint.every_epochs=0"})).code,
              ExitCode::kDiverged)
        << strategy;
  }
}

TEST_P(CastRunTest, KeysOfSelectionsAreNotItsOwn) {
  for (const char* key : {"density=0.1", "scope=layer", "exchange=gather"}) {
    EXPECT_THAT(MessageOf([&] { Of("run", "{name: wfbp}", {std::string("compress.") + key}); }),
                HasSubstr("unknown key"))
        << key;
  }
  EXPECT_THAT(MessageOf([&] { Of("run", "{name: wfbp}", {"collective=mpi"}); }),
              HasSubstr("collective 'mpi' sums floats of 32 bits"));
  EXPECT_THAT(MessageOf([&] { Of("run", "{name: inhad}"); }), HasSubstr("takes no compressor"));
}

INSTANTIATE_TEST_SUITE_P(Casts, CastRunTest, testing::Values("fp16", "bf16"));

std::vector<std::string> Selectors() {
  const std::unique_ptr<Strategy> strategy = StrategyRegistry::Get("strategy", "wfbp").make();
  std::vector<std::string> names;
  for (const std::string& name : CompressorsOf(*strategy)) {
    if (CompressorRegistry::Get("compressor", name).make()->sends_entries()) names.push_back(name);
  }
  return names;
}

// Each compressor uses random numbers or thresholds of its own.
TEST_F(CompressRunTest, SelectedLayerByLayerNoScheduleChangesABit) {
  ASSERT_GE(Selectors().size(), 5u);
  for (const std::string& name : Selectors()) {
    const auto hash = [&](const std::string& strategy) {
      return Run(Config(name + strategy, {"strategy={name: " + strategy + "}",
                                          "compress={name: " + name + ", scope: layer}",
                                          "cluster.workers=2", "max_steps=4"}))
          .summary.weights_sha256;
    };
    EXPECT_EQ(hash("wfbp"), hash("single")) << name;
  }
}

TEST_F(CompressRunTest, ARunSaysWhereItsBitsFollowMeasuredBuckets) {
  const auto warnings = [&](const std::string& compress) {
    return Config("run", {"strategy={name: mgwfbp}", "compress=" + compress}).warnings;
  };
  using testing::ElementsAre;
  EXPECT_THAT(
      warnings("{name: topk, scope: bucket}"),
      ElementsAre(AllOf(HasSubstr("selected from each bucket"), HasSubstr("scope layer or"))));
  EXPECT_THAT(warnings("{name: topk, scope: layer, exchange: oktopk}"),
              ElementsAre(AllOf(HasSubstr("oktopk keeps the largest sums of each"),
                                HasSubstr("compress.scope model, or the plan of another run"))));
  EXPECT_THAT(warnings("{name: bf16}"), ElementsAre(HasSubstr("which rank rounds a sum")));
  for (const char* const same : {"{name: topk, scope: layer}", "{name: randk, scope: layer}",
                                 "{name: topk, scope: model, exchange: gtopk}"}) {
    EXPECT_THAT(warnings(same), testing::IsEmpty()) << same;
  }
}

// The workers apply sgd's momentum and clipping; a solver with another kind of momentum is refused.
TEST_F(CompressRunTest, DgcSaysWhatItTakesOverFromTheSolver) {
  const RunConfig config = Config("run", {"strategy={name: wfbp}", "compress={name: dgc}",
                                          "solver={name: sgd, momentum: 0.8, clip_norm: 2}"});
  EXPECT_EQ(config.compress.momentum, 0.8);
  EXPECT_EQ(config.compress.clip_norm, 2);
  EXPECT_EQ(config.solver.clip_norm, 0);
  EXPECT_THAT(config.notes, testing::ElementsAre(AllOf(
                                HasSubstr("dgc: each worker keeps sgd's momentum (0.8) and clips"),
                                HasSubstr("clip_norm 2 / sqrt(workers)"))));
  testing::internal::CaptureStderr();
  Run(Config("run", {"strategy={name: wfbp}", "compress={name: dgc}", "max_steps=1"}));
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("the solver runs without"));
}

// Summing each of two layers takes a second, and both together 1.5 seconds.
TEST_F(CompressRunTest, WorkersThatClipArePlannedToSendBehindTheBackwardPass) {
  LayerGradients layer_gradients{{{0, 100}, {100, 200}}};
  layer_gradients.ready = {1, 2};
  layer_gradients.reduce_seconds = [](int64_t bytes) {
    return 0.5 + static_cast<double>(bytes) / 800;
  };
  const auto plan = [&](const std::string& solver) {
    ExecutionPlan decided;
    DecideBuckets(Config("run", {"strategy={name: mgwfbp}", "compress={name: dgc, scope: layer}",
                                 "cluster.workers=2", "solver=" + solver}),
                  layer_gradients, decided);
    return decided;
  };
  const ExecutionPlan overlaps = plan("{name: sgd}"), waits = plan("{name: sgd, clip_norm: 1}");
  EXPECT_EQ(overlaps.buckets.size(), 2u);
  EXPECT_DOUBLE_EQ(overlaps.predicted_seconds, 3);
  EXPECT_EQ(waits.buckets.size(), 1u);
  EXPECT_DOUBLE_EQ(waits.predicted_seconds, 3.5);
}

TEST_F(CompressRunTest, TheTimelineShowsSelections) {
  const auto timeline = [&](const std::string& name, bool simulated) {
    const RunConfig config = Config(name, {"strategy={name: wfbp}", "compress.name=" + name,
                                           "cluster.workers=2", "max_steps=2", "timeline=true"});
    if (!simulated) {
      Run(config);
      return ReadFile(folder_ / name / "timeline.json");
    }
    SimulatedRun run(config, std::nullopt, true);
    run.Run();
    TimelineFile file(folder_ / "simulated.json");
    for (const std::string& rank : run.timelines()) file.Add(rank);
    file.Finish();
    return ReadFile(folder_ / "simulated.json");
  };
  for (const bool simulated : {false, true}) {
    EXPECT_THAT(timeline("topk", simulated), HasSubstr("\"select\""));
    const std::string without = timeline("none", simulated);
    EXPECT_THAT(without, AllOf(HasSubstr("\"compute\""), Not(HasSubstr("\"select\""))));
  }
}

TEST_F(CompressRunTest, TimesOfSumsAreOfWhatIsSummed) {
  const auto by = [&](const std::string& compress) {
    return SumsBy(Config("run", {"compress=" + compress}));
  };
  EXPECT_EQ(by("none"), "ordered");
  EXPECT_EQ(by("{name: fp16}"), "fp16 by ordered");
  EXPECT_EQ(by("{name: topk, density: 0.02}"), "topk 0.02 by gather");
}

// Layers are compressed one by one, so it does not matter which are summed together.
TEST_F(CompressRunTest, MergingByMeasuredTimesChangesNoBitWhereLayersAreSelectedFrom) {
  const auto of = [&](const std::string& output, const std::string& strategy,
                      const std::string& scope) {
    return Config(output, {"strategy=" + strategy, "compress={name: topk, scope: " + scope + "}",
                           "cluster.workers=3", "max_steps=6"});
  };
  const TrainResult merged = Run(of("merged", "{name: mgwfbp}", "layer"));
  EXPECT_EQ(merged.summary.weights_sha256,
            Run(of("each", "{name: wfbp}", "layer")).summary.weights_sha256);
  EXPECT_GT(merged.summary.plan->predicted_seconds.value_or(0), 0);
  EXPECT_THAT(of("warned", "{name: mgwfbp}", "bucket").warnings,
              testing::Contains(HasSubstr("two runs may differ")));
  EXPECT_THAT(of("silent", "{name: mgwfbp}", "model").warnings, testing::IsEmpty());
}

TEST_F(CompressRunTest, TheEffectiveConfigHasTheSection) {
  EXPECT_THAT(Config("run", {"compress.name=topk"}).effective_yaml,
              AllOf(HasSubstr("density: 0.01"), HasSubstr("scope: bucket")));
  EXPECT_THAT(Config("run", {}).effective_yaml,
              AllOf(HasSubstr("compress:"), Not(HasSubstr("scope"))));
}

}  // namespace
}  // namespace dtrain
