// SimChannel: messages over the simulated network.  Vectors travel by reference: what takes time is
// their size.
#pragma once

#include <deque>
#include <functional>

#include "framework/exchange/message_channel.h"
#include "framework/sim/network.h"

namespace dtrain {

class SimChannel : public MessageChannel {
 public:
  // `wake(rank)`: a message has arrived for that rank.  `boxes`: every rank's channel, by rank; filled
  // in before the first message.
  SimChannel(Rank rank, Network& network, std::vector<SimChannel*>& boxes,
             std::function<void(Rank)> wake);

  void Send(Rank to, Envelope envelope) override;
  std::optional<Envelope> Next() override;
  bool Busy() const override { return !inbox_.empty(); }
  Collective::Traffic traffic() const override;

 private:
  const Rank rank_;
  Network& network_;
  std::vector<SimChannel*>& boxes_;
  std::function<void(Rank)> wake_;
  std::deque<Envelope> inbox_;
};

}  // namespace dtrain
