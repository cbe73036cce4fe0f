#include "framework/core/model_profile.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "framework/core/file.h"
#include "framework/core/json_fields.h"

namespace dtrain {
namespace {

using nlohmann::ordered_json;

ordered_json LayerToJson(const LayerProfile& layer) {
  return {{"name", layer.name},
          {"params", layer.params},
          {"bytes", layer.bytes},
          {"forward_seconds", layer.forward_seconds},
          {"backward_seconds", layer.backward_seconds},
          {"flops", layer.flops}};
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
  fields.RejectOthers();
  return layer;
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
  const ordered_json json = {{"model", profile.model},
                             {"device", profile.device},
                             {"batch", profile.batch},
                             {"threads", profile.threads},
                             {"layers", layers}};
  return json.dump(2) + "\n";
}

ModelProfile ProfileFromJson(std::string_view text, const std::string& source) {
  const nlohmann::json json = ParseJson(text, source);
  JsonFields fields(json, source);
  ModelProfile profile;
  profile.model = fields.String("model");
  profile.device = fields.String("device");
  profile.batch = fields.Count("batch");
  profile.threads = static_cast<int>(fields.Count("threads"));
  const nlohmann::json& layers = fields.Array("layers");
  for (size_t i = 0; i < layers.size(); ++i) {
    profile.layers.push_back(LayerFrom(layers[i], fmt::format("{}: layers[{}]", source, i)));
  }
  fields.RejectOthers();
  return profile;
}

ModelProfile ReadProfile(const std::filesystem::path& path) {
  return ProfileFromJson(ReadFile(path), path.string());
}

}  // namespace dtrain
