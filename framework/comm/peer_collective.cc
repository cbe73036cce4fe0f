#include "framework/comm/peer_collective.h"

#include <fmt/format.h>

#include <algorithm>

#include "framework/comm/collective_schedule.h"
#include "framework/comm/device_collective.h"
#include "framework/comm/gather.h"
#include "framework/core/bytes.h"
#include "framework/core/check.h"
#include "framework/core/error.h"
#include "framework/device/buffer.h"
#include "framework/device/peer_kernels.h"

namespace dtrain {
namespace {

constexpr size_t kShared = 256;  // bytes of a first attempt

// Each rank maps a buffer of every other.
std::string WhyNotPeers(Transport& transport, const Device& device) {
  if (std::ssize(transport.node_ranks()) != transport.size()) {
    return FirstReason(transport, "the ranks are on several machines");
  }
  if (transport.size() > PeerKernelsOf(device).most_terms) {
    return fmt::format("a GPU adds the gradients of {} ranks at most",
                       PeerKernelsOf(device).most_terms);
  }
  const Buffer buffer(device, kShared);
  PeerMemory own;
  const std::string why_not =
      TryOnAll(transport, [&] { own = device.queue->Share(buffer.data()); });
  if (!why_not.empty()) return why_not;
  ByteWriter writer;
  writer.Value(own);
  const std::vector<std::string> all = AllGather(transport, writer.Take());
  // No rank frees its buffer before the others have unmapped it.
  return TryOnAll(transport, [&] {
    for (const std::string& bytes : all) {
      ByteReader reader(bytes);
      device.queue->Map(reader.Value<PeerMemory>());
    }
  });
}

std::unique_ptr<Collective> MakePeers(Transport& transport, const Device& device) {
  return std::make_unique<PeerCollective>(transport, device);
}

DTRAIN_DEVICE_COLLECTIVE("ordered", WhyNotPeers, MakePeers,
                         "sums in rank order, in the memory of the GPUs of one machine");

constexpr int64_t BytesOf(int64_t floats) { return floats * static_cast<int64_t>(sizeof(float)); }

}  // namespace

PeerCollective::PeerCollective(Transport& transport, const Device& device)
    : transport_(transport), device_(device), ranks_(transport.size()) {}

PeerCollective::~PeerCollective() {
  if (!Idle()) transport_.Withdraw();
}

Range PeerCollective::BlockOfRank(const Sum& sum, Rank rank) const {
  return BlockOf(static_cast<int64_t>(sum.data.size()), ranks_, rank);
}

PeerCollective::Sum& PeerCollective::At(int64_t ticket) {
  const auto index = static_cast<size_t>(ticket - first_ticket_);
  DT_CHECK(ticket >= first_ticket_) << "sum " << ticket << " is over";
  while (sums_.size() <= index) {
    sums_.emplace_back().memory.resize(static_cast<size_t>(ranks_));
  }
  return sums_[index];
}

int64_t PeerCollective::Start(std::span<float> data) {
  const int64_t ticket = started_++;
  Sum& sum = At(ticket);
  sum.data = data;
  if (data.empty()) {  // on all ranks
    sum.stage = Sum::Stage::kCopied;
    sum.ranks_done = ranks_ - 1;
    return ticket;
  }
  sum.stage = Sum::Stage::kWaiting;
  sum.memory[static_cast<size_t>(transport_.rank())] = data.data();
  ++sum.written;
  Notify(ticket, Message::kWritten, device_.queue->Share(data.data()));
  // As many bytes as `ordered` sends and receives, all of them read where they lie.
  const auto all = static_cast<int64_t>(data.size());
  const int64_t own = BlockOfRank(sum, transport_.rank()).size();
  const int64_t bytes = BytesOf(all - own + (ranks_ - 1) * own);
  traffic_.Add(
      {.bytes_sent = bytes, .bytes_received = bytes, .bytes_inside = bytes, .bytes_lent = bytes});
  return ticket;
}

void PeerCollective::Notify(int64_t ticket, Message::Kind kind, const PeerMemory& memory) {
  const auto elements = static_cast<int64_t>(At(ticket).data.size());
  for (Rank peer = 0; peer < ranks_; ++peer) {
    if (peer == transport_.rank()) continue;
    Outgoing& outgoing = outgoing_.emplace_back(Outgoing{{ticket, kind, elements, memory}, {}});
    outgoing.request =
        transport_.Send(peer, Tag::kPeer, std::as_bytes(std::span(&outgoing.message, 1)));
    ++At(ticket).unsent;
    ++traffic_.messages;
  }
}

bool PeerCollective::Receive() {
  bool moved = false;
  while (const std::optional<Incoming> incoming = transport_.Probe(Tag::kPeer)) {
    Message message;
    Request request = transport_.Receive(incoming->from, Tag::kPeer,
                                         std::as_writable_bytes(std::span(&message, 1)));
    while (!transport_.Test(request)) {  // it has arrived
    }
    Take(incoming->from, message);
    moved = true;
  }
  return moved;
}

void PeerCollective::Take(Rank from, const Message& message) {
  Sum& sum = At(message.ticket);
  DT_CHECK(sum.stage == Sum::Stage::kNotStarted ||
           message.elements == static_cast<int64_t>(sum.data.size()))
      << "rank " << from << " adds " << message.elements << " floats, this rank "
      << sum.data.size();
  switch (message.kind) {
    case Message::kWritten:
      sum.memory[static_cast<size_t>(from)] = Map(message.memory);
      ++sum.written;
      break;
    case Message::kAdded:
      sum.to_copy.push_back(from);
      break;
    case Message::kCopied:
      ++sum.ranks_done;
      break;
  }
}

float* PeerCollective::Map(const PeerMemory& memory) {
  std::shared_ptr<void>& begin = mapped_[{memory.process, memory.handle}];
  if (begin == nullptr) begin = device_.queue->Map(memory);
  return reinterpret_cast<float*>(static_cast<std::byte*>(begin.get()) + memory.offset);
}

bool PeerCollective::FinishSends() {
  return outgoing_.remove_if([&](Outgoing& outgoing) {
    if (!transport_.Test(outgoing.request)) return false;
    --At(outgoing.message.ticket).unsent;
    return true;
  }) > 0;
}

// Does what can be done for a sum now.  Returns true if anything was.
bool PeerCollective::Advance(int64_t ticket, Sum& sum) {
  using Stage = Sum::Stage;
  bool moved = false;
  if (sum.stage == Stage::kWaiting && sum.written == ranks_) {
    const Range own = BlockOfRank(sum, transport_.rank());
    std::vector<const float*> terms;
    for (const float* const memory : sum.memory) terms.push_back(memory + own.begin);
    if (!own.empty())
      PeerKernelsOf(device_).sum(device_, sum.data.data() + own.begin, terms, own.size());
    sum.event = device_.Record();
    sum.stage = Stage::kAdding;
    moved = true;
  }
  if (sum.stage == Stage::kAdding && sum.event.Done()) {
    Notify(ticket, Message::kAdded);
    sum.stage = Stage::kCopying;
    moved = true;
  }
  // While this rank adds, others may have done so.
  const bool copies = sum.stage == Stage::kAdding || sum.stage == Stage::kCopying;
  for (; copies && !sum.to_copy.empty(); sum.to_copy.pop_back()) {
    const Rank owner = sum.to_copy.back();
    const Range block = BlockOfRank(sum, owner);
    if (!block.empty()) {
      PeerKernelsOf(device_).copy(device_, sum.data.data() + block.begin,
                                  sum.memory[static_cast<size_t>(owner)] + block.begin,
                                  block.size());
    }
    ++sum.copies;
    moved = true;
  }
  if (sum.stage == Stage::kCopying && sum.copies == ranks_ - 1) {
    sum.event = device_.Record();
    sum.stage = Stage::kFinishing;
    moved = true;
  }
  if (sum.stage == Stage::kFinishing && sum.event.Done()) {
    Notify(ticket, Message::kCopied);
    sum.stage = Stage::kCopied;
    moved = true;
  }
  return moved;
}

bool PeerCollective::IsDone(const Sum& sum) const {
  return sum.stage == Sum::Stage::kCopied && sum.ranks_done == ranks_ - 1 && sum.unsent == 0;
}

void PeerCollective::Rest() {
  DT_CHECK(Idle()) << "a sum is under way";
  mapped_.clear();
}

bool PeerCollective::Progress() {
  bool moved = Receive();
  moved |= FinishSends();
  for (size_t i = 0; i < sums_.size(); ++i) {
    moved |= Advance(first_ticket_ + static_cast<int64_t>(i), sums_[i]);
  }
  while (!sums_.empty() && IsDone(sums_.front())) {
    sums_.pop_front();
    ++first_ticket_;
  }
  return moved;
}

bool PeerCollective::Done(int64_t ticket) const {
  DT_CHECK(ticket < started_) << "sum " << ticket;
  return ticket < first_ticket_ || IsDone(sums_[static_cast<size_t>(ticket - first_ticket_)]);
}

bool PeerCollective::Idle() const {
  return std::ranges::all_of(sums_, [this](const Sum& sum) { return IsDone(sum); });
}

}  // namespace dtrain
