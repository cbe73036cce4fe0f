// Implements concat in plain loops, as the reference for the tests.
#include "framework/nn/layer_case.h"

namespace dtrain {
namespace {

class ConcatReference : public LayerReference {
 public:
  void Forward(const Layer&, RefArgs& args) const override {
    ForEach(args, args.inputs, [&](size_t i, size_t from, size_t to) {
      args.outputs[0].values[to] = args.inputs[i].values[from];
    });
  }

  void Backward(const Layer&, RefArgs& args) const override {
    ForEach(args, args.inputs, [&](size_t i, size_t from, size_t to) {
      args.input_gradients[i].values[from] = args.output_gradients[0].values[to];
    });
  }

 private:
  // Calls body(input, index in the input, index in the output) for each element.
  template <class Body>
  static void ForEach(const RefArgs& args, const std::vector<RefTensor>& inputs, const Body& body) {
    const Shape& y = args.outputs[0].shape;
    const int64_t width = y[y.rank() - 1], rows = y.count() / width;
    int64_t column = 0;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const int64_t own = inputs[i].shape[y.rank() - 1];
      for (int64_t row = 0; row < rows; ++row) {
        for (int64_t j = 0; j < own; ++j) body(i, row * own + j, row * width + column + j);
      }
      column += own;
    }
  }
};

DTRAIN_LAYER_CASES("concat", ConcatReference,
                   {{"two vectors", "{}", {{4, 3}, {4, 5}}},
                    {"three sequences", "{}", {{3, 4, 2}, {3, 4, 1}, {3, 4, 6}}},
                    {"one", "{}", {{2, 7}}}});

}  // namespace
}  // namespace dtrain
