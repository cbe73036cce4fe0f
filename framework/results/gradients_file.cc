#include "framework/results/gradients_file.h"

#include "framework/core/printable.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace dtrain {
namespace {

using nlohmann::ordered_json;

constexpr int kNotFinite = MagnitudeHistogram::kBins - 1;

// Writes the bins from the first non-empty one to the last.
ordered_json ToJson(const MagnitudeHistogram& histogram) {
  const auto count = [&](int bin) { return histogram.negative[bin] + histogram.positive[bin]; };
  ordered_json json = {{"squares", histogram.squares}, {"zeros", count(0)}};
  if (count(kNotFinite) > 0) json["not_finite"] = count(kNotFinite);
  int first = 1, end = kNotFinite;
  while (first < end && count(first) == 0) ++first;
  while (end > first && count(end - 1) == 0) --end;
  json["exponent"] = first < end ? first - MagnitudeHistogram::kExponentBias : 0;
  json["negative"] =
      std::vector<int64_t>(histogram.negative.begin() + first, histogram.negative.begin() + end);
  json["positive"] =
      std::vector<int64_t>(histogram.positive.begin() + first, histogram.positive.begin() + end);
  return json;
}

}  // namespace

void GradientsFile::BeginBehind(int64_t steps) {
  const bool resumed = steps > 0 && keeps_lines_;
  lines_ = std::make_unique<JsonLines>(path_, resumed ? std::optional(steps) : std::nullopt);
}

void GradientsFile::Write(const GradientRecord& record) {
  ordered_json line = {{"schema", kGradientsSchema}, {"step", record.step},
                       {"worker", record.worker},    {"begin", record.range.begin},
                       {"end", record.range.end},    {"gradient", ToJson(record.gradient)}};
  if (record.selection) {
    const GradientSelection& selection = *record.selection;
    const double bound =
        1 - static_cast<double>(selection.asked) / static_cast<double>(record.range.size());
    line["from"] = ToJson(selection.from);
    line["density"] = selection.density;
    line["asked"] = selection.asked;
    line["selected"] = selection.selected;
    line["error"] = selection.error;
    line["error_of_largest"] = selection.error_of_largest;
    line["bound"] = bound;
    line["bound_squared"] = bound * bound;
  }
  lines_->Write(JsonText(line));
}

}  // namespace dtrain
