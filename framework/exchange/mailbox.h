// Post: the letters of one rank, to actors here and on other ranks, and how many there were.
#pragma once

#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "framework/core/check.h"
#include "framework/exchange/mail.h"

namespace dtrain {

class Post {
 public:
  // Both outlive it.  `mail`: null where no other rank has anybody to talk to.  `nodes`: of each of
  // `ranks`; empty where they are not known.
  Post(Rank rank, int ranks, Mail* mail, const std::vector<int>& nodes)
      : rank_(rank), mail_(mail), nodes_(nodes) {
    DT_CHECK(nodes.empty() || static_cast<int>(nodes.size()) == ranks)
        << "nodes of " << nodes.size() << " ranks, there are " << ranks;
  }

  Rank rank() const { return rank_; }

  // From an actor to an actor on rank `to`: counted.
  void Send(Rank to, Letter letter) {
    ++sent_;
    SendUncounted(to, std::move(letter));
  }
  // From driver to driver.
  void SendUncounted(Rank to, Letter letter) {
    letter.from_rank = rank_;
    if (to == rank_) {
      local_.push_back(std::move(letter));
    } else {
      const bool inside = !nodes_.empty() && nodes_[to] == nodes_[rank_];
      if (inside && letter.piece) bytes_inside_ += letter.piece->bytes();
      mail_->Send(to, std::move(letter));
    }
  }

  // The next letter for this rank; one between actors counts as received from here on.
  std::optional<Letter> Next() {
    std::optional<Letter> letter;
    if (!local_.empty()) {
      letter = std::move(local_.front());
      local_.pop_front();
    } else if (mail_ != nullptr) {
      letter = mail_->Next();
    }
    if (letter && letter->to != kService) ++received_;
    return letter;
  }

  // Letters between actors so far; one within the rank counts as both.
  int64_t sent() const { return sent_; }
  int64_t received() const { return received_; }
  // One is on its way out or half-way in, or waits here to be read.
  bool Busy() const { return !local_.empty() || (mail_ != nullptr && mail_->Busy()); }
  Collective::Traffic traffic() const {
    Collective::Traffic traffic = mail_ == nullptr ? Collective::Traffic{} : mail_->traffic();
    traffic.bytes_inside = bytes_inside_;
    return traffic;
  }

 private:
  const Rank rank_;
  Mail* const mail_;
  const std::vector<int>& nodes_;
  std::deque<Letter> local_;  // from this rank to this rank
  int64_t sent_ = 0;
  int64_t received_ = 0;
  int64_t bytes_inside_ = 0;
};

}  // namespace dtrain
