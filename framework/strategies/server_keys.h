// ServerKeys: the keys `servers` and `placement`, which all strategies with parameter servers have.
#pragma once

#include <vector>

#include "framework/config/reader.h"
#include "framework/strategies/strategy.h"

namespace dtrain {

struct ServerKeys {
  int servers = 1;  // 0: the strategy chooses the number (auto)
  bool colocated = false;

  // Reads the keys.  If `servers_by_default` is 0, the key `servers` also accepts `auto`, which
  // stands for 0.
  static ServerKeys Read(config::Reader& reader, int servers_by_default, const std::string& help);

  // Returns one bucket: a gradient is sent when all of it is final; the worker splits it into
  // shards.  Throws ConfigError if there are more servers than parameters.
  std::vector<Range> Buckets(const LayerGradients& layer_gradients) const;
};

}  // namespace dtrain
