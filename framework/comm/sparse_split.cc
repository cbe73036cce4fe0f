#include "framework/comm/sparse_split.h"

#include <algorithm>

namespace dtrain {

std::vector<int> SparseSplit::Exchanges(int ranks) {
  std::vector<int> rounds;
  for (int left = ranks - 1; left > 0; left -= rounds.back()) {
    rounds.push_back(std::min(kUnderWay, left));
  }
  return rounds;
}

SparseSplit::SparseSplit(SparseLink& link)
    : link_(&link), received_(static_cast<size_t>(link.size())) {
  for (int i = 0; i < kUnderWay; ++i) lanes_.emplace_back(link);
}

void SparseSplit::Begin(const std::vector<SparseEntries>& parts) {
  parts_ = &parts;
  shelf_.Clear();
  const auto own = static_cast<size_t>(link_->rank());
  received_[own] = parts[own];
  next_step_ = 1;
  steps_left_ = link_->size() - 1;
}

bool SparseSplit::Advance() {
  for (Lane& lane : lanes_) {
    if (lane.step != 0 && !AdvanceStep(lane)) continue;
    if (next_step_ < link_->size()) BeginStep(lane);
  }
  return steps_left_ == 0;
}

void SparseSplit::BeginStep(Lane& lane) {
  lane.step = next_step_++;
  lane.counted = false;
  const Rank to = link_->Around(lane.step);
  const SparseEntries& part = (*parts_)[static_cast<size_t>(to)];
  lane.leaving = static_cast<SparseCount>(part.size());
  lane.messages.SendCount(to, lane.leaving);
  lane.messages.SendEntries(to, part);
  lane.messages.ReceiveCount(link_->Around(-lane.step), lane.arriving);
}

// Returns true when the step is over.
bool SparseSplit::AdvanceStep(Lane& lane) {
  if (!lane.messages.Arrived()) return false;
  if (!lane.counted) {
    lane.counted = true;
    const Rank from = link_->Around(-lane.step);
    const SparseShelf::Place place = shelf_.Take(lane.arriving);
    received_[static_cast<size_t>(from)] = place.entries();
    lane.messages.ReceiveEntries(from, place);
  }
  if (!lane.messages.Through()) return false;
  lane.step = 0;
  --steps_left_;
  return true;
}

}  // namespace dtrain
