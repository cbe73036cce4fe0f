#include "framework/data/batches.h"

#include <algorithm>
#include <utility>

namespace dtrain {

Prefetcher::Prefetcher(const Dataset& dataset, int64_t max_samples, BatchFiller filler, int depth)
    : filler_(std::move(filler)) {
  for (int i = 0; i < std::max(depth, 2); ++i) ring_.push_back(dataset.MakeBatch(max_samples));
  read_.resize(ring_.size());
  thread_ = std::thread([this] { Run(); });
}

Prefetcher::~Prefetcher() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  freed_more_.notify_one();
  thread_.join();
}

const Batch* Prefetcher::Next(const ReadyEvent& read) {
  std::unique_lock lock(mutex_);
  if (std::exchange(holding_, false)) {
    read_[(taken_ - 1) % ring_.size()] = read;
    freed_more_.notify_one();
  }
  filled_more_.wait(lock, [this] { return filled_ > taken_ || ended_; });
  if (filled_ > taken_) {
    holding_ = true;
    return &ring_[taken_++ % ring_.size()];
  }
  if (error_) std::rethrow_exception(error_);
  return nullptr;
}

bool Prefetcher::WaitForRoom() {
  ReadyEvent read;
  {
    std::unique_lock lock(mutex_);
    freed_more_.wait(lock, [this] {
      const uint64_t in_use = filled_ - taken_ + (holding_ ? 1 : 0);
      return stop_ || in_use < ring_.size();
    });
    if (stop_) return false;
    read = std::exchange(read_[filled_ % ring_.size()], ReadyEvent());
  }
  read.Wait();
  return true;
}

void Prefetcher::End(std::exception_ptr error) {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    error_ = std::move(error);
  }
  filled_more_.notify_one();
}

void Prefetcher::Run() {
  try {
    for (uint64_t k = 0; WaitForRoom(); ++k) {
      if (!filler_(k, ring_[k % ring_.size()])) return End(nullptr);
      {
        const std::lock_guard lock(mutex_);
        ++filled_;
      }
      filled_more_.notify_one();
    }
  } catch (...) {
    End(std::current_exception());
  }
}

}  // namespace dtrain
