// A training run without a framework: plain loops over plain arrays compute the weights after every update, as the
// reference for the exchange.  Nothing here calls the solvers, schedules or clipping of the product.
//
// An fp32 number is computed by the operations of the formulas in framework/solver, in their order, and in double where
// these use double, so that the bits can be compared.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "framework/core/layout.h"

namespace dtrain::plain {

// The section `solver` of a config.
struct Rule {
  std::string name = "sgd";  // sgd, adam, adamw
  double lr = 0.1;
  double momentum = 0.9;  // sgd, as those below
  bool nesterov = false;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;  // adam, adamw
  double weight_decay = 0;
  double clip_norm = 0;
  std::string schedule = "constant";  // constant, step, cosine
  double every = 1, factor = 0.5;     // step
  double to = 0;                      // cosine
  double warmup_epochs = 0;
  std::string lr_scaling = "none";  // none, linear, sqrt

  bool adaptive() const { return name != "sgd"; }
};

// Returns the config section.
inline std::string Text(const Rule& rule) {
  const std::string own =
      rule.adaptive()
          ? fmt::format("beta1: {}, beta2: {}, epsilon: {}", rule.beta1, rule.beta2, rule.epsilon)
          : fmt::format("momentum: {}, nesterov: {}", rule.momentum, rule.nesterov);
  std::string schedule = "name: " + rule.schedule;
  if (rule.schedule == "step") {
    schedule += fmt::format(", every: {}, factor: {}", rule.every, rule.factor);
  } else if (rule.schedule == "cosine") {
    schedule += fmt::format(", to: {}", rule.to);
  }
  return fmt::format(
      "{{name: {}, lr: {}, {}, weight_decay: {}, clip_norm: {}, schedule: {{{}}}, "
      "warmup_epochs: {}, lr_scaling: {}}}",
      rule.name, rule.lr, own, rule.weight_decay, rule.clip_norm, schedule, rule.warmup_epochs,
      rule.lr_scaling);
}

// Prints a rule in the name of a test.
inline void PrintTo(const Rule& rule, std::ostream* out) {
  *out << fmt::format("{}, {}, clip {}", rule.name, rule.schedule, rule.clip_norm);
}

// Returns the rate of an update after `done` of `epochs` epochs.  `workers` is the number that computes gradients,
// without servers.
inline double Rate(const Rule& rule, double done, double epochs, int workers) {
  double rate = rule.lr;
  if (rule.lr_scaling == "linear") rate *= workers;
  if (rule.lr_scaling == "sqrt") rate *= std::sqrt(workers);
  if (rule.schedule == "step") {
    for (double at = rule.every; at <= done; at += rule.every) rate *= rule.factor;
  }
  if (rule.schedule == "cosine") {
    const double half = (1 + std::cos(std::numbers::pi * std::min(done / epochs, 1.0))) / 2;
    rate *= rule.to + (1 - rule.to) * half;
  }
  if (done < rule.warmup_epochs) rate *= 0.1 + 0.9 * done / rule.warmup_epochs;
  return rate;
}

inline double Norm(const std::vector<float>& values) {
  double squares = 0;
  for (const float value : values) squares += double{value} * value;
  return std::sqrt(squares);
}

// Returns the factor that clips a gradient of this norm, or 1.
inline float Shortening(const Rule& rule, double norm) {
  if (rule.clip_norm == 0 || norm <= rule.clip_norm) return 1;
  return static_cast<float>(rule.clip_norm / norm);
}

// The samples of a step (counted from 0) of all workers together: an epoch's last batch has the remaining samples.
struct Batches {
  int64_t epoch_samples = 1;
  int64_t batch = 1;

  int64_t OfStep(int64_t step) const {
    const int64_t steps = (epoch_samples + batch - 1) / batch;
    return step % steps == steps - 1 ? epoch_samples - (steps - 1) * batch : batch;
  }
  int64_t Before(int64_t step) const {
    int64_t samples = 0;
    for (int64_t s = 0; s < step; ++s) samples += OfStep(s);
    return samples;
  }
};

// Returns the size of part `part` of `parts`; if the division is not exact, the first parts have one more.
inline int64_t PartOf(int64_t samples, int parts, int part) {
  return samples / parts + (part < samples % parts ? 1 : 0);
}

// The weights, the solver's state, and their position in the run.
struct Model {
  Rule rule;
  double epochs = 1;  // of the whole run
  int64_t epoch_samples = 1;
  int workers = 1;
  std::vector<bool> decays;  // by element
  std::vector<float> weights;
  std::vector<float> first, second;  // momentum; or Adam's means of the gradient and of its square
  int64_t samples = 0;
  int64_t updates = 0;

