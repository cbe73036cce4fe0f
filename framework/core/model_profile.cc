#include "framework/core/model_profile.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/json_fields.h"
#include "framework/core/printable.h"

namespace dtrain {
namespace {

using nlohmann::ordered_json;

constexpr int kProfileSchema = 1;

ordered_json LayerToJson(const LayerProfile& layer) {
  ordered_json json = {{"name", layer.name},
                       {"params", layer.params},
                       {"bytes", layer.bytes},
                       {"forward_seconds", layer.forward_seconds},
                       {"backward_seconds", layer.backward_seconds},
                       {"flops", layer.flops}};
  if (layer.ready_seconds) json["ready_seconds"] = *layer.ready_seconds;
  return json;
}

ordered_json SumsToJson(const SumProfile& sums) {
  ordered_json times = ordered_json::array();
  for (const SumProfile::Time& time : sums.times) {
    times.push_back({{"bytes", time.bytes}, {"seconds", time.seconds}});
  }
  return {{"by", sums.by}, {"workers", sums.workers}, {"times", times}};
}

LayerProfile LayerFrom(const nlohmann::json& json, const std::string& where) {
  JsonFields fields(json, where);
  LayerProfile layer;
  layer.name = fields.String("name");
  layer.params = fields.Count("params");
  layer.bytes = fields.Count("bytes");
  layer.forward_seconds = fields.Amount("forward_seconds");
  layer.backward_seconds = fields.Amount("backward_seconds");
  layer.flops = fields.Amount("flops");
  if (fields.Has("ready_seconds")) layer.ready_seconds = fields.Amount("ready_seconds");
  fields.RejectOthers();
  return layer;
}

SumProfile SumsFrom(const nlohmann::json& json, const std::string& where) {
  JsonFields fields(json, where);
  SumProfile sums;
  sums.by = fields.String("by");
  sums.workers = fields.SmallCount("workers");
  const nlohmann::json& times = fields.Array("times");
  for (size_t i = 0; i < times.size(); ++i) {
    JsonFields time(times[i], fmt::format("{}: times[{}]", where, i));
    sums.times.push_back({time.Count("bytes"), time.Amount("seconds")});
    time.RejectOthers();
    if (i > 0 && sums.times[i].bytes <= sums.times[i - 1].bytes) {
      throw ConfigError(time.where() + ": bytes: not above those of the entry before");
    }
  }
  fields.RejectOthers();
  return sums;
}

template <class T>
T Sum(const std::vector<LayerProfile>& layers, T LayerProfile::*member) {
  T sum = 0;
  for (const LayerProfile& layer : layers) sum += layer.*member;
  return sum;
}

}  // namespace

int64_t ModelProfile::params() const { return Sum(layers, &LayerProfile::params); }
int64_t ModelProfile::bytes() const { return Sum(layers, &LayerProfile::bytes); }
double ModelProfile::forward_seconds() const { return Sum(layers, &LayerProfile::forward_seconds); }
double ModelProfile::backward_seconds() const {
  return Sum(layers, &LayerProfile::backward_seconds);
}

std::string ToJson(const ModelProfile& profile) {
  ordered_json layers = ordered_json::array();
  for (const LayerProfile& layer : profile.layers) layers.push_back(LayerToJson(layer));
  ordered_json json = {{"schema", kProfileSchema},   {"model", profile.model},
                       {"device", profile.device},   {"batch", profile.batch},
                       {"threads", profile.threads}, {"layers", layers}};
  for (const SumProfile& sums : profile.sums) json["sums"].push_back(SumsToJson(sums));
  return JsonText(json, 2) + "\n";
}

ModelProfile ProfileFromJson(std::string_view text, const std::string& source) {
  const nlohmann::json json = ParseJson(text, source);
  JsonFields fields(json, source);
  fields.Schema(kProfileSchema);
  ModelProfile profile;
  profile.model = fields.String("model");
  profile.device = fields.String("device");
  profile.batch = fields.Count("batch");
  profile.threads = fields.SmallCount("threads");
  const nlohmann::json& layers = fields.Array("layers");
  for (size_t i = 0; i < layers.size(); ++i) {
    profile.layers.push_back(LayerFrom(layers[i], fmt::format("{}: layers[{}]", source, i)));
  }
  if (fields.Has("sums")) {
    const nlohmann::json& sums = fields.Array("sums");
    for (size_t i = 0; i < sums.size(); ++i) {
      profile.sums.push_back(SumsFrom(sums[i], fmt::format("{}: sums[{}]", source, i)));
    }
  }
  fields.RejectOthers();
  return profile;
}

ModelProfile ReadProfile(const std::filesystem::path& path) {
  return ProfileFromJson(ReadFile(path), path.string());
}

}  // namespace dtrain
