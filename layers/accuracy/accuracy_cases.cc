// Implements accuracy in plain loops, as the reference for the tests.
#include <algorithm>
#include <numeric>
#include <vector>

#include "framework/nn/layer_case.h"
#include "layers/accuracy/accuracy.h"

namespace dtrain {
namespace {

class AccuracyReference : public LayerReference {
 public:
  void Forward(const Layer& layer, RefArgs& args) const override {
    const auto top_k = static_cast<const Accuracy&>(layer).top_k();
    const int64_t classes = args.inputs[0].shape[1];
    for (int64_t n = 0; n < args.inputs[0].shape[0]; ++n) {
      const double* x = args.inputs[0].values.data() + n * classes;
      if (classes == 1) {  // a score above 0 predicts class 1
        args.outputs[0].values[n] = (x[0] > 0 ? 1 : 0) == args.inputs[1].values[n] ? 1 : 0;
        continue;
      }
      std::vector<int64_t> order(static_cast<size_t>(classes));
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(),
                       [x](int64_t a, int64_t b) { return x[a] > x[b]; });
      const auto label = static_cast<int64_t>(args.inputs[1].values[n]);
      const auto place = std::find(order.begin(), order.end(), label) - order.begin();
      args.outputs[0].values[n] = place < top_k ? 1 : 0;
    }
  }
  void Backward(const Layer&, RefArgs&) const override {}
};

DTRAIN_LAYER_CASES("accuracy", AccuracyReference,
                   {{"one score", "{}", {{30, 1}, {30}}, 2},
                    {"two classes", "{}", {{40, 2}, {40}}, 2},
                    {"ten classes", "{}", {{17, 10}, {17}}, 10},
                    {"five of ten", "{top_k: 5}", {{40, 10}, {40}}, 10},
                    {"all but one", "{top_k: 6}", {{20, 7}, {20}}, 7}});

}  // namespace
}  // namespace dtrain
