// Transcripts of the synchronous worker: one event a line, its effects after the arrow.
#include "framework/strategies/sync/sync_worker.h"

#include <gtest/gtest.h>

#include <sstream>

#include <fmt/format.h>

namespace dtrain {
namespace {

class Recorder : public Effects {
 public:
  void StartStep() override { Note("start"); }
  void EndStep(const StepOutcome& outcome) override {
    Note(fmt::format("end, {} samples", outcome.samples));
  }
  void Reduce(VectorId, Range r) override { Note(fmt::format("reduce {}-{}", r.begin, r.end)); }
  void Apply(const Update& update) override {
    Note(update.range.empty() ? "apply all"
                              : fmt::format("apply {}-{}", update.range.begin, update.range.end));
  }
  void Send(ActorId, Message, Payload) override { Note("send"); }
  Nanos Time() override { return 0; }
  void SetTimer(int, Nanos) override { Note("timer"); }
  void Take(VectorId, VectorId) override { Note("take"); }
  void Add(VectorId, VectorId, double) override { Note("add"); }
  void Blend(VectorId, VectorId, double) override { Note("blend"); }
  void Clear(VectorId) override { Note("clear"); }
  void Compress(VectorId, VectorId, double) override { Note("compress"); }

  std::string Take() {
    std::string text = notes_.empty() ? "(none)" : notes_;
    notes_.clear();
    return text;
  }

 private:
  void Note(const std::string& note) { notes_ += (notes_.empty() ? "" : ", ") + note; }
  std::string notes_;
};

// Runs events such as "begin", "ready 0 10", "reduced 0 10", "outcome 64".
std::string Transcript(SyncWorker& worker, const std::vector<std::string>& events) {
  Recorder effects;
  std::string transcript;
  for (const std::string& event : events) {
    std::istringstream in(event);
    std::string what;
    Range range;
    in >> what >> range.begin >> range.end;
    if (what == "begin") worker.OnBegin(effects);
    if (what == "ready") worker.OnReady(range, effects);
    if (what == "reduced") worker.OnReduced(0, range, effects);
    if (what == "outcome") worker.OnOutcome({.samples = range.begin}, effects);
    transcript += fmt::format("{:<14} -> {}\n", event, effects.Take());
  }
  return transcript;
}

TEST(SyncWorker, SendsABucketWhenItsLastGradientIsFinal) {
  SyncWorker worker("wfbp", {.buckets = {{0, 30}, {30, 40}}});
  EXPECT_EQ(Transcript(worker, {"begin", "ready 0 10", "ready 10 30", "reduced 0 30", "ready 30 40",
                                "outcome 64", "reduced 30 40", "begin"}),
            "begin          -> start\n"
            "ready 0 10     -> (none)\n"
            "ready 10 30    -> reduce 0-30\n"
            "reduced 0 30   -> apply 0-30\n"
            "ready 30 40    -> reduce 30-40\n"
            "outcome 64     -> (none)\n"
            "reduced 30 40  -> apply 30-40, end, 64 samples\n"
            "begin          -> start\n");
}

TEST(SyncWorker, OneReadyMayCompleteSeveralBuckets) {
  SyncWorker worker("wfbp", {.buckets = {{0, 5}, {5, 10}, {10, 20}}});
  EXPECT_EQ(Transcript(worker, {"begin", "ready 0 12"}),
            "begin          -> start\n"
            "ready 0 12     -> reduce 0-5, reduce 5-10\n");
}

TEST(SyncWorker, WithoutOverlapEverythingIsSentBehindTheLastGradient) {
  SyncWorker worker("wfbp", {.buckets = {{0, 5}, {5, 10}}}, MergeStart::kAfterBackward);
  EXPECT_EQ(Transcript(worker, {"begin", "ready 0 5", "ready 5 9", "ready 9 10"}),
            "begin          -> start\n"
            "ready 0 5      -> (none)\n"
            "ready 5 9      -> (none)\n"
            "ready 9 10     -> reduce 0-5, reduce 5-10\n");
}

TEST(SyncWorker, AWholeUpdateWaitsForTheWholeGradient) {
  SyncWorker worker("wfbp", {.buckets = {{0, 5}, {5, 10}}, .whole_update = true});
  EXPECT_EQ(Transcript(worker, {"begin", "ready 0 10", "reduced 0 5", "outcome 8", "reduced 5 10"}),
            "begin          -> start\n"
            "ready 0 10     -> reduce 0-5, reduce 5-10\n"
            "reduced 0 5    -> (none)\n"
            "outcome 8      -> (none)\n"
            "reduced 5 10   -> apply all, end, 8 samples\n");
}

TEST(SyncWorker, DescribesWhereItStands) {
  SyncWorker worker("wfbp", {.buckets = {{0, 5}, {5, 10}}});
  Transcript(worker, {"begin", "ready 0 7", "reduced 0 5"});
  EXPECT_EQ(worker.Describe(),
            "wfbp worker: step 1, 1 of 2 buckets sent, 50 % of the gradient reduced");
}

TEST(SyncWorkerDeathTest, GradientsOutOfOrderAreOurFault) {
  SyncWorker worker("wfbp", {.buckets = {{0, 10}}});
  EXPECT_DEATH(Transcript(worker, {"begin", "ready 5 10"}), "out of backward order");
}

TEST(SyncWorkerDeathTest, AStepCannotBeginBeforeTheLastEnded) {
  SyncWorker worker("wfbp", {.buckets = {{0, 10}}});
  EXPECT_DEATH(Transcript(worker, {"begin", "begin"}), "StepDone");
}

}  // namespace
}  // namespace dtrain
