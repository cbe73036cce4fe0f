// Runs that are resumed with another batch: at the end of an epoch they continue with it, elsewhere they are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>

#include "framework/checkpoint/checkpoint_folder.h"
#include "framework/checkpoint/weights_file.h"
#include "framework/data/sampler.h"
#include "framework/exchange/boundary_schedule.h"
#include "framework/solver/solver.h"
#include "tests/runtime/own_data_set.h"
#include "tests/runtime/resume_fixture.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Keys = std::vector<std::string>;

constexpr int64_t kSamples = 50;

TEST(StepOffset, NumbersOfStepsGoOnAndSamplesAreThoseOfTheEpoch) {
  // Two epochs with batch 16 had 4 steps each; the run continues with one of these batches.
  for (const int64_t batch : {10, 25, 50, 1}) {
    BoundarySchedule rule{.epoch_samples = kSamples, .batch = batch};
    rule.step_offset = 8 - 2 * rule.steps_per_epoch();
    EXPECT_EQ(rule.StepsOf(2 * kSamples), 8);
    EXPECT_EQ(rule.SamplesOf(8), 2 * kSamples);
    EXPECT_EQ(rule.SamplesOf(9), 2 * kSamples + batch);
    EXPECT_EQ(rule.SamplesOf(8 + rule.steps_per_epoch()), 3 * kSamples);
    EXPECT_EQ(rule.EpochOfStep(8), 2);
    for (int64_t step = 8; step < 30; ++step) EXPECT_EQ(rule.StepsOf(rule.SamplesOf(step)), step);
  }
}

// ------------------------------------------------------------------ samples

// A training batch as a worker requested it.
struct Asked {
  uint64_t epoch;
  std::vector<int64_t> samples;
  friend bool operator==(const Asked&, const Asked&) = default;
};

class OtherBatch : public RunFixture {
 protected:
  // Returns a run of one worker with a model of one line; its requests are recorded.
  RunConfig OnLine(const Keys& keys) {
    asked_.clear();
    OwnData data{.train_samples = kSamples,
                 .test_samples = 3,
                 .number = [](Split, int64_t sample, int64_t) { return 0.02 * sample; },
                 .label = [](int64_t sample) { return sample % 2; },
                 .watch =
                     [this] {
                       return [this](uint64_t epoch, std::span<const int64_t> samples) {
                         const std::lock_guard lock(mutex_);
                         asked_.push_back({epoch, {samples.begin(), samples.end()}});
                       };
                     }};
    Keys all = {"checkpoint.keep=99", "log_first_steps=99"};
    all.insert(all.end(), keys.begin(), keys.end());
    return OnALine(folder_, std::move(data), all);
  }
  // Returns the batches of an epoch, from its batch `first` on.
  static std::vector<Asked> BatchesOf(uint64_t epoch, int64_t batch, int64_t first = 0) {
    std::vector<int64_t> order;
    Sampler(1, kSamples, batch).Shuffle(epoch, order);
    std::vector<Asked> batches;
    for (int64_t begin = first * batch; begin < kSamples; begin += batch) {
      const int64_t end = std::min(begin + batch, kSamples);
      batches.push_back({epoch, {order.begin() + begin, order.begin() + end}});
    }
    return batches;
  }
  std::vector<int64_t> LoggedSteps() const {
    std::vector<int64_t> steps;
    for (const auto& line : Lines("run", "step")) steps.push_back(line["step"]);
    return steps;
  }
  TrainingPosition Newest() const {
    return ReadStoredInfo(FindCheckpoint((folder_ / "run").string())).position;
  }

  std::mutex mutex_;
  std::vector<Asked> asked_;
};

