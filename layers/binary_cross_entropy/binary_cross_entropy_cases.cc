// Defines the test cases of binary cross-entropy.
#include <cmath>

#include "framework/nn/element_loss_ref.h"

namespace dtrain {
namespace {

struct CrossEntropy {
  static double Loss(double x, double t) {
    const double s = 1 / (1 + std::exp(-x));
    return -t * std::log(s) - (1 - t) * std::log(1 - s);
  }
  static double Gradient(double x, double t) { return 1 / (1 + std::exp(-x)) - t; }
};

using BinaryCrossEntropyReference = ElementLossReference<CrossEntropy>;

// The exponential, the logarithm and the division each add a rounding error to those of a plain sum.
DTRAIN_LAYER_CASES("binary_cross_entropy", BinaryCrossEntropyReference,
                   {{"probabilities", "{}", {{5, 3}, {5, 3}}, 0, true, 4},
                    {"a probability each", "{}", {{7, 1}, {7}}, 0, true, 4},
                    {"images", "{}", {{3, 2, 4, 5}, {3, 2, 4, 5}}, 0, true, 4},
                    {"yes or no", "{}", {{9, 1}, {9}}, 2, true, 4},
                    {"several questions", "{}", {{6, 4}, {6, 4}}, 2, true, 4},
                    {"a class of ten", "{}", {{6, 10}, {6}}, 10, true, 4},
                    {"sentences", "{}", {{3, 5, 4}, {3, 5}}, 4, true, 4},
                    {"long", "{}", {{4, 10000}, {4, 10000}}, 0, false, 4}});

}  // namespace
}  // namespace dtrain
