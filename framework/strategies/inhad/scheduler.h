// Scheduler: decides when InHAD pulls gradients, from which nodes, and which sums make an update
// (inhad.md 4.4).  It is part of server 0 and only counts gradients; the gradients themselves are
// sent to the servers.
//
//   IN of the nodes:  known_j;  pending = sum of known_j - pulled_j
//   pending >= c:     a round opens: PULL to every node that has pending gradients
//   all GRADs in:     Close: the sums of these nodes make the next update, version += 1
//
// With `late: wait` a round at version v opens only if no gradient that it leaves out can be older
// than s_max in the round after it: v + 1 <= low_j + s_max for every node.  low_j is the oldest
// version that the node computes with or, if the node takes no part in the round, has pending.
//
// A node is admitted by its own broadcast.  One that is still receiving weights is neither pulled
// nor counted: its gradients wait, so a slow downlink delays no other node.  The node joins an open
// round when it has these weights.  It is sent no others meanwhile, since they would queue up behind
// them, and gets the newest ones with the update of the next round.  With `late: wait` the others
// wait for it where its gradients would become too old.  If pipelined, a node is pulled and sent
// weights whatever it is receiving.
//
// The next round may open when all servers have made the update.  A round waits for all of its
// nodes, so a slow uplink delays the rounds that its node takes part in.  Only the Scheduler decides
// which sums belong to an update, so all servers make the same one.
//
// If workers may die (InhadOptions::may_fail), it checks the nodes every pull_timeout.  A node that
// has sent nothing since the last check is asked to answer, unless a PULL to it is unanswered, and
// is given up if it has sent nothing by the next check.  That is final: messages of such a node are
// ignored and counted, and n-softsync continues with the workers that are left.
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
  void OnHave(int node, const Have& have, Effects& effects);
  void OnFewer(int node, const Fewer& fewer);
  void OnApplied(const Applied& applied);
  void OnTimer(int timer, Effects& effects);
  bool GaveUp(int node) const { return nodes_[node].given_up != 0; }
  // Counts a message of such a node.
  void Ignore(const Message& message);
  // Gives up the nodes of which all workers have died; `workers` are all dead workers.  Called at a
  // boundary.
  void GiveUpNodesOf(const std::vector<ActorId>& workers, Effects& effects);
  // The run ends: the next round pulls all pending gradients.
  void Flush() { flushing_ = true; }

  // Returns the next update if its round is complete.  The caller makes the update and sends the
  // Close to the other servers before it calls any other function.
  std::optional<Close> TakeClose();
  // Returns the nodes that get the weights, from all servers, before the next round opens: those
  // that were left out of an update and have sent an IN since (broadcast: pulled), and those that
  // had no gradient for the round that pulled them.
  std::vector<int> TakeRefreshes();
  void OpenIfDue(Effects& effects);
  // True if a round is open and all its nodes have answered or were given up, so it can be closed.
  bool IsComplete() const { return open_ != 0 && NodesToAwait() == 0; }

  void Visit(StateVisitor& visitor);
  std::string Describe() const;
  void Report(ProtocolReport& report) const;

 private:
  // Holds the Scheduler's knowledge of a node.
  struct Node {
    int64_t workers = 0;
    int64_t known = 0;  // gradients submitted, as reported by the node
    int64_t pulled = 0;
    int64_t low_computing = 0, low_pending = kNever;
    int64_t asked = 0;               // round whose GRAD is awaited; 0: none
    int64_t answered = 0;            // round of a GRAD that is in no update yet; 0: none
    int64_t count = 0, samples = 0;  // of that GRAD
    int64_t heard = 0;               // 1 if it sent an IN or an empty GRAD since TakeRefreshes
    int64_t has = 0;                 // newest version that it has
    int64_t gets = 0;                // newest version that was sent to it
    int64_t overtaken = 0;  // 1 if an update was made while it received `has`, until the next round
    // If workers may die:
    int64_t silent = 1;    // 1 if it has sent nothing since the last check
    int64_t doubted = 0;   // 1 if it was silent at the last check and had to answer
    int64_t given_up = 0;  // 1 if it is considered dead

    int64_t pending() const { return known - pulled; }
  };

  bool Receiving(const Node& node) const;
  bool AnyReceiving() const;
  bool TakesPart(const Node& node) const;
  int64_t PendingOfAll() const;
  int64_t PendingToPull() const;
  int64_t NodesToAwait() const;
  bool AllServersUpdated() const;
  bool TooOldAfter(int64_t version) const;
  bool Due() const;
  void PullFrom(int node, Effects& effects);
  static void MarkAlive(Node& node);
  int64_t NodesLeft() const;
  void WatchNodes(Effects& effects);
  void LookAfterNodes(Effects& effects);
  void GiveUp(int node, Effects& effects);

  const Placement placement_;
  const InhadOptions options_;
  std::vector<Node> nodes_;
  int64_t version_ = 0;  // equals the number of rounds that made an update
  int64_t round_ = 0;
  int64_t open_ = 0;     // 1 if a round is open
  int64_t applied_ = 0;  // other servers that have made the update to `version_`
  int64_t flushing_ = 0;
  int64_t looks_ = 0;    // 1 if the timer of the next check is set
  int64_t vain_ = 0;     // checks since the last new gradient was reported
  int64_t lost_ = 0;     // gradients of given-up nodes that arrived too late
  int64_t ignored_ = 0;  // messages of given-up nodes
  ProtocolReport counted_;
};

}  // namespace dtrain::inhad
