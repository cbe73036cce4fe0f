// Defines the test cases of the mean squared error.
#include "framework/nn/element_loss_ref.h"

namespace dtrain {
namespace {

struct SquaredError {
  static double Loss(double x, double t) { return (x - t) * (x - t); }
  static double Gradient(double x, double t) { return 2 * (x - t); }
};

using MeanSquaredErrorReference = ElementLossReference<SquaredError>;

DTRAIN_LAYER_CASES("mean_squared_error", MeanSquaredErrorReference,
                   {{"numbers", "{}", {{5, 3}, {5, 3}}, 0, true, 2},
                    {"a number each", "{}", {{7, 1}, {7}}, 0, true, 2},
                    {"scores without an axis", "{}", {{7}, {7}}, 0, true, 2},
                    {"images", "{}", {{3, 2, 4, 5}, {3, 2, 4, 5}}, 0, true, 2},
                    {"whole numbers", "{}", {{6, 1}, {6}}, 10, true, 2},
                    {"whole numbers of one shape", "{}", {{4, 3}, {4, 3}}, 5, true, 2},
                    {"a class of ten", "{}", {{6, 10}, {6}}, 10, true, 2},
                    {"sentences", "{}", {{3, 5, 4}, {3, 5}}, 4, true, 2},
                    {"long", "{}", {{4, 10000}, {4, 10000}}, 0, false, 2}});

}  // namespace
}  // namespace dtrain
