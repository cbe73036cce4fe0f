// EffectWriter: prints the effects of an actor as text.
#pragma once

#include <functional>
#include <string>

#include "framework/strategies/actor.h"
#include "framework/strategies/placement.h"

namespace dtrain {

// Returns a message as text: "push: clock 1, version 0, ...".
std::string MessageText(const Placement& placement, const Message& message);

class EffectWriter : public Effects {
 public:
  using Post = std::function<void(ActorId to, const Message& message)>;

  // Appends lines to `text`, which must outlive the writer, and passes each message to `post`.
  EffectWriter(const Placement& placement, ActorId id, const Actor& actor, std::string& text,
               Post post, Nanos now = 0);

  void StartStep() override;
  void EndStep(const StepOutcome& outcome) override;
  void Reduce(VectorId vector, Range range) override;
  void Send(ActorId to, Message message, Payload payload) override;
  void SetTimer(int timer, Nanos delay) override;
  Nanos Time() override { return now_; }
  void Take(VectorId to, VectorId from) override;
  void Add(VectorId to, VectorId from, double factor) override;
  void Blend(VectorId to, VectorId from, double share) override;
  void Apply(const Update& update) override;
  void Clear(VectorId vector) override;
  void Compress(VectorId to, VectorId from, double density) override;

 private:
  void Note(const std::string& what);
  std::string NameOf(VectorId vector) const;

  const Placement placement_;
  const ActorId id_;
  const std::vector<VectorSpec> vectors_;
  std::string& text_;
  const Post post_;
  const Nanos now_;
};

}  // namespace dtrain
