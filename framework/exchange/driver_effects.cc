// How a Driver carries out the effects in its queue.
#include <algorithm>
#include <array>
#include <cmath>

#include "framework/comm/sum.h"
#include "framework/core/check.h"
#include "framework/exchange/driver_parts.h"
#include "framework/solver/clip.h"

namespace dtrain {
namespace {

constexpr int64_t kSliceElements = (1 << 20) / sizeof(float);

Range SliceOf(Range rest) { return {rest.begin, std::min(rest.end, rest.begin + kSliceElements)}; }

}  // namespace

bool Driver::RunSlice() {
  if (operations_.empty()) return false;
  // By reference: what an operation brings about may push others behind it.
  Operation& operation = operations_.front();
  Run(operation);
  if (operation.rest.empty()) operations_.pop_front();
  return true;
}

void Driver::Run(Operation& operation) {
  ActorVectors& vectors = operation.host->vectors;
  using Kind = Operation::Kind;
  switch (operation.kind) {
    case Kind::kStartStep:
      if (withheld_) {
        start_pending_ = true;
      } else {
        started_ = true;
        waiting_ = false;
      }
      return;
    case Kind::kEndStep:
      return EndStep(operation.outcome);
    case Kind::kSend:
      return Send(operation);
    case Kind::kClear:
      return vectors.Clear(operation.to);
    case Kind::kTake:
      return Take(operation);
    case Kind::kAdd:
    case Kind::kBlend:
    case Kind::kApply:
      break;
  }
  if (!operation.begun) BeginUpdate(operation);
  Range slice = operation.rest;
  if (!options_.ghost) {
    slice = SliceOf(operation.rest);
    if (operation.kind == Kind::kApply) {
      ApplySlice(operation, slice);
    } else {
      AddSlice(operation, slice);
    }
  }
  Advance(operation, slice);
  if (operation.rest.empty()) EndUpdate(operation);
}

void Driver::Send(Operation& operation) {
  Letter letter{.from = operation.host->id,
                .to = operation.receiver,
                .from_rank = options_.rank,
                .message = std::move(operation.message),
                .finite = finite_};
  if (operation.arrived) {
    letter.piece = operation.arrived;
  } else if (operation.payload.vector != kNoVector) {
    letter.piece = operation.host->vectors.Get(operation.payload.vector, operation.payload.range);
  }
  ++letters_sent_;
  const Rank to = options_.placement.RankOf(operation.receiver);
  if (timeline_ != nullptr) {
    timeline_->Sent(clock_->Now(), to, letter.piece ? letter.piece->bytes() : 0);
  }
  if (to == options_.rank) {
    local_.push_back(std::move(letter));
  } else {
    mail_->Send(to, std::move(letter));
  }
}

// By reference where the source covers the whole vector, else copied slice by slice.
void Driver::Take(Operation& operation) {
  ActorVectors& vectors = operation.host->vectors;
  if (!operation.begun) {
    operation.begun = true;
    operation.source = operation.arrived ? *operation.arrived : vectors.Get(operation.from);
    if (operation.from != kArrived) vectors.Clear(operation.from);
    const Piece& source = operation.source;
    if (source.range == vectors.RangeOf(operation.to) && source.offset == 0) {
      return vectors.Replace(operation.to, std::move(operation.source));
    }
    DT_CHECK(vectors.RangeOf(operation.to).Contains(source.range))
        << operation.host->actor->Describe();
    operation.rest = source.range;
  }
  if (options_.ghost) return Advance(operation, operation.rest);
  const Range slice = SliceOf(operation.rest);
  std::copy_n(operation.source.At(slice.begin), slice.size(),
              vectors.Slice(operation.to, slice).new_values);
  Advance(operation, slice);
}

void Driver::Advance(Operation& operation, Range slice) {
  operation.rest.begin = slice.end;
  bytes_written_ += slice.size() * static_cast<int64_t>(sizeof(float));
}

void Driver::BeginUpdate(Operation& operation) {
  operation.begun = true;
  Hosted& host = *operation.host;
  operation.source = operation.arrived ? *operation.arrived : host.vectors.Get(operation.from);
  operation.rest = operation.source.range;
  if (operation.kind != Operation::Kind::kApply) return;
  if (!operation.update.range.empty()) operation.rest = operation.update.range;
  DT_CHECK(host.master != kNoVector && host.vectors.RangeOf(host.master).Contains(operation.rest))
      << host.actor->Describe();
  operation.lr = learning_rate_.At(static_cast<double>(host.samples_applied) /
                                   static_cast<double>(options_.epoch_samples));
  operation.lr *= operation.update.lr_factor;
  operation.gradient_scale = static_cast<float>(operation.update.gradient_factor);
  // A worker that updates its own weights clips the reduced gradient; see ClipAtWorker.
  if (options_.solver.clip_norm > 0 && host.gradient != kNoVector && !options_.ghost) {
    DT_CHECK(operation.rest.size() == layout_.size()) << "clipping needs the whole gradient";
    operation.gradient_scale *=
        ClipScale(options_.solver.clip_norm, SumOfSquares(gradients(), layout_.size()));
  }
}

void Driver::EndUpdate(Operation& operation) {
  if (operation.kind != Operation::Kind::kApply) return;
  Hosted& host = *operation.host;
  host.samples_applied += operation.update.samples;
  const Range& part = operation.update.range;
  host.updated_elements += part.empty() ? operation.source.range.size() : part.size();
  if (host.updated_elements < host.vectors.RangeOf(host.master).size()) return;
  host.updated_elements = 0;
  ++host.updates;
}

void Driver::AddSlice(Operation& operation, Range slice) {
  const auto memory = operation.host->vectors.Slice(operation.to, slice);
  const float* const source = operation.source.blob ? operation.source.At(slice.begin) : nullptr;
  const bool blend = operation.kind == Operation::Kind::kBlend;
  if (!blend && operation.factor == 1 && memory.old_values != nullptr && source != nullptr) {
    const float* const terms[] = {memory.old_values, source};
    return SumInOrder(memory.new_values, terms, 2, slice.size());
  }
  const float factor = static_cast<float>(operation.factor);
  const float keep = blend ? static_cast<float>(1 - operation.factor) : 1.0f;
  for (int64_t i = 0; i < slice.size(); ++i) {
    const float old_value = memory.old_values == nullptr ? 0.0f : memory.old_values[i];
    const float added = source == nullptr ? 0.0f : source[i];
    memory.new_values[i] = keep * old_value + factor * added;
  }
}

void Driver::ApplySlice(Operation& operation, Range slice) {
  Hosted& host = *operation.host;
  const Range all = host.vectors.RangeOf(host.master);
  const auto memory = host.vectors.Slice(host.master, slice);
  std::array<float*, 8> state;
  DT_CHECK(host.solver_memory.size() <= state.size());
  for (size_t i = 0; i < host.solver_memory.size(); ++i) {
    state[i] = host.solver_memory[i].f32() + (slice.begin - all.begin);
  }
  UpdateArgs args;
  args.lr = operation.lr;
  args.updates = host.updates;
  args.gradient_scale = operation.gradient_scale;
  args.gradient = operation.source.At(slice.begin);
  args.weights_in = memory.old_values;
  args.weights_out = memory.new_values;
  args.state = {state.data(), host.solver_memory.size()};
  args.threads = options_.threads;
  finite_ &= options_.solver.solver->Apply(layout_, slice, args);
}

void Driver::EndStep(const StepOutcome& outcome) {
  Hosted& host = WorkerHost();
  outcome_ = outcome;
  outcome_.finite = outcome.finite && finite_ && std::isfinite(outcome.loss_sum);
  if (host.master != kNoVector) {
    host.vectors.Get(host.master);  // the next version is complete
    host.samples_applied += outcome.samples;
  }
  ended_ = true;
}

}  // namespace dtrain
