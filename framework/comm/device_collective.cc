#include "framework/comm/device_collective.h"

#include <algorithm>

#include "framework/comm/gather.h"

namespace dtrain {

std::vector<std::string> AllCollectiveNames() {
  std::vector<std::string> names = CollectiveNames();
  for (const std::string& name : DeviceCollectiveRegistry::Names()) {
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

std::string FirstReason(Transport& transport, const std::string& mine) {
  for (const std::string& reason : AllGather(transport, mine)) {
    if (!reason.empty()) return reason;
  }
  return "";
}

}  // namespace dtrain
