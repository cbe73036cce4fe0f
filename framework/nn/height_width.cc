#include "framework/nn/height_width.h"

#include <vector>

#include <fmt/format.h>

namespace dtrain {
namespace {

std::vector<int64_t> AsList(const HeightWidth& pair) {
  if (pair.square()) return {pair.height};
  return {pair.height, pair.width};
}

}  // namespace

std::string HeightWidth::ToString() const {
  return square() ? std::to_string(height) : fmt::format("[{}, {}]", height, width);
}

HeightWidth ReadHeightWidth(config::Reader& reader, const HeightWidthKey& key) {
  auto field = reader.Ints(key.key, AsList(key.default_value))
                   .Min(static_cast<double>(key.least))
                   .Max(static_cast<double>(key.most))
                   .Help(key.help + "; one number, or [height, width]");
  if (key.required) field.Required();
  const std::vector<int64_t> given = field;
  if (given.size() == 1) return {given[0], given[0]};
  if (given.size() == 2) return {given[0], given[1]};
  reader.AddError(key.key, fmt::format("{} takes one number or two, not {}", key.key, given.size()),
                  fmt::format("for example {0}: 3, or {0}: [3, 5] for height and width", key.key));
  return key.default_value;
}

}  // namespace dtrain
