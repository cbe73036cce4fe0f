// VirtualWorld: transports in virtual time.  Messages take the time of the simulated network, so that a collective for
// real ranks shows its cost there.
#pragma once

#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "framework/comm/transport.h"
#include "framework/core/check.h"
#include "framework/sim/network.h"

namespace dtrain {

class VirtualWorld {
 public:
  VirtualWorld(const NetworkModel& model, int ranks, std::vector<int> node_of = {})
      : network_(events_, model, ranks, std::move(node_of)) {
    for (Rank rank = 0; rank < ranks; ++rank) {
      ends_.push_back(std::make_unique<End>(*this, rank));
    }
  }

  int size() const { return static_cast<int>(ends_.size()); }
  Transport& at(Rank rank) { return *ends_[static_cast<size_t>(rank)]; }

  // Runs until nothing is in flight; `progress` is called again after each event until it returns false.  Returns the
  // time at which `done` became true.
  Nanos Run(const std::function<bool()>& progress, const std::function<bool()>& done) {
    while (true) {
      while (progress()) {
      }
      if (done()) return events_.now();
      DT_CHECK(events_.RunNext()) << "nothing is under way";
    }
  }

 private:
  struct Message {
    Rank from;
    Tag tag;
    std::vector<std::byte> data;
  };

  class End : public Transport {
   public:
    End(VirtualWorld& world, Rank rank) : world_(world), rank_(rank), node_ranks_{rank} {}

    Rank rank() const override { return rank_; }
    int size() const override { return world_.size(); }
    std::string name() const override { return "virtual"; }
    Request Send(Rank to, Tag tag, std::span<const std::byte> data) override {
      requests_.push_back({});
      const int slot = static_cast<int>(requests_.size()) - 1;
      const auto message =
          std::make_shared<Message>(Message{rank_, tag, {data.begin(), data.end()}});
      world_.network_.Send(
          rank_, to, static_cast<int64_t>(data.size()),
          [this, to, message] { world_.ends_[static_cast<size_t>(to)]->Take(*message); },
          [this, slot] { requests_[static_cast<size_t>(slot)].done = true; });
      return {slot};
    }
    Request Receive(Rank from, Tag tag, std::span<std::byte> data) override {
      requests_.push_back({.from = from, .tag = tag, .into = data, .receives = true});
      Match();
      return {static_cast<int>(requests_.size()) - 1};
    }
    bool Test(Request& request) override {
      if (!requests_[static_cast<size_t>(request.slot)].done) return false;
      request.slot = -1;
      return true;
    }
    std::optional<Incoming> Probe(Tag) override { return std::nullopt; }
    void Barrier() override { DT_CHECK(false) << "nobody waits here"; }
    const std::vector<Rank>& node_ranks() const override { return node_ranks_; }

   private:
    struct Posted {
      Rank from = -1;
      Tag tag = Tag::kControl;
      std::span<std::byte> into;
      bool receives = false;
      bool done = false;
    };

    void Take(const Message& message) {
      inbox_.push_back(message);
      Match();
    }
    void Match() {
      for (auto message = inbox_.begin(); message != inbox_.end();) {
        message = Fits(*message) ? inbox_.erase(message) : message + 1;
      }
    }
    // Gives the message to the oldest receive that matches it.
    bool Fits(const Message& message) {
      for (Posted& posted : requests_) {
        if (posted.done || !posted.receives) continue;
        if (posted.from != message.from || posted.tag != message.tag) continue;
        DT_CHECK(posted.into.size() == message.data.size()) << message.data.size() << " bytes";
        std::memcpy(posted.into.data(), message.data.data(), message.data.size());
        posted.done = true;
        return true;
      }
      return false;
    }

    VirtualWorld& world_;
    const Rank rank_;
    std::vector<Rank> node_ranks_;
    std::deque<Posted> requests_;  // all requests ever made
    std::deque<Message> inbox_;
  };

  EventQueue events_;
  Network network_;
  std::vector<std::unique_ptr<End>> ends_;
};

}  // namespace dtrain
