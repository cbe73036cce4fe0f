// ExecutionPlan: everything that decides bits.
//
// Two runs with equal plans, seeds and configs end with the same weights, bit for bit.  Rank 0
// decides the plan, broadcasts it and stores it in the run folder (plan.json) and in every
// checkpoint; a resumed run compares and says "not bit-equal" where it cannot follow the old one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "framework/core/layout.h"

namespace dtrain {

struct ExecutionPlan {
  std::string device = "cpu";      // that the kernels run on: "cpu", "cuda"
  std::string gpu;                 // and the libraries' versions: "NVIDIA H200, CUDA 13.0, ..."
  std::string isa;                 // IsaName(CpuIsa()): "baseline", "avx", "avx2", "avx512"
  std::string precision = "fp32";  // of products: "fp32", "tf32", "bf16"
  int threads = 1;                 // compute threads of a rank
  int workers = 1;                 // the canonical sum has this many terms
  std::string collective;          // "ordered", "mpi", "ring", ...
  std::vector<int> node_of;        // of each rank, where the collective goes by nodes; else empty
  int64_t chunk_bytes = 0;         // piece of a bucket that a collective moves at once
  std::vector<Range> buckets;      // of the gradient arena, in elements, in the order they are sent
  // Where the buckets go by measured times: the strategy that they are of, and the seconds that a step
  // was expected to take with them; of it, to compute, and for the sums one after the other (0 in
  // plans from before they were kept).
  std::string measured_for;
  double predicted_seconds = 0;
  double compute_seconds = 0;
  double sum_seconds = 0;
  std::map<std::string, std::string> kernels;  // layer -> implementation ("conv1" -> "onednn:nhwc")

  friend bool operator==(const ExecutionPlan&, const ExecutionPlan&) = default;
};

// Whether kernels of one mean the same in the other: device and precision are the same.
bool SameKernels(const ExecutionPlan& a, const ExecutionPlan& b);

// Indented JSON that ends with a newline.
std::string ToJson(const ExecutionPlan& plan);

// The inverse.  `source` names the text in messages (a path).  Throws ConfigError for text that is
// not JSON, lacks a key, has an unknown one or a value of the wrong type.
ExecutionPlan PlanFromJson(std::string_view text, const std::string& source);

// `plan: FILE` of a config.  Throws DataError when the file cannot be read, else as above.
ExecutionPlan ReadPlan(const std::filesystem::path& path);

// What differs, for "not bit-equal" messages: "isa avx512 -> avx2, threads 2 -> 1"; "" when equal.
std::string Differences(const ExecutionPlan& before, const ExecutionPlan& after);

}  // namespace dtrain
