#include "framework/cli/bench_link.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "framework/comm/backoff.h"
#include "framework/core/error.h"
#include "framework/core/time.h"
#include "framework/device/buffer.h"

namespace dtrain {
namespace {

int SamplesFor(int64_t bytes, int asked) {
  return asked > 0 ? asked : static_cast<int>(std::clamp<int64_t>((64 << 20) / bytes, 11, 201));
}

void Await(Transport& transport, Request request) {
  Backoff backoff;
  while (!transport.Test(request)) backoff.Pause();
}

void Ping(Transport& transport, Rank peer, std::span<std::byte> message) {
  Await(transport, transport.Send(peer, Tag::kBulk, message));
  Await(transport, transport.Receive(peer, Tag::kBulk, message));
}

void Pong(Transport& transport, std::span<std::byte> message) {
  Await(transport, transport.Receive(0, Tag::kBulk, message));
  Await(transport, transport.Send(0, Tag::kBulk, message));
}

// One way, in microseconds.
std::vector<double> TimePings(Transport& transport, Rank peer, std::span<std::byte> message,
                              int samples) {
  std::vector<double> one_way_us;
  Ping(transport, peer, message);  // not timed: first touch, connection
  for (int i = 0; i < samples; ++i) {
    const Nanos begin = WallNow();
    Ping(transport, peer, message);
    one_way_us.push_back(static_cast<double>(WallNow() - begin) / 2e3);
  }
  std::sort(one_way_us.begin(), one_way_us.end());
  return one_way_us;
}

void Print(const Transport& transport, Rank peer, int64_t bytes,
           const std::vector<double>& one_way_us, std::ostream& out) {
  const auto& node = transport.node_ranks();
  const double median = one_way_us[one_way_us.size() / 2];
  const nlohmann::ordered_json line = {
      {"bench", "link"},
      {"transport", transport.name()},
      {"from", 0},
      {"to", peer},
      {"same_node", std::find(node.begin(), node.end(), peer) != node.end()},
      {"bytes", bytes},
      {"samples", one_way_us.size()},
      {"latency_us", median},
      {"latency_us_min", one_way_us.front()},
      {"gbyte_s", static_cast<double>(bytes) / median / 1e3}};
  out << line.dump() << std::endl;
}

}  // namespace

int BenchLink(Transport& transport, const BenchLinkOptions& options, std::ostream& out) {
  if (transport.size() < 2) {
    throw UsageError("bench link needs at least 2 ranks, here is 1", "try --workers 2");
  }
  const int64_t most = *std::max_element(options.sizes_bytes.begin(), options.sizes_bytes.end());
  const Buffer buffer(static_cast<size_t>(most));
  for (Rank peer = 1; peer < transport.size(); ++peer) {
    for (const int64_t bytes : options.sizes_bytes) {
      const std::span<std::byte> message(static_cast<std::byte*>(buffer.data()),
                                         static_cast<size_t>(bytes));
      const int samples = SamplesFor(bytes, options.samples);
      if (transport.rank() == 0) {
        Print(transport, peer, bytes, TimePings(transport, peer, message, samples), out);
      } else if (transport.rank() == peer) {
        for (int i = 0; i < samples + 1; ++i) Pong(transport, message);
      }
    }
    transport.Barrier();
  }
  return 0;
}

}  // namespace dtrain
