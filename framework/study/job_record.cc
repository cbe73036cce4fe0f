#include "framework/study/job_record.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "framework/core/error.h"
#include "framework/core/printable.h"
#include "framework/core/statistics.h"
#include "framework/core/text.h"
#include "framework/results/run_files.h"
#include "framework/results/run_folder.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using nlohmann::ordered_json;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr double kNever = std::numeric_limits<double>::infinity();

void AddNumbers(const json& object, const std::string& above,
                std::map<std::string, double>& numbers) {
  for (const auto& [key, value] : object.items()) {
    if (value.is_object()) AddNumbers(value, above + key + ".", numbers);
    if (value.is_number()) numbers[above + key] = value.get<double>();
    if (value.is_boolean()) numbers[above + key] = value.get<bool>() ? 1 : 0;
  }
}

// Adds what the list of workers says of all of them.
void AddWorkers(const json& summary, std::map<std::string, double>& numbers) {
  double gradients = 0, wait = 0, compute = 0;
  for (const json& worker : summary.value("workers_detail", json::array())) {
    gradients += NumberIn(worker, "own_steps").value_or(0);
    wait += NumberIn(worker, "wait_seconds").value_or(0);
    compute += NumberIn(worker, "compute_seconds").value_or(0);
  }
  if (gradients == 0) return;
  numbers["gradients"] = gradients;
  const double seconds = NumberIn(summary, "seconds").value_or(0);
  if (seconds > 0) numbers["gradients_per_second"] = gradients / seconds;
  if (wait + compute > 0) numbers["wait_share"] = wait / (wait + compute);
}

// Adds how selections compare with what theory says of them, over all lines that describe one.
void AddSelections(const fs::path& gradients, std::map<std::string, double>& numbers) {
  std::vector<double> bounds, selected;
  ForEachLine(gradients, [&](const json& line) {
    const auto left = NumberIn(line, "error_of_largest"), bound = NumberIn(line, "bound_squared");
    const auto got = NumberIn(line, "selected"), asked = NumberIn(line, "asked");
    if (left && bound && *bound > 0) bounds.push_back(*left / *bound);
    if (got && asked && *asked > 0) selected.push_back(*got / *asked);
  });
  if (!bounds.empty()) {
    numbers["bound_ratio_max"] = *std::max_element(bounds.begin(), bounds.end());
    numbers["bound_ratio_median"] = Median(bounds);
  }
  if (!selected.empty()) numbers["selected_ratio_median"] = Median(selected);
}

JobRecord::Curve ReadCurve(const fs::path& metrics) {
  JobRecord::Curve curve;
  ForEachLine(metrics, [&](const json& line) {
    if (TextIn(line, "kind") != "evaluation" || line.contains("weights_step")) return;
    const double samples = NumberIn(line, "samples").value_or(0);
    const double seconds =
        NumberIn(line, "training_seconds").value_or(NumberIn(line, "seconds").value_or(0));
    // The splits of one evaluation are lines of their own.
    if (curve.samples.empty() || curve.samples.back() != samples) {
      curve.samples.push_back(samples);
      curve.seconds.push_back(seconds);
    }
    const std::string split = TextIn(line, "split");
    for (const char* const key : {"loss", "accuracy", "perplexity", "bleu"}) {
      const auto value = NumberIn(line, key);
      if (!value) continue;
      std::vector<double>& values = curve.values[(split.empty() ? "test" : split) + "." + key];
      values.resize(curve.samples.size() - 1, kNone);
      values.push_back(*value);
    }
  });
  for (auto& [result, values] : curve.values) values.resize(curve.samples.size(), kNone);
  return curve;
}

// JSON has no NaN: it becomes null, as nlohmann writes it.
std::vector<double> NumbersOrNone(const json& list) {
  std::vector<double> numbers;
  for (const json& value : list) numbers.push_back(value.is_number() ? value.get<double>() : kNone);
  return numbers;
}

std::optional<double> NumberOf(const std::string& text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

bool IsCurveFunction(const std::string& name) {
  return name == "seconds_to" || name == "samples_to" || name == "at_seconds" ||
         name == "at_samples";
}

// Returns `at` of the first evaluation that found the value or a better one.
double First(const JobRecord::Curve& curve, const std::vector<double>& at,
             const std::string& result, double wanted) {
  const auto values = curve.values.find(result);
  if (values == curve.values.end()) return kNone;
  for (size_t i = 0; i < at.size(); ++i) {
    const double found = values->second[i];
    if (SmallerIsBetter(result) ? found <= wanted : found >= wanted) return at[i];
  }
  return kNever;
}

double LastUpTo(const JobRecord::Curve& curve, const std::vector<double>& at,
                const std::string& result, double end) {
  double last = kNone;
  const auto values = curve.values.find(result);
  if (values == curve.values.end()) return last;
  for (size_t i = 0; i < at.size() && at[i] <= end; ++i) {
    if (!std::isnan(values->second[i])) last = values->second[i];
  }
  return last;
}

// Finds a number by its path, or by the last part if only one path ends so.
double Find(const std::map<std::string, double>& numbers, const std::string& name) {
  if (const auto exact = numbers.find(name); exact != numbers.end()) return exact->second;
  double found = kNone;
  for (const auto& [path, value] : numbers) {
    if (!path.ends_with("." + name)) continue;
    if (!std::isnan(found)) return kNone;
    found = value;
  }
  return found;
}

}  // namespace

