// LocalWorld::State: the state that the ranks of a LocalWorld share.  Only comm/local includes it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "framework/comm/local/local_world.h"

namespace dtrain {

struct LocalMessage {
  Rank from = 0;
  Tag tag = Tag::kControl;
  std::span<const std::byte> data;
  std::atomic<bool> received = false;
};

struct LocalMailbox {
  std::atomic<int> count = 0;          // size of `waiting`, readable without the lock
  std::mutex mutex;                    // guards `waiting`, and the sender's memory during a copy
  std::vector<LocalMessage*> waiting;  // in the order of sending
};

struct LocalWorld::State {
  explicit State(int ranks) : mailboxes(ranks), gone(ranks), connected(ranks, false) {}
  int size() const { return static_cast<int>(mailboxes.size()); }

  // `failed`: the rank ended with an error, so ranks that wait for a message from any rank are
  // notified too.
  void Leave(Rank rank, bool failed, const std::string& reason);
  [[noreturn]] void ThrowLost(Rank rank);

  std::deque<LocalMailbox> mailboxes;
  std::deque<std::atomic<bool>> gone;
  std::atomic<int> failed_rank = -1;

  std::mutex mutex;  // guards all below
  std::condition_variable barrier_changed;
  std::vector<bool> connected;
  std::string reason;
  Rank left_rank = -1;  // the first rank that left or, if any failed, the first that failed
  int barrier_waiting = 0;
  int64_t barrier_generation = 0;
};

}  // namespace dtrain
