// The sum of a softmax over a row, computed in one pass: parts of the row are joined, each relative to its own largest
// element (Milakov and Gimelshein, Online normalizer calculation for softmax, 2018).
#pragma once

#include <cmath>

#include "framework/device/device_code.h"

namespace dtrain {

// Holds the largest element of a row and the sum of exp(x - largest).  A part of one element is {x, 1}, one of none
// {-INFINITY, 0}.
struct SoftmaxSum {
  float largest;
  double sum;
};

DT_DEVICE inline double ShareOf(const SoftmaxSum& part, float largest) {
  return part.largest == largest ? part.sum : part.sum * expf(part.largest - largest);
}

// Returns the sum of two parts of a row.  With a NaN in either it is NaN.
DT_DEVICE inline SoftmaxSum Joined(const SoftmaxSum& a, const SoftmaxSum& b) {
  const float largest = b.largest > a.largest ? b.largest : a.largest;
  return {largest, ShareOf(a, largest) + ShareOf(b, largest)};
}

}  // namespace dtrain
