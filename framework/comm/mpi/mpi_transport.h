// MpiTransport: the Transport of transport.h over Open MPI, made by MpiRuntime.  Only comm/mpi
// includes this header, because it includes mpi.h.
#pragma once

#include <mpi.h>

#include <vector>

#include "framework/comm/mpi/mpi_runtime.h"
#include "framework/comm/transport.h"

namespace dtrain {

class MpiTransport : public Transport {
 public:
  explicit MpiTransport(const MpiTransportOptions& options);
  ~MpiTransport() override;

  Rank rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string name() const override { return "mpi"; }
  Request Send(Rank to, Tag tag, std::span<const std::byte> data) override;
  Request Receive(Rank from, Tag tag, std::span<std::byte> data) override;
  bool Test(Request& request) override;
  std::optional<Incoming> Probe(Tag tag) override;
  void Barrier() override;
  const std::vector<Rank>& node_ranks() const override { return node_ranks_; }

  // Returns the communicator for MPI's own collectives.  This class sends no messages over it.
  MPI_Comm collective_comm() const { return collective_comm_; }

 private:
  struct InFlight {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Count receive_bytes = -1;  // bytes that a receive expects; -1 for a send
  };

  int TakeSlot();
  void FindNodeRanks();

  MpiTransportOptions options_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  MPI_Comm collective_comm_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 1;
  std::vector<Rank> node_ranks_;
  std::vector<InFlight> in_flight_;
  std::vector<int> free_slots_;
};

}  // namespace dtrain
