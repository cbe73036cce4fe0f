// ModelProfile: sizes and times of a model's layers, for planners and simulators that have no net.
//
// Measured by `dtrain time --profile FILE`, or by a run that plans by time, which leaves it in its
// folder (profile.json); read by `dtrain simulate`, `dtrain plan` and `strategy.profile: FILE`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dtrain {

struct LayerProfile {
  std::string name;
  int64_t params = 0;          // learnable values
  int64_t bytes = 0;           // bytes of their gradients, as sent
  double forward_seconds = 0;  // one pass over `batch` samples
  double backward_seconds = 0;
  double flops = 0;  // forward and backward, one pass
  // Seconds from the begin of the step until the layer's gradient is ready, at the slowest worker and without the
  // effect of cluster.slowdown.  Absent if it was not measured, and for layers without parameters.
  std::optional<double> ready_seconds = {};

  friend bool operator==(const LayerProfile&, const LayerProfile&) = default;
};

// Holds the measured T(M): the seconds that the all-reduce of M bytes over all workers takes.
struct SumProfile {
  struct Time {
    int64_t bytes = 0;
    double seconds = 0;
    friend bool operator==(const Time&, const Time&) = default;
  };
  // Names the collective; for a compressor's selection it is like "topk 0.01 by gather".
  std::string by;
  int workers = 0;
  std::vector<Time> times;  // ascending by bytes

  friend bool operator==(const SumProfile&, const SumProfile&) = default;
};

struct ModelProfile {
  std::string model;
  std::string device;  // "cpu", "cuda"
  int64_t batch = 0;   // samples a pass
  int threads = 1;
  std::vector<LayerProfile> layers;   // in forward order
  std::vector<SumProfile> sums = {};  // empty without several ranks to measure

  int64_t params() const;
  int64_t bytes() const;
  double forward_seconds() const;
  double backward_seconds() const;

  friend bool operator==(const ModelProfile&, const ModelProfile&) = default;
};

// Returns indented JSON that ends with a newline.
std::string ToJson(const ModelProfile& profile);

// Parses what ToJson returns.  `source` names the text in messages.  Throws ConfigError for text that is not JSON,
// lacks a key, has an unknown key, or a value that is negative or of the wrong type, or if the bytes of T(M) do not
// ascend.
ModelProfile ProfileFromJson(std::string_view text, const std::string& source);

// Throws DataError if the file cannot be read, else as ProfileFromJson.
ModelProfile ReadProfile(const std::filesystem::path& path);

}  // namespace dtrain
