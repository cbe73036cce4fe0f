#include "framework/runtime/results/run_so_far.h"

#include <nlohmann/json.hpp>

#include "framework/runtime/results/run_files.h"

namespace dtrain {
namespace {

using nlohmann::json;

// A damaged one may say anything.
double AmountIn(const json& object, const char* key) {
  constexpr double kMost = 1e15;
  const double amount = NumberIn(object, key).value_or(0);
  return amount >= 0 && amount <= kMost ? amount : 0;
}

int64_t CountIn(const json& object, const char* key) {
  return static_cast<int64_t>(AmountIn(object, key));
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
  return json.dump() + "\n";
}

RunSoFar RunSoFarFrom(const std::string& text) {
  RunSoFar so_far;
  const json object = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return so_far;
  so_far.seconds = AmountIn(object, "seconds");
  so_far.training_seconds = AmountIn(object, "training_seconds");
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
