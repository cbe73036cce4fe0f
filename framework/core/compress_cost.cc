#include "framework/core/compress_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>
#include <tuple>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/json_fields.h"
#include "framework/core/printable.h"
#include "framework/core/sha256.h"
#include "framework/core/text.h"

namespace dtrain {
namespace {

using nlohmann::ordered_json;

constexpr int kCostSchema = 1;

struct Point {
  double x, y;
};

double OnLine(const Point& a, const Point& b, double x) {
  return a.y + (b.y - a.y) / (b.x - a.x) * (x - a.x);
}

// Piecewise linear through the points, which ascend; the first and the last line go on.
double Interpolated(std::span<const Point> points, double x) {
  if (points.size() == 1) return points[0].y;
  size_t to = 1;
  while (to + 1 < points.size() && points[to].x < x) ++to;
  return std::max(0.0, OnLine(points[to - 1], points[to], x));
}

// Interpolates between sizes, with the fixed part at size 0.
double AtSize(std::vector<Point> points, double size) {
  const Point& first = points.front();
  const double fixed = points.size() == 1 ? 0 : OnLine(first, points[1], 0);
  points.insert(points.begin(), {0, std::clamp(fixed, 0.0, first.y)});
  return Interpolated(points, size);
}

Nanos NearestNanos(double seconds) { return std::llround(seconds * 1e9); }

auto OrderOf(const CompressCost::Sample& sample) {
  return std::tuple(sample.density, sample.workers, sample.entries);
}

ordered_json SampleToJson(const CompressCost::Sample& sample) {
  ordered_json json;
  if (sample.density > 0) json["density"] = sample.density;
  if (sample.workers > 0) json["workers"] = sample.workers;
  json["entries"] = sample.entries;
  json["seconds"] = sample.seconds;
  if (sample.workers > 0) json["decode_seconds"] = sample.decode_seconds;
  return json;
}

CompressCost::Sample SampleFrom(const nlohmann::json& json, const std::string& where) {
  JsonFields fields(json, where);
  CompressCost::Sample sample;
  if (fields.Has("density")) sample.density = fields.Amount("density");
  if (fields.Has("workers")) sample.workers = fields.SmallCount("workers");
  sample.entries = fields.Count("entries");
  sample.seconds = fields.Amount("seconds");
  if (sample.workers > 0) sample.decode_seconds = fields.Amount("decode_seconds");
  fields.RejectOthers();
  if (sample.entries == 0) throw ConfigError(where + ": entries: a vector without entries");
  if (sample.density > 1) throw ConfigError(where + ": density: above 1");
  return sample;
}

// A compressor either selects, or codes for workers, or does neither.
bool SameKind(const CompressCost::Sample& a, const CompressCost::Sample& b) {
  return (a.density > 0) == (b.density > 0) && (a.workers > 0) == (b.workers > 0);
}

std::vector<CompressCost::Sample> SamplesFrom(const nlohmann::json& array,
                                              const std::string& where) {
  if (array.empty()) throw ConfigError(where + ": samples: there are none");
  std::vector<CompressCost::Sample> samples;
  for (size_t i = 0; i < array.size(); ++i) {
    const std::string place = fmt::format("{}: samples[{}]", where, i);
    samples.push_back(SampleFrom(array[i], place));
    if (i == 0) continue;
    if (!SameKind(samples[i - 1], samples[i])) {
      throw ConfigError(place + ": density and workers: not those that the entry before has");
    }
    if (OrderOf(samples[i - 1]) >= OrderOf(samples[i])) {
      throw ConfigError(place +
                        ": not behind the entry before, by density, workers and then entries");
    }
  }
  return samples;
}

}  // namespace

double CompressCost::Seconds(double Sample::*of, int64_t entries, double density,
                             int workers) const {
  if (samples.empty() || entries == 0) return 0;
  const bool by_workers = samples.front().workers > 0;
  const auto key = [&](const Sample& it) { return by_workers ? it.workers : it.density; };
  std::vector<Point> at;  // the seconds for this size, by density or workers
  for (size_t begin = 0, end = 0; begin < samples.size(); begin = end) {
    std::vector<Point> sizes;
    for (; end < samples.size() && key(samples[end]) == key(samples[begin]); ++end) {
      sizes.push_back({static_cast<double>(samples[end].entries), samples[end].*of});
    }
    at.push_back({key(samples[begin]), AtSize(std::move(sizes), static_cast<double>(entries))});
  }
  return Interpolated(at, by_workers ? workers : std::clamp(density, at.front().x, at.back().x));
}

Nanos CompressCost::SelectTime(int64_t entries, double density) const {
  return NearestNanos(Seconds(&Sample::seconds, entries, density, 0));
}

Nanos CompressCost::EncodeTime(int64_t entries, int workers) const {
  return NearestNanos(Seconds(&Sample::seconds, entries, 0, workers));
}

Nanos CompressCost::DecodeTime(int64_t entries, int workers) const {
  return NearestNanos(Seconds(&Sample::decode_seconds, entries, 0, workers));
}

const CompressCost* CompressCosts::Find(const std::string& compressor) const {
  const auto found = std::ranges::find(costs, compressor, &CompressCost::compressor);
  return found == costs.end() ? nullptr : &*found;
}

std::string CompressCosts::Names() const {
  std::vector<std::string> names;
  for (const CompressCost& cost : costs) names.push_back(cost.compressor);
  return Join(names);
}

std::string ToJson(const CompressCosts& costs) {
  ordered_json head = {
      {"schema", kCostSchema}, {"device", costs.device}, {"machine", costs.machine}};
  if (!costs.isa.empty()) head["isa"] = costs.isa;
  head["threads"] = costs.threads;
  head["source"] = costs.source;
  std::string text = JsonText(head, 2);
  text.resize(text.rfind('\n'));
  text += ",\n  \"costs\": [";
  for (size_t i = 0; i < costs.costs.size(); ++i) {
    const CompressCost& cost = costs.costs[i];
    text += fmt::format("{}\n    {{\"compressor\": {}, \"samples\": [", i > 0 ? "," : "",
                        JsonText(nlohmann::json(cost.compressor)));
    for (size_t k = 0; k < cost.samples.size(); ++k) {
      text +=
          fmt::format("{}\n      {}", k > 0 ? "," : "", JsonText(SampleToJson(cost.samples[k])));
    }
    text += "]}";
  }
  return text + "]\n}\n";
}

CompressCosts CompressCostsFromJson(std::string_view text, const std::string& source) {
  const nlohmann::json json = ParseJson(text, source);
  JsonFields fields(json, source);
  fields.Schema(kCostSchema);
  CompressCosts costs;
  costs.device = fields.String("device");
  costs.machine = fields.String("machine");
  if (fields.Has("isa")) costs.isa = fields.String("isa");
  costs.threads = fields.SmallCount("threads");
  costs.source = fields.String("source");
  const nlohmann::json& array = fields.Array("costs");
  for (size_t i = 0; i < array.size(); ++i) {
    JsonFields one(array[i], fmt::format("{}: costs[{}]", source, i));
    CompressCost cost{.compressor = one.String("compressor")};
    cost.samples = SamplesFrom(one.Array("samples"), one.where());
    one.RejectOthers();
    if (costs.Find(cost.compressor) != nullptr) {
      throw ConfigError(
          fmt::format("{}: compressor: {} for the second time", one.where(), cost.compressor));
    }
    costs.costs.push_back(std::move(cost));
  }
  fields.RejectOthers();
  return costs;
}

CompressCosts ReadCompressCosts(const std::filesystem::path& path) {
  const std::string text = ReadFile(path);
  CompressCosts costs = CompressCostsFromJson(text, path.string());
  const std::string hash = Sha256::Of(text);
  for (CompressCost& cost : costs.costs) {
    cost.file = path.string();
    cost.sha256 = hash;
  }
  return costs;
}

std::string ToJson(const CompressCost& cost) {
  ordered_json samples = ordered_json::array();
  for (const CompressCost::Sample& sample : cost.samples) samples.push_back(SampleToJson(sample));
  return JsonText(ordered_json{{"compressor", cost.compressor},
                               {"file", cost.file},
                               {"sha256", cost.sha256},
                               {"samples", samples}});
}

CompressCost CompressCostFromJson(std::string_view text, const std::string& source) {
  const nlohmann::json json = ParseJson(text, source);
  JsonFields fields(json, source);
  CompressCost cost{.compressor = fields.String("compressor")};
  cost.file = fields.String("file");
  cost.sha256 = fields.String("sha256");
  cost.samples = SamplesFrom(fields.Array("samples"), source);
  fields.RejectOthers();
  return cost;
}

}  // namespace dtrain