TEST_F(OtherBatch, EachSampleOfAnEpochIsSeenOnceAndStepsGoOn) {
  Run(OnLine({"batch=16", "max_steps=4"}));
  // An epoch has five steps: a run that is stopped in the middle of one continues there.
  Run(OnLine({"batch=10", "max_steps=7"}), {.resume = "auto"});
  std::vector<Asked> expected = BatchesOf(1, 10);
  expected.resize(3);
  EXPECT_EQ(asked_, expected);
  EXPECT_EQ(Newest(), (TrainingPosition{1, 7, 80, 7}));
  Run(OnLine({"batch=10", "max_steps=9"}), {.resume = "auto"});
  EXPECT_EQ(asked_, BatchesOf(1, 10, 3));
  EXPECT_EQ(Newest(), (TrainingPosition{2, 9, 100, 9}));
  // With the larger batch an epoch has two steps.
  const Summary summary = Run(OnLine({"batch=25", "max_steps=11"}), {.resume = "auto"}).summary;
  EXPECT_EQ(asked_, BatchesOf(2, 25));
  EXPECT_EQ(Newest(), (TrainingPosition{3, 11, 150, 11}));
  EXPECT_EQ(summary.epochs, 3);
  EXPECT_EQ(summary.step, 11);
  EXPECT_EQ(summary.steps, 150 / 25.0) << "samples applied / batch";
  EXPECT_EQ(summary.resumed_step, 9);
  EXPECT_THAT(LoggedSteps(), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11));
  std::vector<int64_t> epochs, samples;
  for (const auto& line : Lines("run", "step")) {
    epochs.push_back(line["epoch"]);
    samples.push_back(line["samples"]);
  }
  EXPECT_THAT(epochs, ElementsAre(1, 1, 1, 1, 2, 2, 2, 2, 2, 3, 3));
  EXPECT_THAT(samples, ElementsAre(16, 32, 48, 50, 60, 70, 80, 90, 100, 125, 150));
  // A completed run is complete with another batch too.
  EXPECT_TRUE(Run(OnLine({"batch=16", "max_steps=11"}), {.resume = "auto"}).finished_before);
}

TEST_F(OtherBatch, SchedulesFollowTheSamples) {
  const Keys keys = {"epochs=4", "solver={name: sgd, lr: 0.1, schedule: cosine}"};
  const auto with = [&](const Keys& more) {
    Keys all = keys;
    all.insert(all.end(), more.begin(), more.end());
    return OnLine(all);
  };
  Run(with({"batch=16", "max_steps=8"}));
  const RunConfig config = with({"batch=25"});
  Run(config, {.resume = "auto"});
  const LearningRate rate(config.solver, 4, 1);
  const std::vector<nlohmann::json> lines = Lines("run", "step");
  ASSERT_EQ(lines.size(), 12u);
  for (size_t i = 8; i < lines.size(); ++i) {
    const double before = 100 + 25.0 * static_cast<double>(i - 8);
    EXPECT_EQ(lines[i]["lr"].get<double>(), rate.At(before / kSamples)) << lines[i];
  }
}

TEST_F(OtherBatch, InTheMiddleOfAnEpochItIsRefusedWithTheWayOut) {
  Run(OnLine({"batch=16", "max_steps=6"}));
  const std::string end = (folder_ / "run/checkpoints/step-00000004.h5").string();
  EXPECT_THAT(MessageOf([&] { Run(OnLine({"batch=10"}), {.resume = "auto"}); }),
              AllOf(HasSubstr("6: "),
                    HasSubstr("step-00000006.h5 lies in the middle of epoch 2, which "
                              "was begun with batch 16"),
                    HasSubstr("another batch (10)"), HasSubstr("--resume " + end)));
  EXPECT_EQ(Run(OnLine({"batch=10", "max_steps=9"}), {.resume = end}).summary.epochs, 2);
  fs::remove_all(folder_ / "run");
  Run(OnLine({"batch=16", "max_steps=3"}));
  EXPECT_THAT(MessageOf([&] { Run(OnLine({"batch=10"}), {.resume = "auto"}); }),
              HasSubstr("go on with batch 16 to the end of the epoch first"));
}

TEST_F(OtherBatch, AnotherTrainingSetIsRefusedAlsoThere) {
  Run(OnLine({"batch=16", "max_steps=4"}));
  RunConfig config = OnLine({"batch=16", "checkpoint.other_data=take"});
  config.data.source =
      std::make_shared<OwnSource>(OwnData{.train_samples = 40,
                                          .test_samples = 3,
                                          .number = [](Split, int64_t, int64_t) { return 0.0; },
                                          .label = [](int64_t sample) { return sample % 2; }});
  EXPECT_THAT(MessageOf([&] { Run(config, {.resume = "auto"}); }),
              HasSubstr("was trained on 50 samples, now there are 40"));
}

// ------------------------------------------------------------------ strategies

