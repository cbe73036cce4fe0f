// ExecutionPlan holds everything besides seed and config that decides the bits of the result.
//
// Two runs with equal plans, seeds and configs end with the same weights, bit for bit.  Rank 0
// decides the plan, broadcasts it and stores it in the run folder (plan.json) and in every
// checkpoint; a resumed run compares the two and reports "not bit-equal" if it cannot follow the old one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "framework/core/compress_cost.h"
#include "framework/core/layout.h"

namespace dtrain {

struct ExecutionPlan {
  std::string device = "cpu";      // the kernels' device: "cpu", "cuda"
  std::string gpu;                 // GPU and library versions: "NVIDIA H200, CUDA 13.0, ..."
  std::string isa;                 // IsaName(CpuIsa()): "baseline", "avx", "avx2", "avx512"
  std::string precision = "fp32";  // of products: "fp32", "tf32", "bf16", "fp16"
  int threads = 1;                 // compute threads of a rank
  int workers = 1;                 // each gives a term of the sum, whose order decides its bits
  std::string collective;          // "ordered", "mpi", "ring", ...
  // Holds the node of each rank, for a collective that groups ranks by node; else empty.
  std::vector<int> node_of;
  int64_t chunk_bytes = 0;     // the part of a bucket that a collective moves at once
  std::vector<Range> buckets;  // ranges of the gradient arena, in elements, in sending order
  // These describe buckets that were planned from measured times: the strategy that they were planned for, the expected
  // seconds of a step with them, and its parts: the seconds of compute and those of the all-reduces one after the
  // other.  They are 0 in plans of older versions.
  std::string measured_for;
  double predicted_seconds = 0;
  double compute_seconds = 0;
  double sum_seconds = 0;
  // Cost of the compressor in a simulated run (cluster.compress_costs): it decides the order of events in virtual
  // time.  Empty in a real run, and where passes over memory are charged.
  CompressCost compress_cost;
  // layer -> KernelName (nn/kernel.h): "onednn", "cudnn:eng1,,eng4".
  std::map<std::string, std::string> kernels;

  friend bool operator==(const ExecutionPlan&, const ExecutionPlan&) = default;
};

// True if device and precision are the same, so that a kernel's name means the same in both.
bool SameKernels(const ExecutionPlan& a, const ExecutionPlan& b);

// Returns indented JSON that ends with a newline.
std::string ToJson(const ExecutionPlan& plan);

// Parses what ToJson returns.  `source` names the text in messages (a path).  Throws ConfigError for text that is not
// JSON, lacks a key, or has an unknown key or a value of the wrong type.
ExecutionPlan PlanFromJson(std::string_view text, const std::string& source);

// Reads the file that a config's `plan: FILE` names.  Throws DataError if it cannot be read, else as PlanFromJson.
ExecutionPlan ReadPlan(const std::filesystem::path& path);

// Returns the differences for "not bit-equal" messages: "isa avx512 -> avx2, threads 2 -> 1"; "" for equal plans.
std::string Differences(const ExecutionPlan& before, const ExecutionPlan& after);

}  // namespace dtrain
