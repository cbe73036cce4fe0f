// Alone: one actor of a strategy without the others; it returns the actor's effects as text.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/strategies/effect_writer.h"
#include "tests/strategies/strategies.h"

namespace dtrain {

class Alone {
 public:
  // Creates actor `id` of a run of the strategy with `workers` workers and a model of 10 elements.
  Alone(const std::string& strategy, const std::string& keys, int workers, ActorId id,
        bool may_fail = false)
      : strategy_(MakeStrategy(strategy, keys)),
        setup_(SetupFor(*strategy_, workers, 10)),
        id_(id) {
    setup_.may_fail = may_fail;
    actor_ = strategy_->MakeActor(id, setup_);
  }

  // Returns a writer for effects at time `now`; it clears the text of earlier effects.
  EffectWriter At(Nanos now) {
    text_.clear();
    return EffectWriter(
        setup_.placement, id_, *actor_, text_, [](ActorId, const Message&) {}, now);
  }
  // Returns the effects of a message.
  template <class M>
  std::string Receives(ActorId from, const M& message, Nanos now = 0) {
    EffectWriter effects = At(now);
    actor_->OnMessage(from, Pack(message), effects);
    return text_;
  }
  std::string ReceivesQuiescence(const QuiescentState& quiescent) {
    EffectWriter effects = At(0);
    actor_->OnQuiescent(quiescent, effects);
    return text_;
  }
  std::string ReceivesTimer(int timer) {
    EffectWriter effects = At(0);
    actor_->OnTimer(timer, effects);
    return text_;
  }

  Actor& actor() { return *actor_; }
  ActorId server(int number) const { return setup_.placement.ServerId(number); }
  ActorId node(int number) const { return setup_.placement.NodeId(number); }
  ActorId coordinator() const { return setup_.placement.CoordinatorId(); }
  ProtocolReport report() const {
    ProtocolReport report = EmptyReport(*strategy_);
    actor_->Report(report);
    return report;
  }
  std::vector<std::string> vectors() const {
    std::vector<std::string> names;
    for (const VectorSpec& vector : actor_->Vectors()) names.push_back(vector.name);
    return names;
  }

 private:
  std::unique_ptr<Strategy> strategy_;
  ActorSetup setup_;
  ActorId id_;
  std::unique_ptr<Actor> actor_;
  std::string text_;
};

}  // namespace dtrain