class OtherBatchOf : public ResumeFixture {
 protected:
  Keys With(const Keys& strategy, const Keys& more) const {
    Keys all = {PlainModel()};
    all.insert(all.end(), strategy.begin(), strategy.end());
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
};

// The momentum and each worker's residuals are kept; a real run and a simulated one end with the same bits.
TEST_F(OtherBatchOf, SynchronousRunsAreTheSameRealAndSimulated) {
  const Keys strategies[] = {{"strategy={name: allreduce}"},
                             {"strategy={name: wfbp}", "compress={name: topk, density: 0.05}"},
                             {"strategy={name: ps_bsp, servers: 2}"}};
  for (const Keys& strategy : strategies) {
    SCOPED_TRACE(strategy[0]);
    const Keys first = With(strategy, {"epochs=1"});
    const Keys then = With(strategy, {"epochs=2", "batch=50"});
    fs::remove_all(folder_ / "sim");
    fs::remove_all(folder_ / "real");
    const Summary before = Simulate(Config("sim", first), "none");
    testing::internal::CaptureStderr();
    const Summary simulated = Simulate(Config("sim", then), "auto");
    const Keys unpaced = {"cluster={}", "cluster.workers=4"};
    Run(Config("real", With(first, unpaced)));
    const Summary real = Run(Config("real", With(then, unpaced)), {.resume = "auto"}).summary;
    EXPECT_THAT(testing::internal::GetCapturedStderr(), Not(HasSubstr("worker 0 takes over")));
    EXPECT_EQ(simulated.epochs, 2);
    EXPECT_EQ(simulated.step, 13 + 8) << "400 samples by 32, then by 50";
    EXPECT_EQ(real.step, simulated.step);
    EXPECT_GT(simulated.seconds, before.seconds) << "of the whole run";
    EXPECT_GT(simulated.communication->bytes_sent, before.communication->bytes_sent);
    double steps = 0;
    for (const WorkerSummary& worker : simulated.workers_detail) {
      EXPECT_EQ(worker.own_steps, 21);
      steps += worker.steps;
    }
    EXPECT_NEAR(steps, simulated.steps, 1e-9);
    EXPECT_EQ(real.weights_sha256, simulated.weights_sha256);
  }
}

// Workers continue at the average of the applied samples.
TEST_F(OtherBatchOf, AsynchronousRunsGoOnBehindTheEpoch) {
  const Keys strategies[] = {{"strategy={name: ps_asp, placement: colocated}"},
                             {"strategy={name: ps_ssp, servers: 2}"}};
  for (const Keys& strategy : strategies) {
    SCOPED_TRACE(strategy[0]);
    for (const bool simulated : {true, false}) {
      fs::remove_all(folder_ / "run");
      const auto train = [&](const Keys& keys, const std::string& resume) {
        const Keys all = With(strategy, keys);
        if (simulated) return Simulate(Config("run", all), resume);
        return Run(Config("run", With(all, {"cluster={}", "cluster.workers=4"})),
                   {.resume = resume})
            .summary;
      };
      train({"epochs=1"}, "none");
      const TrainingPosition before =
          ReadStoredInfo(FindCheckpoint((folder_ / "run").string())).position;
      testing::internal::CaptureStderr();
      const Summary after = train({"epochs=2", "batch=16"}, "auto");
      EXPECT_THAT(testing::internal::GetCapturedStderr(),
                  HasSubstr("each worker's position in its data becomes the average"));
      EXPECT_GE(after.epochs, 2);
      EXPECT_LT(after.epochs, 2.2);
      EXPECT_GT(*after.step, before.step);
      const TrainingPosition end =
          ReadStoredInfo(FindCheckpoint((folder_ / "run").string())).position;
      EXPECT_EQ(static_cast<double>(end.samples_applied), after.steps * 16);
      EXPECT_EQ(end.step, *after.step);
    }
  }
}

// Steps are short compared with the time of a message: workers begin several batches of the next epoch before they
// learn of the boundary.
TEST_F(OtherBatchOf, APauseForTheEndOfAnEpochMayLieBatchesBehindIt) {
  const Keys keys = With({"strategy={name: inhad}"},
                         {"cluster.step_seconds=0.0001", "cluster.network.latency_us=200"});
  const auto simulate = [&](Keys more, const std::string& resume) {
    more.insert(more.begin(), keys.begin(), keys.end());
    return Simulate(Config("run", more), resume);
  };
  simulate({"epochs=1"}, "none");
  const TrainingPosition end = ReadStoredInfo(FindCheckpoint((folder_ / "run").string())).position;
  ASSERT_GE(end.samples_applied, 400 + 32);
  const Summary after = simulate({"epochs=4", "batch=16"}, "auto");
  EXPECT_GE(after.epochs, 4);
  EXPECT_GT(*after.step, end.step);
  // A boundary for another reason is not the end of the epoch.
  fs::remove_all(folder_ / "run");
  simulate({"max_steps=3"}, "none");
  const TrainingPosition middle =
      ReadStoredInfo(FindCheckpoint((folder_ / "run").string())).position;
  ASSERT_GE(middle.samples_applied, 32);
  ASSERT_LT(middle.samples_applied, 400);
  EXPECT_THAT(MessageOf([&] { simulate({"batch=16"}, "auto"); }),
              HasSubstr("lies in the middle of epoch 1"));
}

}  // namespace
}  // namespace dtrain
