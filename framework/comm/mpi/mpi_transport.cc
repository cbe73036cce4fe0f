#include "framework/comm/mpi/mpi_transport.h"

#include <numeric>
#include <string>

#include "framework/comm/patient_wait.h"
#include "framework/core/check.h"
#include "framework/core/error.h"

namespace dtrain {
namespace {

void CheckMpi(int status, const char* doing) {
  if (status == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(status, text, &length);
  throw PeerLostError(std::string("MPI failed in ") + doing + ": " + std::string(text, length),
                      "see the launcher's own messages above");
}

// Describes `bytes` bytes to MPI, whose counts are int: as bytes, or as one element of a derived
// type made of blocks of `block` bytes and a remainder.
class ByteCount {
 public:
  ByteCount(size_t bytes, size_t block) {
    if (bytes <= block) {
      count = static_cast<int>(bytes);
      return;
    }
    count = 1;
    MPI_Datatype block_type;
    MPI_Datatype remainder_type;
    MPI_Type_contiguous(static_cast<int>(block), MPI_BYTE, &block_type);
    MPI_Type_contiguous(static_cast<int>(bytes % block), MPI_BYTE, &remainder_type);
    const int lengths[] = {static_cast<int>(bytes / block), 1};
    const MPI_Aint offsets[] = {0, static_cast<MPI_Aint>(bytes / block * block)};
    const MPI_Datatype types[] = {block_type, remainder_type};
    MPI_Type_create_struct(2, lengths, offsets, types, &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&block_type);
    MPI_Type_free(&remainder_type);
  }
  ~ByteCount() {
    if (type != MPI_BYTE) MPI_Type_free(&type);  // MPI keeps it until the message is complete
  }
  ByteCount(const ByteCount&) = delete;
  ByteCount& operator=(const ByteCount&) = delete;

  int count = 0;
  MPI_Datatype type = MPI_BYTE;
};

}  // namespace

MpiTransport::MpiTransport(const MpiTransportOptions& options) : options_(options) {
  CheckMpi(MPI_Comm_dup(MPI_COMM_WORLD, &comm_), "MPI_Comm_dup");
  CheckMpi(MPI_Comm_dup(MPI_COMM_WORLD, &collective_comm_), "MPI_Comm_dup");
  MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  MPI_Comm_rank(comm_, &rank_);
  MPI_Comm_size(comm_, &size_);
  FindNodeRanks();
}

MpiTransport::~MpiTransport() {
  MPI_Comm_free(&collective_comm_);
  MPI_Comm_free(&comm_);
}

void MpiTransport::FindNodeRanks() {
  MPI_Comm node;
  CheckMpi(MPI_Comm_split_type(comm_, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &node),
           "MPI_Comm_split_type");
  MPI_Group node_group;
  MPI_Group all_group;
  MPI_Comm_group(node, &node_group);
  MPI_Comm_group(comm_, &all_group);
  int count = 0;
  MPI_Group_size(node_group, &count);
  std::vector<int> inside(count);
  std::iota(inside.begin(), inside.end(), 0);
  node_ranks_.resize(count);
  MPI_Group_translate_ranks(node_group, count, inside.data(), all_group, node_ranks_.data());
  MPI_Group_free(&node_group);
  MPI_Group_free(&all_group);
  MPI_Comm_free(&node);
}

int MpiTransport::TakeSlot() {
  if (free_slots_.empty()) {
    free_slots_.push_back(static_cast<int>(in_flight_.size()));
    in_flight_.emplace_back();
  }
  const int slot = free_slots_.back();
  free_slots_.pop_back();
  return slot;
}

Request MpiTransport::Send(Rank to, Tag tag, std::span<const std::byte> data) {
  const int slot = TakeSlot();
  const ByteCount bytes(data.size(), options_.plain_bytes_max);
  in_flight_[slot].receive_bytes = -1;
  CheckMpi(MPI_Isend(data.data(), bytes.count, bytes.type, to, static_cast<int>(tag), comm_,
                     &in_flight_[slot].request),
           "MPI_Isend");
  return {slot};
}

Request MpiTransport::Receive(Rank from, Tag tag, std::span<std::byte> data) {
  const int slot = TakeSlot();
  const ByteCount bytes(data.size(), options_.plain_bytes_max);
  in_flight_[slot].receive_bytes = static_cast<MPI_Count>(data.size());
  CheckMpi(MPI_Irecv(data.data(), bytes.count, bytes.type, from, static_cast<int>(tag), comm_,
                     &in_flight_[slot].request),
           "MPI_Irecv");
  return {slot};
}

bool MpiTransport::Test(Request& request) {
  DT_CHECK(request.active()) << "request is not in flight";
  InFlight& flight = in_flight_[request.slot];
  int done = 0;
  MPI_Status status;
  const int result = MPI_Test(&flight.request, &done, &status);
  DT_CHECK(result != MPI_ERR_TRUNCATE)
      << "message from rank " << status.MPI_SOURCE << ", tag " << status.MPI_TAG
      << ", is longer than the " << flight.receive_bytes << " bytes awaited";
  CheckMpi(result, "MPI_Test");
  if (!done) return false;
  if (flight.receive_bytes >= 0) {
    MPI_Count got = 0;
    MPI_Get_elements_x(&status, MPI_BYTE, &got);
    DT_CHECK(got == flight.receive_bytes)
        << "message from rank " << status.MPI_SOURCE << ", tag " << status.MPI_TAG << ", has "
        << got << " bytes instead of " << flight.receive_bytes;
  }
  free_slots_.push_back(request.slot);
  request.slot = -1;
  return true;
}

std::optional<Incoming> MpiTransport::Probe(Tag tag) {
  int arrived = 0;
  MPI_Status status;
  CheckMpi(MPI_Iprobe(MPI_ANY_SOURCE, static_cast<int>(tag), comm_, &arrived, &status),
           "MPI_Iprobe");
  if (!arrived) return std::nullopt;
  MPI_Count bytes = 0;
  MPI_Get_elements_x(&status, MPI_BYTE, &bytes);
  return Incoming{status.MPI_SOURCE, static_cast<size_t>(bytes)};
}

void MpiTransport::Barrier() {
  MPI_Request request;
  CheckMpi(MPI_Ibarrier(comm_, &request), "MPI_Ibarrier");
  PatientWait wait(PatientWait::kAllRanks);
  for (int done = 0;;) {
    CheckMpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    if (done) return;
    wait.Pause();
  }
}

}  // namespace dtrain
