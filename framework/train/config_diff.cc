#include "framework/train/config_diff.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "framework/config/reader.h"
#include "framework/config/tree.h"

namespace dtrain {
namespace {

constexpr char kNone[] = "(none)";

using config::PathValue;

std::vector<PathValue> ValuesOf(const std::string& yaml) {
  config::Diagnostics ignored;  // this program wrote the config, so it has no errors
  const auto tree = config::ParseYaml(yaml, config::PlacesIn("config"), ignored);
  return tree ? config::ValuesByPath(*tree) : std::vector<PathValue>();
}

// Returns a value as the config writes it: an empty string is `""`.
std::string ValueAt(const std::vector<PathValue>& values, const std::string& path) {
  const auto found = std::ranges::find(values, path, &PathValue::path);
  if (found == values.end()) return kNone;
  return found->quoted ? config::QuoteYaml(found->text) : found->text;
}

int PlaceOf(const PathValue& value) {
  if (value.path == "seed") return 0;
  if (value.path == "strategy.name") return 1;
  return value.path.starts_with("strategy.") || value.path.starts_with("compress.") ? 2 : 3;
}

}  // namespace

std::string ConfigDiff(const std::string& before, const std::string& now) {
  const std::vector<PathValue> old = ValuesOf(before), current = ValuesOf(now);
  std::vector<PathValue> all = old;
  for (const PathValue& value : current) {
    if (ValueAt(old, value.path) == kNone) all.push_back(value);
  }
  std::ranges::stable_sort(all, {}, PlaceOf);
  std::string diff;
  for (const PathValue& value : all) {
    const std::string was = ValueAt(old, value.path), is = ValueAt(current, value.path);
    if (was == is || value.path == "output") continue;
    diff += fmt::format("  {}: {} -> {}\n", value.path, was, is);
  }
  return diff;
}

}  // namespace dtrain
