#include "framework/compress/survivors.h"

#include <algorithm>

#include "framework/compress/scan.h"

namespace dtrain {
namespace {

constexpr int64_t kBlock = 4096;  // values between two checks of the room

}  // namespace

Survivors::Survivors(int64_t n, int64_t keep, Isa isa)
    : isa_(isa), keep_(keep), room_(std::min(n, DeviceValues::FewOf(keep))) {
  const size_t capacity = static_cast<size_t>(std::min(n, room_ + kBlock));
  places_ = std::make_unique_for_overwrite<int32_t[]>(capacity);
  values_ = std::make_unique_for_overwrite<float[]>(capacity);
}

void Survivors::Begin(uint32_t least) {
  begun_ = least_ = least;
  size_ = 0;
  overfull_ = false;
  next_ = 0;
}

void Survivors::Look(const float* values, Range part) {
  for (int64_t at = 0; at < part.size(); at += kBlock) {
    const int64_t block = std::min(kBlock, part.size() - at);
    size_ += DTRAIN_ISA_SELECT(isa_, TakeReaching)(values + at, block, least_,
                                                   static_cast<int32_t>(part.begin + at),
                                                   places_.get() + size_, values_.get() + size_);
    DropSmaller();
  }
}

void Survivors::LookOn(DeviceValues& values) {
  const ReachingEntries reached = values.Reaching(least_, keep_);
  size_ = std::ssize(reached.entries.places);
  std::copy(reached.entries.places.begin(), reached.entries.places.end(), places_.get());
  std::copy(reached.entries.values.begin(), reached.entries.values.end(), values_.get());
  overfull_ = size_ < reached.count;
}

void Survivors::DropSmaller() {
  if (size_ <= room_) return;
  overfull_ = true;
  KeepLargest(keep_);
  least_ = Smallest() + 1;  // later entries have higher places, so equal ones are dropped
}

int64_t Survivors::CountReaching(uint32_t least) const {
  return DTRAIN_ISA_SELECT(isa_, CountReaching)(values_.get(), size_, least);
}

uint32_t Survivors::Smallest() const {
  if (size_ == 0) return 0;
  uint32_t smallest = Magnitude(values_[0]);
  for (int64_t i = 1; i < size_; ++i) smallest = std::min(smallest, Magnitude(values_[i]));
  return smallest;
}

void Survivors::KeepLargest(int64_t k) {
  if (size_ <= k) return;
  LargestSelection largest(k);
  while (largest.WantsLook()) largest.Look(values_.get(), {0, size_});
  int32_t kept[kBlock];
  int64_t count = 0;
  for (int64_t at = 0; at < size_; at += kBlock) {
    const Range block{at, std::min(size_, at + kBlock)};
    const int64_t chosen = largest.Choose(values_.get() + at, block, kept);
    for (int64_t i = 0; i < chosen; ++i, ++count) {
      places_[count] = places_[kept[i]];
      values_[count] = values_[kept[i]];
    }
  }
  size_ = count;
}

void Survivors::KeepReaching(uint32_t least) {
  int64_t count = 0;
  for (int64_t i = 0; i < size_; ++i) {
    if (Magnitude(values_[i]) < least) continue;
    places_[count] = places_[i];
    values_[count++] = values_[i];
  }
  size_ = count;
}

int64_t Survivors::Choose(Range part, int32_t* chosen) {
  const int64_t begin = next_;
  while (next_ < size_ && places_[next_] < part.end) ++next_;
  std::copy(places_.get() + begin, places_.get() + next_, chosen);
  return next_ - begin;
}

}  // namespace dtrain
