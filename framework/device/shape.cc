#include "framework/device/shape.h"

#include "framework/core/check.h"

namespace dtrain {

Shape::Shape(std::initializer_list<int64_t> extents)
    : Shape(std::span<const int64_t>(extents.begin(), extents.size())) {}

Shape::Shape(std::span<const int64_t> extents) : rank_(static_cast<int>(extents.size())) {
  DT_CHECK(extents.size() <= kMaxRank) << "rank " << extents.size();
  for (int i = 0; i < rank_; ++i) extents_[i] = extents[i];
}

int64_t Shape::CountFrom(int axis) const {
  int64_t count = 1;
  for (int i = axis; i < rank_; ++i) count *= extents_[i];
  return count;
}

Shape Shape::WithBatch(int64_t n) const {
  Shape shape = *this;
  shape.extents_[0] = n;
  return shape;
}

Shape Shape::DropBatch() const {
  return Shape(std::span<const int64_t>(extents_.data() + 1, rank_ - 1));
}

Shape Shape::Prepend(int64_t n) const {
  DT_CHECK(rank_ < kMaxRank);
  Shape shape;
  shape.rank_ = rank_ + 1;
  shape.extents_[0] = n;
  for (int i = 0; i < rank_; ++i) shape.extents_[i + 1] = extents_[i];
  return shape;
}

std::string Shape::ToString() const {
  std::string text = "[";
  for (int i = 0; i < rank_; ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(extents_[i]);
  }
  return text + "]";
}

}  // namespace dtrain
