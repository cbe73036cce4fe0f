#include "framework/strategies/server_keys.h"

#include <fmt/format.h>

#include <string>

#include "framework/core/error.h"
#include "framework/core/text.h"

namespace dtrain {

ServerKeys ServerKeys::Read(config::Reader& reader, int servers_by_default,
                            const std::string& help) {
  ServerKeys keys;
  const bool automatic = servers_by_default == 0;
  config::Field<int64_t> servers = reader.Int("servers", servers_by_default);
  if (automatic) servers.Auto();
  keys.servers = static_cast<int>(servers.Min(automatic ? 0 : 1).Max(65536).Help(help));
  const std::string placement =
      reader.String("placement", "dedicated")
          .OneOf({"dedicated", "colocated"})
          .Help("dedicated: servers have ranks of their own; colocated: they share workers' ranks");
  keys.colocated = placement == "colocated";
  return keys;
}

std::vector<Range> ServerKeys::Buckets(const LayerGradients& layer_gradients) const {
  if (layer_gradients.total() < servers) {
    throw ConfigError(fmt::format("strategy.servers is {}, but the model has only {}", servers,
                                  Counted(layer_gradients.total(), "parameter")),
                      "each server needs a part of them");
  }
  return {{0, layer_gradients.total()}};
}

}  // namespace dtrain
