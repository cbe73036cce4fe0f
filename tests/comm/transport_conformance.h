// The requirements on every transport (framework/comm/transport.h), as scenarios that each rank runs.  tests/comm runs
// them over local, tests/comm_mpi over mpi.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "framework/comm/backoff.h"
#include "framework/comm/transport.h"

namespace dtrain {

struct TransportScenario {
  std::string name;
  std::function<void(Transport&)> body;  // called on every rank
};

inline void Await(Transport& transport, Request request) {
  Backoff backoff;
  while (!transport.Test(request)) backoff.Pause();
  EXPECT_FALSE(request.active());
}

inline Incoming AwaitMessage(Transport& transport, Tag tag) {
  Backoff backoff;
  for (;;) {
    if (const auto incoming = transport.Probe(tag)) return *incoming;
    backoff.Pause();
  }
}

template <class T>
std::span<const std::byte> BytesOf(const std::vector<T>& values) {
  return std::as_bytes(std::span<const T>(values));
}
template <class T>
std::span<std::byte> WritableBytesOf(std::vector<T>& values) {
  return std::as_writable_bytes(std::span<T>(values));
}

// Sends to the right neighbour and receives from the left one (a single rank: to and from itself).
inline void PassAround(Transport& transport, int64_t count) {
  const Rank right = (transport.rank() + 1) % transport.size();
  const Rank left = (transport.rank() + transport.size() - 1) % transport.size();
  std::vector<int64_t> out(count);
  std::vector<int64_t> in(count, -1);
  std::iota(out.begin(), out.end(), transport.rank() * 1000);
  const Request receive = transport.Receive(left, Tag::kBulk, WritableBytesOf(in));
  const Request send = transport.Send(right, Tag::kBulk, BytesOf(out));
  Await(transport, receive);
  Await(transport, send);
  for (int64_t i = 0; i < count; ++i) ASSERT_EQ(in[i], left * 1000 + i);
}

inline void KeepsOrderWithinAPairAndTag(Transport& transport) {
  constexpr int kMessages = 200;
  const Rank right = (transport.rank() + 1) % transport.size();
  const Rank left = (transport.rank() + transport.size() - 1) % transport.size();
  std::vector<int> out(kMessages);
  std::vector<int> in(kMessages, -1);
  std::iota(out.begin(), out.end(), 0);
  std::vector<Request> requests;
  for (int i = 0; i < kMessages; ++i) {
    requests.push_back(transport.Send(right, Tag::kBulk, std::as_bytes(std::span(&out[i], 1))));
  }
  for (int i = 0; i < kMessages; ++i) {
    requests.push_back(
        transport.Receive(left, Tag::kBulk, std::as_writable_bytes(std::span(&in[i], 1))));
  }
  for (const Request& request : requests) Await(transport, request);
  EXPECT_EQ(in, out);
}

// A receive takes a message with its own tag, in any order of the sends.
inline void KeepsTagsApart(Transport& transport) {
  const Rank right = (transport.rank() + 1) % transport.size();
  const Rank left = (transport.rank() + transport.size() - 1) % transport.size();
  const std::vector<int> first = {1};
  const std::vector<int> second = {2};
  std::vector<int> got_first(1);
  std::vector<int> got_second(1);
  const Request send_first = transport.Send(right, CollectiveTag(7), BytesOf(first));
  const Request send_second = transport.Send(right, CollectiveTag(8), BytesOf(second));
  Await(transport, transport.Receive(left, CollectiveTag(8), WritableBytesOf(got_second)));
  Await(transport, transport.Receive(left, CollectiveTag(7), WritableBytesOf(got_first)));
  Await(transport, send_first);
  Await(transport, send_second);
  EXPECT_EQ(got_first, first);
  EXPECT_EQ(got_second, second);
}

// Rank 0 learns only by Probe of a message from each other rank, whose size it does not know.
inline void ProbesFromAnyone(Transport& transport) {
  if (transport.rank() != 0) {
    const std::vector<int> out(transport.rank(), transport.rank());
    Await(transport, transport.Send(0, Tag::kControl, BytesOf(out)));
    return;
  }
  std::vector<int> seen(transport.size(), 0);
  for (int i = 1; i < transport.size(); ++i) {
    const Incoming incoming = AwaitMessage(transport, Tag::kControl);
    ASSERT_EQ(incoming.bytes, incoming.from * sizeof(int));
    std::vector<int> in(incoming.from);
    Await(transport, transport.Receive(incoming.from, Tag::kControl, WritableBytesOf(in)));
    EXPECT_EQ(in, std::vector<int>(incoming.from, incoming.from));
    ++seen[incoming.from];
  }
  EXPECT_FALSE(transport.Probe(Tag::kControl).has_value());
  for (Rank rank = 1; rank < transport.size(); ++rank) EXPECT_EQ(seen[rank], 1) << rank;
}

inline void NothingToProbe(Transport& transport) {
  EXPECT_FALSE(transport.Probe(Tag::kControl).has_value());
}

// All pairs exchange in both directions at once: no send waits for a receive to be posted.
inline void CrossesAllPairs(Transport& transport) {
  constexpr int kFloats = 50'000;
  const int n = transport.size();
  std::vector<float> out(kFloats, static_cast<float>(transport.rank()));
  std::vector<std::vector<float>> in(n, std::vector<float>(kFloats, -1.0f));
  std::vector<Request> requests;
  for (Rank peer = 0; peer < n; ++peer) {
    requests.push_back(transport.Send(peer, Tag::kBulk, BytesOf(out)));
  }
  for (Rank peer = n - 1; peer >= 0; --peer) {
    requests.push_back(transport.Receive(peer, Tag::kBulk, WritableBytesOf(in[peer])));
  }
  for (const Request& request : requests) Await(transport, request);
  for (Rank peer = 0; peer < n; ++peer) {
    EXPECT_EQ(in[peer], std::vector<float>(kFloats, static_cast<float>(peer)));
  }
}

// After a barrier, the messages that every rank sent before it have arrived.
inline void BarrierWaitsForAll(Transport& transport) {
  for (int round = 0; round < 20; ++round) {
    const Rank last = round % transport.size();
    std::vector<int> out = {round};
    std::vector<Request> sends;
    if (transport.rank() == last) {
      for (Rank peer = 0; peer < transport.size(); ++peer) {
        if (peer != last) sends.push_back(transport.Send(peer, Tag::kControl, BytesOf(out)));
      }
    }
    transport.Barrier();
    if (transport.rank() != last) {
      const Incoming incoming = AwaitMessage(transport, Tag::kControl);
      EXPECT_EQ(incoming.from, last);
      std::vector<int> in(1);
      Await(transport, transport.Receive(last, Tag::kControl, WritableBytesOf(in)));
      EXPECT_EQ(in[0], round);
    }
    for (const Request& send : sends) Await(transport, send);
    transport.Barrier();
  }
}

inline void KnowsWhoItIs(Transport& transport) {
  EXPECT_GE(transport.rank(), 0);
  EXPECT_LT(transport.rank(), transport.size());
  const std::vector<Rank>& node = transport.node_ranks();
  EXPECT_EQ(std::count(node.begin(), node.end(), transport.rank()), 1);
  EXPECT_TRUE(std::is_sorted(node.begin(), node.end()));
  EXPECT_EQ(static_cast<int>(node.size()), transport.size());  // all ranks are on one machine here
}

inline std::vector<TransportScenario> TransportScenarios() {
  return {{"EmptyMessage", [](Transport& t) { PassAround(t, 0); }},
          {"OneWord", [](Transport& t) { PassAround(t, 1); }},
          {"BelowTheEagerLimit", [](Transport& t) { PassAround(t, 400); }},
          {"AboveTheEagerLimit", [](Transport& t) { PassAround(t, 200'001); }},
          {"KeepsOrderWithinAPairAndTag", KeepsOrderWithinAPairAndTag},
          {"KeepsTagsApart", KeepsTagsApart},
          {"ProbesFromAnyone", ProbesFromAnyone},
          {"NothingToProbe", NothingToProbe},
          {"CrossesAllPairs", CrossesAllPairs},
          {"BarrierWaitsForAll", BarrierWaitsForAll},
          {"KnowsWhoItIs", KnowsWhoItIs}};
}

}  // namespace dtrain
