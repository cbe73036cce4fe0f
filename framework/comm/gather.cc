#include "framework/comm/gather.h"

#include <fmt/format.h>

#include "framework/comm/backoff.h"
#include "framework/core/error.h"
#include "framework/core/log.h"
#include "framework/core/time.h"

namespace dtrain {
namespace {

constexpr Nanos kSayAfter = 30'000'000'000;
constexpr Nanos kGiveUpAfter = 30 * 60 * Nanos{1'000'000'000};

// Waits, not mutely: a slow disk or a large data set may keep a rank for long, a dead one for ever.
void Finish(Transport& transport, Request request, Rank peer) {
  Backoff backoff;
  const Nanos begin = WallNow();
  Nanos say_at = begin + kSayAfter;
  while (!transport.Test(request)) {
    backoff.Pause();
    if (WallNow() < say_at) continue;
    if (say_at - begin >= kGiveUpAfter) {
      throw StalledError(
          fmt::format("rank {} did not answer for {:.0f} s (set-up, evaluation or checkpoint)",
                      peer, ToSeconds(say_at - begin)),
          "");
    }
    log::Warning("still waiting for rank {} (set-up, evaluation or checkpoint)", peer);
    say_at += kSayAfter;
  }
}

// A message of any length: its size first.
void SendText(Transport& transport, Rank to, const std::string& text) {
  const uint64_t size = text.size();
  Finish(transport, transport.Send(to, Tag::kCollective, std::as_bytes(std::span(&size, 1))), to);
  if (size > 0)
    Finish(transport, transport.Send(to, Tag::kCollective, std::as_bytes(std::span(text))), to);
}

std::string ReceiveText(Transport& transport, Rank from) {
  uint64_t size = 0;
  Finish(transport,
         transport.Receive(from, Tag::kCollective, std::as_writable_bytes(std::span(&size, 1))),
         from);
  std::string text(size, '\0');
  if (size > 0) {
    Finish(transport,
           transport.Receive(from, Tag::kCollective, std::as_writable_bytes(std::span(text))),
           from);
  }
  return text;
}

}  // namespace

std::vector<std::string> Gather(Transport& transport, const std::string& mine) {
  if (transport.rank() != 0) {
    SendText(transport, 0, mine);
    return {};
  }
  std::vector<std::string> all = {mine};
  for (Rank rank = 1; rank < transport.size(); ++rank) all.push_back(ReceiveText(transport, rank));
  return all;
}

std::string Broadcast(Transport& transport, const std::string& mine) {
  if (transport.rank() != 0) return ReceiveText(transport, 0);
  for (Rank rank = 1; rank < transport.size(); ++rank) SendText(transport, rank, mine);
  return mine;
}

// In numbers relative to the root, rank r gets the floats from r without its highest bit and passes
// them on to r + 2^k for every 2^k > r.
void BroadcastFloats(Transport& transport, Rank root, std::span<float> values) {
  const int size = transport.size();
  const int mine = (transport.rank() - root + size) % size;
  const auto rank_of = [root, size](int relative) { return (relative + root) % size; };
  int step = 1;
  while (step <= mine) step *= 2;
  if (mine > 0) MoveFloats(transport, rank_of(mine - step / 2), transport.rank(), values);
  for (; mine + step < size; step *= 2) {
    MoveFloats(transport, transport.rank(), rank_of(mine + step), values);
  }
}

void MoveFloats(Transport& transport, Rank from, Rank to, std::span<float> values) {
  if (from == to || values.empty()) return;
  if (transport.rank() == from) {
    Finish(transport, transport.Send(to, Tag::kCollective, std::as_bytes(values)), to);
  } else if (transport.rank() == to) {
    Finish(transport, transport.Receive(from, Tag::kCollective, std::as_writable_bytes(values)),
           from);
  }
}

}  // namespace dtrain
