#include "framework/bench/network/bench_link.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "framework/bench/network/link_fit.h"
#include "framework/bench/network/link_shares.h"
#include "framework/comm/backoff.h"
#include "framework/core/error.h"
#include "framework/core/time.h"
#include "framework/device/buffer.h"

namespace dtrain {
namespace {

constexpr int kFitStreams = 5;
constexpr int64_t kIncastBytes = 4 << 20;
constexpr int kIncastMessages = 72;  // of all senders together

int PingsFor(int64_t bytes, int asked) {
  return asked > 0 ? asked : static_cast<int>(std::clamp<int64_t>((64 << 20) / bytes, 11, 201));
}

void WaitFor(Transport& transport, Request request) {
  Backoff backoff;
  while (!transport.Test(request)) backoff.Pause();
}

void Ping(Transport& transport, Rank peer, std::span<std::byte> message) {
  WaitFor(transport, transport.Send(peer, Tag::kBulk, message));
  WaitFor(transport, transport.Receive(peer, Tag::kBulk, message));
}

void Pong(Transport& transport, std::span<std::byte> message) {
  WaitFor(transport, transport.Receive(0, Tag::kBulk, message));
  WaitFor(transport, transport.Send(0, Tag::kBulk, message));
}

// Returns one-way times in microseconds.
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

nlohmann::ordered_json LineFor(const char* bench, const Transport& transport, Rank peer) {
  const auto& node = transport.node_ranks();
  return {{"bench", bench},
          {"transport", transport.name()},
          {"from", 0},
          {"to", peer},
          {"same_node", std::find(node.begin(), node.end(), peer) != node.end()}};
}

// Measures one size, on rank 0 and on the peer.
void Measure(Transport& transport, Rank peer, std::span<std::byte> message, int samples,
             std::ostream& out) {
  if (transport.rank() != 0) {
    for (int i = 0; i < samples + 1; ++i) Pong(transport, message);
    return;
  }
  const std::vector<double> one_way_us = TimePings(transport, peer, message, samples);
  const double median = one_way_us[one_way_us.size() / 2];
  auto line = LineFor("link", transport, peer);
  line["bytes"] = message.size();
  line["samples"] = one_way_us.size();
  line["latency_us"] = median;
  line["latency_us_min"] = one_way_us.front();
  line["gbyte_s"] = static_cast<double>(message.size()) / median / 1e3;
  out << line.dump() << std::endl;
}

void MeasureFit(Transport& transport, Rank peer, double seconds, std::ostream& out) {
  std::byte byte{};
  const std::span<std::byte> message(&byte, 1);
  const int samples = PingsFor(1, 0);
  if (transport.rank() != 0) {
    for (int i = 0; i < samples + 1; ++i) Pong(transport, message);
    TakeStreams(transport);
    return;
  }
  const std::vector<double> one_way_us = TimePings(transport, peer, message, samples);
  const LinkFit fit = FitLink(StreamTo(transport, peer, seconds, kFitStreams));
  auto line = LineFor("link_fit", transport, peer);
  line["latency_us"] = one_way_us[one_way_us.size() / 2];
  line["bandwidth_gbit_s"] = fit.rate * 8e-9;
  line["bucket_bytes"] = static_cast<int64_t>(fit.bucket);
  line["line_gbit_s"] = fit.line * 8e-9;
  out << line.dump() << std::endl;
}

int BenchIncast(Transport& transport, std::ostream& out) {
  if (transport.size() < 3) {
    throw UsageError("bench link --incast needs at least 3 ranks, here are 2", "try --workers 3");
  }
  const int each = std::max(6, kIncastMessages / (transport.size() - 1));
  const auto passages = TimeIncast(transport, kIncastBytes, each);
  if (transport.rank() != 0) return 0;
  const nlohmann::ordered_json line = {{"bench", "link_incast"},
                                       {"transport", transport.name()},
                                       {"ranks", transport.size()},
                                       {"bytes", kIncastBytes},
                                       {"messages", passages.size()},
                                       {"seconds", passages.back().end},
                                       {"share_deviation", ShareDeviationOf(passages)}};
  out << line.dump() << std::endl;
  return 0;
}

}  // namespace

int BenchLink(Transport& transport, const BenchLinkOptions& options, std::ostream& out) {
  if (transport.size() < 2) {
    throw UsageError("bench link needs at least 2 ranks, here is 1", "try --workers 2");
  }
  if (options.incast) return BenchIncast(transport, out);
  int64_t most = 0;
  for (const int64_t bytes : options.sizes_bytes) most = std::max(most, bytes);
  const Buffer buffer(static_cast<size_t>(most));
  for (Rank peer = 1; peer < transport.size(); ++peer) {
    if (transport.rank() == 0 || transport.rank() == peer) {
      for (const int64_t bytes : options.sizes_bytes) {
        const std::span<std::byte> message(static_cast<std::byte*>(buffer.data()),
                                           static_cast<size_t>(bytes));
        Measure(transport, peer, message, PingsFor(bytes, options.samples), out);
      }
      MeasureFit(transport, peer, options.fit_seconds, out);
    }
    transport.Barrier();
  }
  return 0;
}

}  // namespace dtrain
