// Labels are the second input of layers that compare scores with classes (softmax_cross_entropy, accuracy).
#pragma once

#include <cstdint>

#include "framework/core/error.h"
#include "framework/device/shape.h"

namespace dtrain {

// True if the shape `label` is `scores` without its last axis, that of the classes: [N, ...] and [N, ..., classes].
bool IsLabelOf(const Shape& label, const Shape& scores);

// TooFewScores is thrown if the labels have more classes than there are scores (entries of the last axis).
class TooFewScores : public ShapeError {
 public:
  TooFewScores(int64_t of_classes, const Shape& scores);
  const int64_t classes;
};

}  // namespace dtrain
