#include "framework/comm/sparse_collective.h"

#include "framework/comm/backoff.h"

namespace dtrain {

std::unique_ptr<SparseCollective> MakeSparseCollective(const std::string& name,
                                                       Transport& transport,
                                                       const CollectiveOptions& options) {
  return SparseCollectiveRegistry::Get("sparse collective", name).make(transport, options);
}

std::vector<std::string> SparseCollectiveNames() { return SparseCollectiveRegistry::Names(); }

void WaitFor(SparseCollective& collective, int64_t ticket) { WaitForSum(collective, ticket); }

}  // namespace dtrain
