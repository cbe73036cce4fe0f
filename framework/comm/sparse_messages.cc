#include "framework/comm/sparse_messages.h"

#include <algorithm>

namespace dtrain {

int64_t SparseLink::Grant(int64_t left, int64_t bytes_each) {
  const int64_t granted =
      std::min(left, (std::max<int64_t>(budget, 0) + bytes_each - 1) / bytes_each);
  budget -= granted * bytes_each;
  return granted;
}

void SparseMessages::SendBytes(Rank to, std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  sends_.push_back(link_->transport.Send(to, Tag::kSparse, bytes));
  const auto count = static_cast<int64_t>(bytes.size());
  link_->traffic.bytes_sent += count;
  link_->traffic.messages += 1;
  if (link_->node_of.empty() || link_->node_of[to] != link_->node_of[link_->rank()]) return;
  link_->traffic.bytes_inside += count;
}

void SparseMessages::ReceiveBytes(Rank from, std::span<std::byte> bytes) {
  if (bytes.empty()) return;
  receives_.push_back(link_->transport.Receive(from, Tag::kSparse, bytes));
  link_->traffic.bytes_received += static_cast<int64_t>(bytes.size());
}

bool SparseMessages::AllOf(std::vector<Request>& requests) {
  while (!requests.empty() && link_->transport.Test(requests.back())) {
    requests.pop_back();
    link_->events += 1;
  }
  return requests.empty();
}

}  // namespace dtrain
