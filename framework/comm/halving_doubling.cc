#include "framework/comm/halving_doubling.h"

#include <bit>
#include <numeric>

#include "framework/comm/collective.h"
#include "framework/comm/power_of_two.h"

namespace dtrain {
namespace {

// Returns log2(ranks), for a power of two.
int HalvingRounds(int ranks) { return std::bit_width(static_cast<unsigned>(ranks)) - 1; }

// A run of neighbouring blocks.
struct Run {
  int first;
  int count;

  Run Half(bool upper) const { return {upper ? first + count / 2 : first, count / 2}; }
};

void Add(CollectiveSchedule& schedule, int round, MoveKind kind, Rank peer, Run run) {
  schedule.moves.push_back({round, kind, peer, run.first, run.count});
}

// Numbers the members that are left after folding: one of each pair in the first 2 * `folded`
// members, and all others.
class Core {
 public:
  Core(const std::vector<Rank>& members, int folded) : members_(members), folded_(folded) {}

  int IndexOf(int member) const { return member < 2 * folded_ ? member / 2 : member - folded_; }
  Rank At(int index) const { return members_[index < folded_ ? 2 * index + 1 : index + folded_]; }

 private:
  const std::vector<Rank>& members_;
  const int folded_;
};

// Adds the rounds of halving and of doubling, from `round` on, for a member of the core.
void AddExchanges(CollectiveSchedule& schedule, const Core& core, int index, Run all, int round) {
  const int halvings = HalvingRounds(all.count);
  const Rank self = core.At(index);
  std::vector<Run> owned = {all};
  for (int step = 0; step < halvings; ++step, ++round) {
    const Rank partner = core.At(index ^ (1 << step));
    const bool upper = (index >> step) % 2 == 1;
    const Run kept = owned.back().Half(upper);
    Add(schedule, round, MoveKind::kFetch, partner, kept);
    Add(schedule, round, MoveKind::kSend, partner, owned.back().Half(!upper));
    Add(schedule, round, MoveKind::kSum, self, kept);
    owned.push_back(kept);
  }
  for (int step = halvings - 1; step >= 0; --step, ++round) {
    const Rank partner = core.At(index ^ (1 << step));
    const bool upper = (index >> step) % 2 == 1;
    Add(schedule, round, MoveKind::kSend, partner, owned[step + 1]);
    Add(schedule, round, MoveKind::kReceive, partner, owned[step].Half(!upper));
  }
}

}  // namespace

int HalvingDoublingBlocks(int members) { return PowerOfTwoWithin(members); }

int HalvingDoublingRounds(int members) {
  const int core = PowerOfTwoWithin(members);
  return 2 * HalvingRounds(core) + (core < members ? 2 : 0);
}

void AddHalvingDoubling(CollectiveSchedule& schedule, const std::vector<Rank>& members, int index,
                        int first, int round) {
  const auto size = static_cast<int>(members.size());
  const Run all{first, PowerOfTwoWithin(size)};
  const int folded = size - all.count;
  const int last = round + HalvingDoublingRounds(size) - 1;
  const bool in_pair = index < 2 * folded;
  if (in_pair && index % 2 == 0) {
    Add(schedule, round, MoveKind::kSend, members[index + 1], all);
    Add(schedule, last, MoveKind::kReceive, members[index + 1], all);
    return;
  }
  if (in_pair) {
    Add(schedule, round, MoveKind::kFetch, members[index - 1], all);
    Add(schedule, round, MoveKind::kSum, members[index], all);
  }
  const Core core(members, folded);
  AddExchanges(schedule, core, core.IndexOf(index), all, folded > 0 ? round + 1 : round);
  if (in_pair) Add(schedule, last, MoveKind::kSend, members[index - 1], all);
}

CollectiveSchedule HalvingDoublingSchedule(int world, Rank rank, NodeMap /*node_of*/) {
  std::vector<Rank> members(world);
  std::iota(members.begin(), members.end(), 0);
  CollectiveSchedule schedule{.blocks = HalvingDoublingBlocks(world), .moves = {}};
  AddHalvingDoubling(schedule, members, rank, 0, 0);
  return schedule;
}

namespace {

CollectiveRules HalvingDoublingRules(int /*world*/) {
  return {.scheduler = HalvingDoublingSchedule};
}

DTRAIN_COLLECTIVE("halving_doubling", HalvingDoublingRules,
                  "recursive halving and doubling: few rounds; repeats under the same schedule");

}  // namespace
}  // namespace dtrain
