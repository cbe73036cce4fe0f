#include "framework/results/run_so_far.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "framework/core/printable.h"
#include "framework/results/run_files.h"

namespace dtrain {
namespace {

using nlohmann::json;

constexpr double kMost = 1e15;

// Values of a damaged text may be arbitrary, so they are checked.
double AmountIn(const json& object, const char* key) {
  const double amount = NumberIn(object, key).value_or(0);
  return amount >= 0 && amount <= kMost ? amount : 0;
}

int64_t CountIn(const json& object, const char* key) {
  return static_cast<int64_t>(AmountIn(object, key));
}

// Reads a count that may be negative.
int64_t NumberOf(const json& object, const char* key) {
  const double number = NumberIn(object, key).value_or(0);
  return std::abs(number) <= kMost ? static_cast<int64_t>(number) : 0;
}

// Keeps the order of the keys, so that a line is the same as in metrics.jsonl.
std::vector<std::string> EvaluationsOf(const std::string& text) {
  const auto object = nlohmann::ordered_json::parse(text);
  std::vector<std::string> lines;
  for (const auto& line : object.at("evaluations")) lines.push_back(JsonText(line));
  return lines;
}

}  // namespace

std::string ToJson(const RunSoFar& so_far) {
  const TrainedEpoch& epoch = so_far.epoch;
  nlohmann::ordered_json json = {{"seconds", so_far.seconds},
                                 {"training_seconds", so_far.training_seconds},
                                 {"epoch",
                                  {{"number", epoch.epoch},
                                   {"samples", epoch.samples},
                                   {"terms", epoch.terms},
                                   {"loss_sum", epoch.loss_sum}}}};
  if (epoch.correct >= 0) json["epoch"]["correct"] = epoch.correct;
  if (so_far.loss) json["loss"] = *so_far.loss;
  if (so_far.steps.batch > 0) {
    json["steps"] = {{"batch", so_far.steps.batch},
                     {"epoch_samples", so_far.steps.epoch_samples},
                     {"offset", so_far.steps.offset}};
    if (so_far.steps.at_epoch_end) json["steps"]["at_epoch_end"] = true;
  }
  if (so_far.over) json["over"] = true;
  json["evaluations"] = nlohmann::ordered_json::array();
  for (const std::string& line : so_far.evaluations) {
    json["evaluations"].push_back(nlohmann::ordered_json::parse(line));
  }
  return JsonText(json) + "\n";
}

RunSoFar RunSoFarFrom(const std::string& text) {
  RunSoFar so_far;
  const json object = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return so_far;
  so_far.seconds = AmountIn(object, "seconds");
  so_far.training_seconds = AmountIn(object, "training_seconds");
  so_far.loss = NumberIn(object, "loss");
  so_far.over = object.contains("over") && object["over"] == true;
  const auto evaluations = object.find("evaluations");
  const bool has_evaluations = evaluations != object.end() && evaluations->is_array();
  if (has_evaluations) so_far.evaluations = EvaluationsOf(text);
  if (const auto steps = object.find("steps"); steps != object.end() && steps->is_object()) {
    so_far.steps = {.batch = CountIn(*steps, "batch"),
                    .epoch_samples = CountIn(*steps, "epoch_samples"),
                    .offset = NumberOf(*steps, "offset"),
                    .at_epoch_end = steps->value("at_epoch_end", json()) == true};
  }
  so_far.whole = has_evaluations && so_far.steps.batch > 0 && so_far.steps.epoch_samples > 0;
  const auto epoch = object.find("epoch");
  if (epoch == object.end() || !epoch->is_object()) return so_far;
  so_far.epoch = {.epoch = CountIn(*epoch, "number"),
                  .samples = CountIn(*epoch, "samples"),
                  .terms = CountIn(*epoch, "terms"),
                  .loss_sum = NumberIn(*epoch, "loss_sum").value_or(0),
                  .correct = epoch->contains("correct") ? CountIn(*epoch, "correct") : -1};
  return so_far;
}

}  // namespace dtrain
