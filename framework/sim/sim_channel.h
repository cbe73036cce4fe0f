// SimChannel: messages over the simulated network.  Vectors are passed by reference; the simulated
// time depends on their size.
#pragma once

#include <deque>
#include <functional>

#include "framework/exchange/message_channel.h"
#include "framework/sim/network.h"

namespace dtrain {

class SimChannel : public MessageChannel {
 public:
  // `wake(rank)` is called when a message for that rank has arrived.  `boxes`: the channels of all
  // ranks, by rank; complete before the first message is sent.
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
