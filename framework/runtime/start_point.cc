#include "framework/runtime/start_point.h"

#include <cstring>

#include "framework/comm/gather.h"
#include "framework/core/log.h"
#include "framework/runtime/agreement.h"
#include "framework/runtime/checkpoint_folder.h"

namespace dtrain {
namespace {

StartPoint Fresh(const Graph& graph, uint64_t seed) {
  StartPoint start;
  start.weights.resize(static_cast<size_t>(graph.weights().size()));
  start.state.resize(static_cast<size_t>(graph.state().size()));
  graph.InitializeWeights(seed, start.weights.data());
  graph.InitializeState(start.state.data());
  return start;
}

StartPoint FromCheckpoint(Checkpoint checkpoint) {
  StartPoint start;
  start.position = checkpoint.info.position;
  start.plan = PlanFromJson(checkpoint.info.plan_json, "the checkpoint's plan");
  start.weights = std::move(checkpoint.weights);
  start.solver = std::move(checkpoint.solver);
  start.state = std::move(checkpoint.state);
  return start;
}

void Append(std::string& bytes, const std::vector<float>& values) {
  const uint64_t count = values.size();
  bytes.append(reinterpret_cast<const char*>(&count), sizeof(count));
  bytes.append(reinterpret_cast<const char*>(values.data()), count * sizeof(float));
}

std::vector<float> Take(const std::string& bytes, size_t& at) {
  uint64_t count = 0;
  std::memcpy(&count, bytes.data() + at, sizeof(count));
  at += sizeof(count);
  std::vector<float> values(count);
  std::memcpy(values.data(), bytes.data() + at, count * sizeof(float));
  at += count * sizeof(float);
  return values;
}

}  // namespace

StartPoint FindStart(const Graph& graph, const RunConfig& config, const TrainRequest& request,
                     const RunFolder& folder) {
  const ModelLayout layout{graph.weights(), graph.state()};
  std::optional<Checkpoint> checkpoint =
      ResumeFrom(folder.checkpoints(), request.resume, layout);
  if (checkpoint) {
    const std::string diff = LineDiff(checkpoint->info.config_yaml, config.effective_yaml);
    if (!diff.empty()) {
      log::Warning("the config is not the checkpoint's (- checkpoint, + now):\n{}", diff);
    }
    return FromCheckpoint(std::move(*checkpoint));
  }
  StartPoint start = Fresh(graph, config.seed);
  if (!request.weights.empty()) {
    Checkpoint given = ReadWeights(FindCheckpoint(request.weights), layout);
    start.weights = std::move(given.weights);
    start.state = std::move(given.state);
  }
  return start;
}

void FollowPlanOf(const StartPoint& start, const RunConfig& config, ExecutionPlan& plan) {
  if (!start.plan) return;
  if (config.threads == 0) plan.threads = start.plan->threads;
  plan.kernels = start.plan->kernels;
  plan.chunk_bytes = start.plan->chunk_bytes;
  ExecutionPlan before = *start.plan;
  if (plan.collective == "ordered" && before.collective == "ordered") {
    before.buckets = plan.buckets;  // the canonical sum does not depend on them
  }
  const std::string differences = Differences(before, plan);
  if (differences.empty()) return;
  log::Warning("not bit-equal to the undisturbed run: its plan differs ({})", differences);
}

StartPoint BroadcastStart(Transport& transport, StartPoint start) {
  if (transport.size() == 1) return start;
  std::string bytes(reinterpret_cast<const char*>(&start.position), sizeof(start.position));
  Append(bytes, start.weights);
  Append(bytes, start.state);
  for (const auto& [name, values] : start.solver) {
    bytes += name + '\0';
    Append(bytes, values);
  }
  bytes = Broadcast(transport, bytes);
  if (transport.rank() == 0) return start;
  StartPoint received;
  size_t at = sizeof(received.position);
  std::memcpy(&received.position, bytes.data(), sizeof(received.position));
  received.weights = Take(bytes, at);
  received.state = Take(bytes, at);
  while (at < bytes.size()) {
    const std::string name = bytes.c_str() + at;
    at += name.size() + 1;
    received.solver[name] = Take(bytes, at);
  }
  return received;
}

}  // namespace dtrain