bool SmallerIsBetter(const std::string& result) {
  return result.ends_with("loss") || result.ends_with("perplexity");
}

std::optional<JobRecord> JobRecord::Read(const fs::path& folder) {
  const RunFolder run(folder);
  const std::optional<json> summary = ReadJsonObject(run.summary());
  if (!summary) return std::nullopt;
  JobRecord record;
  record.exit_code = static_cast<int>(NumberIn(*summary, "exit_code").value_or(1));
  record.device = TextIn(*summary, "device");
  AddNumbers(*summary, "", record.numbers);
  AddWorkers(*summary, record.numbers);
  AddSelections(run.gradients(), record.numbers);
  record.curve = ReadCurve(run.metrics());
  return record;
}

std::string JobRecord::ToLine() const {
  ordered_json line = {{"id", id}, {"phase", tuning ? "tuning" : "result"}};
  if (!case_name.empty()) line["case"] = case_name;
  line["method"] = method;
  line["seed"] = seed;
  for (const Setting& setting : tuned) line["tuned"][setting.key] = setting.value;
  line["exit_code"] = exit_code;
  line["revision"] = revision;
  line["device"] = device;
  if (keeps_checkpoints) line["keeps_checkpoints"] = true;
  line["numbers"] = numbers;
  if (!curve.samples.empty()) {
    line["curve"] = {{"samples", curve.samples}, {"seconds", curve.seconds}};
    for (const auto& [result, values] : curve.values) line["curve"][result] = values;
  }
  return JsonText(line);
}

std::optional<JobRecord> JobRecord::FromLine(const std::string& text) {
  const json line = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!line.is_object() || !line.contains("id") || !line.contains("numbers")) return std::nullopt;
  JobRecord record;
  record.id = TextIn(line, "id");
  record.tuning = TextIn(line, "phase") == "tuning";
  record.case_name = TextIn(line, "case");
  record.method = TextIn(line, "method");
  if (line.contains("seed") && line["seed"].is_number_unsigned()) record.seed = line["seed"];
  const json tuned = line.value("tuned", json::object());
  for (const auto& [key, value] : tuned.items()) {
    record.tuned.push_back({key, value.is_string() ? value.get<std::string>() : value.dump()});
  }
  record.exit_code = static_cast<int>(NumberIn(line, "exit_code").value_or(1));
  record.revision = TextIn(line, "revision");
  record.device = TextIn(line, "device");
  record.keeps_checkpoints = line.value("keeps_checkpoints", json(false)) == true;
  for (const auto& [path, value] : line["numbers"].items()) {
    if (value.is_number()) record.numbers[path] = value.get<double>();
  }
  const json curve = line.value("curve", json::object());
  for (const auto& [key, list] : curve.items()) {
    if (key == "samples") {
      record.curve.samples = NumbersOrNone(list);
    } else if (key == "seconds") {
      record.curve.seconds = NumbersOrNone(list);
    } else {
      record.curve.values[key] = NumbersOrNone(list);
    }
  }
  record.curve.seconds.resize(record.curve.samples.size(), kNone);
  for (auto& [result, values] : record.curve.values)
    values.resize(record.curve.samples.size(), kNone);
  return record;
}

double JobRecord::ValidationScore() const {
  for (const auto& [result, sign] :
       {std::pair("validation.accuracy", 1), {"validation.loss", -1}}) {
    if (!curve.values.contains(result) || curve.samples.empty()) continue;
    return sign * LastUpTo(curve, curve.samples, result, curve.samples.back());
  }
  return kNone;
}

double JobRecord::Measure(const Expression& measure) const {
  return measure.Evaluate([this](const NamedValue& named) {
    if (!IsCurveFunction(named.name)) return Find(numbers, named.name);
    const std::string& result = named.arguments[0];
    const double number = *NumberOf(named.arguments[1]);
    const bool until = named.name == "seconds_to" || named.name == "samples_to";
    if (until && !completed()) return kNever;
    if (named.name == "seconds_to") return First(curve, curve.seconds, result, number);
    if (named.name == "samples_to") return First(curve, curve.samples, result, number);
    if (named.name == "at_seconds") return LastUpTo(curve, curve.seconds, result, number);
    return LastUpTo(curve, curve.samples, result, number);
  });
}

void JobRecord::CheckName(const NamedValue& named) {
  if (!IsCurveFunction(named.name)) {
    if (named.arguments.empty()) return;
    throw UsageError(
        "there is no function '" + named.name + "'",
        SuggestName(named.name, {"seconds_to", "samples_to", "at_seconds", "at_samples"}));
  }
  static const std::vector<std::string> kResults = {
      "test.accuracy",       "test.loss",       "test.perplexity",       "test.bleu",
      "validation.accuracy", "validation.loss", "validation.perplexity", "validation.bleu"};
  if (named.arguments.size() == 2 && NumberOf(named.arguments[1])) {
    const std::string& result = named.arguments[0];
    if (std::find(kResults.begin(), kResults.end(), result) != kResults.end()) return;
    throw UsageError("an evaluation has no result '" + result + "'", SuggestName(result, kResults));
  }
  throw UsageError(fmt::format("'{}' needs a result and a number", named.name),
                   fmt::format("for example {}(test.accuracy, 0.9)", named.name));
}

}  // namespace dtrain
