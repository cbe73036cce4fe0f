// What a Driver is made of inside: its actors, and the effects that wait for their turn.  Included
// by driver*.cc only.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "framework/core/check.h"
#include "framework/device/buffer.h"
#include "framework/exchange/driver.h"

namespace dtrain {

// An effect that waits for its turn.
struct Driver::Operation {
  enum class Kind { kStartStep, kEndStep, kSend, kTake, kAdd, kBlend, kApply, kClear };

  Kind kind;
  Hosted* host;
  VectorId to = kNoVector;
  VectorId from = kNoVector;
  double factor = 1;
  Update update = {};
  StepOutcome outcome = {};
  ActorId receiver = kService;
  Message message = {};
  Payload payload = {};
  std::optional<Piece> arrived = {};  // what kArrived meant when the effect was asked for

  // While it runs.
  bool begun = false;
  Piece source = {};
  Range rest = {};
  double lr = 0;
  float gradient_scale = 1;
};

struct Driver::Hosted {
  Hosted(ActorId actor_id, std::unique_ptr<Actor> the_actor, int tail, BlobPools* pools)
      : id(actor_id), actor(std::move(the_actor)), vectors(actor->Vectors(), tail, pools) {
    master = vectors.Find(VectorRole::kMaster);
    gradient = vectors.Find(VectorRole::kGradient);
    weights = vectors.Find(VectorRole::kWeights);
    if (weights == kNoVector) weights = master;
  }

  ActorId id;
  std::unique_ptr<Actor> actor;
  ActorVectors vectors;
  VectorId master, gradient, weights;
  std::vector<Buffer> solver_memory;  // a master's, in StateNames() order, of its range
  int64_t samples_applied = 0;
  int64_t updates = 0;           // of the master, complete ones
  int64_t updated_elements = 0;  // of the one being made: it may come in buckets
  std::unique_ptr<Port> port;

  ~Hosted();
};

// What an actor sees of the driver.
class Driver::Port : public Effects {
 public:
  Port(Driver& driver, Hosted& host) : driver_(driver), host_(host) {}

  void set_arrived(std::optional<Piece> piece) { arrived_ = std::move(piece); }

  void StartStep() override { Push({.kind = Kind::kStartStep}); }
  void EndStep(const StepOutcome& outcome) override {
    Push({.kind = Kind::kEndStep, .outcome = outcome});
  }
  void Reduce(Range range) override {
    int64_t ticket = -1;
    if (driver_.collective_ != nullptr) {
      const int64_t tail = driver_.IsLast(range) ? kTailSize : 0;
      float* const gradients = driver_.gradients();
      ticket = driver_.collective_->Start({gradients == nullptr ? nullptr : gradients + range.begin,
                                           static_cast<size_t>(range.size() + tail)});
    }
    driver_.reducing_.push_back({ticket, range});
  }
  void Send(ActorId to, Message message, Payload payload) override {
    Push({.kind = Kind::kSend,
          .from = payload.vector,
          .receiver = to,
          .message = std::move(message),
          .payload = payload});
  }
  void SetTimer(int timer, Nanos delay) override {
    driver_.timers_.insert({driver_.clock_->Now() + delay, {host_.id, timer}});
  }
  void Take(VectorId to, VectorId from) override {
    Push({.kind = Kind::kTake, .to = to, .from = from});
  }
  void Add(VectorId to, VectorId from, double factor) override {
    Push({.kind = Kind::kAdd, .to = to, .from = from, .factor = factor});
  }
  void Blend(VectorId to, VectorId from, double share) override {
    Push({.kind = Kind::kBlend, .to = to, .from = from, .factor = share});
  }
  void Apply(const Update& update) override {
    Push({.kind = Kind::kApply, .to = host_.master, .from = update.gradient, .update = update});
  }
  void Clear(VectorId vector) override { Push({.kind = Kind::kClear, .to = vector}); }

 private:
  using Kind = Operation::Kind;

  void Push(Operation operation) {
    operation.host = &host_;
    if (operation.from == kArrived) {
      DT_CHECK(arrived_.has_value())
          << "no vector came with this message; " << host_.actor->Describe();
      operation.arrived = arrived_;
    }
    driver_.operations_.push_back(std::move(operation));
  }

  Driver& driver_;
  Hosted& host_;
  std::optional<Piece> arrived_;
};

}  // namespace dtrain
