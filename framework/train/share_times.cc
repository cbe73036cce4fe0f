#include "framework/train/share_times.h"

#include <utility>

#include "framework/comm/gather.h"
#include "framework/core/process.h"
#include "framework/device/cpu/threads.h"

namespace dtrain {
namespace {

Collective::Traffic Since(const Collective::Traffic& now, const Collective::Traffic& before) {
  return {.bytes_sent = now.bytes_sent - before.bytes_sent,
          .bytes_received = now.bytes_received - before.bytes_received,
          .messages = now.messages - before.messages};
}

}  // namespace

void ShareTimes(Exchange& exchange, const std::string& role, EpochCounter& trained,
                RunAccounts& accounts, RunSession& session, RunOutputs& outputs) {
  const ExchangeStats stats = exchange.stats();
  RankTimes mine{.role = role, .node = HostName(), .cpus = CpuListText(UsableCpus())};
  mine.windows = accounts.windows.Take();
  mine.traffic = Since(stats.traffic, accounts.handed_in.traffic);
  mine.staleness = stats.protocol.Since(accounts.handed_in.protocol).staleness;
  mine.epoch = trained.Take();
  trained.BoundaryAt(session.now().samples_applied);
  accounts.handed_in = stats;
  std::vector<std::string> all;
  exchange.AtBoundary([&](Transport& transport) {
    mine.rank = transport.rank();
    all = Gather(transport, ToBytes(mine));
  });
  for (const std::string& bytes : all) {
    const RankTimes times = FromBytes<RankTimes>(bytes);
    session.Add(times.epoch);
    outputs.RankDid(session.now().step, times);
  }
}

}  // namespace dtrain
