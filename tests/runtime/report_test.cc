// Checks summary and metrics against what a run did: the traffic of its transports, its steps and learning rates, and
// the lines that it would have without an interruption.
#include "framework/results/summary.h"
#include "framework/setup/run_exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <numbers>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "framework/comm/local/local_world.h"
#include "framework/simulate/simulated_run.h"
#include "tests/runtime/rewrite_checkpoint.h"
#include "tests/runtime/run_fixture.h"
#include "tests/support/counting_transport.h"

namespace dtrain {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;

constexpr int64_t kParameters = 61706;  // of lenet5

class ReportTest : public RunFixture {
 protected:
  RunConfig Config(const std::string& output, int workers,
                   const std::vector<std::string>& more = {}) {
    return OnDigits(output,
                    {fmt::format("cluster.workers={}", workers), "epochs=3", "threads=1",
                     "log_first_steps=100"},
                    more);
  }

  // Returns the lines of metrics.jsonl without measured times.
  std::vector<json> Timeless(const std::string& output) const {
    std::vector<json> lines;
    std::ifstream in(folder_ / output / "metrics.jsonl");
    for (std::string line; std::getline(in, line);) {
      lines.push_back(json::parse(line));
      for (const char* key : {"seconds", "training_seconds", "samples_per_second",
                              "exposed_seconds", "evaluate_seconds", "write_seconds"}) {
        lines.back().erase(key);
      }
    }
    return lines;
  }
};

// --- the traffic of all ranks

// Returns a report of three workers and two servers, with distinct numbers.
RankReport ReportOf(int rank) {
  RankReport report;
  report.steps = 10 + rank;
  report.samples = 32 * (10 + rank);
  report.compute = (rank + 1) * Nanos{1'000'000'000};
  report.exchange.traffic = {100 * (rank + 1), 7 * (rank + 1), rank + 1};
  // The servers wait longest; no worker computes on their ranks.
  report.exchange.exposed = (rank < 3 ? 3 - rank : 50) * Nanos{1'000'000'000};
  // The worker's own count; another actor on its rank may have counted more.
  if (rank == 1) report.exchange.worker.staleness = {2, 0, 2};
  if (rank == 1) report.exchange.protocol.staleness = {2, 0, 2};
  if (rank == 3) report.exchange.protocol = {{1, 2}, 2};
  if (rank == 4) report.exchange.protocol = {{0, 1, 4}, 5};
  return report;
}

TEST(RankReport, TrafficIsOfAllRanksAndDetailOfWorkers) {
  Summary summary;
  LocalWorld::Run(5, [&](Transport& transport) {
    Summary mine;
    GatherReports(transport, ReportOf(transport.rank()), 3, 64, mine);
    if (transport.rank() == 0) summary = mine;
  });
  ASSERT_TRUE(summary.communication.has_value());
  EXPECT_EQ(summary.communication->bytes_sent, 100 + 200 + 300 + 400 + 500);
  EXPECT_EQ(summary.communication->bytes_received, 7 + 14 + 21 + 28 + 35);
  EXPECT_EQ(summary.communication->messages, 1 + 2 + 3 + 4 + 5);
  EXPECT_EQ(summary.communication->exposed_seconds, 3) << "of the workers";
  ASSERT_EQ(summary.workers_detail.size(), 3u);
  for (int rank = 0; rank < 3; ++rank) {
    const WorkerSummary& worker = summary.workers_detail[rank];
    EXPECT_EQ(worker.rank, rank);
    EXPECT_FALSE(worker.node.empty());
    EXPECT_EQ(worker.own_steps, 10 + rank);
    EXPECT_EQ(worker.steps, (10 + rank) / 2.0);
    EXPECT_EQ(worker.compute_seconds, 1 + rank);
    EXPECT_EQ(worker.wait_seconds, 3 - rank);
    EXPECT_EQ(worker.staleness_mean.has_value(), rank == 1);
  }
  EXPECT_EQ(summary.workers_detail[1].staleness_mean, 1);
  ASSERT_TRUE(summary.staleness.has_value());
  EXPECT_THAT(summary.staleness->histogram, ElementsAre(2 + 1, 2 + 1, 2 + 4));
  EXPECT_EQ(summary.staleness->max, 2);
  EXPECT_EQ(summary.staleness->mean, (3 * 1 + 6 * 2) / 12.0);
  EXPECT_EQ(summary.staleness->clock_lead_max, 5);
}

TEST(RankReport, OneRankHasNoCommunication) {
  Summary summary;
  LocalWorld::Run(1, [&](Transport& transport) {
    GatherReports(transport, {.steps = 4, .samples = 160}, 1, 64, summary);
  });
  EXPECT_FALSE(summary.communication.has_value());
  EXPECT_FALSE(summary.staleness.has_value());
  ASSERT_EQ(summary.workers_detail.size(), 1u);
  EXPECT_EQ(summary.workers_detail[0].own_steps, 4);
  EXPECT_EQ(summary.workers_detail[0].steps, 2.5);
}

struct Traffic {
  Summary summary;
  std::vector<Carried> ranks;
  Carried all;
};

Traffic TrainCounted(const RunConfig& config) {
  Traffic traffic;
  traffic.ranks.resize(PlacementOf(config).ranks());
  LocalWorld::Run(PlacementOf(config).ranks(), [&](Transport& inner) {
    CountingTransport transport(inner);
    const TrainResult result = Train(config, {}, transport);
    if (transport.rank() == 0) traffic.summary = result.summary;
    traffic.ranks[transport.rank()] = transport.of_steps();
    EXPECT_GT(transport.at_boundary().bytes_sent, 0);
  });
  for (const Carried& rank : traffic.ranks) {
    traffic.all.bytes_sent += rank.bytes_sent;
    traffic.all.bytes_received += rank.bytes_received;
    traffic.all.messages_sent += rank.messages_sent;
  }
  return traffic;
}

void ExpectItIsReported(const Traffic& traffic) {
  ASSERT_TRUE(traffic.summary.communication.has_value());
  const CommunicationSummary& said = *traffic.summary.communication;
  EXPECT_EQ(said.bytes_sent, traffic.all.bytes_sent);
  EXPECT_EQ(said.bytes_received, traffic.all.bytes_received);
  EXPECT_EQ(said.messages, traffic.all.messages_sent);
  EXPECT_EQ(said.bytes_received, said.bytes_sent) << "nothing is on its way at the end";
  for (const Carried& rank : traffic.ranks) EXPECT_GT(rank.bytes_sent, 0);
}

// A summary's `communication` has every byte and message that any rank sent from its first step to its last boundary:
// vectors, headers and the messages of boundaries.  What ranks send at a boundary and at the start (weights for an
// evaluation, agreement) is not counted.
TEST_F(ReportTest, BytesAndMessagesAreThoseThatTheTransportsCarried) {
  const struct {
    int workers;
    std::vector<std::string> overrides;
  } runs[] = {
      {3, {"strategy.name=allreduce"}},
      {3, {"strategy={name: allreduce, fusion_bytes: 20000}", "collective=ring"}},
      {2, {"strategy={name: ps_bsp, servers: 2}"}},
      {3, {"strategy={name: ps_ssp, servers: 2, placement: colocated}"}},
      {2, {"strategy={name: ps_asp, servers: 3}"}},
  };
  for (const auto& run : runs) {
    const std::string& strategy = run.overrides[0];
    SCOPED_TRACE(strategy);
    std::vector<std::string> overrides = run.overrides;
    overrides.push_back("epochs=1");
    ExpectItIsReported(
        TrainCounted(Config(fmt::format("run-{}", &run - runs), run.workers, overrides)));
  }
}

TEST_F(ReportTest, BytesOfAGradientAndTransfersOfParameterServersAreReported) {
  for (const std::string strategy :
       {"{name: ps_bsp, servers: 2}", "{name: ps_ssp}", "{name: ps_asp, prefetch: true}"}) {
    SCOPED_TRACE(strategy);
    const RunConfig config = Config("run", 2, {"strategy=" + strategy});
    const Summary real = Run(config).summary;
    std::filesystem::remove_all(folder_ / "run");
    const Summary simulated = SimulatedRun(config, std::nullopt, false).Run();
    for (const Summary& summary : {real, simulated}) {
      int64_t steps = 0;
      for (const WorkerSummary& worker : summary.workers_detail) steps += worker.own_steps;
      ASSERT_TRUE(summary.protocol.has_value());
      EXPECT_EQ(summary.protocol->Total("up_transfers"), steps);
      EXPECT_EQ(summary.protocol->up_transfers_per_gradient, 1);
      // A step that the end of the run keeps from starting may have its weights or lack them.
      EXPECT_NEAR(summary.protocol->Total("down_transfers"), steps, 2);
      // One gradient and the weights in the answer, plus some headers.
      EXPECT_NEAR(*summary.communication->bytes_per_gradient, 2 * 4 * kParameters,
                  0.03 * 8 * kParameters);
    }
  }
  const Summary sync = Run(Config("sync", 2, {"epochs=2"})).summary;
  EXPECT_EQ(*sync.communication->bytes_per_gradient, 4 * (kParameters + 3));
}

// Dividing one by the other gives the rate of this part of the run.
TEST_F(ReportTest, AResumedRunCountsFromItsResume) {
  for (const std::string strategy :
       {"{name: ps_ssp, servers: 2}", "{name: gssp, servers: 2}", "{name: inhad}"}) {
    SCOPED_TRACE(strategy);
    const auto part = [&](int steps, const std::string& resume) {
      return Run(Config("run", 3, {"strategy=" + strategy, fmt::format("max_steps={}", steps)}),
                 {.resume = resume})
          .summary;
    };
    const Summary first = part(10, "none"), second = part(14, "auto");
    std::filesystem::remove_all(folder_ / "run");
    for (const Summary& summary : {first, second}) {
      int64_t steps = 0, gradients = 0;
      for (const WorkerSummary& worker : summary.workers_detail) steps += worker.own_steps;
      for (const int64_t count : summary.staleness->histogram) gradients += count;
      EXPECT_EQ(gradients, steps);
      if (strategy != "{name: inhad}") {
        EXPECT_EQ(summary.protocol->Total("up_transfers"), steps);
        EXPECT_NEAR(summary.protocol->Total("down_transfers"), steps, 3)
            << "one of each worker is late";
      }
      EXPECT_GT(summary.staleness->histogram.back(), 0);
    }
    EXPECT_EQ(second.staleness->clock_lead_max.has_value(), strategy != "{name: inhad}");
  }
}

// The all-reduces of batch statistics within a step count as messages too.
TEST_F(ReportTest, MessagesOfBatchStatisticsCount) {
  std::ofstream(folder_ / "normed.yaml") << R"(
name: normed
layers:
  - {name: conv, type: convolution, outputs: 8, kernel: 3, stride: 2, bias: false}
  - {name: norm, type: batch_norm}
  - {name: fc, type: inner_product, outputs: 10}
  - {name: loss, type: softmax_cross_entropy, input: [fc, label]}
)";
  const std::vector<std::string> normed = {"model.name=" + (folder_ / "normed.yaml").string(),
                                           "epochs=1"};
  std::vector<std::string> sync = normed;
  sync.push_back("batch_norm=sync");
  const Traffic local = TrainCounted(Config("local", 2, normed));
  const Traffic together = TrainCounted(Config("sync", 2, sync));
  ExpectItIsReported(local);
  ExpectItIsReported(together);
  EXPECT_GT(together.summary.communication->bytes_sent, local.summary.communication->bytes_sent);
}

// Reduce-scatter and all-gather: P ranks together send every float 2 (P - 1) times, including those of the report
// {samples, loss, stop} after the gradient.
TEST_F(ReportTest, AllReduceSendsWhatItsFormulaSays) {
  for (const int workers : {2, 3, 5}) {
    const Summary summary =
        Run(Config(fmt::format("of-{}", workers), workers, {"epochs=2"})).summary;
    EXPECT_EQ(summary.communication->bytes_sent, 14 * 2 * (workers - 1) * 4 * (kParameters + 3));
  }
}

// A real run may count its messages once more before a boundary: then the leader sends each other rank one word and
// gets five, each after a header of 22 bytes.  Otherwise the simulation sends as many bytes as the run.
TEST_F(ReportTest, ASimulatedRunSendsAsMuchAsARealOne) {
  for (const std::string strategy : {"{name: ps_bsp, servers: 2}", "{name: ps_bsp, servers: 1}"}) {
    SCOPED_TRACE(strategy);
    const RunConfig config = Config(
        "run", 3, {"strategy=" + strategy, "evaluate.every_epochs=0", "checkpoint.every_epochs=0"});
    const CommunicationSummary real = *Run(config).summary.communication;
    const CommunicationSummary simulated =
        *SimulatedRun(config, std::nullopt, false).Run().communication;
    std::filesystem::remove_all(folder_ / "run");
    const int64_t asked = PlacementOf(config).ranks() - 1;
    const int64_t more = (real.messages - simulated.messages) / (2 * asked);
    EXPECT_EQ(real.messages, simulated.messages + more * 2 * asked);
    EXPECT_EQ(real.bytes_sent, simulated.bytes_sent + more * asked * (22 + 8 + 22 + 40));
    EXPECT_EQ(simulated.bytes_received, simulated.bytes_sent);
  }
}

// --- steps

TEST_F(ReportTest, WorkersAreListedWithTheirStepsAndServersAreNot) {
  const Summary bsp = Run(Config("bsp", 3, {"strategy={name: ps_bsp, servers: 2}"})).summary;
  EXPECT_EQ(bsp.workers, 3);
  EXPECT_EQ(bsp.servers, 2);
  ASSERT_EQ(bsp.workers_detail.size(), 3u);
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(bsp.workers_detail[rank].rank, rank);
    EXPECT_EQ(bsp.workers_detail[rank].own_steps, 3 * 7);
  }
  EXPECT_EQ(bsp.steps, 3 * 400 / 64.0);

  // There are 384 samples: each of two workers has mini-batches of 32.
  const Summary asp =
      Run(Config("asp", 2, {"strategy={name: ps_asp, servers: 3}", "data.train_samples=384"}))
          .summary;
  ASSERT_EQ(asp.workers_detail.size(), 2u);
  const int64_t steps = asp.workers_detail[0].own_steps + asp.workers_detail[1].own_steps;
  EXPECT_EQ(static_cast<double>(steps * 32), asp.steps * 64);
  EXPECT_GE(asp.epochs, 3);
  EXPECT_EQ(asp.epochs, static_cast<double>(steps * 32) / 384);
  ASSERT_TRUE(asp.staleness.has_value());
  int64_t gradients = 0, versions = 0;
  for (size_t s = 0; s < asp.staleness->histogram.size(); ++s) {
    gradients += asp.staleness->histogram[s];
    versions += static_cast<int64_t>(s) * asp.staleness->histogram[s];
  }
  EXPECT_EQ(gradients, steps);
  EXPECT_EQ(asp.staleness->max, static_cast<int64_t>(asp.staleness->histogram.size()) - 1);
  EXPECT_GT(asp.staleness->histogram.back(), 0);
  EXPECT_DOUBLE_EQ(asp.staleness->mean,
                   static_cast<double>(versions) / static_cast<double>(gradients));
}

TEST_F(ReportTest, LinesSayHowFarTheRunIs) {
  Run(Config("run", 2));
  const std::vector<json> steps = Lines("run", "step");
  ASSERT_EQ(steps.size(), 21u);
  int64_t samples = 0;
  for (int64_t i = 0; i < 21; ++i) {
    samples += i % 7 == 6 ? 16 : 64;
    EXPECT_EQ(steps[i]["step"], i + 1);
    EXPECT_EQ(steps[i]["epoch"], 1 + i / 7);
    EXPECT_EQ(steps[i]["samples"], samples);
  }
}

// --- rates

// The formulas of the schedules, from their header.
double Expected(double samples_before, double epoch_samples, double epochs) {
  const double done = samples_before / epoch_samples;
  const double cosine = 0.1 + 0.9 * (1 + std::cos(std::numbers::pi * done / epochs)) / 2;
  return 0.05 * cosine * (done < 1.5 ? 0.1 + 0.9 * done / 1.5 : 1);
}

const std::vector<std::string> kCosine = {
    "solver={name: sgd, lr: 0.05, warmup_epochs: 1.5, schedule: {name: cosine, to: 0.1}}"};

// The last batch of an epoch is smaller: the rate of its step is still that of the samples before it.
TEST_F(ReportTest, TheLoggedRateIsTheOneOfTheStep) {
  for (const auto& [output, workers] : {std::pair<std::string, int>{"one", 1}, {"two", 2}}) {
    Run(Config(output, workers, kCosine));
    double before = 0;
    for (const json& line : Lines(output, "step")) {
      const double expected = Expected(before, 400, 3);
      EXPECT_NEAR(line["lr"].get<double>(), expected, 1e-12) << output << ' ' << line;
      before = line["samples"];
    }
    EXPECT_EQ(before, 3 * 400);
  }
}

TEST_F(ReportTest, AnAsynchronousRunLogsTheRateOfItsLastGlobalBatch) {
  std::vector<std::string> overrides = kCosine;
  overrides.insert(overrides.end(),
                   {"strategy={name: ps_ssp, staleness: 1}", "data.train_samples=384"});
  Run(Config("run", 2, overrides));
  const std::vector<json> lines = Lines("run", "step");
  ASSERT_FALSE(lines.empty());  // rank 0 may be informed of several batches at once
  for (const json& line : lines) {
    const double before = line["samples"].get<double>() - 64;
    EXPECT_NEAR(line["lr"].get<double>(), Expected(before, 384, 3), 1e-12) << line;
  }
}

// This holds even if rank 0 is informed only at a boundary.
TEST_F(ReportTest, AnAsynchronousRunLogsItsLastStep) {
  const auto run = [this](const std::string& output, int workers) {
    const std::string strategy = "strategy={name: ps_ssp, placement: colocated}";
    return Run(Config(output, workers, {strategy, "max_steps=3"})).summary;
  };
  const Summary alone = run("one", 1);
  const std::vector<json> lines = Lines("one", "step");
  EXPECT_EQ(lines.size(), 3u);
  EXPECT_DOUBLE_EQ(lines.back()["samples"].get<double>(), alone.steps * 64);
  EXPECT_DOUBLE_EQ(lines.back()["loss"].get<double>(), *alone.train_loss);
  run("three", 3);
  std::vector<int64_t> steps;  // rank 0 may be informed of several at once
  for (const json& line : Lines("three", "step")) steps.push_back(line["step"]);
  EXPECT_EQ(steps.back(), 3);
  EXPECT_EQ(std::adjacent_find(steps.begin(), steps.end(), std::greater_equal<>()), steps.end());
}

// Derives the seconds of training: samples since the start or resume / samples_per_second.
TEST_F(ReportTest, SamplesPerSecondAreOverTheTimeOfTraining) {
  Run(Config("run", 1, {"max_steps=10"}));
  const Summary summary = Run(Config("run", 1), {.resume = "auto", .weights = ""}).summary;
  const double first = 400 + 3 * 64;
  double trained = 0;
  for (const json& line : Lines("run", "step")) {
    if (line["step"] <= 10) continue;
    const double now =
        (line["samples"].get<double>() - first) / line["samples_per_second"].get<double>();
    EXPECT_GT(now, trained) << line;
    EXPECT_LE(now, line["seconds"].get<double>() * (1 + 1e-9)) << line;
    trained = now;
  }
  EXPECT_NEAR((1200 - first) / summary.samples_per_second, trained, 1e-9 * trained);
  EXPECT_LE(trained, 11 * summary.step_seconds->max);
  EXPECT_LE(summary.workers_detail[0].compute_seconds, trained);
  EXPECT_EQ(summary.workers_detail[0].own_steps, 11);
}

// --- an interrupted run

TEST_F(ReportTest, AResumedRunHasTheLinesOfAnUndisturbedOne) {
  for (const auto& [strategy, workers] :
       {std::pair<std::string, int>{"allreduce", 1}, {"ps_bsp", 2}}) {
    const std::vector<std::string> keys = {"strategy.name=" + strategy, "log_first_steps=4",
                                           "log_every_steps=5", "checkpoint.every_steps=2",
                                           "checkpoint.keep=100"};
    Run(Config("whole", workers, keys));
    const std::vector<json> whole = Timeless("whole");
    std::vector<int64_t> logged;
    for (const json& line : Lines("whole", "step")) logged.push_back(line["step"]);
    EXPECT_THAT(logged, ElementsAre(1, 2, 3, 4, 5, 10, 15, 20, 21));
    // Equals a run that was killed when this was the newest checkpoint.
    for (const int step : {2, 12, 14}) {
      const std::filesystem::path checkpoint =
          folder_ / "whole/checkpoints" / fmt::format("step-{:08}.h5", step);
      Run(Config("whole", workers, keys), {.resume = checkpoint.string(), .weights = ""});
      EXPECT_EQ(Timeless("whole"), whole) << "resumed after step " << step;
    }
    std::filesystem::remove_all(folder_ / "whole");
  }
}

TEST_F(ReportTest, TheBestOfAResumedRunMayLieBeforeIt) {
  Run(Config("run", 1, {"max_steps=14"}));
  // Makes the first epoch's evaluation a perfect one.
  RewriteCheckpoint(folder_ / "run", [](CheckpointInfo& info) {
    RunSoFar so_far = RunSoFarFrom(info.so_far);
    for (std::string& text : so_far.evaluations) {
      json line = json::parse(text);
      if (line["step"] == 7) line["accuracy"] = 1.0;
      text = line.dump();
    }
    info.so_far = ToJson(so_far);
  });
  const Summary summary = Run(Config("run", 1), {.resume = "auto", .weights = ""}).summary;
  ASSERT_TRUE(summary.best && summary.test);
  EXPECT_EQ(summary.best->epoch, 1);
  EXPECT_EQ(summary.best->accuracy, 1);
  EXPECT_LT(*summary.test->accuracy, 1);
}

}  // namespace
}  // namespace dtrain
