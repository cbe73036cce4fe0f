#include "framework/strategies/ps/visit.h"

#include <fmt/format.h>

#include "framework/core/error.h"

namespace dtrain::ps {

void VisitFixed(StateVisitor& visitor, std::string_view name, std::vector<int64_t>& values) {
  const size_t expected = values.size();
  visitor.Ints(name, values);
  if (values.size() == expected) return;
  throw CheckpointError(
      fmt::format("saved '{}' has {} values instead of {}", name, values.size(), expected),
      "it was saved with another number of workers or servers");
}

}  // namespace dtrain::ps
