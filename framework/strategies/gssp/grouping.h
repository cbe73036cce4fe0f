// Which workers share a group: those of similar speed (gssp.md 4; the rule is ours, the published
// one was not found).
#pragma once

#include <cstdint>
#include <vector>

namespace dtrain::gssp {

struct GroupingRule {
  int groups = 0;        // 0: the smallest number within which times differ by at most `spread`
  int groups_max = 1;    // of that
  double spread = 0.25;  // slowest / fastest - 1
  bool equal_size = false;
};

// The group of each worker, numbered from the fastest one, by the time of its steps (> 0).  Groups
// are neighbours in speed; of all such partitions it is one with the least sum of squares of
// log(time) about the groups' means.  A group has at least two workers where there are twice as many
// workers as groups, never none.
//
// Where the number of groups is left open, `compute`, the part of each time that is no transfer, may
// differ no more than the times.  Times alone would merge groups where transfers are most of a step,
// and with a group goes its server, whose link made these transfers as short as they are.  Empty:
// there are no transfers.
std::vector<int> GroupBySpeed(const std::vector<double>& times, const GroupingRule& rule,
                              const std::vector<double>& compute = {});

// The server of each worker, by the groups' new numbers and the workers' servers of before: groups
// keep the servers of most of their workers, the ones that have most first, so that no more workers
// than necessary change theirs.  There are no more groups than servers had workers before.
std::vector<int64_t> KeepServers(const std::vector<int>& group_of,
                                 const std::vector<int64_t>& server_of);

// The workers whose time lies nearer to the mean of another group (in log) than to their own's.
// Not those without whom their group would be too small, unless a worker of another group would be
// better company for the rest of it, by more than `rule.spread`: somebody has to be there.
std::vector<bool> Misplaced(const std::vector<double>& times, const std::vector<int64_t>& server_of,
                            const GroupingRule& rule);

}  // namespace dtrain::gssp
