// SparseQueue: a sparse collective as a list of steps, which the sum at the front of the queue goes
// through while the others wait.
//
// A collective's constructor lists its steps: Do is done once, Until again and again until it says
// that it is through.  Neither waits.
//
//   Do([this] { merge_.Begin(...); });
//   Until([this] { return merge_.Advance(link()); });
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "framework/comm/sparse_collective.h"
#include "framework/comm/sparse_list.h"
#include "framework/comm/sparse_messages.h"

namespace dtrain {

class SparseQueue : public SparseCollective {
 public:
  SparseQueue(std::string name, Transport& transport, const CollectiveOptions& options);
  ~SparseQueue() override;

  std::string name() const override { return name_; }
  int64_t Start(int unit, int64_t n, int64_t k, SparseEntries mine) override;
  bool Progress() override;
  bool Done(int64_t ticket) const override;
  bool Idle() const override { return front_ == next_ticket(); }
  const Sum& Of(int64_t ticket) const override;
  void Release(int64_t ticket) override;
  Collective::Traffic traffic() const override { return link_.traffic; }

 protected:
  // Nobody reads or writes any more what messages in flight refer to.  The destructors of those that
  // keep such memory of their own begin with it; the queue's own comes too late for that.
  void GiveUp();

  // One sum, and the memory of its result.  Used again for another after Release.
  struct Call {
    int unit = 0;
    int64_t n = 0;
    int64_t k = 0;
    SparseEntries mine;
    SparseList global;    // what sum.parts point to
    SparseList returned;  // what sum.returned points to, when the steps are through
    Sum sum;
  };

  void Do(std::function<void()> step);
  void Until(std::function<bool()> step) { steps_.push_back(std::move(step)); }

  // The sum that the steps are about.
  Call& call() { return *calls_[static_cast<size_t>(front_ - first_ticket_)]; }
  SparseLink& link() { return link_; }
  const SparseLink& link() const { return link_; }

 private:
  int64_t next_ticket() const { return first_ticket_ + static_cast<int64_t>(calls_.size()); }

  std::string name_;
  SparseLink link_;
  std::vector<std::function<bool()>> steps_;
  size_t step_ = 0;                            // of the sum at the front
  std::deque<std::unique_ptr<Call>> calls_;    // from first_ticket_ on; null once released
  std::vector<std::unique_ptr<Call>> spares_;  // their memory
  int64_t first_ticket_ = 0;
  int64_t front_ = 0;  // the sum in flight
};

}  // namespace dtrain
