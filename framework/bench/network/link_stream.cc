#include "framework/bench/network/link_fit.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <span>
#include <thread>

#include "framework/core/time.h"
#include "framework/device/buffer.h"

namespace dtrain {
namespace {

// The messages are small enough that MPI over TCP sends them without a handshake (up to 64 KiB) and that a bucket of
// 100 KB is visible; together they are less than the queue of a switch port, so that nothing is dropped.
constexpr int64_t kMessageBytes = 16 << 10;
constexpr int64_t kInFlight = 40;
constexpr int64_t kLeastBytes = 4 << 20;
constexpr int64_t kMostBytes = int64_t{4} << 30;
constexpr int kClockExchanges = 32;
constexpr auto kNap = std::chrono::microseconds(10);

// Waits by sleeping: a rank that sleeps gets a core when it wakes, even if other processes compute; one that yields may
// wait for a time slice of theirs, in which the link runs dry.  A time stamp is late by one nap at most.
void Nap(Transport& transport, Request& request) {
  while (!transport.Test(request)) std::this_thread::sleep_for(kNap);
}

// Waits by yielding, for measured round trips.
void Spin(Transport& transport, Request& request) {
  while (!transport.Test(request)) ::sched_yield();
}

template <class T>
void SendValue(Transport& transport, Rank to, const T& value) {
  Request request = transport.Send(to, Tag::kBulk, std::as_bytes(std::span(&value, 1)));
  Spin(transport, request);
}

template <class T>
T ReceiveValue(Transport& transport, Rank from) {
  T value;
  Request request =
      transport.Receive(from, Tag::kBulk, std::as_writable_bytes(std::span(&value, 1)));
  Spin(transport, request);
  return value;
}

// Returns the peer's clock minus rank 0's.
Nanos ClockAhead(Transport& transport, Rank peer) {
  Nanos fastest = std::numeric_limits<Nanos>::max();
  Nanos ahead = 0;
  for (int i = 0; i < kClockExchanges; ++i) {
    const Nanos sent = WallNow();
    SendValue(transport, peer, sent);
    const Nanos stamp = ReceiveValue<Nanos>(transport, peer);
    const Nanos round_trip = WallNow() - sent;
    if (round_trip >= fastest) continue;
    fastest = round_trip;
    ahead = stamp - (sent + round_trip / 2);
  }
  return ahead;
}

void AnswerClock(Transport& transport) {
  for (int i = 0; i < kClockExchanges; ++i) {
    ReceiveValue<Nanos>(transport, 0);
    SendValue(transport, 0, WallNow());
  }
}

// Holds the requests of one message of the stream and of the time stamp that answers it.
struct Slot {
  Request message;
  Request stamped;
  Nanos stamp = 0;
};

// Runs rank 0's part of one stream.
Arrivals Stream(Transport& transport, Rank peer, int64_t messages) {
  const Buffer buffer(kMessageBytes);  // all messages are equal
  const std::span<const std::byte> message(static_cast<const std::byte*>(buffer.data()),
                                           kMessageBytes);
  std::vector<Slot> slots(kInFlight);
  Arrivals arrivals;
  const Nanos ahead = ClockAhead(transport, peer);
  const Nanos begun = WallNow();
  for (int64_t i = 0; i < messages + kInFlight; ++i) {
    Slot& slot = slots[i % kInFlight];
    if (i >= kInFlight) {
      Nap(transport, slot.message);
      Nap(transport, slot.stamped);
      arrivals.push_back(
          {ToSeconds(slot.stamp - ahead - begun), (i - kInFlight + 1) * kMessageBytes});
    }
    if (i >= messages) continue;
    slot.stamped =
        transport.Receive(peer, Tag::kBulk, std::as_writable_bytes(std::span(&slot.stamp, 1)));
    slot.message = transport.Send(peer, Tag::kBulk, message);
  }
  return arrivals;
}

// Runs the peer's part of one stream; the peer spins until the first message arrives.
void TakeStream(Transport& transport, int64_t messages) {
  const Buffer buffer(kInFlight * kMessageBytes);
  auto* memory = static_cast<std::byte*>(buffer.data());
  std::vector<Slot> slots(kInFlight);
  AnswerClock(transport);
  for (int64_t i = 0; i < messages + kInFlight; ++i) {
    Slot& slot = slots[i % kInFlight];
    if (i >= kInFlight) {
      Nap(transport, slot.message);
      const Nanos now = WallNow();
      if (slot.stamped.active()) Nap(transport, slot.stamped);
      slot.stamp = now;
      slot.stamped = transport.Send(0, Tag::kBulk, std::as_bytes(std::span(&slot.stamp, 1)));
    }
    if (i >= messages) continue;
    slot.message =
        transport.Receive(0, Tag::kBulk, {memory + i % kInFlight * kMessageBytes, kMessageBytes});
  }
  for (Slot& slot : slots) Nap(transport, slot.stamped);
}

}  // namespace

std::vector<Arrivals> StreamTo(Transport& transport, Rank peer, double seconds_min, int repeats) {
  const auto stream = [&](int64_t total) {
    SendValue(transport, peer, total / kMessageBytes);
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds_min / 2));
    return Stream(transport, peer, total / kMessageBytes);
  };
  int64_t total = kLeastBytes;
  std::vector<Arrivals> streams = {stream(total)};
  while (streams[0].back().seconds < seconds_min && total < kMostBytes) {
    total *= 4;
    streams[0] = stream(total);
  }
  for (int i = 1; i < repeats; ++i) streams.push_back(stream(total));
  SendValue(transport, peer, int64_t{0});  // no more
  return streams;
}

void TakeStreams(Transport& transport) {
  for (;;) {
    const auto messages = ReceiveValue<int64_t>(transport, 0);
    if (messages == 0) return;
    TakeStream(transport, messages);
  }
}

}  // namespace dtrain