  Model(Rule the_rule, const ArenaLayout& layout, std::vector<float> initial)
      : rule(std::move(the_rule)), weights(std::move(initial)) {
    for (const ArenaEntry& entry : layout.entries) {
      decays.insert(decays.end(), static_cast<size_t>(entry.range.size()), entry.weight_decay);
    }
    first.assign(weights.size(), 0.0f);
    second.assign(weights.size(), 0.0f);
  }

  double Now() const {
    return Rate(rule, static_cast<double>(samples) / static_cast<double>(epoch_samples), epochs,
                workers);
  }

  // Makes one update with the gradient of `of_samples` samples times `scale`; `share` multiplies the rate.
  void Update(const std::vector<float>& gradient, int64_t of_samples, float scale = 1,
              double share = 1) {
    const double rate = Now() * share;
    if (rule.adaptive()) {
      AdamStep(gradient, scale, rate);
    } else {
      SgdStep(gradient, scale, static_cast<float>(rate));
    }
    samples += of_samples;
    ++updates;
  }

  // Adds all workers' gradients of one step in their order and clips the sum.
  void UpdateTogether(const std::vector<std::vector<float>>& gradients, int64_t of_samples) {
    std::vector<float> sum = gradients[0];
    for (size_t w = 1; w < gradients.size(); ++w) {
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += gradients[w][i];
    }
    Update(sum, of_samples, Shortening(rule, Norm(sum)));
  }

 private:
  void SgdStep(const std::vector<float>& gradient, float scale, float rate) {
    const float momentum = static_cast<float>(rule.momentum);
    for (size_t i = 0; i < weights.size(); ++i) {
      const float decay = decays[i] ? static_cast<float>(rule.weight_decay) : 0.0f;
      float direction = scale * gradient[i] + decay * weights[i];
      if (rule.momentum != 0) {
        first[i] = momentum * first[i] + direction;
        direction = rule.nesterov ? direction + momentum * first[i] : first[i];
      }
      weights[i] = weights[i] - rate * direction;
    }
  }

  void AdamStep(const std::vector<float>& gradient, float scale, double rate) {
    double power1 = 1, power2 = 1;  // beta^t, t = 1 at the first update
    for (int64_t t = 0; t <= updates; ++t) {
      power1 *= rule.beta1;
      power2 *= rule.beta2;
    }
    const float step = static_cast<float>(rate / (1 - power1));
    const float root_scale = static_cast<float>(1 / std::sqrt(1 - power2));
    const float beta1 = static_cast<float>(rule.beta1), beta2 = static_cast<float>(rule.beta2);
    const float take1 = static_cast<float>(1 - rule.beta1);
    const float take2 = static_cast<float>(1 - rule.beta2);
    const float epsilon = static_cast<float>(rule.epsilon);
    const bool decoupled = rule.name == "adamw";
    for (size_t i = 0; i < weights.size(); ++i) {
      const double decay = decays[i] ? rule.weight_decay : 0;
      const float penalty = decoupled ? 0.0f : static_cast<float>(decay);
      const float keep = decoupled ? static_cast<float>(1 - rate * decay) : 1.0f;
      const float g = scale * gradient[i] + penalty * weights[i];
      first[i] = beta1 * first[i] + take1 * g;
      second[i] = beta2 * second[i] + take2 * g * g;
      const float root = std::sqrt(second[i]) * root_scale + epsilon;
      weights[i] = keep * weights[i] - step * (first[i] / root);
    }
  }
};

// Clips a worker's part of a mean gradient as its own mean (before it is sent to a server): it was divided by the
// samples of all workers.
inline void ShortenAtWorker(const Rule& rule, int64_t own, int64_t all,
                            std::vector<float>& gradient) {
  if (own == 0) return;
  const double mean_norm = Norm(gradient) * static_cast<double>(all) / static_cast<double>(own);
  const float scale = Shortening(rule, mean_norm);
  for (float& g : gradient) g *= scale;
}

}  // namespace dtrain::plain
