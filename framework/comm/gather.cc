#include "framework/comm/gather.h"

#include "framework/comm/backoff.h"

namespace dtrain {
namespace {

void Finish(Transport& transport, Request request) {
  Backoff backoff;
  while (!transport.Test(request)) backoff.Pause();
}

// A message of any length: its size first.
void SendText(Transport& transport, Rank to, const std::string& text) {
  const uint64_t size = text.size();
  Finish(transport, transport.Send(to, Tag::kCollective, std::as_bytes(std::span(&size, 1))));
  if (size > 0)
    Finish(transport, transport.Send(to, Tag::kCollective, std::as_bytes(std::span(text))));
}

std::string ReceiveText(Transport& transport, Rank from) {
  uint64_t size = 0;
  Finish(transport,
         transport.Receive(from, Tag::kCollective, std::as_writable_bytes(std::span(&size, 1))));
  std::string text(size, '\0');
  if (size > 0) {
    Finish(transport,
           transport.Receive(from, Tag::kCollective, std::as_writable_bytes(std::span(text))));
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

}  // namespace dtrain
