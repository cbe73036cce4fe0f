// The sparse collective "gather": every rank gets every rank's selection, and adds them itself.
#include "framework/comm/sparse_all_gather.h"
#include "framework/comm/sparse_queue.h"

namespace dtrain {
namespace {

class SparseGather : public SparseQueue {
 public:
  ~SparseGather() override { GiveUp(); }
  SparseGather(Transport& transport, const CollectiveOptions& options)
      : SparseQueue("gather", transport, options), gather_(link()) {
    Do([this] {
      call().global.Append(call().mine);
      gather_.Begin(call().global);
    });
    Until([this] { return gather_.Advance(); });
    Do([this] { gather_.Parts(call().sum.parts); });
  }

 private:
  SparseAllGather gather_;
};

std::unique_ptr<SparseCollective> MakeGather(Transport& transport,
                                             const CollectiveOptions& options) {
  return std::make_unique<SparseGather>(transport, options);
}

std::vector<SparsePhase> GatherPhases(int ranks) {
  return {{.schedule = GatherSchedule(ranks),
           .messages = SparsePhase::kCounted,
           .fixed_bytes = sizeof(SparseCount),
           .entries = SparsePhase::Entries::kSelected}};
}

DTRAIN_SPARSE_COLLECTIVE("gather", MakeGather, GatherPhases,
                         "every worker gets every worker's entries: exact, grows with the workers");

}  // namespace
}  // namespace dtrain
