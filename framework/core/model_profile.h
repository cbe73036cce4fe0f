// ModelProfile: what a planner or simulator knows of a model, without the net.
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
  int64_t bytes = 0;           // of their gradients, as sent
  double forward_seconds = 0;  // one pass over `batch` samples
  double backward_seconds = 0;
  double flops = 0;  // forward and backward, one pass
  // When its gradient is there, in seconds since the step began, at the slowest worker, where
  // cluster.slowdown slows down none.  Absent where nobody has measured it, and for layers without
  // parameters.
  std::optional<double> ready_seconds = {};

  friend bool operator==(const LayerProfile&, const LayerProfile&) = default;
};

// T(M) as it was measured: how long the sum of so many bytes over all workers takes.
struct SumProfile {
  struct Time {
    int64_t bytes = 0;
    double seconds = 0;
    friend bool operator==(const Time&, const Time&) = default;
  };
  std::string by;  // the collective, or of what a compressor selects "topk 0.01 by gather"
  int workers = 0;
  std::vector<Time> times;  // by bytes, ascending

  friend bool operator==(const SumProfile&, const SumProfile&) = default;
};

struct ModelProfile {
  std::string model;
  std::string device;  // "cpu", "cuda"
  int64_t batch = 0;   // samples a pass
  int threads = 1;
  std::vector<LayerProfile> layers;   // in forward order
  std::vector<SumProfile> sums = {};  // where ranks were there to measure them

  int64_t params() const;
  int64_t bytes() const;
  double forward_seconds() const;
  double backward_seconds() const;

  friend bool operator==(const ModelProfile&, const ModelProfile&) = default;
};

// Indented JSON that ends with a newline.
std::string ToJson(const ModelProfile& profile);

// The inverse.  `source` names the text in messages.  Throws ConfigError for text that is not JSON,
// lacks a key, has an unknown one, a value of the wrong type or a negative one, or where the bytes
// of T(M) do not ascend.
ModelProfile ProfileFromJson(std::string_view text, const std::string& source);

// Throws DataError when the file cannot be read, else as above.
ModelProfile ReadProfile(const std::filesystem::path& path);

}  // namespace dtrain
