#include "framework/results/summary.h"

#include <algorithm>
#include <utility>

#include "framework/comm/gather.h"
#include "framework/core/bytes.h"
#include "framework/core/process.h"
#include "framework/setup/run_exchange.h"

namespace dtrain {
namespace {

double Quantile(const std::vector<double>& sorted, double q) {
  return sorted[static_cast<size_t>(q * static_cast<double>(sorted.size() - 1) + 0.5)];
}

}  // namespace

StepSeconds StepSecondsOf(std::vector<double> seconds) {
  if (seconds.empty()) return {};
  std::sort(seconds.begin(), seconds.end());
  return {Quantile(seconds, 0.5), Quantile(seconds, 0.9), seconds.back()};
}

void DescribeEnd(ExitCode code, Summary& summary) {
  summary.status = StatusOf(code);
  summary.exit_code = static_cast<int>(code);
}

void DescribeConfig(const RunConfig& config, Summary& summary) {
  summary.strategy = config.strategy_name;
  summary.compressor = config.compress.name;
  summary.workers = static_cast<int>(config.workers);
  const int servers = PlacementOf(config).servers;
  if (servers > 0) summary.servers = servers;
  summary.global_batch = config.batch;
  summary.seed = config.seed;
}

void DescribeTraining(const TrainedEpoch& epoch, const Graph& graph, Summary& summary) {
  if (epoch.samples == 0) return;
  const auto terms = static_cast<double>(std::max<int64_t>(epoch.terms, 1));
  summary.train_mean_loss = epoch.loss_sum / terms;
  if (graph.metric_names().empty() || epoch.correct < 0) return;
  summary.train_accuracy = static_cast<double>(epoch.correct) / static_cast<double>(epoch.samples);
}

void DescribeRun(const RunConfig& config, const Graph& graph, const ExecutionPlan& plan,
                 Summary& summary) {
  DescribeConfig(config, summary);
  if (plan.workers > 1 && config.strategy->traits().collectives)
    summary.collective = plan.collective;
  summary.model = graph.name();
  summary.dataset = config.data.name;
  summary.device = plan.device;
  summary.precision = config.precision;
  summary.compute = "real";
  summary.plan = PlanSummary{static_cast<int>(plan.buckets.size()), std::nullopt};
  if (plan.predicted_seconds > 0) summary.plan->predicted_seconds = plan.predicted_seconds;
  summary.config_sha256 = config.config_sha256;
}

void DescribeProtocol(const ProtocolReport& report, Summary& summary) {
  std::vector<int64_t> histogram = report.staleness;
  while (!histogram.empty() && histogram.back() == 0) histogram.pop_back();
  if (!histogram.empty()) {
    summary.staleness = StalenessSummary{.max = static_cast<int64_t>(histogram.size()) - 1,
                                         .mean = report.staleness_mean(),
                                         .histogram = std::move(histogram)};
    if (report.clock_lead_max >= 0) summary.staleness->clock_lead_max = report.clock_lead_max;
  }
  if (!report.counts.Any()) return;
  summary.protocol = ProtocolSummary{.counts = report.counts, .idle_servers = report.idle_servers};
  const int64_t up = report.Total(kUpTransfers.name);
  if (up == 0) return;
  const auto gradients = static_cast<double>(std::max<int64_t>(report.gradients(), 1));
  summary.protocol->up_transfers_per_gradient = static_cast<double>(up) / gradients;
}

WorkerSummary WorkerSummaryOf(int rank, const std::string& node, const RankReport& report,
                              int64_t batch) {
  WorkerSummary worker;
  worker.rank = rank;
  worker.node = node;
  worker.steps =
      static_cast<double>(report.samples) / static_cast<double>(std::max<int64_t>(batch, 1));
  worker.own_steps = report.steps;
  worker.compute_seconds = ToSeconds(report.compute);
  worker.wait_seconds = ToSeconds(report.exchange.exposed);
  const ProtocolReport& protocol = report.exchange.worker;
  if (!protocol.staleness.empty()) worker.staleness_mean = protocol.staleness_mean();
  if (protocol.group >= 0) worker.group = static_cast<int>(protocol.group);
  return worker;
}

int64_t GradientsOf(const Summary& summary) {
  int64_t steps = 0;
  for (const WorkerSummary& worker : summary.workers_detail) steps += worker.own_steps;
  return steps;
}

void DescribeBytesPerGradient(Summary& summary) {
  const int64_t gradients = GradientsOf(summary);
  if (gradients == 0 || !summary.communication) return;
  summary.communication->bytes_per_gradient =
      static_cast<double>(summary.communication->bytes_sent) / static_cast<double>(gradients);
}

void DescribeCompression(const CompressionReport& report, double seconds,
                         CommunicationSummary& communication) {
  if (report.entries == 0) return;
  communication.compress_seconds = seconds;
  communication.density = report.density();
}

void GatherReports(Transport& transport, const RankReport& mine, int workers, int64_t batch,
                   Summary& summary) {
  const std::vector<std::string> all = Gather(transport, ToBytes(mine, HostName()));
  CommunicationSummary communication;
  ProtocolReport protocol;
  int64_t inside = 0, lent = 0;
  CompressionReport compression;
  Nanos compress = 0;
  for (size_t rank = 0; rank < all.size(); ++rank) {
    ByteReader reader(all[rank]);
    RankReport report;
    std::string node;
    reader(report, node);
    const ExchangeStats& exchange = report.exchange;
    const double wait = ToSeconds(exchange.exposed);
    communication.bytes_sent += exchange.traffic.bytes_sent;
    communication.bytes_received += exchange.traffic.bytes_received;
    communication.messages += exchange.traffic.messages;
    inside += exchange.traffic.bytes_inside;
    lent += exchange.traffic.bytes_lent;
    protocol.Add(exchange.protocol);
    compression.Add(exchange.compression);
    compress = std::max(compress, exchange.compression.time);
    if (static_cast<int>(rank) >= workers) continue;
    communication.exposed_seconds = std::max(communication.exposed_seconds, wait);
    summary.workers_detail.push_back(WorkerSummaryOf(static_cast<int>(rank), node, report, batch));
  }
  if (inside > 0) communication.bytes_inside_nodes = inside;
  if (lent > 0) communication.bytes_lent = lent;
  DescribeCompression(compression, ToSeconds(compress), communication);
  if (all.size() > 1 || compression.entries > 0) summary.communication = communication;
  DescribeBytesPerGradient(summary);
  DescribeProtocol(protocol, summary);
}

}  // namespace dtrain
