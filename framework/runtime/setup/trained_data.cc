#include "framework/runtime/setup/trained_data.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "framework/core/error.h"
#include "framework/core/log.h"
#include "framework/data/images/image_set.h"

namespace dtrain {
namespace {

using nlohmann::json;

constexpr size_t kHashShown = 12;  // digits

// "number 2 is 'a' there and 'b' in data.train"; "" where the names are the same, or some are not known.
std::string FirstDifference(const std::vector<std::string>& there,
                            const std::vector<std::string>& here) {
  if (there.empty() || here.empty() || there == here) return "";
  if (there.size() != here.size()) {
    return fmt::format("there are {} there and {} in data.train", there.size(), here.size());
  }
  const auto [a, b] = std::ranges::mismatch(there, here);
  return fmt::format("number {} is '{}' there and '{}' in data.train", a - there.begin() + 1, *a,
                     *b);
}

// Numbers as short as floats allow; texts in quotes, without control characters.
std::string Shown(const json& value) {
  if (value.is_number_float()) return fmt::format("{:.7g}", value.get<double>());
  if (!value.is_array()) return value.dump(-1, ' ', false, json::error_handler_t::replace);
  std::vector<std::string> entries;
  for (const json& entry : value) entries.push_back(Shown(entry));
  return fmt::format("[{}]", fmt::join(entries, ", "));
}

// Of lists of names the first that differs: there may be thousands.
std::string DifferenceOf(const std::string& key, const json& there, const json& here) {
  const bool names = there.is_array() && here.is_array() && !there.empty() && !here.empty() &&
                     there[0].is_string() && there.size() == here.size();
  if (!names) return fmt::format("  {}: {} -> {}\n", key, Shown(there), Shown(here));
  const auto at = std::ranges::mismatch(there, here).in1 - there.begin();
  return fmt::format("  {}, number {}: {} -> {}\n", key, at + 1, Shown(there.at(at)),
                     Shown(here.at(at)));
}

bool IsKnown(const json& value) { return !value.is_array() || !value.empty(); }

// A line for each fact of ToText(ImageSetSpec) that both know and that is another.
std::string FactsDiff(const std::string& there, const std::string& here) {
  const json before = json::parse(there), now = json::parse(here);
  std::string diff;
  for (const auto& [key, value] : before.items()) {
    if (!now.contains(key) || now[key] == value) continue;
    if (IsKnown(value) && IsKnown(now[key])) diff += DifferenceOf(key, value, now[key]);
  }
  return diff;
}

std::string SamplesDiff(const CheckpointInfo& info, const Dataset& data, std::string& data_sha256) {
  if (info.data_sha256.empty()) return "";
  data_sha256 = data.ManifestHash();
  if (data_sha256 == info.data_sha256) return "";
  return fmt::format(
      "  samples (pixels, numbers, words, labels or their order; SHA-256): {} -> {}\n",
      info.data_sha256.substr(0, kHashShown), data_sha256.substr(0, kHashShown));
}

std::string NormalisationOf(const ImageSetSpec& spec) {
  return fmt::format("mean [{:.7g}], deviation [{:.7g}]", fmt::join(spec.mean.values(), ", "),
                     fmt::join(spec.deviation.values(), ", "));
}

}  // namespace

std::string NormaliseAsTrained(const CheckpointInfo& info, const std::string& weights,
                               Dataset& data) {
  const ImageSetSpec* const here = data.image_facts();
  if (here == nullptr || info.images.empty()) return "";
  const ImageSetSpec there = ImageSetSpecFromText(info.images, weights);
  if (there.image_shape != here->image_shape) return "";
  ImageSetSpec like = *here;
  if (here->mean_measured) like.mean = there.mean;
  if (here->deviation_measured) like.deviation = there.deviation;
  const std::string measured = NormalisationOf(*here);
  const bool same = like.mean.values() == here->mean.values() &&
                    like.deviation.values() == here->deviation.values();
  if (same) return "";
  data.Normalise(like);
  return fmt::format("samples are normalised as in {}: {}; data.train would give {} today", weights,
                     NormalisationOf(like), measured);
}

void CheckTrainedOn(const CheckpointInfo& info, const std::string& weights, const Dataset& dataset,
                    bool tell) {
  const ImageSetSpec* const here = dataset.image_facts();
  if (here == nullptr || info.images.empty()) return;
  const ImageSetSpec there = ImageSetSpecFromText(info.images, weights);
  const std::string columns = FirstDifference(there.columns, here->columns);
  if (!columns.empty()) {
    throw DataError(fmt::format("{} was trained on other columns: {}", weights, columns),
                    "data.train must be the file of that run; other samples go into data.test, "
                    "with their columns in any order");
  }
  const std::string classes = FirstDifference(there.class_names, here->class_names);
  if (!tell || classes.empty()) return;
  log::Warning("{} was trained on other classes: {}", weights, classes);
}

void CheckGoesOnWith(const Checkpoint& checkpoint, const RunConfig& config, const Dataset& data,
                     std::string& data_sha256) {
  const CheckpointInfo& info = checkpoint.info;
  const ImageSetSpec* const here = data.image_facts();
  std::string diff;
  if (here != nullptr && !info.images.empty()) diff = FactsDiff(info.images, ToText(*here));
  if (diff.empty()) diff = SamplesDiff(info, data, data_sha256);
  if (diff.empty()) return;
  const std::string what = fmt::format("{} was trained on other data (checkpoint -> now):\n{}",
                                       checkpoint.path.string(), diff);
  if (config.checkpoint.takes_other_data) return log::Warning("{}", what);
  throw CheckpointMismatch(
      what + "what it has learned would be taken for something else",
      "resume with the files and the keys of section data that the run had (config.yaml beside its "
      "checkpoints); --set checkpoint.other_data=take goes on with the data as they are now, and "
      "--weights starts a new run with what the checkpoint has learned");
}

}  // namespace dtrain
