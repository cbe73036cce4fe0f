// Which samples the workers of a whole run are given, from the start and after a resume: a data set
// of the test's own writes down what it is asked for.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>

#include "framework/data/sampler.h"
#include "framework/runtime/checkpoint.h"
#include "framework/runtime/checkpoint_folder.h"
#include "framework/runtime/weights_file.h"
#include "tests/runtime/run_fixture.h"
#include "tests/support/shards_by_hand.h"

namespace dtrain {
namespace {

constexpr int64_t kSamples = 50, kBatch = 16;
constexpr int64_t kStepsAnEpoch = 4;  // the last of 2 samples

// A training batch as a worker asked for it.
struct Asked {
  uint64_t epoch;
  std::vector<int64_t> samples;
  friend bool operator==(const Asked&, const Asked&) = default;
};

// What each of the sets that a run loaded - one a rank - was asked for, in order.
struct Log {
  std::mutex mutex;
  std::vector<std::vector<Asked>> ranks;
};

class WatchedSet : public Dataset {
 public:
  explicit WatchedSet(Log& log) : log_(log) {
    const std::lock_guard lock(log.mutex);
    rank_ = log.ranks.size();
    log.ranks.emplace_back();
  }
  int64_t size(Split split) const override { return split == Split::kTrain ? kSamples : 3; }
  std::vector<FieldSpec> fields() const override { return Fields(); }
  int64_t classes() const override { return 2; }
  std::string ManifestHash() const override { return "watched"; }
  void Fill(Split split, std::span<const int64_t> indices, uint64_t epoch,
            Batch& batch) const override {
    for (size_t r = 0; r < indices.size(); ++r) {
      batch.fields[0].f32()[r] = static_cast<float>(indices[r]) / kSamples;
      batch.fields[1].i32()[r] = static_cast<int32_t>(indices[r] % 2);
    }
    if (split != Split::kTrain) return;
    const std::lock_guard lock(log_.mutex);
    log_.ranks[rank_].push_back({epoch, {indices.begin(), indices.end()}});
  }

  static std::vector<FieldSpec> Fields() {
    return {{"data", DType::kF32, Shape{1}, 0}, {"label", DType::kI32, Shape{}, 2}};
  }

 private:
  Log& log_;
  size_t rank_;
};

class WatchedSource : public DatasetSource {
 public:
  explicit WatchedSource(Log& log) : log_(log) {}
  std::vector<FieldSpec> fields() const override { return WatchedSet::Fields(); }
  int64_t size(Split split) const override { return split == Split::kTrain ? kSamples : 3; }
  int64_t classes() const override { return 2; }
  std::unique_ptr<Dataset> Load(const std::filesystem::path&, uint64_t) const override {
    return std::make_unique<WatchedSet>(log_);
  }

 private:
  Log& log_;
};

class DataSeenTest : public RunFixture {
 protected:
  void SetUp() override {
    RunFixture::SetUp();
    std::ofstream(folder_ / "model.yaml") << R"(
name: line
layers:
  - {name: fc, type: inner_product, outputs: 2}
  - {name: loss, type: softmax_cross_entropy, input: [fc, label]}
)";
  }

  // What the ranks of a run to `max_steps` were asked for.
  std::vector<std::vector<Asked>> RunTo(int64_t max_steps, int workers, const std::string& strategy,
                                        const std::string& resume) {
    const std::vector<std::string> overrides = {"output=" + (folder_ / "run").string(), "threads=1",
                                                fmt::format("cluster.workers={}", workers),
                                                fmt::format("max_steps={}", max_steps),
                                                "strategy=" + strategy};
    config::Document document = config::Document::FromText(
        "model: {name: " + (folder_ / "model.yaml").string() +
            "}\ndata: {name: digits}\nbatch: 16\nepochs: 9\nsolver: {name: sgd, lr: 0.01}\n",
        "run.yaml", overrides);
    RunConfig config = ReadRunConfig(document);
    Log log;
    config.data.source = std::make_shared<WatchedSource>(log);
    EXPECT_EQ(Run(config, {.resume = resume, .weights = ""}).code, ExitCode::kDone);
    return log.ranks;
  }

  int64_t StepOfLatest() const {
    const auto latest = FindCheckpoint((folder_ / "run").string());
    return ReadStoredInfo(latest).position.step;
  }

  // The samples at these positions of an epoch.
  static Asked At(uint64_t epoch, Range positions) {
    std::vector<int64_t> order;
    Sampler(1, kSamples, kBatch).Shuffle(epoch, order);
    return {epoch, {order.begin() + positions.begin, order.begin() + positions.end}};
  }

