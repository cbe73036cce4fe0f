// The sparse collective "gtopk": a global selection of the k largest sums, by a binomial tree.
//
// On the way to the root each rank adds the entries of its children to its own and keeps the k
// largest.  Those of the root are the result, which is sent down the same tree.  In the published
// gTop-k each worker puts back the entries that it had sent and that are not in the result.  That
// loses an entry that was dropped in the middle of the tree if its position is in the result by
// another branch.  Here the rank that drops an entry, or a sum of several, keeps it in its own
// residual.  Each entry is in the result or was dropped in one place, so nothing is lost, and no
// second message is needed.  The drawback is that residuals move towards the root.
#include <algorithm>

#include "framework/comm/sparse_arithmetic.h"
#include "framework/comm/sparse_queue.h"
#include "framework/comm/sparse_tree.h"

namespace dtrain {

namespace {

class GTopK : public SparseQueue {
 public:
  ~GTopK() override { GiveUp(); }
  GTopK(Transport& transport, const CollectiveOptions& options)
      : SparseQueue("gtopk", transport, options), messages_(link()) {
    const SparseTree tree = TreeOf(transport.size(), transport.rank());
    PlanCutOfOwn();
    for (const Rank child : tree.children) PlanChild(child);
    if (tree.parent < 0) {
      Do([this] { call().global.swap(set_); });
    } else {
      PlanParent(tree.parent);
    }
    for (size_t i = tree.children.size(); i-- > 0;) {
      Do([this, child = tree.children[i]] { Give(child, call().global.entries()); });
      Until([this] { return messages_.Sent(); });
    }
    Do([this] { call().sum.parts = {call().global.entries()}; });
  }

 private:
  // The own selection is cut before it is sent, so no message has more than k entries.
  void PlanCutOfOwn() {
    Do([this] { cut_.Begin(call().mine, call().k, set_, call().returned); });
    Until([this] { return cut_.Advance(link()); });
  }

  void PlanChild(Rank child) {
    PlanReceive(child);
    Do([this] { merge_.Begin(set_.entries(), arriving_.entries(), merged_); });
    Until([this] { return merge_.Advance(link()); });
    Do([this] { cut_.Begin(merged_.entries(), call().k, set_, dropped_); });
    Until([this] { return cut_.Advance(link()); });
    Do([this] { merge_.Begin(call().returned.entries(), dropped_.entries(), merged_); });
    Until([this] { return merge_.Advance(link()); });
    Do([this] { call().returned.swap(merged_); });
  }

  void PlanParent(Rank parent) {
    Do([this, parent] { Give(parent, set_.entries()); });
    PlanReceive(parent);
    Until([this] { return messages_.Sent(); });
    Do([this] { call().global.swap(arriving_); });
  }

  void PlanReceive(Rank from) {
    Do([this, from] { messages_.ReceiveCount(from, arriving_count_); });
    Until([this] { return messages_.Arrived(); });
    Do([this, from] {
      arriving_.Resize(arriving_count_);
      messages_.ReceiveEntries(from, {arriving_.positions(), arriving_.values(), arriving_.size()});
    });
    Until([this] { return messages_.Arrived(); });
  }

  void Give(Rank to, SparseEntries entries) {
    leaving_count_ = static_cast<SparseCount>(entries.size());
    messages_.SendCount(to, leaving_count_);
    messages_.SendEntries(to, entries);
  }

  SparseMessages messages_;
  SparseCount arriving_count_ = 0;
  SparseCount leaving_count_ = 0;
  LargestCut cut_;
  MergeSum merge_;
  SparseList set_;       // the k largest of this rank's subtree so far
  SparseList arriving_;  // entries of a child, later the result
  SparseList merged_;
  SparseList dropped_;
};

std::unique_ptr<SparseCollective> MakeGTopK(Transport& transport,
                                            const CollectiveOptions& options) {
  return std::make_unique<GTopK>(transport, options);
}

std::vector<SparsePhase> GTopKPhases(int ranks) {
  const SparsePhase up = {.schedule = TreeSchedule(ranks),
                          .messages = SparsePhase::kCounted,
                          .adds = true,
                          .fixed_bytes = sizeof(SparseCount),
                          .entries = SparsePhase::Entries::kAsked};
  SparsePhase down = up;
  down.adds = false;
  std::reverse(down.schedule.begin(), down.schedule.end());
  for (std::vector<SparseMove>& round : down.schedule) {
    for (SparseMove& move : round) std::swap(move.from, move.to);
  }
  return {up, down};
}

DTRAIN_SPARSE_COLLECTIVE("gtopk", MakeGTopK, GTopKPhases,
                         "the k largest sums, by a tree: 4 k log2 P words, nothing lost");

}  // namespace
}  // namespace dtrain
