#include "framework/exchange/gradient_reduction.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "framework/core/check.h"

namespace dtrain {
namespace {

SparseView EntriesIn(const SparseEntries& entries, Range range) {
  const auto first =
      std::lower_bound(entries.positions.begin(), entries.positions.end(), range.begin);
  const auto last = std::lower_bound(first, entries.positions.end(), range.end);
  const auto begin = first - entries.positions.begin();
  return {entries.positions.data() + begin, entries.values.data() + begin, last - first};
}

std::vector<ArenaEntry> ParametersIn(const ArenaLayout& layout, Range range) {
  std::vector<ArenaEntry> parameters;
  for (const ArenaEntry& entry : layout.entries) {
    if (range.Contains(entry.range)) parameters.push_back(entry);
  }
  return parameters;
}

}  // namespace

GradientReduction::GradientReduction(const ReductionParts& parts, Range range, int unit)
    : parts_(parts),
      spec_(parts.spec),
      compress_(spec_.actors.compress),
      host_(parts.host),
      ops_(parts.ops),
      done_(parts.done),
      range_(range),
      unit_(unit),
      residual_(host_.vectors.Find(VectorRole::kResidual)),
      velocity_(host_.vectors.Find(VectorRole::kVelocity)) {
  const Coder* const coder = compress_.coder();
  if (coder == nullptr) return;
  parameters_ = ParametersIn(*spec_.layout, range);
  DT_CHECK(!parameters_.empty()) << "no whole parameter in [" << range.begin << ", " << range.end
                                 << ")";
  coding_ = coder->MakeCoding(parameters_, spec_.placement().workers, spec_.seed);
  words_.resize(coding_->rounds().size());
}

float* GradientReduction::Gradients() const {
  return spec_.ghost ? nullptr : host_.vectors.Data(host_.gradient);
}

// True if a residual or a velocity has to be added to the gradient before it is sent.
bool GradientReduction::HoldsBack() const {
  return host_.device_residual != nullptr || compress_.momentum > 0 ||
         !host_.vectors.Empty(residual_);
}

bool GradientReduction::Begin() {
  DT_CHECK(stage_ == Stage::kIdle) << host_.actor->Describe();
  remaining_ = range_;
  const int64_t samples = host_.samples_applied;
  density_ = compress_.DensityAt(samples / spec_.rule.epoch_samples, spec_.rule.StepsOf(samples));
  if (coding_ != nullptr) parts_.rounds.push_back(this);
  // Compression records what it selects from; of a coder the gradient is recorded as it is.
  if (density_ >= 1 && !compress_.rounds()) {
    StudyWhole(spec_.statistics, host_.id, range_, spec_.size(), Gradients());
  }
  if (density_ < 1 || compress_.rounds() || coding_ != nullptr) {
    stage_ = Stage::kAdding;
    return true;
  }
  if (!HoldsBack()) return StartDense();
  stage_ = Stage::kTaking;
  return true;
}

bool GradientReduction::RunSlice() {
  switch (stage_) {
    case Stage::kTaking:
      TakeSlice();
      return !remaining_.empty() || StartDense();
    case Stage::kAdding:
      AddSlice();
      if (remaining_.empty()) BeginSelecting();
      return true;
    case Stage::kSelecting:
      return Select();
    case Stage::kFilling:
      FillSlice();
      return !remaining_.empty() || StartDense();
    case Stage::kEncoding:
      return EncodeParameter();
    case Stage::kEncoded:
    case Stage::kWaiting:
      return StartRound();
    case Stage::kScattering:
      ScatterSlice();
      if (!remaining_.empty()) return true;
      parts_.reducer.Release(reduced_);
      stage_ = Stage::kIdle;
      return false;
    case Stage::kDecoding:
      return DecodeParameter();
    case Stage::kIdle:
    case Stage::kSumming:
      break;
  }
  DT_CHECK(false) << "no work of a reduction; " << host_.actor->Describe();
  return false;
}

bool GradientReduction::Summed(const Reduced& reduced) {
  DT_CHECK(stage_ == Stage::kSumming) << host_.actor->Describe();
  if (coding_ != nullptr) return TakeRound(reduced);
  if (reduced.sum == nullptr) {
    stage_ = Stage::kIdle;
    return false;
  }
  reduced_ = reduced;
  remaining_ = range_;
  stage_ = Stage::kScattering;
  return true;
}

// ------------------------------------------------------------------ to the network

// The step's report is sent with the last range, when the compressor has checked all of the
// gradient.  If it found a NaN or infinity, the report says so.
void GradientReduction::TellNotFinite() {
  if (parts_.reducer.IsLast(range_) && !spec_.ghost && !parts_.finite())
    Reducer::WriteNotFinite(parts_.reducer.TailOf(Gradients()));
}

bool GradientReduction::StartDense() {
  TellNotFinite();
  parts_.reducer.Start(range_, Gradients());
  stage_ = Stage::kSumming;
  return false;
}

// Starts the sum of what Select has left: rounded values, or entries.
bool GradientReduction::StartCompressed() {
  TellNotFinite();
  stage_ = Stage::kSumming;
  if (compress_.rounds()) {
    Rounding rounding{compress_.wire()};
    if (!spec_.ghost) rounding.errors = host_.vectors.SliceWithValues(residual_, range_, ops_);
    parts_.reducer.StartRounded(range_, rounding, Gradients());
  } else {
    parts_.reducer.StartSelected(range_, unit_, std::move(selected_),
                                 EntriesAsked(density_, range_.size()), Gradients());
  }
  return false;
}

// ------------------------------------------------------------------ residual and selection

template <class Work>
void GradientReduction::NextSliceOf(const Work& work) {
  NextSlice(remaining_, ops_.slice_elements(), spec_.ghost, written_share_, done_, work);
}

// As one slice: this thread only starts the work, so the network need not be polled in between.
template <class Work>
void GradientReduction::NextSliceOnDevice(const Work& work) {
  NextSlice(remaining_, remaining_.size(), spec_.ghost, 1, done_, work);
}

// velocity = momentum * velocity + gradient.  Returns the slice of the new velocity.
const float* GradientReduction::UpdateVelocity(Range slice) {
  const auto memory = host_.vectors.Slice(velocity_, slice);
  ops_.Combine(memory.new_values, static_cast<float>(compress_.momentum), memory.old_values, 1,
               Gradients() + slice.begin, slice.size());
  return memory.new_values;
}

// Prepares a gradient that is sent whole: the velocity takes its place if the worker has one, and
// the residual is added.
void GradientReduction::TakeSlice() {
  if (host_.device_residual != nullptr) {
    return NextSliceOnDevice(
        [&](Range all) { host_.device_residual->TakeAll(all, Gradients() + all.begin); });
  }
  NextSliceOf([&](Range slice) {
    float* const gradient = Gradients() + slice.begin;
    if (compress_.momentum > 0) ops_.Copy(gradient, UpdateVelocity(slice), slice.size());
    if (host_.vectors.Empty(residual_)) return;
    const auto kept = host_.vectors.Slice(residual_, slice);
    if (kept.old_values != nullptr) ops_.Sum(gradient, gradient, kept.old_values, slice.size());
    ops_.Zero(kept.new_values, slice.size());
  });
}

void GradientReduction::AddSlice() {
  if (host_.device_residual != nullptr) {
    return NextSliceOnDevice([&](Range all) { host_.device_residual->Add(all); });
  }
  NextSliceOf([&](Range slice) {
    const float* const gradient =
        compress_.momentum > 0 ? UpdateVelocity(slice) : Gradients() + slice.begin;
    const auto memory = host_.vectors.Slice(residual_, slice);
    if (memory.old_values == nullptr) {
      ops_.Copy(memory.new_values, gradient, slice.size());
    } else {
      ops_.Sum(memory.new_values, memory.old_values, gradient, slice.size());
    }
  });
}

void GradientReduction::BeginSelecting() {
  if (coding_ != nullptr) {
    host_.vectors.MakeDense(residual_);
    stage_ = Stage::kEncoding;
    round_ = 0;
    parameter_ = 0;
    return;
  }
  const bool dense = compress_.PaysDense(density_, spec_.placement().workers);
  const bool rounds = compress_.rounds() && !spec_.ghost;
  compression_ = std::make_unique<Compression>(
      spec_, host_, ops_,
      CompressedRange{.from = residual_,
                      .range = range_,
                      .density = density_,
                      .origin = dense ? 0 : range_.begin,
                      .masked = MasksBehindSum() ? kNoVector : velocity_,
                      .rounded = rounds ? Gradients() + range_.begin : nullptr});
  stage_ = Stage::kSelecting;
}

// A measured time passes before the sum starts: it is the cost of this slice, and the sum is left to the next one.
bool GradientReduction::Select() {
  if (compression_ != nullptr) {
    if (RunSliceOf(*compression_, parts_.clock, done_)) return true;
    if (!compress_.rounds()) selected_ = compression_->Take();
    compression_ = nullptr;
    if (spec_.compress_cost.known()) return true;
  }
  if (!compress_.PaysDense(density_, spec_.placement().workers)) return StartCompressed();
  stage_ = Stage::kFilling;
  remaining_ = range_;
  return true;
}

// Sets the elements that were not selected to zero.
void GradientReduction::FillSlice() {
  if (VectorsAreThere()) {
    return NextSliceOnDevice([&](Range all) {
      const SparseView own = ViewOf(selected_);
      host_.device_residual->SetToEntries(Gradients() + all.begin, all.size(), all.begin,
                                          {&own, 1});
      selected_ = {};
    });
  }
  NextSliceOf([&](Range slice) {
    float* const gradient = Gradients() + slice.begin;
    ops_.Zero(gradient, slice.size());
    ops_.Scatter(gradient, slice.begin, ViewOf(selected_.Part(slice)));
  });
  if (remaining_.empty()) selected_ = {};
}

// True if the velocity of sent entries is set to zero when the sum is known, since gtopk and oktopk hand some of them back:
// these have not been sent, so they keep their momentum.  Without momentum there is no velocity.
bool GradientReduction::MasksBehindSum() const {
  return compress_.momentum > 0 && compress_.exchange != "gather";
}

void GradientReduction::BeginMasking() {
  masked_.clear();
  if (!MasksBehindSum() || spec_.ghost) return;
  const auto own = parts_.reducer.SelectedFor(reduced_).positions;
  const auto back = reduced_.sum->returned.positions;
  std::set_difference(own.begin(), own.end(), back.begin(), back.end(),
                      std::back_inserter(masked_));
  if (host_.device_residual == nullptr) return;
  host_.device_residual->Mask(range_.begin, masked_);
  masked_.clear();
}

// The parts of the sum are added in their order, which is the same on all ranks.
void GradientReduction::ScatterSlice() {
  const SparseCollective::Sum& sum = *reduced_.sum;
  if (remaining_ == range_) {
    int64_t entries = sum.returned.size();
    for (const SparseEntries& part : sum.parts) entries += part.size();
    written_share_ = 1 + 2 * static_cast<double>(entries) / static_cast<double>(range_.size());
    if (host_.device_residual != nullptr && sum.returned.size() > 0) {
      host_.device_residual->PutBack(range_.begin, EntriesIn(sum.returned, {0, range_.size()}));
    }
    BeginMasking();
  }
  if (VectorsAreThere()) {
    return NextSliceOnDevice([&](Range all) {
      std::vector<SparseView> parts;
      for (const SparseEntries& part : sum.parts) {
        parts.push_back({part.positions.data(), part.values.data(), part.size()});
      }
      host_.device_residual->SetToEntries(Gradients() + all.begin, all.size(), 0, parts);
      written_share_ = 1;
    });
  }
  NextSliceOf([&](Range slice) {
    const Range within{slice.begin - range_.begin, slice.end - range_.begin};
    float* const gradient = Gradients() + slice.begin;
    ops_.Zero(gradient, slice.size());
    for (const SparseEntries& part : sum.parts) {
      ops_.ScatterAdd(gradient, within.begin, 1, EntriesIn(part, within));
    }
    Mask(slice, within);
    const SparseView back = EntriesIn(sum.returned, within);
    if (back.count == 0 || host_.device_residual != nullptr) return;
    ops_.ScatterAdd(host_.vectors.SliceWithValues(residual_, slice, ops_), within.begin, 1, back);
  });
  if (remaining_.empty()) written_share_ = 1;
}

void GradientReduction::Mask(Range slice, Range within) {
  const auto first = std::lower_bound(masked_.begin(), masked_.end(), within.begin);
  const auto last = std::lower_bound(first, masked_.end(), within.end);
  if (first == last) return;
  dropped_.resize(std::max(dropped_.size(), static_cast<size_t>(last - first)));
  ops_.MoveOut(host_.vectors.SliceWithValues(velocity_, slice, ops_), within.begin, &*first,
               dropped_.data(), last - first);
}

// ------------------------------------------------------------------ coders

bool GradientReduction::EncodeParameter() {
  const auto round = static_cast<size_t>(round_);
  const Range where = parameters_[parameter_].range;
  if (!spec_.ghost) {
    const CompressionTimer timer(parts_.clock, done_);
    // An even number, since a gather sends pairs.
    const int64_t words = coding_->rounds()[round].words;
    if (parameter_ == 0) words_[round].assign(static_cast<size_t>(words + words % 2), 0.0f);
    const float* const values = host_.vectors.Get(residual_).At(where.begin);
    if (round_ == 0) done_.finite &= ops_.Finite(values, where.size());
    coding_->Encode(round_, parameter_, values, words_[round].data());
  }
  const CompressCost& cost = spec_.compress_cost;
  if (!cost.known()) {
    done_.Wrote(where.size());
  } else if (parameter_ == 0) {  // for all parameters of this round
    done_.compression.time +=
        cost.EncodeTime(range_.size(), spec_.placement().workers) / std::ssize(coding_->rounds());
  }
  ++done_.selection_slices;
  if (++parameter_ < parameters_.size()) return true;
  parameter_ = 0;
  if (!cost.known()) return StartRound();
  stage_ = Stage::kEncoded;  // as in Select
  return true;
}

bool GradientReduction::StartRound() {
  if (parts_.rounds.front() != this) {
    stage_ = Stage::kWaiting;
    return false;
  }
  const auto& rounds = coding_->rounds();
  const Coding::Round& round = rounds[static_cast<size_t>(round_)];
  const bool last = round_ + 1 == std::ssize(rounds);
  if (last) TellNotFinite();
  done_.compression.Add({.entries_sent = round.words,
                         .entries = last ? range_.size() : 0,
                         .bytes = spec_.compress_cost.known()
                                      ? 0
                                      : range_.size() * static_cast<int64_t>(sizeof(float))});
  const auto count = static_cast<size_t>(round.words + (round.gathered ? round.words % 2 : 0));
  const std::span<float> words{spec_.ghost ? nullptr : words_[static_cast<size_t>(round_)].data(),
                               count};
  parts_.reducer.StartWords(
      {.range = range_, .words = words, .gathered = round.gathered, .unit = unit_, .last = last},
      Gradients());
  stage_ = Stage::kSumming;
  if (!last) return false;
  parts_.rounds.pop_front();
  if (parts_.rounds.empty()) return false;
  GradientReduction& next = *parts_.rounds.front();
  if (next.stage_ == Stage::kWaiting) parts_.resume(next);
  return false;
}

// Gathered words come as pairs, in two arrays.
bool GradientReduction::TakeRound(const Reduced& reduced) {
  const auto round = static_cast<size_t>(round_);
  std::vector<std::span<const float>> parts;
  if (reduced.sum != nullptr) {
    gathered_.resize(reduced.sum->parts.size());
    for (size_t rank = 0; rank < gathered_.size() && !spec_.ghost; ++rank) {
      const SparseEntries& part = reduced.sum->parts[rank];
      const auto half = part.positions.size();
      gathered_[rank].resize(2 * half);
      std::copy_n(reinterpret_cast<const float*>(part.positions.data()), half,
                  gathered_[rank].begin());
      std::copy_n(part.values.data(), half, gathered_[rank].begin() + static_cast<int64_t>(half));
    }
    for (const std::vector<float>& words : gathered_) parts.emplace_back(words);
    parts_.reducer.Release(reduced);
  } else {
    parts.emplace_back(words_[round]);
  }
  if (!spec_.ghost) coding_->Decode(round_, parts);
  ++round_;
  const bool more = round_ < std::ssize(coding_->rounds());
  stage_ = more ? Stage::kEncoding : Stage::kDecoding;
  return true;
}

bool GradientReduction::DecodeParameter() {
  const Range where = parameters_[parameter_].range;
  if (!spec_.ghost) {
    const CompressionTimer timer(parts_.clock, done_);
    coding_->Finish(parameter_, host_.vectors.SliceWithValues(residual_, where, ops_),
                    Gradients() + where.begin);
  }
  const CompressCost& cost = spec_.compress_cost;
  if (!cost.known()) {
    done_.Wrote(2 * where.size());
  } else if (parameter_ == 0) {  // for all parameters
    done_.compression.time += cost.DecodeTime(range_.size(), spec_.placement().workers);
  }
  ++done_.selection_slices;
  if (++parameter_ < parameters_.size()) return true;
  stage_ = Stage::kIdle;
  return false;
}

}  // namespace dtrain