  // Worker `worker`'s mini-batches [first, first + count) of an asynchronous run.
  static std::vector<Asked> OwnOf(int worker, int workers, int64_t first, size_t count) {
    ShardsByHand shards(kSamples, kBatch, workers, worker);
    for (int64_t i = 0; i < first; ++i) shards.Next();
    std::vector<Asked> own;
    while (own.size() < count) {
      const auto [pass, positions] = shards.Next();
      own.push_back(At(pass, positions));
    }
    return own;
  }

  // One rank each had the mini-batches of worker 0, 1, ... from `first` on; ranks load in any
  // order, and read ahead of their steps.
  static void ExpectOwn(const std::vector<std::vector<Asked>>& ranks, int workers, int64_t first) {
    ASSERT_EQ(ranks.size(), static_cast<size_t>(workers));
    for (int w = 0; w < workers; ++w) {
      const auto same = [&](const std::vector<Asked>& rank) {
        return !rank.empty() && rank == OwnOf(w, workers, first, rank.size());
      };
      EXPECT_EQ(std::count_if(ranks.begin(), ranks.end(), same), 1)
          << "worker " << w << " from its mini-batch " << first << " on";
    }
  }
};

// Three workers: shards of 17, 17 and 16 samples, mini-batches of 6, 5 and 5.
TEST_F(DataSeenTest, AnAsynchronousRunStartsWithEveryWorkersFirst) {
  ExpectOwn(RunTo(9, 3, "{name: ps_asp, placement: colocated}", "none"), 3, 0);
}

// As if all its workers had been equally fast: each goes on with its own mini-batch of this step.
TEST_F(DataSeenTest, AResumedAsynchronousRunGoesOnWithItsData) {
  for (const int workers : {1, 2, 3}) {
    SCOPED_TRACE(workers);
    std::filesystem::remove_all(folder_ / "run");
    RunTo(6, workers, "{name: ps_asp, placement: colocated}", "none");
    const int64_t step = StepOfLatest();
    ASSERT_GE(step, 6);  // in the middle of the second pass, for one worker exactly there
    if (workers == 1) {
      ASSERT_EQ(step, 6);
    }
    const auto ranks = RunTo(14, workers, "{name: ps_asp, placement: colocated}", "auto");
    ExpectOwn(ranks, workers, step);
  }
}

// Every sample once in the pass in which it was stopped, and in those behind it.
TEST_F(DataSeenTest, AStopLosesNoSampleOfOneAsynchronousWorker) {
  const std::string alone = "{name: ps_asp, placement: colocated}";
  std::vector<Asked> asked = RunTo(6, 1, alone, "none").front();
  const std::vector<Asked> behind = RunTo(12, 1, alone, "auto").front();
  ASSERT_GE(asked.size(), 6u);
  ASSERT_GE(behind.size(), 6u);
  asked.resize(6);  // it reads ahead
  asked.insert(asked.end(), behind.begin(), behind.begin() + 6);
  std::map<uint64_t, std::vector<int64_t>> passes;
  for (const Asked& batch : asked) {
    std::vector<int64_t>& seen = passes[batch.epoch];
    seen.insert(seen.end(), batch.samples.begin(), batch.samples.end());
  }
  ASSERT_EQ(passes.size(), 3u);
  for (auto& [pass, seen] : passes) {
    std::sort(seen.begin(), seen.end());
    ASSERT_EQ(seen.size(), static_cast<size_t>(kSamples));
    for (int64_t i = 0; i < kSamples; ++i) EXPECT_EQ(seen[i], i) << "pass " << pass;
  }
}

// The shares of all workers are the batch, in order, and the last one of an epoch is not lost.
TEST_F(DataSeenTest, ASynchronousRunSharesOutEveryBatchBeforeAndAfterAResume) {
  for (const auto& [first, last] : {std::pair<int64_t, int64_t>{0, 6}, {6, 12}}) {
    const auto ranks = RunTo(last, 3, "{name: allreduce}", first == 0 ? "none" : "auto");
    ASSERT_EQ(ranks.size(), 3u);
    for (int64_t step = first; step < last; ++step) {
      const int64_t begin = step % kStepsAnEpoch * kBatch, end = std::min(begin + kBatch, kSamples);
      const Asked batch = At(static_cast<uint64_t>(step / kStepsAnEpoch), {begin, end});
      std::vector<int64_t> seen, whole = batch.samples;
      for (const std::vector<Asked>& rank : ranks) {
        ASSERT_EQ(rank.size(), static_cast<size_t>(last - first));
        const Asked& share = rank[static_cast<size_t>(step - first)];
        EXPECT_EQ(share.epoch, batch.epoch);
        seen.insert(seen.end(), share.samples.begin(), share.samples.end());
      }
      std::sort(seen.begin(), seen.end());
      std::sort(whole.begin(), whole.end());
      EXPECT_EQ(seen, whole) << "step " << step;
    }
  }
}

}  // namespace
}  // namespace dtrain
