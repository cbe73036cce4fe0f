// SimMail: letters over the simulated network.  Vectors travel by reference: what takes time is
// their size.
#pragma once

#include <deque>
#include <functional>

#include "framework/exchange/mail.h"
#include "framework/sim/network.h"

namespace dtrain {

class SimMail : public Mail {
 public:
  // `wake(rank)`: a letter has arrived for that rank.  `boxes`: every rank's mail, by rank; filled
  // in before the first letter.
  SimMail(Rank rank, Network& network, std::vector<SimMail*>& boxes,
          std::function<void(Rank)> wake);

  void Send(Rank to, Letter letter) override;
  std::optional<Letter> Next() override;
  bool Busy() const override { return !inbox_.empty(); }
  Collective::Traffic traffic() const override;

 private:
  const Rank rank_;
  Network& network_;
  std::vector<SimMail*>& boxes_;
  std::function<void(Rank)> wake_;
  std::deque<Letter> inbox_;
};

}  // namespace dtrain
