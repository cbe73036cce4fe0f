// Stochastic gradient descent with PyTorch's definitions (torch.optim.SGD, dampening 0):
//
//   d = gradient_scale * gradient + weight_decay * w
//   v = momentum * v + d
//   w = w - lr * (nesterov ? d + momentum * v : v)
//
// Weight decay has a momentum of its own where the workers keep that of their gradients (DGC), as in the authors'
// program (DGCSGD of github.com/mit-han-lab/deep-gradient-compression, dgc/optim/sgd.py):
//
//   v = momentum * v + weight_decay * w
//   w = w - lr * (gradient_scale * gradient + v)
//
// Caffe multiplies lr into v instead; the two differ only when lr changes.
#include "framework/core/check.h"
#include "framework/solver/solver_loops.h"

namespace dtrain {

namespace {

class Sgd : public Solver {
 public:
  explicit Sgd(config::Reader& reader)
      : momentum_(reader.Number("momentum", 0.9).Min(0).Below(1).Help("momentum factor")),
        nesterov_(reader.Bool("nesterov", false).Help("use Nesterov momentum")),
        weight_decay_(reader.Number("weight_decay", 0)
                          .Min(0)
                          .Max(kLargestRate)
                          .Help("weight decay (L2 penalty)")) {
    if (nesterov_ && momentum_ == 0) {
      reader.AddError("nesterov", "nesterov needs a momentum above 0", "", {"momentum"});
    }
  }

  std::vector<std::string> StateNames() const override {
    if (KindOf() == SgdKind::kPlain) return {};
    return {"momentum"};
  }

  WithoutMomentum TakeMomentum() const override {
    if (nesterov_) return {};
    auto rule = std::make_shared<Sgd>(*this);
    rule->of_decay_ = true;
    return {std::move(rule), momentum_};
  }

  bool ApplyAlike(const ArenaLayout& layout, Range range, const UpdateArgs& args) const override {
    DT_CHECK(args.state.size() == StateNames().size()) << args.state.size() << " state vectors";
    return LoopsOf(args).Sgd({StepOf(args, true), StepOf(args, false)}, layout, range, args);
  }

 private:
  SgdStep StepOf(const UpdateArgs& args, bool decays) const {
    return {.lr = static_cast<float>(args.lr),
            .momentum = static_cast<float>(momentum_),
            .weight_decay = decays ? static_cast<float>(weight_decay_) : 0.0f,
            .gradient_scale = args.gradient_scale,
            .kind = KindOf()};
  }

  SgdKind KindOf() const {
    if (momentum_ == 0 || (of_decay_ && weight_decay_ == 0)) return SgdKind::kPlain;
    if (of_decay_) return SgdKind::kDecay;
    return nesterov_ ? SgdKind::kNesterov : SgdKind::kMomentum;
  }

  double momentum_;
  bool nesterov_;
  double weight_decay_;
  bool of_decay_ = false;  // the momentum is that of the decay alone
};

std::shared_ptr<const Solver> ReadSgd(config::Reader& reader) {
  return std::make_shared<const Sgd>(reader);
}

DTRAIN_SOLVER("sgd", ReadSgd,
              "stochastic gradient descent with momentum (Nesterov's on request) and weight decay",
              0.01);

}  // namespace
}  // namespace dtrain
