#include "framework/bench/network/bench_allreduce.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>

#include "framework/cluster/network_model.h"
#include "framework/comm/gather.h"
#include "framework/comm/mpi/mpi_runtime.h"
#include "framework/core/check.h"
#include "framework/core/statistics.h"
#include "framework/core/time.h"
#include "framework/device/buffer.h"

namespace dtrain {
namespace {

// Describes one method of summing a vector over all ranks, and its sample times.
struct Candidate {
  std::string name;
  std::function<void(std::span<float>)> reduce;
  std::vector<double> sample_us;
};

constexpr const char* kPlain = "plain MPI_Allreduce";

std::vector<int> NodesOf(Transport& transport, int per_node) {
  if (per_node > 0) return NodesInOrder(transport.size(), per_node);
  const std::string lowest = std::to_string(transport.node_ranks().front());
  std::vector<int> nodes;
  for (const std::string& rank : AllGather(transport, lowest)) {
    nodes.push_back(std::stoi(rank));
  }
  return nodes;
}

std::vector<Candidate> MakeCandidates(Transport& transport, const BenchAllreduceOptions& options) {
  std::vector<Candidate> candidates;
  if (transport.name() == "mpi") {
    const auto plain = [&transport](std::span<float> data) { PlainMpiAllreduce(transport, data); };
    candidates.push_back({kPlain, plain, {}});
  }
  const std::vector<int> nodes = NodesOf(transport, options.per_node);
  for (const std::string& name : options.collectives) {
    const std::shared_ptr<Collective> collective =
        MakeCollective(name, transport, {.node_of = nodes});
    const auto reduce = [collective](std::span<float> data) {
      WaitFor(*collective, collective->Start(data));
    };
    candidates.push_back({name, reduce, {}});
  }
  return candidates;
}

int SamplesFor(int64_t bytes, int asked) {
  return asked > 0 ? asked : static_cast<int>(std::clamp<int64_t>((256 << 20) / bytes, 9, 101));
}

// Small reductions are timed in groups: a single one is shorter than the barrier before it.
int RepeatsFor(int64_t bytes) {
  return static_cast<int>(std::clamp<int64_t>((1 << 20) / bytes, 1, 100));
}

void CheckSum(Transport& transport, Candidate& candidate, std::span<float> data) {
  std::fill(data.begin(), data.end(), static_cast<float>(transport.rank() + 1));
  candidate.reduce(data);
  const auto expected =
      static_cast<float>(transport.size()) * static_cast<float>(transport.size() + 1) / 2;
  DT_CHECK(std::all_of(data.begin(), data.end(), [expected](float x) { return x == expected; }))
      << candidate.name << " sums " << data.size() << " floats wrongly";
  std::fill(data.begin(), data.end(), 0.0f);
}

void Sample(Transport& transport, Candidate& candidate, std::span<float> data) {
  const int repeats = RepeatsFor(static_cast<int64_t>(data.size_bytes()));
  transport.Barrier();
  candidate.reduce(data);  // not timed: synchronises ranks that slept in the barrier
  const Nanos begin = WallNow();
  for (int i = 0; i < repeats; ++i) candidate.reduce(data);
  candidate.sample_us.push_back(static_cast<double>(WallNow() - begin) / 1e3 / repeats);
}

nlohmann::ordered_json Describe(const Transport& transport, const Candidate& candidate,
                                int64_t bytes) {
  const double median = Median(candidate.sample_us);
  return {{"bench", "allreduce"},
          {"collective", candidate.name},
          {"transport", transport.name()},
          {"ranks", transport.size()},
          {"bytes", bytes},
          {"samples", candidate.sample_us.size()},
          {"p50_us", median},
          {"min_us", *std::min_element(candidate.sample_us.begin(), candidate.sample_us.end())},
          {"gbyte_s", static_cast<double>(bytes) / median / 1e3}};
}

void Print(const Transport& transport, const std::vector<Candidate>& candidates, int64_t bytes,
           std::ostream& out) {
  const bool has_plain = candidates.front().name == kPlain;
  for (const Candidate& candidate : candidates) {
    if (candidate.name == kPlain) continue;
    auto line = Describe(transport, candidate, bytes);
    if (has_plain) {
      const double plain = Median(candidates.front().sample_us);
      line["plain_mpi_p50_us"] = plain;
      line["speedup"] = plain / line["p50_us"].get<double>();
    }
    out << line.dump() << std::endl;
  }
}

}  // namespace

int BenchAllreduce(Transport& transport, const BenchAllreduceOptions& options, std::ostream& out) {
  std::vector<Candidate> candidates = MakeCandidates(transport, options);
  const int64_t most = *std::max_element(options.sizes_bytes.begin(), options.sizes_bytes.end());
  const Buffer buffer(static_cast<size_t>(most));
  for (const int64_t bytes : options.sizes_bytes) {
    const std::span<float> data(buffer.f32(), static_cast<size_t>(bytes) / sizeof(float));
    for (Candidate& candidate : candidates) {
      candidate.sample_us.clear();
      CheckSum(transport, candidate, data);
    }
    for (int i = 0; i < SamplesFor(bytes, options.samples); ++i) {
      for (Candidate& candidate : candidates) Sample(transport, candidate, data);
    }
    if (transport.rank() == 0) Print(transport, candidates, bytes, out);
  }
  return 0;
}

}  // namespace dtrain
