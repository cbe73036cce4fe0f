#include "framework/exchange/effect_queue.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "framework/core/check.h"
#include "framework/solver/solver.h"

namespace dtrain {
namespace {

// Returns the vector of the actor that an effect reads; kNoVector for none.
VectorId SourceOf(const Effect& effect) {
  if (const auto* take = std::get_if<TakeEffect>(&effect)) return take->from;
  if (const auto* add = std::get_if<AddEffect>(&effect)) return add->from;
  if (const auto* blend = std::get_if<BlendEffect>(&effect)) return blend->from;
  if (const auto* apply = std::get_if<ApplyEffect>(&effect)) return apply->update.gradient;
  if (const auto* send = std::get_if<SendEffect>(&effect)) return send->payload.vector;
  return kNoVector;
}

}  // namespace

EffectQueue::EffectQueue(const ExchangeSpec& spec, VectorOps& ops, int threads, Post post,
                         const Clock* clock)
    : spec_(spec),
      ops_(ops),
      threads_(threads),
      post_(std::move(post)),
      clock_(clock),
      learning_rate_(spec.solver, spec.epochs, spec.placement().workers) {}

void EffectQueue::Push(HostedActor& host, Effect effect,
                       const std::optional<VectorSlice>& arrived) {
  Item item{&host, std::move(effect), {}};
  if (SourceOf(item.effect) == kArrived) {
    DT_CHECK(arrived.has_value()) << "no vector came with this message; " << host.actor->Describe();
    item.arrived = arrived;
  }
  items_.push_back(std::move(item));
}

bool EffectQueue::RunSlice() {
  if (items_.empty()) return false;
  // A reference into the list stays valid when the effect pushes others.
  Item& item = items_.front();
  std::visit([&](auto& effect) { Run(item, effect); }, item.effect);
  if (item.remaining.empty() && !item.more) items_.pop_front();
  return true;
}

void EffectQueue::Run(Item& item, WorkEffect& effect) { item.more = effect.slice(); }

// A sparse vector that is no smaller than a dense one is converted here, so that all channels
// carry, and all receivers get, the same form.
void EffectQueue::Run(Item& item, SendEffect& effect) {
  if (!item.begun) {
    item.begun = true;
    std::optional<VectorSlice> slice = std::move(item.arrived);
    if (!slice && effect.payload.vector != kNoVector) {
      slice = item.host->vectors.Get(effect.payload.vector, effect.payload.range);
    }
    if (!slice || !slice->PaysDense()) return post_(*item.host, effect, std::move(slice));
    item.source = std::move(*slice);
    item.remaining = item.source.range;
    item.written = {item.host->vectors.NewDense(item.remaining.size()), 0, item.remaining};
  }
  RunSliceOf(item, [&](Range slice) {
    float* const to = item.written.blob.MutableF32() + (slice.begin - item.written.range.begin);
    ops_.Zero(to, slice.size());
    ops_.Scatter(to, slice.begin, ViewOf(item.source.Part(slice)));
  });
  if (item.remaining.empty()) post_(*item.host, effect, std::move(item.written));
}

void EffectQueue::Run(Item& item, ClearEffect& effect) { item.host->vectors.Clear(effect.vector); }

void EffectQueue::Run(Item& item, CompressEffect& effect) {
  ActorVectors& vectors = item.host->vectors;
  const Range& range = vectors.RangeOf(effect.from);
  DT_CHECK(effect.to != effect.from && vectors.RangeOf(effect.to) == range)
      << item.host->actor->Describe();
  if (item.compression == nullptr) {
    item.compression = std::make_unique<Compression>(
        spec_, *item.host, ops_, CompressedRange{effect.from, range, effect.density});
  }
  item.more = dtrain::RunSliceOf(*item.compression, clock_, done_);
  if (!item.more) vectors.Replace(effect.to, item.compression->Take());
}

// The vector is taken by reference if the source covers all of it, else copied slice by slice.
void EffectQueue::Run(Item& item, TakeEffect& effect) {
  ActorVectors& vectors = item.host->vectors;
  if (!item.begun) {
    BeginReading(item, effect.from);
    if (effect.from != kArrived) vectors.Clear(effect.from);
    if (vectors.CanReplace(effect.to, item.source)) {
      item.remaining = {};
      return vectors.Replace(effect.to, std::move(item.source));
    }
    DT_CHECK(vectors.RangeOf(effect.to).Contains(item.source.range))
        << item.host->actor->Describe();
    vectors.MakeDense(effect.to);
  }
  RunSliceOf(item, [&](Range slice) {
    ops_.Copy(vectors.Slice(effect.to, slice).new_values, SourceAt(item, slice), slice.size());
  });
}

void EffectQueue::Run(Item& item, AddEffect& effect) {
  if (!item.begun) {
    BeginReading(item, effect.from);
    if (StaysSparse(item, effect)) {
      ActorVectors& vectors = item.host->vectors;
      const int64_t before = vectors.Sparse(effect.to) ? vectors.Entries(effect.to) : 0;
      const int64_t room = before + item.source.entries;
      item.written = {vectors.NewSparse(room), 0, item.remaining, 0, room};
      item.written_share =
          2 * static_cast<double>(room) / static_cast<double>(item.remaining.size());
    } else {
      item.host->vectors.MakeDense(effect.to);
    }
  }
  if (item.written.sparse()) return AddSparse(item, effect);
  if (!item.source.sparse()) return Combine(item, effect.to, 1, effect.factor);
  RunSliceOf(item, [&](Range slice) {
    ops_.ScatterAdd(item.host->vectors.SliceWithValues(effect.to, slice, ops_), slice.begin,
                    static_cast<float>(effect.factor), ViewOf(item.source.Part(slice)));
  });
}

// True if the result is kept sparse: both vectors are, and their entries take less room than a
// dense vector.
bool EffectQueue::StaysSparse(const Item& item, const AddEffect& effect) const {
  const ActorVectors& vectors = item.host->vectors;
  const VectorSpec& to = vectors.specs()[effect.to];
  if (!item.source.sparse() || item.source.range != to.range || to.role != VectorRole::kPlain) {
    return false;
  }
  if (vectors.Empty(effect.to)) return !item.source.PaysDense();
  return vectors.Sparse(effect.to) &&
         2 * (vectors.Entries(effect.to) + item.source.entries) < to.range.size();
}

// A ghost run computes the expected number of entries as if the positions of the two were
// independent.
void EffectQueue::AddSparse(Item& item, const AddEffect& effect) {
  ActorVectors& vectors = item.host->vectors;
  const bool empty = vectors.Empty(effect.to);
  const VectorSlice to =
      empty ? VectorSlice{.range = item.source.range, .entries = 0} : vectors.Get(effect.to);
  VectorSlice& sum = item.written;
  RunSliceOf(item, [&](Range slice) {
    int32_t* const positions = reinterpret_cast<int32_t*>(sum.blob.MutableF32());
    sum.entries += ops_.AddSparse(
        positions + sum.entries, sum.blob.MutableF32() + sum.stride + sum.entries,
        ViewOf(to.Part(slice)), static_cast<float>(effect.factor), ViewOf(item.source.Part(slice)));
  });
  if (!item.remaining.empty()) return;
  if (spec_.ghost) {
    const double both = static_cast<double>(to.entries) * static_cast<double>(item.source.entries) /
                        static_cast<double>(to.range.size());
    sum.entries = to.entries + item.source.entries - std::llround(both);
  }
  vectors.Replace(effect.to, std::move(sum));
}

void EffectQueue::Run(Item& item, BlendEffect& effect) {
  if (!item.begun) {
    BeginReading(item, effect.from);
    item.host->vectors.MakeDense(effect.to);
  }
  Combine(item, effect.to, 1 - effect.share, effect.share);
}

void EffectQueue::Run(Item& item, ApplyEffect& effect) {
  if (!item.begun) BeginUpdate(item, effect.update);
  RunSliceOf(item, [&](Range slice) { UpdateSlice(item, slice); });
  if (item.remaining.empty()) EndUpdate(item, effect.update);
}

void EffectQueue::BeginReading(Item& item, VectorId from) {
  item.begun = true;
  item.source = item.arrived ? *item.arrived : item.host->vectors.Get(from);
  item.remaining = item.source.range;
}

const float* EffectQueue::SourceAt(const Item& item, Range slice) {
  if (!item.source.sparse()) return item.source.At(slice.begin);
  scratch_.resize(static_cast<size_t>(ops_.slice_elements()));
  ops_.Zero(scratch_.data(), slice.size());
  ops_.Scatter(scratch_.data(), slice.begin, ViewOf(item.source.Part(slice)));
  return scratch_.data();
}

// vector = keep * vector + factor * source.  A vector without a blob counts as zeros.  With both
// factors 1, VectorOps::Sum gives the same bits on every instruction set.  Frozen parameters of a
// master are not changed, since rounded factors could turn two equal numbers into a different one.
void EffectQueue::Combine(Item& item, VectorId to, double keep, double factor) {
  ActorVectors& vectors = item.host->vectors;
  RunSliceOf(item, [&](Range slice) {
    const auto memory = vectors.Slice(to, slice);
    const bool zeros = !item.source.blob && !item.source.sparse();
    const float* const added = zeros ? nullptr : SourceAt(item, slice);
    if (keep == 1 && factor == 1 && memory.old_values != nullptr && added != nullptr) {
      return ops_.Sum(memory.new_values, memory.old_values, added, slice.size());
    }
    const auto combine = [&](Range part, double kept, double taken) {
      const int64_t at = part.begin - slice.begin;
      ops_.Combine(memory.new_values + at, static_cast<float>(kept),
                   memory.old_values == nullptr ? nullptr : memory.old_values + at,
                   static_cast<float>(taken), added == nullptr ? nullptr : added + at, part.size());
    };
    if (to != item.host->master) return combine(slice, keep, factor);
    ForEachFactor(*spec_.layout, slice, [&](Range part, double rate) {
      if (rate != 0) return combine(part, keep, factor);
      if (memory.old_values == memory.new_values) return;
      const int64_t at = part.begin - slice.begin;
      ops_.Copy(memory.new_values + at, memory.old_values + at, part.size());
    });
  });
}

void EffectQueue::BeginUpdate(Item& item, const Update& update) {
  BeginReading(item, update.gradient);
  HostedActor& host = *item.host;
  if (!update.range.empty()) item.remaining = update.range;
  DT_CHECK(host.master != kNoVector && host.vectors.RangeOf(host.master).Contains(item.remaining))
      << host.actor->Describe();
  item.lr = update.lr_factor * learning_rate_.At(static_cast<double>(host.samples_applied) /
                                                 static_cast<double>(spec_.rule.epoch_samples));
  item.gradient_scale = static_cast<float>(update.gradient_factor);
  // A worker that updates its own weights clips the reduced gradient.  If servers update them, each
  // worker clips its own gradient instead (worker_clip.h).
  if (spec_.solver.clip_norm > 0 && host.gradient != kNoVector && !spec_.ghost) {
    DT_CHECK(item.remaining.size() == spec_.size()) << "clipping needs the whole gradient";
    const float* const gradient = host.vectors.Data(host.gradient);
    const double factor = update.gradient_factor;
    const ClipFactor clip = ops_.Clip(spec_.solver.clip_norm, factor, gradient, spec_.size());
    item.gradient_scale *= clip.value;
    item.more_scale = clip.on_device;
  }
}

void EffectQueue::UpdateSlice(Item& item, Range slice) {
  HostedActor& host = *item.host;
  const int64_t first = host.vectors.RangeOf(host.master).begin;
  const auto memory = host.vectors.Slice(host.master, slice);
  std::array<float*, 8> state;
  DT_CHECK(host.solver_memory.size() <= state.size());
  for (size_t i = 0; i < host.solver_memory.size(); ++i) {
    state[i] = host.solver_memory[i].f32() + (slice.begin - first);
  }
  UpdateArgs args;
  args.lr = item.lr;
  args.updates = host.updates;
  args.gradient_scale = item.gradient_scale;
  args.more_scale = item.more_scale;
  args.gradient = SourceAt(item, slice);
  args.weights_in = memory.old_values;
  args.weights_out = memory.new_values;
  args.state = {state.data(), host.solver_memory.size()};
  args.threads = threads_;
  done_.finite &= ops_.Update(*spec_.solver.solver, *spec_.layout, slice, args);
}

// An update may be made in parts (buckets).  It counts when all elements of the master are updated.
void EffectQueue::EndUpdate(Item& item, const Update& update) {
  HostedActor& host = *item.host;
  host.samples_applied += update.samples;
  host.updated_elements += (update.range.empty() ? item.source.range : update.range).size();
  if (host.updated_elements < host.vectors.RangeOf(host.master).size()) return;
  host.updated_elements = 0;
  ++host.updates;
}

}  // namespace dtrain
