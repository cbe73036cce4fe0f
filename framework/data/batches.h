// What the batches of a run hold, as functions that fill the k-th one (k = 0, 1, 2, ...), and a
// thread that fills them ahead (prefetch.cc).
//
// A filler is called with rising k by one thread at a time and answers false, leaving the batch
// alone, when there are no more.  It allocates nothing after its first call.  The data set must
// outlive it.
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

// Worker `worker`'s shares of the steps [first_step, last_step).  A share may be empty (samples ==
// 0).  The run's step s is the sampler's s - step_offset (RestRule).
BatchFiller TrainingBatches(const Dataset& dataset, const Sampler& sampler, int worker, int workers,
                            uint64_t first_step, uint64_t last_step, int64_t step_offset = 0);

// Worker `worker`'s own mini-batches of an asynchronous run, from its `first` on, without end.
BatchFiller OwnBatches(const Dataset& dataset, const Sampler& sampler, int worker, int workers,
                       uint64_t first);

// The given blocks of a split in index order, never augmented.
BatchFiller EvaluationBatches(const Dataset& dataset, Split split, std::vector<Range> blocks);

// Prefetcher: a thread that fills batches ahead of the trainer, in exact order, into a ring that is
// allocated once.
//
//   Prefetcher batches(dataset, sampler.MaxShare(workers), TrainingBatches(...));
//   while (const Batch* batch = batches.Next()) Step(*batch);
//
// One trainer thread calls Next().  The thread sleeps when the ring is full, the trainer when it is
// empty; nothing is allocated after the first round.  Destruction ends the thread after at most the
// batch it is filling.
class Prefetcher {
 public:
  static constexpr int kDepth = 3;
  // `depth` of the data set's batches of at most `max_samples`, one of them the trainer's; at least 2.
  Prefetcher(const Dataset& dataset, int64_t max_samples, BatchFiller filler, int depth = kDepth);
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  // The next batch, valid until the following call; null after the last one.  An exception of the
  // filler is thrown here in the place of its batch, and at every later call.
  const Batch* Next();

 private:
  void Run();
  bool WaitForRoom();  // false: stop
  void End(std::exception_ptr error);

  BatchFiller filler_;       // of the thread alone
  std::vector<Batch> ring_;  // batch k lies in ring_[k % depth]
  std::mutex mutex_;         // guards the rest
  std::condition_variable filled_more_;
  std::condition_variable freed_more_;
  uint64_t filled_ = 0;   // batches ready, ever
  uint64_t taken_ = 0;    // batches handed to the trainer, ever
  bool holding_ = false;  // the trainer uses batch taken_ - 1
  bool ended_ = false;    // no more will be filled
  bool stop_ = false;
  std::exception_ptr error_;
  std::thread thread_;  // last: it starts when everything else is there
};

}  // namespace dtrain
