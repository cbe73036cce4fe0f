#include "framework/cluster/cluster_config.h"

#include <fmt/format.h>

#include <algorithm>

#include "framework/core/error.h"
#include "framework/core/text.h"

namespace dtrain {
namespace {

using config::Reader;

constexpr char kSlowdownHint[] = "one factor a worker, or one a block of workers of equal size";

bool AreBlocks(size_t factors, int workers) {
  return factors > 0 && static_cast<size_t>(workers) % factors == 0;
}

std::string NoBlocks(size_t factors, const std::string& workers) {
  return fmt::format("{} cannot be shared out to {}",
                     Counted(static_cast<int64_t>(factors), "slowdown factor"), workers);
}

void ReadRateAndLatency(Reader& reader, LinkModel& link) {
  link.bandwidth_gbit_s = reader.Number("bandwidth_gbit_s", link.bandwidth_gbit_s)
                              .Above(0)
                              .Help("sustained payload bandwidth of a link");
  link.latency_us = reader.Number("latency_us", link.latency_us)
                        .Min(0)
                        .Help("latency of a message, without the time to transmit its bytes");
}

void ReadBucket(Reader& reader, LinkModel& link) {
  link.bucket_bytes = reader.Int("bucket_bytes", link.bucket_bytes)
                          .Min(0)
                          .Help("token bucket: bytes that pass at line rate after an idle time");
  link.line_gbit_s = reader.Number("line_gbit_s", link.line_gbit_s)
                         .Min(0)
                         .Help("rate while the token bucket is not empty; 0: unlimited");
  if (link.line_gbit_s > 0 && link.line_gbit_s < link.bandwidth_gbit_s) {
    reader.AddError("line_gbit_s",
                    fmt::format("line rate {} is below the bandwidth {} ({})", link.line_gbit_s,
                                link.bandwidth_gbit_s, reader.Line("bandwidth_gbit_s")),
                    "", {"bandwidth_gbit_s"});
  }
}

NetworkModel ReadNetwork(Reader reader) {
  NetworkModel network;
  ReadRateAndLatency(reader, network.between_nodes);
  ReadBucket(reader, network.between_nodes);
  const std::string queue = reader.String("queue", "fair")
                                .OneOf({"fair", "fifo"})
                                .Help("how messages share a network interface");
  network.queue = queue == "fifo" ? NetworkModel::Queue::kFifo : NetworkModel::Queue::kFair;
  network.share_deviation =
      reader.Number("share_deviation", 0)
          .Min(0)
          .Help("relative standard deviation of the messages' shares of a receiver's bandwidth");
  network.message_overhead_us =
      reader.Number("message_overhead_us", 0)
          .Min(0)
          .Help("CPU time per message, at the sender and at the receiver");
  Reader inside = reader.Section("inside", "the network between ranks of one node");
  ReadRateAndLatency(inside, network.inside_node);
  return network;
}

ClusterConfig::Pauses ReadPauses(Reader reader) {
  ClusterConfig::Pauses pauses;
  pauses.probability = reader.Number("probability", 0)
                           .Min(0)
                           .Max(1)
                           .Help("probability that a step begins with a pause");
  pauses.seconds = reader.Number("seconds", 0).Min(0).Help("length of such a pause");
  return pauses;
}

void ReadSlowdown(Reader& reader, int workers, ClusterConfig& cluster) {
  cluster.slowdown = static_cast<std::vector<double>>(
      reader.Numbers("slowdown", {1}).Above(0).Help(kSlowdownHint));
  const size_t factors = cluster.slowdown.size();
  if (factors == 0) {
    reader.AddError("slowdown", "slowdown names no factor", kSlowdownHint);
  } else if (reader.Has("workers") && !AreBlocks(factors, workers)) {
    const std::string them =
        fmt::format("{} ({})", Counted(workers, "worker"), reader.Line("workers"));
    reader.AddError("slowdown", NoBlocks(factors, them), kSlowdownHint, {"workers"});
  }
}

}  // namespace

std::vector<double> ClusterConfig::SlowdownOf(int workers) const {
  if (!AreBlocks(slowdown.size(), workers)) {
    throw ConfigError(NoBlocks(slowdown.size(), Counted(workers, "worker")), kSlowdownHint);
  }
  const size_t block = workers / slowdown.size();
  std::vector<double> factors;
  for (int worker = 0; worker < workers; ++worker) factors.push_back(slowdown[worker / block]);
  return factors;
}

ClusterConfig ReadCluster(Reader& reader, int workers) {
  ClusterConfig cluster;
  const int64_t per_node =
      reader.Int("per_node", 0)
          .Auto()
          .Min(0)
          .Max(1 << 20)
          .Help(
              "workers per simulated node (a server with a rank of its own has one of its own), "
              "and with strategy inhad or collective hierarchical per node of a real run; "
              "auto: 1 in a simulation, all workers of a host in a real run");
  cluster.step_seconds =
      reader.Number("step_seconds", 0).Min(0).Help("minimum time of a worker's step");
  ReadSlowdown(reader, workers, cluster);
  cluster.jitter =
      reader.Number("jitter", 0).Min(0).Help("relative standard deviation of step times");
  cluster.pauses = ReadPauses(reader.Section("pauses", "random pauses of workers"));
  cluster.gflops = reader.Number("gflops", 100)
                       .Above(0)
                       .Help("speed of a simulated worker when no measured layer times are given");
  cluster.memory_gbyte_s =
      reader.Number("memory_gbyte_s", 8)
          .Above(0)
          .Help("speed of a simulated rank's vector arithmetic, in bytes written");
  cluster.network =
      ReadNetwork(reader.Section("network", "the network that dtrain simulate models"));
  cluster.deaths = ReadDeaths(reader);
  cluster.network.per_node = static_cast<int>(std::max<int64_t>(per_node, 1));
  cluster.per_node_given = per_node > 0;
  return cluster;
}

}  // namespace dtrain
