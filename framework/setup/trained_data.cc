#include "framework/setup/trained_data.h"

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

constexpr size_t kHashShown = 12;  // digits of a hash in messages
constexpr char kOrientation[] = "orientation";

// Returns "number 2 is 'a' there and 'b' in data.train"; "" if the names are equal or either list is empty.
std::string FirstDifference(const std::vector<std::string>& trained,
                            const std::vector<std::string>& present) {
  if (trained.empty() || present.empty() || trained == present) return "";
  if (trained.size() != present.size()) {
    return fmt::format("there are {} there and {} in data.train", trained.size(), present.size());
  }
  const auto [a, b] = std::ranges::mismatch(trained, present);
  return fmt::format("number {} is '{}' there and '{}' in data.train", a - trained.begin() + 1, *a,
                     *b);
}

// Formats numbers as short as floats allow, and texts in quotes, without control characters.
std::string Shown(const json& value) {
  if (value.is_number_float()) return fmt::format("{:.7g}", value.get<double>());
  if (!value.is_array()) return value.dump(-1, ' ', false, json::error_handler_t::replace);
  std::vector<std::string> entries;
  for (const json& entry : value) entries.push_back(Shown(entry));
  return fmt::format("[{}]", fmt::join(entries, ", "));
}

// Describes a difference; of lists of names, which may be long, only the first entry that differs.
std::string DifferenceOf(const std::string& key, const json& trained, const json& present) {
  const bool names = trained.is_array() && present.is_array() && !trained.empty() &&
                     !present.empty() && trained[0].is_string() && trained.size() == present.size();
  if (!names) return fmt::format("  {}: {} -> {}\n", key, Shown(trained), Shown(present));
  const auto at = std::ranges::mismatch(trained, present).in1 - trained.begin();
  return fmt::format("  {}, number {}: {} -> {}\n", key, at + 1, Shown(trained.at(at)),
                     Shown(present.at(at)));
}

bool IsKnown(const json& value) { return !value.is_array() || !value.empty(); }

// Lists the properties (keys of ToText(ImageSetSpec)) that both sides have and that differ, one on a line.
std::string InfoDiff(const ImageSetSpec& trained, const ImageSetSpec& present) {
  json before = json::parse(ToText(trained));
  const json now = json::parse(ToText(present));
  // Only image files have an orientation.
  if (!present.from_image_files) before.erase(kOrientation);
  std::string diff;
  for (const auto& [key, value] : before.items()) {
    if (!now.contains(key) || now[key] == value) continue;
    if (IsKnown(value) && IsKnown(now[key])) diff += DifferenceOf(key, value, now[key]);
  }
  return diff;
}

std::string Shortened(const std::string& hash) { return hash.substr(0, kHashShown); }

// Compares the training samples, or all samples if one side lacks the hash of the training split.
std::string SamplesDiff(const DataHashes& trained, const DataHashes& present) {
  const bool known = !trained[Split::kTrain].empty() && !present[Split::kTrain].empty();
  const std::string& before = known ? trained[Split::kTrain] : trained.all;
  const std::string& now = known ? present[Split::kTrain] : present.all;
  if (before.empty() || before == now) return "";
  return fmt::format(
      "  samples{} (pixels, numbers, words, labels or their order; SHA-256): {} -> {}\n",
      known ? "" : " of some split", Shortened(before), Shortened(now));
}

// Warns if samples of other splits have changed: the results so far were measured on the old samples.
void TellOtherSplits(const std::string& checkpoint, const DataHashes& trained, const Dataset& data,
                     const DataHashes& present) {
  const Split best_split = data.has_validation() ? Split::kValidation : Split::kTest;
  for (const Split split : {Split::kValidation, Split::kTest}) {
    const std::string &before = trained[split], &now = present[split];
    if (before.empty() || now.empty() || before == now) continue;
    const char* const name = split == Split::kTest ? "test" : "validation";
    log::Warning(
        "the {} samples are not those of {} (SHA-256 {} -> {}): its {} results so far{} are of the "
        "old samples",
        name, checkpoint, Shortened(before), Shortened(now), name,
        split == best_split ? ", best and patience with them," : "");
  }
}

// Warns if the samples that are set aside today may be ones that the weights were trained on.
void TellOtherHeldOut(const CheckpointInfo& info, const std::string& weights,
                      const Dataset& dataset) {
  if (info.data_hashes.all.empty() || !dataset.held_out()) return;
  if (SamplesDiff(info.data_hashes, dataset.Hashes()).empty()) return;
  log::Warning(
      "{} was trained on other samples than those of today's training split: samples that are held "
      "out today may be among them, and results on these too good",
      weights);
}

