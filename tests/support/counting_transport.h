// Transports that count their traffic and forward everything.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "framework/comm/transport.h"

namespace dtrain {

// Forwards everything; derived classes record.
class ForwardingTransport : public Transport {
 public:
  explicit ForwardingTransport(Transport& inner) : inner_(inner) {}

  Rank rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  std::string name() const override { return inner_.name(); }
  Request Send(Rank to, Tag tag, std::span<const std::byte> data) override {
    return inner_.Send(to, tag, data);
  }
  Request Receive(Rank from, Tag tag, std::span<std::byte> data) override {
    return inner_.Receive(from, tag, data);
  }
  bool Test(Request& request) override { return inner_.Test(request); }
  std::optional<Incoming> Probe(Tag tag) override { return inner_.Probe(tag); }
  void Barrier() override { inner_.Barrier(); }
  void Withdraw() override { inner_.Withdraw(); }
  const std::vector<Rank>& node_ranks() const override { return inner_.node_ranks(); }

 private:
  Transport& inner_;
};

// The traffic of one rank.
struct Carried {
  int64_t bytes_sent = 0;
  int64_t bytes_received = 0;
  int64_t messages_sent = 0;
};

// Counts traffic by purpose.
class CountingTransport : public ForwardingTransport {
 public:
  using ForwardingTransport::ForwardingTransport;

  Request Send(Rank to, Tag tag, std::span<const std::byte> data) override {
    Carried& carried = tag == Tag::kCollective ? at_boundary_ : of_steps_;
    carried.bytes_sent += static_cast<int64_t>(data.size());
    // The vector of a message (kBulk) counts as part of the message that announces it.
    if (tag != Tag::kBulk) ++carried.messages_sent;
    return ForwardingTransport::Send(to, tag, data);
  }
  Request Receive(Rank from, Tag tag, std::span<std::byte> data) override {
    Carried& carried = tag == Tag::kCollective ? at_boundary_ : of_steps_;
    carried.bytes_received += static_cast<int64_t>(data.size());
    return ForwardingTransport::Receive(from, tag, data);
  }

  const Carried& of_steps() const { return of_steps_; }  // messages and collectives
  const Carried& at_boundary() const {
    return at_boundary_;
  }  // set-up, evaluation, checkpoints, the end

 private:
  Carried of_steps_, at_boundary_;
};

}  // namespace dtrain
