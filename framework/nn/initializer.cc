#include "framework/nn/initializer.h"

#include <algorithm>
#include <cmath>

#include "framework/core/check.h"
#include "framework/core/random.h"

namespace dtrain {
namespace {

void FillUniform(const Random& random, float bound, int64_t count, float* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = random.Uniform(i, -bound, bound);
}

void FillNormal(const Random& random, float deviation, int64_t count, float* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = deviation * random.Normal(i);
}

}  // namespace

InitSpec ReadInitSpec(config::Reader reader, const InitSpec& default_spec) {
  InitSpec spec;
  spec.name = static_cast<std::string>(reader.String("name", default_spec.name)
                                           .OneOf({"constant", "gaussian", "xavier", "kaiming"})
                                           .Help("how the values are drawn"));
  const double value = reader.Number("value", default_spec.value)
                           .Help("constant: the value; gaussian: the standard deviation");
  spec.value = static_cast<float>(value);
  const std::string mode =
      reader.String("mode", default_spec.fan_out ? "fan_out" : "fan_in")
          .OneOf({"fan_in", "fan_out"})
          .Help("kaiming: keep the variance of the forward or of the backward pass");
  spec.fan_out = mode == "fan_out";
  if (spec.name == "gaussian" && spec.value <= 0) {
    reader.AddError("value", "gaussian needs a standard deviation above 0 in 'value'", "as in 0.01",
                    {"name"});
  }
  return spec;
}

void Initialize(const ParamSpec& param, uint64_t seed, uint64_t layer_index, uint64_t param_index,
                float* out) {
  const int64_t count = param.shape.count();
  const Random random(seed, Purpose::kInit, layer_index, param_index);
  const auto fan_in = static_cast<double>(param.fan_in);
  const auto fan_out = static_cast<double>(param.fan_out);
  const std::string& name = param.init.name;
  if (name == "constant") return static_cast<void>(std::fill_n(out, count, param.init.value));
  if (name == "gaussian") return FillNormal(random, param.init.value, count, out);
  if (name == "kaiming") {
    const double fan = param.init.fan_out ? fan_out : fan_in;
    return FillNormal(random, static_cast<float>(std::sqrt(2 / fan)), count, out);
  }
  DT_CHECK(name == "xavier") << "initialiser " << name;
  FillUniform(random, static_cast<float>(std::sqrt(6 / (fan_in + fan_out))), count, out);
}

}  // namespace dtrain
