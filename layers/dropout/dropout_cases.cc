// Implements dropout in plain loops, as the reference for the tests; it draws one random number at
// a time.
#include "framework/nn/layer_case.h"
#include "layers/dropout/dropout.h"

namespace dtrain {
namespace {

class DropoutReference : public LayerReference {
 public:
  void Forward(const Layer& layer, RefArgs& args) const override {
    Scale(layer, args, args.inputs[0], args.outputs[0]);
  }

  void Backward(const Layer& layer, RefArgs& args) const override {
    Scale(layer, args, args.output_gradients[0], args.input_gradients[0]);
  }

 private:
  static void Scale(const Layer& layer, const RefArgs& args, const RefTensor& from, RefTensor& to) {
    const auto& dropout = static_cast<const Dropout&>(layer);
    const int64_t size = from.shape.CountFrom(1);
    for (int64_t n = 0; n < from.shape[0]; ++n) {
      const Random random =
          DropoutRandom(args.seed, args.layer_index, args.step, args.first_position + n);
      for (int64_t i = 0; i < size; ++i) {
        const bool kept = args.mode != Mode::kTrain || random.Bits(i) >= dropout.threshold();
        const double scale = args.mode != Mode::kTrain ? 1 : 1 / (1 - dropout.ratio());
        to.values[n * size + i] = kept ? from.values[n * size + i] * scale : 0;
      }
    }
  }
};

DTRAIN_LAYER_CASES("dropout", DropoutReference,
                   {{"one number", "{}", {{1, 1}}},
                    {"half", "{}", {{4, 10}}},
                    {"a tenth of an image", "{ratio: 0.1}", {{3, 2, 5, 7}}},
                    {"nothing", "{ratio: 0}", {{2, 5}}},
                    {"more than a vector of blocks", "{ratio: 0.7}", {{3, 301}}},
                    {"wide", "{}", {{20, 4096}}, 0, false}});

}  // namespace
}  // namespace dtrain
