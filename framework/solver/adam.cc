// Adam (Kingma and Ba 2015, algorithm 1) and AdamW (Loshchilov and Hutter 2019, algorithm 2), with PyTorch's
// definitions (torch.optim.Adam and AdamW, amsgrad off).  Step t = 1, 2, ...:
//
//   g = gradient_scale * gradient              adam:  g = g + weight_decay * w
//                                              adamw: w = w - lr * weight_decay * w
//   m = beta1 * m + (1 - beta1) * g            exp_avg
//   v = beta2 * v + (1 - beta2) * g^2          exp_avg_sq
//   w = w - lr / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + epsilon)
//
// t counts all updates of these weights (UpdateArgs::updates), be they made by all workers together or by a server.
#include <cmath>

#include "framework/core/check.h"
#include "framework/solver/solver_loops.h"

namespace dtrain {
namespace {

class Adam : public Solver {
 public:
  Adam(config::Reader& reader, bool decoupled)
      : decoupled_(decoupled),
        beta1_(reader.Number("beta1", 0.9)
                   .Min(0)
                   .Below(1)
                   .Help("decay rate of the running mean of the gradient")),
        beta2_(reader.Number("beta2", 0.999)
                   .Min(0)
                   .Below(1)
                   .Help("decay rate of the running mean of the squared gradient")),
        epsilon_(reader.Number("epsilon", 1e-8)
                     .Min(0)
                     .Max(kLargestRate)
                     .Help("added to the denominator for numerical stability")),
        weight_decay_(
            reader.Number("weight_decay", decoupled ? 0.01 : 0)
                .Min(0)
                .Max(kLargestRate)
                .Help(
                    decoupled
                        ? "decoupled weight decay: fraction of the weights, times the learning rate"
                        : "weight decay (L2 penalty)")) {}

  std::vector<std::string> StateNames() const override { return {"exp_avg", "exp_avg_sq"}; }

  bool ApplyAlike(const ArenaLayout& layout, Range range, const UpdateArgs& args) const override {
    DT_CHECK(args.state.size() == 2 && args.updates >= 0)
        << args.state.size() << " state vectors, " << args.updates << " updates";
    return LoopsOf(args).Adam({StepOf(args, true), StepOf(args, false)}, layout, range, args);
  }

 private:
  AdamStep StepOf(const UpdateArgs& args, bool decays) const {
    const double t = static_cast<double>(args.updates + 1);
    const double decay = decays ? weight_decay_ : 0;
    AdamStep step;
    step.gradient_scale = args.gradient_scale;
    step.weight_decay = decoupled_ ? 0 : static_cast<float>(decay);
    step.keep_weights = decoupled_ ? static_cast<float>(1 - args.lr * decay) : 1;
    step.beta1 = static_cast<float>(beta1_);
    step.beta2 = static_cast<float>(beta2_);
    step.take1 = static_cast<float>(1 - beta1_);
    step.take2 = static_cast<float>(1 - beta2_);
    step.step_size = static_cast<float>(args.lr / (1 - std::pow(beta1_, t)));
    step.root_scale = static_cast<float>(1 / std::sqrt(1 - std::pow(beta2_, t)));
    step.epsilon = static_cast<float>(epsilon_);
    return step;
  }

  const bool decoupled_;
  const double beta1_, beta2_, epsilon_, weight_decay_;
};

std::shared_ptr<const Solver> ReadAdam(config::Reader& reader) {
  return std::make_shared<const Adam>(reader, false);
}

std::shared_ptr<const Solver> ReadAdamW(config::Reader& reader) {
  return std::make_shared<const Adam>(reader, true);
}

DTRAIN_SOLVER("adam", ReadAdam,
              "Adam: steps scaled by running means of the gradient and of its square", 0.001);
DTRAIN_SOLVER("adamw", ReadAdamW, "Adam with decoupled weight decay", 0.001);

}  // namespace
}  // namespace dtrain
