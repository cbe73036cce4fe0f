#include "framework/train/rank_state.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <exception>
#include <sstream>
#include <string_view>

#include "framework/comm/gather.h"
#include "framework/core/error.h"
#include "framework/core/log.h"
#include "framework/core/sha256.h"
#include "framework/core/text.h"
#include "framework/launch/agreement.h"
#include "framework/launch/world.h"
#include "framework/setup/run_exchange.h"

namespace dtrain {
namespace {

// Returns the lines of a section of the effective config; they begin with two spaces.
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

// Returns the section without the keys that describe the placement or change no state.
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

constexpr char kFromTheMean[] =
    "each worker's position in its data becomes the average of all workers'";

// One property of a run, "key: value".  The lines of a section are indented; their keys get its name as a prefix.
struct Fact {
  std::string key, line;
};

std::vector<Fact> FactsOf(const std::string& text) {
  std::istringstream lines(text);
  std::vector<Fact> facts;
  std::string section;
  for (std::string line; std::getline(lines, line);) {
    std::string key = line.substr(0, line.find(':'));
    key.erase(0, key.find_first_not_of(' '));
    if (!line.starts_with(' ')) section = key;
    facts.push_back({line.starts_with(' ') ? section + "." + key : key, line});
  }
  return facts;
}

const Fact* Find(const std::vector<Fact>& facts, const std::string& key) {
  const auto it =
      std::find_if(facts.begin(), facts.end(), [&](const Fact& fact) { return fact.key == key; });
  return it == facts.end() ? nullptr : &*it;
}

// True if this key may differ.  A sparse collective has state of its own for each unit.
bool MayChange(const RunConfig& config, const std::string& key) {
  const Strategy& strategy = *config.strategy;
  // In a synchronous run, steps are the run's, and no worker has a position of its own in the data.
  if (key == "batch") return strategy.traits().lockstep;
  if (key == "compress.exchange" || key == "compress.scope") return !strategy.traits().lockstep;
  constexpr std::string_view kCompress = "compress.";
  if (key.starts_with(kCompress)) {
    return key != "compress.name" && config.compress.on() &&
           config.compress.compressor->MayChange(key.substr(kCompress.size()));
  }
  constexpr std::string_view kSection = "strategy.";
  return key.starts_with(kSection) && strategy.MayChange(key.substr(kSection.size()));
}

// Returns the lines of `facts` whose keys `others` has, too, and that may not change.
std::string Essential(const std::vector<Fact>& facts, const std::vector<Fact>& others,
                      const RunConfig& config) {
  std::string text;
  for (const Fact& fact : facts) {
    if (!MayChange(config, fact.key) && Find(others, fact.key)) text += fact.line + '\n';
  }
  return text;
}

std::string DifferenceOf(const std::string& stored, const std::string& present,
                         const RunConfig& config) {
  const std::vector<Fact> before = FactsOf(stored), now = FactsOf(present);
  return LineDiff(Essential(before, now, config), Essential(now, before, config));
}

// Holds the state of all ranks of a checkpoint that another run can use or must not lose.
struct Kept {
  KeptVectors sums;  // summed in worker order
  std::string holds;
};

// Adds `values` to `sum`; a sum of zeros alone stays empty.
void AddTo(std::vector<float>& sum, std::span<const float> values) {
  const auto none = [](float value) { return value == 0; };
  if (std::all_of(values.begin(), values.end(), none)) return;
  sum.resize(values.size());
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += values[i];
}

Kept ReadKept(const Checkpoint& checkpoint) {
  Kept kept;
  for (size_t rank = 0; rank < checkpoint.info.rank_files.size(); ++rank) {
    const RankCheckpoint file = ReadRankCheckpoint(checkpoint.path, static_cast<int64_t>(rank),
                                                   checkpoint.info.rank_files[rank]);
    if (!file.holds.empty()) kept.holds += (kept.holds.empty() ? "" : "; ") + file.holds;
    for (const StateField& field : file.exchange.fields) {
      if (field.kind != StateField::Kind::kFloats) continue;
      if (field.name == kResidualName) AddTo(kept.sums.residual, field.floats);
      if (field.name == kVelocityName) AddTo(kept.sums.velocity, field.floats);
    }
  }
  return kept;
}

std::string OrderIn(const std::string& actors) {
  const std::vector<Fact> facts = FactsOf(actors);
  const Fact* const order = Find(facts, "parameters");
  return order == nullptr ? "" : order->line;
}

constexpr char kRateKey[] = "rate of a gradient";

double RateIn(const std::string& placement) {
  const std::vector<Fact> facts = FactsOf(placement);
  const Fact* const rate = Find(facts, kRateKey);
  return rate == nullptr ? 0 : std::stod(rate->line.substr(rate->line.find(':') + 1));
}

// Scales a residual from the gradient rate of the old run to that of the new one.
void Rescale(const std::string& stored, const std::string& present, std::vector<float>& residual) {
  const double before = RateIn(stored), now = RateIn(present);
  if (before == now || before == 0) return;
  const auto factor = static_cast<float>(before / now);
  for (float& value : residual) value *= factor;
}

RankStart AmongOthers(const Checkpoint& checkpoint, const RankCheckpoint& stored,
                      const RankCheckpoint& present, const RunConfig& config,
                      const std::string& difference) {
  Kept kept = ReadKept(checkpoint);
  const bool same_model = OrderIn(stored.actors) == OrderIn(present.actors);
  if (!kept.sums.residual.empty() && !(config.compress.on() && same_model)) {
    kept.holds += (kept.holds.empty() ? "" : "; ") +
                  std::string("residuals, for which this run's workers have no place");
  }
  if (!kept.holds.empty()) {
    throw CheckpointError(
        fmt::format("{} is of a run with other keys, workers or servers (- checkpoint, + now), and "
                    "cannot be resumed:\n{}gradients would be lost: {}",
                    checkpoint.path.string(), difference, kept.holds),
        "resume with the values of the run that wrote it, or start a new run from its weights "
        "with --weights");
  }
  std::string said =
      kept.sums.residual.empty() ? "" : "worker 0 takes over the sum of all residuals; ";
  if (!kept.sums.velocity.empty()) {
    const bool has_place = config.compress.momentum > 0 && same_model;
    said += has_place ? "worker 0 takes over the sum of all workers' momentum; "
                      : "the momentum that workers kept is lost; ";
    if (!has_place) kept.sums.velocity.clear();
  }
  RankStart start{.kept = std::move(kept.sums)};
  Rescale(stored.placement, present.placement, start.kept.residual);
  Rescale(stored.placement, present.placement, start.kept.velocity);
  log::Warning("{} is of a run with other keys, workers or servers (- checkpoint, + now):\n{}{}{}",
               checkpoint.path.filename().string(), difference, said, kFromTheMean);
  return start;
}

}  // namespace

bool KeepsRankState(const RunConfig& config) {
  const StrategyTraits traits = config.strategy->traits();
  return !traits.lockstep || traits.model == ModelPlace::kReplicas || config.compress.on();
}

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
      "workers: {}\nservers: {}, {}\nnodes: [{}]\nbatch: {} of {} samples\n{}: {}\n",
      placement.workers, placement.servers, placement.colocated ? "colocated" : "dedicated",
      fmt::join(placement.node_of, ", "), config.batch, dataset.size(Split::kTrain), kRateKey,
      config.strategy->RateOfGradient(placement.workers));
  return world;
}

