// Shape holds the extents of a tensor, outermost axis first, at most six.  It is a value, cheap to copy.
//
// Axis 0 is the batch (N) if there is one; images are [N, C, H, W].
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

namespace dtrain {

class Shape {
 public:
  static constexpr int kMaxRank = 6;

  Shape() = default;
  Shape(std::initializer_list<int64_t> extents);
  explicit Shape(std::span<const int64_t> extents);

  int rank() const { return rank_; }
  int64_t operator[](int axis) const { return extents_[axis]; }
  int64_t& operator[](int axis) { return extents_[axis]; }
  std::vector<int64_t> extents() const { return {extents_.begin(), extents_.begin() + rank_}; }
  int64_t count() const { return CountFrom(0); }  // all elements; 1 for a scalar
  int64_t CountFrom(int axis) const;              // elements of axes axis, axis+1, ...

  Shape WithBatch(int64_t n) const;  // with axis 0 replaced by n
  Shape DropBatch() const;           // without axis 0
  Shape Prepend(int64_t n) const;    // [n, ...]

  std::string ToString() const;  // "[64, 1, 28, 28]"
  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  std::array<int64_t, kMaxRank> extents_{};
  int rank_ = 0;
};

}  // namespace dtrain
