// Which workers share a group: those of similar speed (gssp.md 4; the rule is ours, the published
// one was not found).
#pragma once

#include <vector>

namespace dtrain::gssp {

struct GroupingRule {
  int groups = 0;        // 0: the smallest number within which speeds differ by at most `spread`
  int groups_max = 1;    // of that
  double spread = 0.25;  // slowest / fastest - 1
  bool equal_size = false;
};

// The group of each worker, numbered from the fastest one, by the time of its steps (> 0).  Groups
// are neighbours in speed; of all such partitions it is one with the least sum of squares of
// log(time) about the groups' means.  A group has at least two workers where there are twice as many
// workers as groups, never none.
std::vector<int> GroupBySpeed(const std::vector<double>& times, const GroupingRule& rule);

// The workers whose time lies nearer to the mean of another group (in log) than to their own's.
std::vector<bool> Misplaced(const std::vector<double>& times, const std::vector<int>& group_of);

}  // namespace dtrain::gssp
