#include "tests/strategies/effect_writer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "framework/strategies/gssp/messages.h"
#include "framework/strategies/inhad/messages.h"
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

std::string GradText(const inhad::Grad& grad) {
  std::string bases;
  for (size_t i = 0; i + 1 < grad.bases.size(); i += 2) {
    bases += fmt::format("{}{}: {}", i == 0 ? "" : ", ", grad.bases[i], grad.bases[i + 1]);
  }
  return fmt::format("grad: round {}, count {}, dropped {}, samples {}, bases {{{}}}", grad.round,
                     grad.count, grad.dropped, grad.samples, bases);
}

std::string InText(const inhad::In& in) {
  const std::string pending =
      in.low_pending == inhad::kNever ? "" : fmt::format(", {} pending", in.low_pending);
  return fmt::format("in: {}, low {} computing{}", in.submitted, in.low_computing, pending);
}

std::string InhadText(const Message& message) {
  using namespace inhad;
  switch (message.kind) {
    case Submit::kKind: {
      const auto submit = Unpack<Submit>(message);
      return fmt::format("submit: base {}, next {}, samples {}", submit.base, submit.next,
                         submit.samples);
    }
    case Taken::kKind:
      return "taken";
    case In::kKind:
      return InText(Unpack<In>(message));
    case Noted::kKind:
      return "noted";
    case Pull::kKind: {
      const auto pull = Unpack<Pull>(message);
      return fmt::format("pull: round {}, version {}", pull.round, pull.version);
    }
    case Grad::kKind:
      return GradText(Unpack<Grad>(message));
    case Close::kKind:
      return fmt::format("close: count {}", Unpack<Close>(message).count);
    case Applied::kKind:
      return fmt::format("applied: version {}", Unpack<Applied>(message).version);
    case Weights::kKind:
      return fmt::format("weights: version {}", Unpack<Weights>(message).version);
    case Have::kKind:
      return fmt::format("have: version {}", Unpack<Have>(message).version);
    case Fewer::kKind:
      return fmt::format("fewer: {} workers", Unpack<Fewer>(message).workers);
    case Ask::kKind:
      return "ask";
    case GiveUp::kKind:
      return fmt::format("give up: node {}", Unpack<GiveUp>(message).node);
    default:
      return fmt::format("refresh: node {}", Unpack<Refresh>(message).node);
  }
}

std::string HandoverText(const gssp::Handover& handover) {
  return fmt::format("handover: number {}, worker {}, behind by {}{}", handover.number,
                     handover.worker, handover.behind, handover.waiting != 0 ? ", waiting" : "");
}

std::string ProbedText(const gssp::Probed& probed) {
  std::string text = "probed: alone";
  for (const int64_t time : probed.alone) {
    text += time == gssp::kUnknown ? " unknown" : fmt::format(" {}", time);
  }
  return text;
}

std::string GsspText(const Message& message) {
  using namespace gssp;
  switch (message.kind) {
    case Push::kKind:
      return fmt::format("push: samples {}", Unpack<Push>(message).samples);
    case Weights::kKind: {
      const auto weights = Unpack<Weights>(message);
      return weights.held == kUnknown ? "weights"
                                      : fmt::format("weights: held for {} ns", weights.held);
    }
    case GroupSync::kKind: {
      const auto sync = Unpack<GroupSync>(message);
      return fmt::format("exchange: gradients {}, samples {}", sync.gradients, sync.samples);
    }
    case Stats::kKind: {
      const auto stats = Unpack<Stats>(message);
      const auto time = [](int64_t ns) {
        return ns == kUnknown ? "unknown" : fmt::format("{} ns", ns);
      };
      return fmt::format("stats: compute {}, transfers {}, steps {}, epochs {}",
                         time(stats.compute), time(stats.transfers), stats.steps, stats.epochs);
    }
    case Regroup::kKind: {
      const auto regroup = Unpack<Regroup>(message);
      return fmt::format("regroup: number {}, server of each worker {}", regroup.number,
                         regroup.server_of);
    }
    case Handover::kKind:
      return HandoverText(Unpack<Handover>(message));
    case Density::kKind:
      return fmt::format("density: {}", Unpack<Density>(message).density);
    case Probe::kKind:
      return "probe";
    case Probed::kKind:
      return ProbedText(Unpack<Probed>(message));
    case Replica::kKind:
      return fmt::format("replica of {}", Unpack<Replica>(message).members);
    default:
      return "flush";
  }
}

}  // namespace

std::string MessageText(const Placement& placement, const Message& message) {
  if (placement.nodes() > 0) return InhadText(message);
  if (placement.replicated) return GsspText(message);
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
                           std::string& text, Post post, Nanos now)
    : placement_(placement),
      id_(id),
      vectors_(actor.Vectors()),
      text_(text),
      post_(std::move(post)),
      now_(now) {}

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

void EffectWriter::Reduce(VectorId vector, Range range) {
  Note(fmt::format("reduce {} {}", NameOf(vector), RangeText(range)));
}

void EffectWriter::Send(ActorId to, Message message, Payload payload) {
  std::string with;
  if (payload.vector == kArrived) {
    with = " + arrived";
  } else if (payload.vector != kNoVector) {
    const Range whole = vectors_.at(payload.vector).range;
    with = fmt::format(" + {} {}", NameOf(payload.vector),
                       RangeText(payload.range.empty() ? whole : payload.range));
  }
  text_ += fmt::format("  {} > {} {}{}\n", ActorName(placement_, id_), ActorName(placement_, to),
                       MessageText(placement_, message), with);
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
  const std::string factor = update.gradient_factor == 1
                                 ? ""
                                 : fmt::format("gradient factor {:.4g}, ", update.gradient_factor);
  Note(fmt::format("apply {}: {}lr factor {:.4g}, samples {}", NameOf(update.gradient), factor,
                   update.lr_factor, update.samples));
}

void EffectWriter::Clear(VectorId vector) { Note("clear " + NameOf(vector)); }

void EffectWriter::Compress(VectorId to, VectorId from, double density) {
  Note(fmt::format("compress {} from {}: density {}", NameOf(to), NameOf(from), density));
}

}  // namespace dtrain
