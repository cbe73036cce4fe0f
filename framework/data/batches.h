// Declares functions that fill the k-th batch of a run (k = 0, 1, 2, ...), and a thread that fills batches ahead
// (prefetch.cc).
//
// A filler is called with rising k by one thread at a time; it returns false and does not change the batch if there are
// no more.  It allocates nothing after its first call.  The data set must outlive it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "framework/core/layout.h"
#include "framework/data/dataset.h"
#include "framework/data/sampler.h"

namespace dtrain {

using BatchFiller = std::function<bool(uint64_t k, Batch& batch)>;

// Fills worker `worker`'s shares of the steps [first_step, last_step).  A share may be empty (samples == 0).  The run's
// step s is the sampler's step s - step_offset (BoundarySchedule).
BatchFiller TrainingBatches(const Dataset& dataset, const Sampler& sampler, int worker, int workers,
                            uint64_t first_step, uint64_t last_step, int64_t step_offset = 0);

// Fills worker `worker`'s own mini-batches of an asynchronous run, from its `first` on, without end.  With several workers
// the loss is the mean over a full mini-batch, so the last one of a shard, which may be smaller, counts by its samples.
BatchFiller OwnBatches(const Dataset& dataset, const Sampler& sampler, int worker, int workers,
                       uint64_t first);

// Fills the given blocks of a split in index order, or of the samples `order`, never augmented.
BatchFiller EvaluationBatches(const Dataset& dataset, Split split, std::vector<Range> blocks,
                              std::vector<int64_t> order = {});

// Prefetcher is a thread that fills batches ahead of the trainer, in exact order, into a ring that is allocated once.
//
//   Prefetcher batches(dataset, sampler.MaxShare(workers), TrainingBatches(...));
//   while (const Batch* batch = batches.Next()) Step(*batch);
//
// One trainer thread calls Next().  The prefetch thread sleeps while the ring is full, the trainer while it is empty;
// nothing is allocated after the first round.  The destructor ends the thread, which may first complete its current
// batch.
class Prefetcher {
 public:
  static constexpr int kDepth = 3;
  // The ring has `depth` batches, at least 2, of at most `max_samples`; the trainer uses one of them at a time.
  Prefetcher(const Dataset& dataset, int64_t max_samples, BatchFiller filler, int depth = kDepth);
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  // Returns the next batch, valid until the following call; null after the last one.  An exception of the filler is
  // rethrown in the place of its batch, and by every later call.  The batch before it is filled again only when `read`
  // is done: until then a device may read it.
  const Batch* Next(const ReadyEvent& read = ReadyEvent());

 private:
  void Run();
  bool WaitForRoom();  // returns false to stop
  void End(std::exception_ptr error);

  BatchFiller filler_;            // used by the thread only
  std::vector<Batch> ring_;       // batch k is ring_[k % depth]
  std::mutex mutex_;              // guards the rest
  std::vector<ReadyEvent> read_;  // by place in the ring
  std::condition_variable filled_more_;
  std::condition_variable freed_more_;
  uint64_t filled_ = 0;   // batches filled so far
  uint64_t taken_ = 0;    // batches given to the trainer so far
  bool holding_ = false;  // the trainer uses batch taken_ - 1
  bool ended_ = false;    // no more will be filled
  bool stop_ = false;
  std::exception_ptr error_;
  std::thread thread_;  // last member: it starts when all others exist
};

}  // namespace dtrain
