#include "framework/runtime/run/rank_state.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sstream>

#include "framework/core/error.h"
#include "framework/core/log.h"
#include "framework/core/sha256.h"
#include "framework/core/text.h"
#include "framework/runtime/launch/agreement.h"
#include "framework/runtime/setup/run_exchange.h"

namespace dtrain {
namespace {

// The lines of a section of the effective config, which begin with two spaces.
std::string SectionOf(const std::string& yaml, const std::string& name) {
  std::istringstream lines(yaml);
  std::string section;
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(' ')) inside = line == name + ":";
    if (inside) section += line + '\n';
  }
  return section;
}

// Without those that say who takes part, and where, or that change no state.
std::string WithoutPlacement(const std::string& section) {
  std::istringstream lines(section);
  std::string rest;
  for (std::string line; std::getline(lines, line);) {
    const bool placement = line.starts_with("  servers:") || line.starts_with("  placement:") ||
                           line.starts_with("  record:");
    if (!placement) rest += line + '\n';
  }
  return rest;
}

std::string OrderOf(const ArenaLayout& layout) {
  std::string names;
  for (const ArenaEntry& entry : layout.entries) {
    names += fmt::format("{} {}\n", entry.name, entry.range.size());
  }
  return fmt::format("{}, order {}", Counted(layout.size(), "number"),
                     Sha256::Of(names).substr(0, 12));
}

constexpr char kLost[] =
    "residuals and accumulators begin empty, and the workers go on as if they had been equally "
    "fast";

// Of all workers' residuals, in worker order.
std::vector<float> SumOfResiduals(const Checkpoint& checkpoint, std::string& holds) {
  std::vector<float> sum;
  for (size_t rank = 0; rank < checkpoint.info.rank_files.size(); ++rank) {
    const RankCheckpoint file = ReadRankCheckpoint(checkpoint.path, static_cast<int64_t>(rank),
                                                   checkpoint.info.rank_files[rank]);
    if (!file.holds.empty()) holds += (holds.empty() ? "" : "; ") + file.holds;
    for (const StateField& field : file.exchange.fields) {
      if (field.name != kResidualName || field.kind != StateField::Kind::kFloats) continue;
      sum.resize(field.floats.size());
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += field.floats[i];
    }
  }
  return sum;
}

RankStart AmongOthers(const Checkpoint& checkpoint, const std::string& difference) {
  const std::string name = checkpoint.path.filename().string();
  std::string holds;
  RankStart start;
  start.residual = SumOfResiduals(checkpoint, holds);
  if (!holds.empty()) {
    throw CheckpointError(
        fmt::format("{} cannot be resumed with other workers or servers (- checkpoint, + now):\n"
                    "{}gradients would be lost: {}",
                    checkpoint.path.string(), difference, holds),
        "resume with those of the run that wrote it, or start a new run from its weights with "
        "--weights");
  }
  log::Warning(
      "{} was written by other workers or servers (- checkpoint, + now):\n{}{}", name, difference,
      start.residual.empty()
          ? "the workers go on as if they had been equally fast"
          : "worker 0 goes on with the sum of all residuals, and the workers as if they had "
            "been equally fast");
  return start;
}

}  // namespace

RankCheckpoint WorldOf(const RunConfig& config, const Graph& graph, const Dataset& dataset,
                       RunTime time) {
  const Placement placement = PlacementOf(config);
  RankCheckpoint world;
  world.actors =
      WithoutPlacement(SectionOf(config.effective_yaml, "strategy")) +
      SectionOf(config.effective_yaml, "compress") +
      fmt::format("solver: {} [{}]\nparameters: {}\nstatistics: {}\ntime: {}\n", config.solver.name,
                  fmt::join(config.solver.solver->StateNames(), ", "), OrderOf(graph.weights()),
                  OrderOf(graph.state()), time == RunTime::kReal ? "real" : "virtual");
  world.placement = fmt::format(
      "workers: {}\nservers: {}, {}\nnodes: [{}]\nbatch: {} of {} samples\n", placement.workers,
      placement.servers, placement.colocated ? "colocated" : "dedicated",
      fmt::join(placement.node_of, ", "), config.batch, dataset.size(Split::kTrain));
  return world;
}

void WorkerState::Visit(StateVisitor& visitor) {
  visitor.Int("steps", steps);
  visitor.Floats("statistics", statistics);
}

RankStart StartOfRanks(const Checkpoint& checkpoint, const RankCheckpoint& here, bool expected) {
  const std::vector<std::string>& hashes = checkpoint.info.rank_files;
  const std::string name = checkpoint.path.filename().string();
  if (hashes.empty()) {
    if (expected) log::Warning("{} has no rank files: {}", name, kLost);
    return {};
  }
  const RankCheckpoint there = ReadRankCheckpoint(checkpoint.path, 0, hashes[0]);
  if (there.actors != here.actors) {
    log::Warning(
        "what the ranks of {} had of their own is of another run (- checkpoint, + now):\n"
        "{}{}",
        name, LineDiff(there.actors, here.actors), expected ? kLost : "it is not taken over");
    return {};
  }
  if (there.placement != here.placement) {
    return AmongOthers(checkpoint, LineDiff(there.placement, here.placement));
  }
  return {checkpoint.path.string(), hashes, {}};
}

}  // namespace dtrain
