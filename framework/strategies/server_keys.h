// What strategies with parameter servers have in common: the keys `servers` and `placement`.
#pragma once

#include <vector>

#include "framework/config/reader.h"
#include "framework/strategies/strategy.h"

namespace dtrain {

struct ServerKeys {
  int servers = 1;  // 0: the strategy's business (auto)
  bool colocated = false;

  // With 0 servers by default the key takes `auto`, which is that.
  static ServerKeys Read(config::Reader& reader, int servers_by_default, const std::string& help);

  // One bucket: a gradient is sent when all of it is final, and shards are the servers' business.
  // Throws ConfigError when there are more servers than parameters.
  std::vector<Range> Buckets(const GradientPieces& pieces) const;
};

}  // namespace dtrain
