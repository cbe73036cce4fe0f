// Which samples the workers of a whole run get, from the start and after a resume: the test's own data set records the
// requests.  The order of an epoch's samples (Sampler::Shuffle) is taken as given.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>

#include "framework/checkpoint/checkpoint.h"
#include "framework/checkpoint/checkpoint_folder.h"
#include "framework/checkpoint/rank_checkpoint.h"
#include "framework/checkpoint/weights_file.h"
#include "framework/data/sampler.h"
#include "tests/runtime/own_data_set.h"
#include "tests/runtime/run_fixture.h"
#include "tests/support/shards_by_hand.h"

namespace dtrain {
namespace {

constexpr int64_t kSamples = 50, kBatch = 16;
constexpr int64_t kStepsAnEpoch = 4;  // the last batch has 2 samples

// A training batch as a worker requested it.
struct Asked {
  uint64_t epoch;
  std::vector<int64_t> samples;
  friend bool operator==(const Asked&, const Asked&) = default;
};

// Requests to each of the sets that a run loaded, one set per rank, in order.
struct Log {
  std::mutex mutex;
  std::vector<std::vector<Asked>> ranks;
};

OwnData Watched(Log& log) {
  const auto watch = [&log] {
    const std::lock_guard lock(log.mutex);
    const size_t rank = log.ranks.size();
    log.ranks.emplace_back();
    return [&log, rank](uint64_t epoch, std::span<const int64_t> samples) {
      const std::lock_guard lock(log.mutex);
      log.ranks[rank].push_back({epoch, {samples.begin(), samples.end()}});
    };
  };
  const auto number = [](Split, int64_t sample, int64_t) {
    return static_cast<double>(sample) / kSamples;
  };
  return {.train_samples = kSamples,
          .test_samples = 3,
          .number = number,
          .label = [](int64_t sample) { return sample % 2; },
          .watch = watch};
}

class DataSeenTest : public RunFixture {
 protected:
  // Returns the requests of all ranks of a run to `max_steps`.
  std::vector<std::vector<Asked>> RunTo(int64_t max_steps, int workers, const std::string& strategy,
                                        const std::string& resume) {
    Log log;
    const RunConfig config =
        OnALine(folder_, Watched(log),
                {fmt::format("cluster.workers={}", workers), fmt::format("max_steps={}", max_steps),
                 "strategy=" + strategy});
    const TrainResult result = Run(config, {.resume = resume, .weights = ""});
    EXPECT_EQ(result.code, ExitCode::kDone);
    steps_.clear();
    for (const WorkerSummary& worker : result.summary.workers_detail)
      steps_.push_back(worker.own_steps);
    return log.ranks;
  }

  std::vector<int64_t> steps_;  // steps of each worker in the previous run

  int64_t StepOfLatest() const {
    const auto latest = FindCheckpoint((folder_ / "run").string());
    return ReadStoredInfo(latest).position.step;
  }

  // Returns the samples at these positions of an epoch.
  static Asked At(uint64_t epoch, Range positions) {
    std::vector<int64_t> order;
    Sampler(1, kSamples, kBatch).Shuffle(epoch, order);
    return {epoch, {order.begin() + positions.begin, order.begin() + positions.end}};
  }

  // Returns the batch of a step of a synchronous run.
  static Asked BatchOf(int64_t step) {
    const int64_t begin = step % kStepsAnEpoch * kBatch, end = std::min(begin + kBatch, kSamples);
    return At(static_cast<uint64_t>(step / kStepsAnEpoch), {begin, end});
  }

  // Ranks load in any order; the first share of each shows which worker it is.
  static void OrderByPlaceIn(const Asked& batch, std::vector<std::vector<Asked>>& ranks) {
    const auto place = [&](const std::vector<Asked>& rank) {
      return std::find(batch.samples.begin(), batch.samples.end(), rank.at(0).samples.at(0));
    };
    std::sort(ranks.begin(), ranks.end(),
              [&](const auto& a, const auto& b) { return place(a) < place(b); });
  }

  // Returns worker `worker`'s mini-batches [first, first + count) of an asynchronous run.
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

  // Returns the number of samples in all workers' mini-batches, of the earlier runs and of the last one.
  int64_t SamplesOf(const std::vector<int64_t>& had) const {
    int64_t samples = 0;
    const int workers = static_cast<int>(had.size());
    for (int w = 0; w < workers; ++w) {
      for (const Asked& own : OwnOf(w, workers, 0, static_cast<size_t>(had[w] + steps_.at(w)))) {
        samples += static_cast<int64_t>(own.samples.size());
      }
    }
    return samples;
  }

