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
constexpr char kOrientation[] = "orientation";

// Says "number 2 is 'a' there and 'b' in data.train"; "" where the names are the same, or some are not known.
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

// Writes numbers as short as floats allow, and texts in quotes, without control characters.
std::string Shown(const json& value) {
  if (value.is_number_float()) return fmt::format("{:.7g}", value.get<double>());
  if (!value.is_array()) return value.dump(-1, ' ', false, json::error_handler_t::replace);
  std::vector<std::string> entries;
  for (const json& entry : value) entries.push_back(Shown(entry));
  return fmt::format("[{}]", fmt::join(entries, ", "));
}

// Names the first entry that differs in lists of names: there may be thousands.
std::string DifferenceOf(const std::string& key, const json& there, const json& here) {
  const bool names = there.is_array() && here.is_array() && !there.empty() && !here.empty() &&
                     there[0].is_string() && there.size() == here.size();
  if (!names) return fmt::format("  {}: {} -> {}\n", key, Shown(there), Shown(here));
  const auto at = std::ranges::mismatch(there, here).in1 - there.begin();
  return fmt::format("  {}, number {}: {} -> {}\n", key, at + 1, Shown(there.at(at)),
                     Shown(here.at(at)));
}

bool IsKnown(const json& value) { return !value.is_array() || !value.empty(); }

// Lists the facts that both know (keys of ToText(ImageSetSpec)) and that differ, one a line.
std::string InfoDiff(const ImageSetSpec& there, const ImageSetSpec& here) {
  json before = json::parse(ToText(there));
  const json now = json::parse(ToText(here));
  // Only image files have an orientation, and older programs did not write the key.
  if (!here.from_image_files) before.erase(kOrientation);
  std::string diff;
  for (const auto& [key, value] : before.items()) {
    if (!now.contains(key) || now[key] == value) continue;
    if (IsKnown(value) && IsKnown(now[key])) diff += DifferenceOf(key, value, now[key]);
  }
  return diff;
}

std::string Shortened(const std::string& hash) { return hash.substr(0, kHashShown); }

// Compares the training samples; all samples where one side does not know the hash of those alone.
std::string SamplesDiff(const DataHashes& there, const DataHashes& here) {
  const bool known = !there[Split::kTrain].empty() && !here[Split::kTrain].empty();
  const std::string& before = known ? there[Split::kTrain] : there.all;
  const std::string& now = known ? here[Split::kTrain] : here.all;
  if (before.empty() || before == now) return "";
  return fmt::format(
      "  samples{} (pixels, numbers, words, labels or their order; SHA-256): {} -> {}\n",
      known ? "" : " of some split", Shortened(before), Shortened(now));
}

// Warns of samples that the run does not learn from: its results so far are of those of that time.
void TellOtherSplits(const std::string& checkpoint, const DataHashes& there, const Dataset& data,
                     const DataHashes& here) {
  const Split judging = data.has_validation() ? Split::kValidation : Split::kTest;
  for (const Split split : {Split::kValidation, Split::kTest}) {
    const std::string &before = there[split], &now = here[split];
    if (before.empty() || now.empty() || before == now) continue;
    const char* const name = split == Split::kTest ? "test" : "validation";
    log::Warning(
        "the {} samples are not those of {} (SHA-256 {} -> {}): its {} results so far{} are of the "
        "old samples",
        name, checkpoint, Shortened(before), Shortened(now), name,
        split == judging ? ", best and patience with them," : "");
  }
}

// Says in one line how image files are decoded in another way than those that the weights were trained on.
void TellOtherDecoding(const std::string& weights, const ImageSetSpec& there,
                       const ImageSetSpec& here) {
  if (!here.from_image_files) return;
  std::vector<std::string> before, now;
  const auto compare = [&](const char* key, const std::string& a, const std::string& b) {
    if (a == b) return;
    before.push_back(fmt::format("{}: {}", key, a));
    now.push_back(fmt::format("{}: {}", key, b));
  };
  compare(kOrientation, NameOf(there.orientation), NameOf(here.orientation));
  // Images that had one size already were not fitted.
  const bool fitted = there.fit != Fit::kNone && here.fit != Fit::kNone;
  if (fitted) compare("fit", NameOf(there.fit), NameOf(here.fit));
  if (before.empty()) return;
  log::Warning("{} was trained on images with {}; these are decoded with {}", weights,
               fmt::join(before, ", "), fmt::join(now, ", "));
}

std::string NormalisationOf(const ImageSetSpec& spec) {
  return fmt::format("mean [{:.7g}], deviation [{:.7g}]", fmt::join(spec.mean.values(), ", "),
                     fmt::join(spec.deviation.values(), ", "));
}

}  // namespace

std::string NormaliseAsTrained(const CheckpointInfo& info, const std::string& weights,
                               Dataset& data) {
  const ImageSetSpec* const here = data.image_info();
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
  const ImageSetSpec* const here = dataset.image_info();
  if (here == nullptr || info.images.empty()) return;
  const ImageSetSpec there = ImageSetSpecFromText(info.images, weights);
  const std::string columns = FirstDifference(there.columns, here->columns);
  if (!columns.empty()) {
    throw DataError(fmt::format("{} was trained on other columns: {}", weights, columns),
                    "data.train must be the file of that run; other samples go into data.test, "
                    "with their columns in any order");
  }
  if (!tell) return;
  const std::string classes = FirstDifference(there.class_names, here->class_names);
  if (!classes.empty()) log::Warning("{} was trained on other classes: {}", weights, classes);
  TellOtherDecoding(weights, there, *here);
}

void CheckGoesOnWith(const Checkpoint& checkpoint, const RunConfig& config, const Dataset& data,
                     DataHashes& hashes) {
  const CheckpointInfo& info = checkpoint.info;
  const std::string file = checkpoint.path.string();
  const ImageSetSpec* const here = data.image_info();
  std::string diff, way_back;
  if (here != nullptr && !info.images.empty()) {
    const ImageSetSpec there = ImageSetSpecFromText(info.images, file);
    diff = InfoDiff(there, *here);
    if (here->from_image_files && there.orientation != here->orientation) {
      way_back = fmt::format("--set data.orientation={} reads images as that run did; ",
                             NameOf(there.orientation));
    }
  }
  if (!info.data_hashes.all.empty() && diff.empty()) {
    hashes = data.Hashes();
    diff = SamplesDiff(info.data_hashes, hashes);
    if (diff.empty() || config.checkpoint.takes_other_data) {
      TellOtherSplits(file, info.data_hashes, data, hashes);
    }
  }
  if (diff.empty()) return;
  const std::string what =
      fmt::format("{} was trained on other data (checkpoint -> now):\n{}", file, diff);
  if (config.checkpoint.takes_other_data) return log::Warning("{}", what);
  throw CheckpointMismatch(
      what + "what it has learned would be taken for something else",
      way_back +
          "resume with the files and the keys of section data that the run had (config.yaml beside "
          "its checkpoints); --set checkpoint.other_data=take goes on with the data as they are "
          "now, and --weights starts a new run with what the checkpoint has learned");
}

}  // namespace dtrain
