#include "framework/runtime/results/fill_summary.h"

#include <algorithm>

#include "framework/comm/gather.h"
#include "framework/core/bytes.h"
#include "framework/core/host.h"
#include "framework/runtime/setup/run_exchange.h"

namespace dtrain {
namespace {

std::string Pack(const RankReport& report) {
  ByteWriter writer;
  writer.Value(report.steps);
  writer.Value(report.compute);
  writer.Value(report.exchange.traffic);
  writer.Value(report.exchange.exposed);
  writer.Values(report.exchange.protocol.staleness);
  writer.Value(report.exchange.protocol.clock_lead_max);
  writer.Text(HostName());
  return writer.Take();
}

RankReport Unpack(ByteReader& reader) {
  RankReport report;
  report.steps = reader.Value<int64_t>();
  report.compute = reader.Value<Nanos>();
  report.exchange.traffic = reader.Value<Collective::Traffic>();
  report.exchange.exposed = reader.Value<Nanos>();
  report.exchange.protocol.staleness = reader.Values<int64_t>();
  report.exchange.protocol.clock_lead_max = reader.Value<int64_t>();
  return report;
}

}  // namespace

void DescribeConfig(const RunConfig& config, Summary& summary) {
  summary.strategy = config.strategy_name;
  summary.workers = static_cast<int>(config.workers);
  const int servers = PlacementOf(config).servers;
  if (servers > 0) summary.servers = servers;
  summary.global_batch = config.batch;
  summary.seed = config.seed;
}

void DescribeRun(const RunConfig& config, const Graph& graph, const ExecutionPlan& plan,
                 Summary& summary) {
  DescribeConfig(config, summary);
  if (plan.workers > 1 && PlacementOf(config).servers == 0) summary.collective = plan.collective;
  summary.model = graph.name();
  summary.dataset = config.data.name;
  summary.device = plan.device;
  summary.precision = config.precision;
  summary.compute = "real";
  summary.plan = PlanSummary{static_cast<int>(plan.buckets.size()), std::nullopt};
  summary.config_sha256 = config.config_sha256;
}

StalenessSummary StalenessOf(const ProtocolReport& report) {
  StalenessSummary staleness;
  staleness.histogram = report.staleness;
  staleness.max = static_cast<int64_t>(report.staleness.size()) - 1;
  staleness.mean = report.staleness_mean();
  staleness.clock_lead_max = report.clock_lead_max;
  return staleness;
}

WorkerSummary WorkerSummaryOf(int rank, const std::string& node, const RankReport& report) {
  WorkerSummary worker;
  worker.rank = rank;
  worker.node = node;
  worker.steps = report.steps;
  worker.compute_seconds = ToSeconds(report.compute);
  worker.wait_seconds = ToSeconds(report.exchange.exposed);
  const ProtocolReport& protocol = report.exchange.protocol;
  if (!protocol.staleness.empty()) worker.staleness_mean = protocol.staleness_mean();
  return worker;
}

void GatherReports(Transport& transport, const RankReport& mine, int workers, Summary& summary) {
  const std::vector<std::string> all = Gather(transport, Pack(mine));
  CommunicationSummary communication;
  ProtocolReport protocol;
  for (size_t rank = 0; rank < all.size(); ++rank) {
    ByteReader reader(all[rank]);
    const RankReport report = Unpack(reader);
    const ExchangeStats& exchange = report.exchange;
    const double wait = ToSeconds(exchange.exposed);
    communication.bytes_sent += exchange.traffic.bytes_sent;
    communication.bytes_received += exchange.traffic.bytes_received;
    communication.messages += exchange.traffic.messages;
    protocol.Add(exchange.protocol);
    if (static_cast<int>(rank) >= workers) continue;
    communication.exposed_seconds = std::max(communication.exposed_seconds, wait);
    summary.workers_detail.push_back(
        WorkerSummaryOf(static_cast<int>(rank), reader.Text(), report));
  }
  if (all.size() > 1) summary.communication = communication;
  if (!protocol.staleness.empty()) summary.staleness = StalenessOf(protocol);
}

}  // namespace dtrain
