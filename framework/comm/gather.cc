#include "framework/comm/gather.h"

#include "framework/comm/patient_wait.h"
#include "framework/core/bytes.h"

namespace dtrain {
namespace {

void Finish(Transport& transport, Request request, Rank peer) {
  PatientWait wait(peer);
  while (!transport.Test(request)) wait.Pause();
}

// Sends a message of any length, preceded by its size.
void SendText(Transport& transport, Rank to, const std::string& text) {
  const uint64_t size = text.size();
  Finish(transport, transport.Send(to, Tag::kCollective, std::as_bytes(std::span(&size, 1))), to);
  if (size > 0)
    Finish(transport, transport.Send(to, Tag::kCollective, std::as_bytes(std::span(text))), to);
}

std::string ReceiveText(Transport& transport, Rank from) {
  uint64_t size = 0;
  Finish(transport,
         transport.Receive(from, Tag::kCollective, std::as_writable_bytes(std::span(&size, 1))),
         from);
  std::string text(size, '\0');
  if (size > 0) {
    Finish(transport,
           transport.Receive(from, Tag::kCollective, std::as_writable_bytes(std::span(text))),
           from);
  }
  return text;
}

}  // namespace

std::vector<std::string> Gather(Transport& transport, const std::string& mine) {
  if (transport.rank() != 0) {
    SendText(transport, 0, mine);
    return {};
  }
  std::vector<std::string> all = {mine};
  for (Rank rank = 1; rank < transport.size(); ++rank) all.push_back(ReceiveText(transport, rank));
  return all;
}

std::string Broadcast(Transport& transport, const std::string& mine) {
  if (transport.rank() != 0) return ReceiveText(transport, 0);
  for (Rank rank = 1; rank < transport.size(); ++rank) SendText(transport, rank, mine);
  return mine;
}

std::vector<std::string> AllGather(Transport& transport, const std::string& mine) {
  return FromBytes<std::vector<std::string>>(
      Broadcast(transport, ToBytes(Gather(transport, mine))));
}

// With ranks numbered relative to the root, rank r receives the floats from r without its highest
// bit, and sends them to r + 2^k for every 2^k > r.
void BroadcastFloats(Transport& transport, Rank root, std::span<float> values) {
  const int size = transport.size();
  const int mine = (transport.rank() - root + size) % size;
  const auto rank_of = [root, size](int relative) { return (relative + root) % size; };
  int step = 1;
  while (step <= mine) step *= 2;
  if (mine > 0) MoveFloats(transport, rank_of(mine - step / 2), transport.rank(), values);
  for (; mine + step < size; step *= 2) {
    MoveFloats(transport, transport.rank(), rank_of(mine + step), values);
  }
}

void MoveFloats(Transport& transport, Rank from, Rank to, std::span<float> values) {
  if (from == to || values.empty()) return;
  if (transport.rank() == from) {
    Finish(transport, transport.Send(to, Tag::kCollective, std::as_bytes(values)), to);
  } else if (transport.rank() == to) {
    Finish(transport, transport.Receive(from, Tag::kCollective, std::as_writable_bytes(values)),
           from);
  }
}

}  // namespace dtrain
