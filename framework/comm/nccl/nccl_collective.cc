// The collective "nccl" calls NVIDIA's NCCL for vectors in the memory of GPUs, of one machine or of several.  Each rank
// needs a GPU of its own.  NCCL chooses algorithm and order of additions by the vector's size, the ranks and their links, so
// the bits repeat with the same plan on the same machines only.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "framework/comm/device_collective.h"
#include "framework/comm/gather.h"
#include "framework/comm/nccl/nccl_library.h"
#include "framework/core/error.h"

namespace dtrain {
namespace {

std::string TextOf(nccl::Result result, nccl::Comm* comm) {
  const nccl::Library& library = nccl::Load();
  const char* const more =
      library.get_last_error == nullptr ? nullptr : library.get_last_error(comm);
  const std::string why = more == nullptr ? "" : more;
  return library.get_error_string(result) + (why.empty() ? "" : ": " + why);
}

void CheckNccl(nccl::Result result, const char* call, nccl::Comm* comm = nullptr) {
  if (result == nccl::kSuccess) return;
  throw Error(ExitCode::kInternal, fmt::format("{} failed: {}", call, TextOf(result, comm)),
              "NCCL_DEBUG=INFO shows what NCCL does");
}

// All ranks make one together.
class Communicator {
 public:
  Communicator(Transport& transport, const Device& device) {
    nccl::UniqueId id = {};
    const std::string why_not = TryOnAll(transport, [&] {
      if (transport.rank() == 0) CheckNccl(nccl::Load().get_unique_id(&id), "ncclGetUniqueId");
      device.queue->NativeStream();  // makes its GPU the current one
    });
    if (!why_not.empty()) throw Error(ExitCode::kInternal, why_not, "");
    const std::string bytes = Broadcast(transport, {id.bytes, sizeof id.bytes});
    std::memcpy(id.bytes, bytes.data(), sizeof id.bytes);
    CheckNccl(nccl::Load().comm_init_rank(&comm_, transport.size(), id, transport.rank()),
              "ncclCommInitRank");
  }
  ~Communicator() {
    if (comm_ != nullptr) (ends_well_ ? nccl::Load().comm_destroy : nccl::Load().comm_abort)(comm_);
  }
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  nccl::Comm* get() const { return comm_; }
  // If not, sums are under way that others may never join.
  void EndsWell(bool well) { ends_well_ = well; }

 private:
  nccl::Comm* comm_ = nullptr;
  bool ends_well_ = true;
};

class NcclCollective : public Collective {
 public:
  NcclCollective(Transport& transport, const Device& device)
      : ranks_(transport.size()), device_(device), comm_(transport, device) {}
  ~NcclCollective() override { comm_.EndsWell(Idle()); }

  std::string name() const override { return "nccl"; }

  int64_t Start(std::span<float> data) override {
    if (!data.empty()) {
      CheckNccl(nccl::Load().all_reduce(data.data(), data.data(), data.size(), nccl::kFloat,
                                        nccl::kSum, comm_.get(), device_.queue->NativeStream()),
                "ncclAllReduce", comm_.get());
    }
    running_.push_back(device_.Record());
    // What an algorithm sends that is optimal in bandwidth; NCCL does not tell.
    const auto bytes = static_cast<int64_t>(data.size_bytes()) * 2 * (ranks_ - 1) / ranks_;
    traffic_.Add({.bytes_sent = bytes, .bytes_received = bytes});
    return first_ + std::ssize(running_) - 1;
  }

  bool Progress() override {
    const int64_t before = first_;
    while (!running_.empty() && running_.front().Done()) {
      running_.pop_front();
      ++first_;
    }
    if (!running_.empty()) CheckRemote();
    return first_ > before;
  }
  bool Done(int64_t ticket) const override { return ticket < first_; }
  bool Idle() const override { return running_.empty(); }
  Traffic traffic() const override { return traffic_; }

 private:
  // An error of the network, or of another rank, shows here alone.
  void CheckRemote() const {
    nccl::Result error = nccl::kSuccess;
    CheckNccl(nccl::Load().comm_get_async_error(comm_.get(), &error), "ncclCommGetAsyncError");
    if (error != nccl::kInProgress) CheckNccl(error, "ncclAllReduce", comm_.get());
  }

  const int ranks_;
  const Device device_;
  Communicator comm_;
  std::deque<ReadyEvent> running_;  // sums from first_ on
  int64_t first_ = 0;
  Traffic traffic_;
};

// NCCL finds out which of its GPUs are shared on the ranks that share one alone, while the others wait.
std::string SharedGpu(Transport& transport, const Device& device) {
  const std::vector<std::string> all = AllGather(transport, device.queue->Uuid());
  for (size_t rank = 0; rank < all.size(); ++rank) {
    const auto other =
        std::find(all.begin() + static_cast<int64_t>(rank) + 1, all.end(), all[rank]);
    if (other == all.end()) continue;
    return fmt::format("ranks {} and {} share a GPU, and NCCL needs one for each", rank,
                       other - all.begin());
  }
  return "";
}

std::string WhyNotNccl(Transport& transport, const Device& device) {
  const std::string missing = TryOnAll(transport, [] { nccl::Load(); });
  if (!missing.empty()) return missing;
  const std::string shared = SharedGpu(transport, device);
  if (!shared.empty()) return shared;
  return TryOnAll(transport, [&] { const Communicator attempt(transport, device); });
}

std::unique_ptr<Collective> MakeNccl(Transport& transport, const Device& device) {
  return std::make_unique<NcclCollective>(transport, device);
}

DTRAIN_DEVICE_COLLECTIVE("nccl", WhyNotNccl, MakeNccl,
                         "NVIDIA's NCCL, on GPUs, one for each rank: repeats under the same plan");

}  // namespace
}  // namespace dtrain
