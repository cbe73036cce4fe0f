#include "framework/runtime/rank_report.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "framework/comm/gather.h"

namespace dtrain {
namespace {

// As sent: all ranks run the same program, so the bytes need no translation.
struct Packed {
  RankReport report;
  char node[64];
};

std::string Pack(const RankReport& report) {
  Packed packed{report, {}};
  std::strncpy(packed.node, HostName().c_str(), sizeof(packed.node) - 1);
  return std::string(reinterpret_cast<const char*>(&packed), sizeof(packed));
}

Packed Unpack(const std::string& bytes) {
  Packed packed;
  std::memcpy(&packed, bytes.data(), sizeof(packed));
  return packed;
}

}  // namespace

std::string HostName() {
  char name[256] = {};
  ::gethostname(name, sizeof(name) - 1);
  return name;
}

void GatherReports(Transport& transport, const RankReport& mine, Summary& summary) {
  const std::vector<std::string> all = Gather(transport, Pack(mine));
  CommunicationSummary communication;
  for (size_t rank = 0; rank < all.size(); ++rank) {
    const Packed packed = Unpack(all[rank]);
    const ExchangeStats& exchange = packed.report.exchange;
    const double wait = ToSeconds(exchange.exposed);
    communication.bytes_sent += exchange.traffic.bytes_sent;
    communication.bytes_received += exchange.traffic.bytes_received;
    communication.messages += exchange.traffic.messages;
    communication.exposed_seconds = std::max(communication.exposed_seconds, wait);
    summary.workers_detail.push_back({static_cast<int>(rank), packed.node, std::nullopt,
                                      packed.report.steps, ToSeconds(packed.report.compute), wait});
  }
  if (all.size() > 1) summary.communication = communication;
}

}  // namespace dtrain