void WorkerState::Visit(StateVisitor& visitor) {
  visitor.Int("steps", steps);
  visitor.Floats("statistics", statistics);
}

RankStart StartOfRanks(const Checkpoint& checkpoint, const RunConfig& config,
                       const RankCheckpoint& present, bool expected) {
  const std::vector<std::string>& hashes = checkpoint.info.rank_files;
  if (hashes.empty()) {
    if (!expected) return {};
    log::Warning("{} has no rank files: residuals and accumulators begin empty, and {}",
                 checkpoint.path.filename().string(), kFromTheMean);
    return {};
  }
  const RankCheckpoint stored = ReadRankCheckpoint(checkpoint.path, 0, hashes[0]);
  const std::string difference = DifferenceOf(stored.actors, present.actors, config) +
                                 DifferenceOf(stored.placement, present.placement, config);
  if (difference.empty()) return {checkpoint.path.string(), hashes, {}};
  return AmongOthers(checkpoint, stored, present, config, difference);
}

std::vector<std::string> WriteRankFiles(Exchange& exchange, const std::filesystem::path& main,
                                        RankCheckpoint file, std::optional<WorkerState> worker) {
  Exchange::Own own = exchange.SaveOwn();
  file.holds = std::move(own.holds);
  file.exchange = std::move(own.state);
  if (worker) file.host = RecordState([&](StateVisitor& visitor) { worker->Visit(visitor); });
  std::string hash;
  std::exception_ptr failed;
  try {
    hash = WriteRankCheckpoint(main, file);
  } catch (const Error&) {
    failed = std::current_exception();
  }
  std::vector<std::string> hashes;
  exchange.AtBoundary([&](Transport& transport) {
    TryTogether(transport, [&] {
      if (failed) std::rethrow_exception(failed);
    });
    hashes = Gather(transport, hash);
  });
  return hashes;
}

}  // namespace dtrain
