// The collective "mpi" calls MPI_Iallreduce on chunks, since MPI's own cost per byte rises steeply
// for buffers larger than the caches.  Its bits repeat only with the same chunks, since MPI chooses
// its algorithm by message size.
#include "framework/comm/mpi/mpi_runtime.h"

#include <mpi.h>

#include <algorithm>
#include <vector>

#include "framework/comm/collective.h"
#include "framework/comm/collective_schedule.h"
#include "framework/comm/mpi/mpi_transport.h"
#include "framework/core/check.h"
#include "framework/core/error.h"

namespace dtrain {
namespace {

constexpr int64_t kChunkBytes = 1 << 20;
constexpr size_t kChunksInFlight = 4;

MpiTransport& AsMpi(Transport& transport) {
  if (auto* mpi = dynamic_cast<MpiTransport*>(&transport)) return *mpi;
  throw UsageError("collective 'mpi' needs the mpi transport, not '" + transport.name() + "'",
                   "use collective: ordered, or start the run with mpirun or --workers");
}

class MpiCollective : public Collective {
 public:
  MpiCollective(MpiTransport& transport, const CollectiveOptions& options)
      : transport_(&transport),
        chunk_floats_(std::max<int64_t>(
            1, (options.chunk_bytes > 0 ? options.chunk_bytes : kChunkBytes) / 4)),
        overlap_(options.overlap) {}

  std::string name() const override { return "mpi"; }

  int64_t Start(std::span<float> data) override {
    const int64_t ticket = next_ticket_++;
    const auto n = static_cast<int64_t>(data.size());
    const int chunks =
        transport_->size() == 1 ? 0 : static_cast<int>((n + chunk_floats_ - 1) / chunk_floats_);
    for (int i = 0; i < chunks; ++i) {
      const Range range = BlockOf(n, chunks, i);
      chunks_.push_back({ticket, data.subspan(range.begin, range.size())});
    }
    Post();
    return ticket;
  }

  bool Progress() override {
    const size_t done_before = done_;
    while (done_ < posted_ && Finished(chunks_[done_])) ++done_;
    if (done_ == chunks_.size()) {
      chunks_.clear();
      done_ = posted_ = 0;
      return done_before != 0;
    }
    Post();
    return done_ != done_before;
  }

  bool Done(int64_t ticket) const override {
    DT_CHECK(ticket < next_ticket_) << "ticket " << ticket;
    return done_ == chunks_.size() || ticket < chunks_[done_].ticket;
  }

  bool Idle() const override { return done_ == chunks_.size(); }
  Traffic traffic() const override { return traffic_; }

 private:
  struct Chunk {
    int64_t ticket;
    std::span<float> data;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  void Post() {
    for (; posted_ < chunks_.size() && posted_ - done_ < kChunksInFlight; ++posted_) {
      if (!overlap_ && chunks_[posted_].ticket != chunks_[done_].ticket) return;
      Chunk& chunk = chunks_[posted_];
      MPI_Iallreduce(MPI_IN_PLACE, chunk.data.data(), static_cast<int>(chunk.data.size()),
                     MPI_FLOAT, MPI_SUM, transport_->collective_comm(), &chunk.request);
      Count(static_cast<int64_t>(chunk.data.size_bytes()));
    }
  }

  static bool Finished(Chunk& chunk) {
    int done = 0;
    MPI_Test(&chunk.request, &done, MPI_STATUS_IGNORE);
    return done != 0;
  }

  // MPI does not report what it sends, so the bytes of a bandwidth-optimal algorithm are counted,
  // and one message per chunk.
  void Count(int64_t bytes) {
    const int64_t moved = 2 * bytes * (transport_->size() - 1) / transport_->size();
    traffic_.bytes_sent += moved;
    traffic_.bytes_received += moved;
    traffic_.messages += 1;
  }

  MpiTransport* transport_;
  int64_t chunk_floats_;
  bool overlap_;  // reductions may overlap
  int64_t next_ticket_ = 0;
  std::vector<Chunk> chunks_;  // [0, done_) finished, [done_, posted_) in flight, others waiting
  size_t done_ = 0;
  size_t posted_ = 0;
  Traffic traffic_;
};

std::unique_ptr<Collective> MakeMpi(Transport& transport, const CollectiveOptions& options) {
  return std::make_unique<MpiCollective>(AsMpi(transport), options);
}

[[maybe_unused]] const bool kRegistered = CollectiveRegistry::Add(
    "mpi", {.help = "MPI's own all-reduce: repeats under the same schedule and MPI library",
            .make = MakeMpi});

}  // namespace

void PlainMpiAllreduce(Transport& transport, std::span<float> data) {
  MPI_Allreduce(MPI_IN_PLACE, data.data(), static_cast<int>(data.size()), MPI_FLOAT, MPI_SUM,
                AsMpi(transport).collective_comm());
}

}  // namespace dtrain
