// Groups workers by similar speed (gssp.md 4).  The rule is ours, since the published one was not
// found.
#pragma once

#include <cstdint>
#include <vector>

namespace dtrain::gssp {

struct GroupingRule {
  int groups = 0;        // 0: the smallest number with which times in a group differ by <= `spread`
  int groups_max = 1;    // upper bound of that number
  double spread = 0.25;  // slowest / fastest - 1
  bool equal_size = false;
};

// Returns the group of each worker, numbered from the fastest group on, by the times of the
// workers' steps (> 0).  Each group is an interval in the order of speed.  Of all such partitions
// it takes one with the least sum of squares of log(time) about the groups' means.  A group has at
// least two workers if there are at least twice as many workers as groups, else at least one.
//
// If the number of groups is not given, `compute`, the part of each time without transfers, may not
// differ by more than `spread` within a group either.  The times alone would merge groups whose
// steps consist mostly of transfers; each merge removes a server, and with it the link that made
// these transfers so short.  Empty: the times have no transfers.
std::vector<int> GroupBySpeed(const std::vector<double>& times, const GroupingRule& rule,
                              const std::vector<double>& compute = {});

// Returns the new server of each worker, from the new groups and the old servers.  A group gets the
// server that most of its workers had; groups that share most workers with a server choose first,
// so that few workers change their server.  There must not be more groups than servers that had
// workers.
std::vector<int64_t> KeepServers(const std::vector<int>& group_of,
                                 const std::vector<int64_t>& server_of);

// Returns true for the workers whose log(time) is nearer to the mean of another group than to that
// of their own.  A worker without which its group would be too small is misplaced only if a worker
// of another group would fit better, by more than `rule.spread`.
std::vector<bool> Misplaced(const std::vector<double>& times, const std::vector<int64_t>& server_of,
                            const GroupingRule& rule);

}  // namespace dtrain::gssp
