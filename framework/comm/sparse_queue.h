// SparseQueue: base of the sparse collectives.  A collective is a list of steps, which the sum at
// the front of the queue runs through while the others wait.
//
// The constructor of a collective lists its steps.  A Do step is called once, an Until step
// repeatedly until it returns true.  No step blocks.
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
  // Withdraws messages in flight, so that their memory may be freed.  A subclass that has such
  // memory calls it first in its destructor, since the destructor of SparseQueue runs too late.
  void GiveUp();

  // One sum, and the memory of its result, which is used for another sum after Release.
  struct Call {
    int unit = 0;
    int64_t n = 0;
    int64_t k = 0;
    SparseEntries mine;
    SparseList global;    // memory of sum.parts
    SparseList returned;  // memory of sum.returned, which is set after the last step
    Sum sum;
  };

  void Do(std::function<void()> step);
  void Until(std::function<bool()> step) { steps_.push_back(std::move(step)); }

  // The sum that the steps are working on.
  Call& call() { return *calls_[static_cast<size_t>(front_ - first_ticket_)]; }
  SparseLink& link() { return link_; }
  const SparseLink& link() const { return link_; }

 private:
  int64_t next_ticket() const { return first_ticket_ + static_cast<int64_t>(calls_.size()); }

  std::string name_;
  SparseLink link_;
  std::vector<std::function<bool()>> steps_;
  size_t step_ = 0;                            // current step of the sum at the front
  std::deque<std::unique_ptr<Call>> calls_;    // from first_ticket_ on; null once released
  std::vector<std::unique_ptr<Call>> spares_;  // released ones, for reuse
  int64_t first_ticket_ = 0;
  int64_t front_ = 0;  // ticket of the sum in flight
};

}  // namespace dtrain