// Takes targets as they are if the weights do not say how theirs were scaled: another program, as PyTorch, wrote them.
std::string KeepTargetsFor(const std::string& weights, Dataset& data) {
  if (!data.image_info()->scales_targets()) return "";
  data.KeepTargets();
  return fmt::format("targets are taken as they are, since {} does not say how it scaled them",
                     weights);
}

// Warns in one line if image files are decoded in another way than those that the weights were trained on.
void TellOtherDecoding(const std::string& weights, const ImageSetSpec& trained,
                       const ImageSetSpec& present) {
  if (!present.from_image_files) return;
  std::vector<std::string> before, now;
  const auto compare = [&](const char* key, const std::string& a, const std::string& b) {
    if (a == b) return;
    before.push_back(fmt::format("{}: {}", key, a));
    now.push_back(fmt::format("{}: {}", key, b));
  };
  compare(kOrientation, NameOf(trained.orientation), NameOf(present.orientation));
  // Images that all had one size were not fitted.
  const bool fitted = trained.fit != Fit::kNone && present.fit != Fit::kNone;
  if (fitted) compare("fit", NameOf(trained.fit), NameOf(present.fit));
  if (before.empty()) return;
  log::Warning("{} was trained on images with {}; these are decoded with {}", weights,
               fmt::join(before, ", "), fmt::join(now, ", "));
}

std::string NormalisationOf(const ImageSetSpec& spec) {
  std::string text =
      fmt::format("mean [{:.7g}], deviation [{:.7g}]", fmt::join(spec.mean.values(), ", "),
                  fmt::join(spec.deviation.values(), ", "));
  if (spec.numbers && spec.classes == 0) {
    text += fmt::format(", targets of mean [{:.7g}], deviation [{:.7g}]",
                        fmt::join(spec.target_mean.values(), ", "),
                        fmt::join(spec.target_deviation.values(), ", "));
  }
  return text;
}

}  // namespace

std::string NormaliseAsTrained(const CheckpointInfo& info, const std::string& weights,
                               Dataset& data) {
  const ImageSetSpec* const present = data.image_info();
  if (present == nullptr) return "";
  if (info.images.empty()) return KeepTargetsFor(weights, data);
  const ImageSetSpec trained = ImageSetSpecFromText(info.images, weights);
  if (trained.image_shape != present->image_shape) return "";
  if (trained.target_shape != present->target_shape) return "";
  ImageSetSpec like = *present;
  if (present->mean_measured) like.mean = trained.mean;
  if (present->deviation_measured) like.deviation = trained.deviation;
  like.target_mean = trained.target_mean;
  like.target_deviation = trained.target_deviation;
  const std::string measured = NormalisationOf(*present);
  const bool same = like.mean.values() == present->mean.values() &&
                    like.deviation.values() == present->deviation.values() &&
                    like.target_mean.values() == present->target_mean.values() &&
                    like.target_deviation.values() == present->target_deviation.values();
  if (same) return "";
  data.Normalise(like);
  return fmt::format("samples are normalised as in {}: {}; data.train would give {} today", weights,
                     NormalisationOf(like), measured);
}

void CheckTrainedOn(const CheckpointInfo& info, const std::string& weights, const Dataset& dataset,
                    bool tell, bool evaluates) {
  const ImageSetSpec* const present = dataset.image_info();
  if (present == nullptr || info.images.empty()) return;
  const ImageSetSpec trained = ImageSetSpecFromText(info.images, weights);
  const std::string columns = FirstDifference(trained.columns, present->columns);
  if (!columns.empty()) {
    throw DataError(fmt::format("{} was trained on other columns: {}", weights, columns),
                    "data.train must be the file of that run; other samples go into data.test, "
                    "with their columns in any order");
  }
  if (!tell) return;
  const std::string classes = FirstDifference(trained.class_names, present->class_names);
  if (!classes.empty()) log::Warning("{} was trained on other classes: {}", weights, classes);
  TellOtherDecoding(weights, trained, *present);
  if (evaluates) TellOtherHeldOut(info, weights, dataset);
}

void CheckGoesOnWith(const Checkpoint& checkpoint, const RunConfig& config, const Dataset& data,
                     DataHashes& hashes) {
  const CheckpointInfo& info = checkpoint.info;
  const std::string file = checkpoint.path.string();
  const ImageSetSpec* const present = data.image_info();
  std::string diff, way_back;
  if (present != nullptr && !info.images.empty()) {
    const ImageSetSpec trained = ImageSetSpecFromText(info.images, file);
    diff = InfoDiff(trained, *present);
    if (present->from_image_files && trained.orientation != present->orientation) {
      way_back = fmt::format("--set data.orientation={} reads images as that run did; ",
                             NameOf(trained.orientation));
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
          "resume with the files and the keys of section data that the run had "
          "(config.yaml beside its checkpoints); "
          "--set checkpoint.other_data=take goes on with the data as they are now, and --weights "
          "starts a new run with what the checkpoint has learned");
}

}  // namespace dtrain
