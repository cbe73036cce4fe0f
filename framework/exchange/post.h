// Post: the letters of one rank, to actors here and on other ranks, and how many there were.
#pragma once

#include <deque>
#include <optional>
#include <utility>

#include "framework/exchange/mail.h"

namespace dtrain {

class Post {
 public:
  // `mail` outlives it; null where no other rank has anybody to talk to.
  Post(Rank rank, Mail* mail) : rank_(rank), mail_(mail) {}

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
    return mail_ == nullptr ? Collective::Traffic{} : mail_->traffic();
  }

 private:
  const Rank rank_;
  Mail* const mail_;
  std::deque<Letter> local_;  // from this rank to this rank
  int64_t sent_ = 0;
  int64_t received_ = 0;
};

}  // namespace dtrain