  // Checks that each rank had the mini-batches of one worker, from that worker's `first` on.  Ranks load in any order
  // and read ahead of their steps.
  static void ExpectOwn(const std::vector<std::vector<Asked>>& ranks, int workers,
                        const std::vector<int64_t>& first) {
    for (int w = 0; w < workers; ++w) {
      const auto same = [&](const std::vector<Asked>& rank) {
        return !rank.empty() && rank == OwnOf(w, workers, first[w], rank.size());
      };
      EXPECT_EQ(std::count_if(ranks.begin(), ranks.end(), same), 1)
          << "worker " << w << " from its mini-batch " << first[w] << " on";
    }
  }
};

// Three workers have shards of 17, 17 and 16 samples, and mini-batches of 6, 5 and 5.
TEST_F(DataSeenTest, AnAsynchronousRunStartsWithEveryWorkersFirst) {
  ExpectOwn(RunTo(9, 3, "{name: ps_asp, placement: colocated}", "none"), 3, {0, 0, 0});
}

// Each worker gets its mini-batches 0, 1, 2, ... over both runs, none skipped and none repeated, at any speed; all of
// them are applied.
TEST_F(DataSeenTest, AResumedAsynchronousRunGoesOnWithEveryWorkersNext) {
  for (const char* strategy :
       {"{name: ps_asp, placement: colocated}", "{name: ps_ssp, servers: 2}",
        "{name: gssp, servers: 2}", "{name: inhad}", "{name: easgd, period: 2}"}) {
    for (const int workers : {2, 3}) {
      SCOPED_TRACE(fmt::format("{} {}", strategy, workers));
      std::filesystem::remove_all(folder_ / "run");
      RunTo(6, workers, strategy, "none");
      const std::vector<int64_t> had = steps_;
      // The first part may have run far beyond its end.
      const auto ranks = RunTo(StepOfLatest() + 8, workers, strategy, "auto");
      ExpectOwn(ranks, workers, had);
      const auto latest = FindCheckpoint((folder_ / "run").string());
      EXPECT_EQ(ReadStoredInfo(latest).position.samples_applied, SamplesOf(had));
    }
  }
}

// The run was killed while it wrote its last checkpoint.  It resumes from the previous one, at the end of an epoch, and
// each worker continues with the mini-batch that was its next one there.
TEST_F(DataSeenTest, AKilledRunGoesBackWithAllItsWorkers) {
  for (const char* strategy :
       {"{name: ps_asp, placement: colocated}", "{name: ps_ssp, servers: 2}",
        "{name: gssp, servers: 2}", "{name: inhad}", "{name: easgd, period: 2}"}) {
    for (const bool main : {true, false}) {
      SCOPED_TRACE(fmt::format("{} {}", strategy, main ? "main file" : "rank file"));
      std::filesystem::remove_all(folder_ / "run");
      const CheckpointFolder folder(folder_ / "run/checkpoints", 1);
      // Steps are so short that the message about the first boundary may arrive too late for a checkpoint there.
      for (int tries = 0; tries < 50 && folder.List().size() < 2; ++tries) {
        std::filesystem::remove_all(folder_ / "run");
        RunTo(11, 3, strategy, "none");
      }
      ASSERT_EQ(folder.List().size(), 2u);
      const std::filesystem::path newest = folder.List()[0], before = folder.List()[1];
      std::filesystem::remove(main ? newest : RankFileOf(newest, 1));
      const std::vector<std::string> hashes = ReadStoredInfo(before).rank_files;
      std::vector<int64_t> had;
      for (int w = 0; w < 3; ++w) {
        const RankCheckpoint file = ReadRankCheckpoint(before, w, hashes.at(w));
        had.push_back(file.host.Find("", "steps")->ints[0]);
      }
      ExpectOwn(RunTo(18, 3, strategy, "auto"), 3, had);
      EXPECT_EQ(ReadStoredInfo(folder.List()[0]).position.samples_applied, SamplesOf(had));
    }
  }
}

// Each worker continues after the average number of mini-batches of all workers.
TEST_F(DataSeenTest, WhereItsOwnStateIsNotTakenOverAWorkerGoesOnAtTheAverage) {
  for (const int workers : {1, 2, 3}) {
    SCOPED_TRACE(workers);
    std::filesystem::remove_all(folder_ / "run");
    RunTo(6, workers, "{name: ps_asp, placement: colocated}", "none");
    const int64_t step = StepOfLatest();
    ASSERT_GE(step, 6);  // in the middle of the second pass; for one worker exactly half of it
    if (workers == 1) {
      ASSERT_EQ(step, 6);
    }
    testing::internal::CaptureStderr();
    const auto ranks = RunTo(14, workers, "{name: ps_ssp, placement: colocated}", "auto");
    EXPECT_THAT(testing::internal::GetCapturedStderr(),
                testing::HasSubstr("each worker's position in its data becomes the average"));
    ExpectOwn(ranks, workers, std::vector<int64_t>(workers, step));
  }
}

// Every sample occurs once in the pass in which the run was stopped, and in later passes.
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

// The shares of all workers, in worker order, are the batch; the last batch of an epoch is not lost.
TEST_F(DataSeenTest, ASynchronousRunSharesOutEveryBatchBeforeAndAfterAResume) {
  for (const auto& [first, last] : {std::pair<int64_t, int64_t>{0, 6}, {6, 12}}) {
    auto ranks = RunTo(last, 3, "{name: allreduce}", first == 0 ? "none" : "auto");
    ASSERT_EQ(ranks.size(), 3u);
    for (const std::vector<Asked>& rank : ranks) {
      ASSERT_EQ(rank.size(), static_cast<size_t>(last - first));
    }
    OrderByPlaceIn(BatchOf(first), ranks);
    for (int64_t step = first; step < last; ++step) {
      const Asked batch = BatchOf(step);
      std::vector<int64_t> seen;
      for (const std::vector<Asked>& rank : ranks) {
        const Asked& share = rank[static_cast<size_t>(step - first)];
        EXPECT_EQ(share.epoch, batch.epoch);
        seen.insert(seen.end(), share.samples.begin(), share.samples.end());
      }
      EXPECT_EQ(seen, batch.samples) << "step " << step;
    }
  }
}

}  // namespace
}  // namespace dtrain
