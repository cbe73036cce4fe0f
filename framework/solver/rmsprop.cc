// RMSprop (Tieleman and Hinton 2012, lecture 6e of their course) with PyTorch's definitions (torch.optim.RMSprop, not
// centered):
//
//   g = gradient_scale * gradient + weight_decay * w
//   v = alpha * v + (1 - alpha) * g^2          square_avg
//   d = g / (sqrt(v) + epsilon)
//   b = momentum * b + d                       momentum; without momentum, b = d
//   w = w - lr * b
//
// v starts at 0 without bias correction, so the first steps are long: up to 1 / sqrt(1 - alpha) times lr.  Keras and
// TensorFlow add epsilon inside the root.
#include "framework/core/check.h"
#include "framework/solver/solver_loops.h"

namespace dtrain {
namespace {

class RmsProp : public Solver {
 public:
  explicit RmsProp(config::Reader& reader)
      : alpha_(reader.Number("alpha", 0.99)
                   .Min(0)
                   .Below(1)
                   .Help("decay rate of the running mean of the squared gradient")),
        epsilon_(reader.Number("epsilon", 1e-8)
                     .Min(0)
                     .Max(kLargestRate)
                     .Help("added to the denominator for numerical stability")),
        momentum_(reader.Number("momentum", 0).Min(0).Below(1).Help("momentum factor")),
        weight_decay_(reader.Number("weight_decay", 0)
                          .Min(0)
                          .Max(kLargestRate)
                          .Help("weight decay (L2 penalty)")) {}

  std::vector<std::string> StateNames() const override {
    if (momentum_ == 0) return {"square_avg"};
    return {"square_avg", "momentum"};
  }

  bool ApplyAlike(const ArenaLayout& layout, Range range, const UpdateArgs& args) const override {
    DT_CHECK(args.state.size() == StateNames().size()) << args.state.size() << " state vectors";
    return LoopsOf(args).RmsProp({StepOf(args, true), StepOf(args, false)}, layout, range, args);
  }

 private:
  RmsPropStep StepOf(const UpdateArgs& args, bool decays) const {
    return {.gradient_scale = args.gradient_scale,
            .weight_decay = decays ? static_cast<float>(weight_decay_) : 0.0f,
            .alpha = static_cast<float>(alpha_),
            .take = static_cast<float>(1 - alpha_),
            .epsilon = static_cast<float>(epsilon_),
            .momentum = static_cast<float>(momentum_),
            .lr = static_cast<float>(args.lr)};
  }

  const double alpha_, epsilon_, momentum_, weight_decay_;
};

std::shared_ptr<const Solver> ReadRmsProp(config::Reader& reader) {
  return std::make_shared<const RmsProp>(reader);
}

DTRAIN_SOLVER("rmsprop", ReadRmsProp,
              "RMSprop: steps scaled by a running mean of the squared gradient", 0.01);

}  // namespace
}  // namespace dtrain
