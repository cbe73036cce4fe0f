#include "tests/strategies/effect_writer.h"

#include <fmt/format.h>

#include "framework/strategies/ps/messages.h"
#include "tests/strategies/strategies.h"

namespace dtrain {
namespace {

std::string RangeText(Range range) { return fmt::format("[{}, {})", range.begin, range.end); }

std::string PushText(const ps::Push& push) {
  return fmt::format("push: clock {}, version {}, samples {}, loss {}{}{}", push.clock,
                     push.version, push.samples, push.loss_sum, push.stop != 0 ? ", stop" : "",
                     push.wants_weights != 0 ? ", wants weights" : "");
}

std::string WeightsText(const ps::Weights& weights) {
  std::string text =
      fmt::format("weights: version {}, staleness {}", weights.version, weights.staleness);
  if (weights.samples > 0) {
    text += fmt::format(", samples {}, loss {}", weights.samples, weights.loss_sum);
  }
  return text + (weights.stop != 0 ? ", stop" : "");
}

}  // namespace

std::string MessageText(const Message& message) {
  switch (message.kind) {
    case ps::Pull::kKind:
      return fmt::format("pull: clock {}", Unpack<ps::Pull>(message).clock);
    case ps::Push::kKind:
      return PushText(Unpack<ps::Push>(message));
    default:
      return WeightsText(Unpack<ps::Weights>(message));
  }
}

EffectWriter::EffectWriter(const Placement& placement, ActorId id, const Actor& actor,
                           std::string& text, Post post)
    : placement_(placement),
      id_(id),
      vectors_(actor.Vectors()),
      text_(text),
      post_(std::move(post)) {}

void EffectWriter::Note(const std::string& what) {
  text_ += fmt::format("  {}: {}\n", ActorName(placement_, id_), what);
}

std::string EffectWriter::NameOf(VectorId vector) const {
  return vector == kArrived ? "arrived" : vectors_.at(vector).name;
}

void EffectWriter::StartStep() { Note("start step"); }

void EffectWriter::EndStep(const StepOutcome& outcome) {
  Note(fmt::format("end step: samples {}, loss {}{}", outcome.samples, outcome.loss_sum,
                   outcome.stop ? ", stop" : ""));
}

void EffectWriter::Reduce(Range range) { Note("reduce " + RangeText(range)); }

void EffectWriter::Send(ActorId to, Message message, Payload payload) {
  std::string with;
  if (payload.vector != kNoVector) {
    const Range whole = vectors_.at(payload.vector).range;
    with = fmt::format(" + {} {}", NameOf(payload.vector),
                       RangeText(payload.range.empty() ? whole : payload.range));
  }
  text_ += fmt::format("  {} > {} {}{}\n", ActorName(placement_, id_), ActorName(placement_, to),
                       MessageText(message), with);
  post_(to, message);
}

void EffectWriter::SetTimer(int timer, Nanos delay) {
  Note(fmt::format("timer {} in {} ns", timer, delay));
}

void EffectWriter::Take(VectorId to, VectorId from) {
  Note(fmt::format("{} = {}", NameOf(to), NameOf(from)));
}

void EffectWriter::Add(VectorId to, VectorId from, double factor) {
  Note(fmt::format("{} += {}{}", NameOf(to), factor == 1 ? "" : fmt::format("{} ", factor),
                   NameOf(from)));
}

void EffectWriter::Blend(VectorId to, VectorId from, double share) {
  Note(fmt::format("{} = {} {} + {} {}", NameOf(to), 1 - share, NameOf(to), share, NameOf(from)));
}

void EffectWriter::Apply(const Update& update) {
  Note(fmt::format("apply {}: lr factor {:.4g}, samples {}", NameOf(update.gradient),
                   update.lr_factor, update.samples));
}

void EffectWriter::Clear(VectorId vector) { Note("clear " + NameOf(vector)); }

void EffectWriter::Compress(VectorId to, VectorId from, double density) {
  Note(fmt::format("compress {} from {}: density {}", NameOf(to), NameOf(from), density));
}

}  // namespace dtrain
