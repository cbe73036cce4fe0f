#include "framework/runtime/rank_report.h"

#include <algorithm>

#include "framework/comm/gather.h"
#include "framework/core/bytes.h"
#include "framework/core/host.h"

namespace dtrain {
namespace {

std::string Pack(const RankReport& report) {
  ByteWriter writer;
  writer.Value(report);
  writer.Text(HostName());
  return writer.Take();
}

}  // namespace

void GatherReports(Transport& transport, const RankReport& mine, Summary& summary) {
  const std::vector<std::string> all = Gather(transport, Pack(mine));
  CommunicationSummary communication;
  for (size_t rank = 0; rank < all.size(); ++rank) {
    ByteReader reader(all[rank]);
    const RankReport report = reader.Value<RankReport>();
    const ExchangeStats& exchange = report.exchange;
    const double wait = ToSeconds(exchange.exposed);
    communication.bytes_sent += exchange.traffic.bytes_sent;
    communication.bytes_received += exchange.traffic.bytes_received;
    communication.messages += exchange.traffic.messages;
    communication.exposed_seconds = std::max(communication.exposed_seconds, wait);
    summary.workers_detail.push_back({static_cast<int>(rank), reader.Text(), std::nullopt,
                                      report.steps, ToSeconds(report.compute), wait});
  }
  if (all.size() > 1) summary.communication = communication;
}

}  // namespace dtrain
