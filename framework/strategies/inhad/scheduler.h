// Scheduler: decides when InHAD pulls, from whom, and what makes an update (inhad.md 4.4).  It is
// part of server 0, and counts only: gradients go to the servers.
//
//   IN of the nodes:  known_j;  pending = sum of known_j - pulled_j
//   pending >= c:     a round opens: PULL to every node that has something pending
//   all GRADs in:     Close: the sums of these nodes make the next update, version += 1
//
// With `late: wait` a round at version v opens only if no gradient that it leaves out can then be
// older than s_max when its turn comes: v + 1 <= low_j + s_max for every node, where low_j is the
// oldest version that the node computes with or, where it takes no part, has pending.
//
// The next round opens when all who get the new weights have them, or, pipelined, when all servers
// have made the update.
//
// A round waits for all of its nodes: the Scheduler alone says whose sums belong to an update, and all
// servers make the same one.
//
// It looks after the nodes every pull_timeout if workers may die (InhadOptions::may_fail): one that
// has said nothing since the last look is asked to, and given up when it has said nothing by the next
// one, as is one that a PULL waits for.  That is for good: what a given up node sends is ignored and
// counted, and n-softsync goes on with the workers that are left.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "framework/strategies/actor.h"
#include "framework/strategies/inhad/messages.h"
#include "framework/strategies/inhad/options.h"
#include "framework/strategies/placement.h"

namespace dtrain::inhad {

class Scheduler {
 public:
  Scheduler(const Placement& placement, const InhadOptions& options);

  void OnIn(int node, const In& in, Effects& effects);
  void OnGrad(int node, const Grad& grad);
  void OnHave(int node, const Have& have);
  void OnFewer(int node, const Fewer& fewer);
  void OnApplied(const Applied& applied);
  void OnTimer(int timer, Effects& effects);
  bool GaveUp(int node) const { return nodes_[node].given_up != 0; }
  // A message of such a node.
  void Ignore(const Message& message);
  // At a boundary: these workers have died.
  void GiveUpNodesOf(const std::vector<ActorId>& workers, Effects& effects);
  // The end of the run: whatever is pending is pulled.
  void Flush() { flushing_ = true; }

  // What can be done now.  A Close is to be carried out, and told to the other servers, before
  // anything else is asked for.
  std::optional<Close> TakeClose();
  // Nodes that were left out of an update and have something to say: they get the weights, from all
  // servers, before the next round opens (broadcast: pulled).
  std::vector<int> TakeRefreshes();
  void OpenIfDue(Effects& effects);
  // A round is open, and nobody's answer is awaited any more: it can be closed.
  bool IsComplete() const { return open_ != 0 && NodesToAwait() == 0; }

  void Visit(StateVisitor& visitor);
  std::string Describe() const;
  void Report(ProtocolReport& report) const;

 private:
  // What is known of a node.
  struct Node {
    int64_t workers = 0;
    int64_t known = 0;  // gradients submitted, as the node said
    int64_t pulled = 0;
    int64_t low_computing = 0, low_pending = kNever;
    int64_t asked = 0;               // round whose GRAD is awaited; 0: none
    int64_t answered = 0;            // round of a GRAD that is in no update yet; 0: none
    int64_t count = 0, samples = 0;  // of that GRAD
    int64_t heard = 0;               // it has said IN since the last look (broadcast: pulled)
    int64_t has = 0;                 // newest version that it has
    int64_t gets = 0;                // newest version that it was sent
    // Where workers may die:
    int64_t silent = 1;    // nothing was heard of it since the last look
    int64_t doubted = 0;   // it had to answer at the last look
    int64_t given_up = 0;  // as dead

    int64_t pending() const { return known - pulled; }
  };

  int64_t PendingOfAll() const;
  int64_t NodesToAwait() const;
  bool Settled() const;
  bool TooOldAfter(int64_t version) const;
  bool Due() const;
  static void MarkAlive(Node& node);
  int64_t NodesLeft() const;
  void WatchNodes(Effects& effects);
  void LookAfterNodes(Effects& effects);
  void GiveUp(int node, Effects& effects);

  const Placement placement_;
  const InhadOptions options_;
  std::vector<Node> nodes_;
  int64_t version_ = 0;  // and rounds that made an update: one each
  int64_t round_ = 0;
  int64_t open_ = 0;     // a round is
  int64_t applied_ = 0;  // other servers that have made the update of `version_`
  int64_t flushing_ = 0;
  int64_t looks_ = 0;    // the timer by which nodes are looked after is set
  int64_t vain_ = 0;     // looks since the last gradient was heard of
  int64_t lost_ = 0;     // gradients of given up nodes that came too late
  int64_t ignored_ = 0;  // messages of theirs
  ProtocolReport counted_;
};

}  // namespace dtrain::inhad
