// LocalTransport: one rank's end of a LocalWorld.  Included by comm/local only.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "framework/comm/local/local_state.h"

namespace dtrain {

class LocalTransport : public Transport {
 public:
  LocalTransport(std::shared_ptr<LocalWorld::State> state, Rank rank);
  ~LocalTransport() override;

  Rank rank() const override { return rank_; }
  int size() const override { return state_->size(); }
  std::string name() const override { return "local"; }
  Request Send(Rank to, Tag tag, std::span<const std::byte> data) override;
  Request Receive(Rank from, Tag tag, std::span<std::byte> data) override;
  bool Test(Request& request) override;
  std::optional<Incoming> Probe(Tag tag) override;
  void Barrier() override;
  void Withdraw() override;
  const std::vector<Rank>& node_ranks() const override { return node_ranks_; }

 private:
  struct Slot {
    bool sending = false;
    Rank peer = 0;
    LocalMessage message;  // of a send
    // The rest describes a receive.
    Tag tag = Tag::kControl;
    std::span<std::byte> into;
    bool received = false;
  };

  int TakeSlot();
  void Deliver();
  bool Hand(LocalMessage& message);
  [[noreturn]] void ThrowLost(Rank peer);

  std::shared_ptr<LocalWorld::State> state_;
  Rank rank_;
  int exceptions_at_start_;
  std::vector<Rank> node_ranks_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<int> free_slots_;
  std::vector<int> receives_;  // posted and not yet matched, in order
};

}  // namespace dtrain
