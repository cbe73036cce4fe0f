#include "framework/simulate/simulated_run.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/log.h"
#include "framework/results/summary.h"
#include "framework/setup/run_exchange.h"
#include "framework/setup/run_setup.h"
#include "framework/setup/schedule_profile.h"
#include "framework/sim/replay.h"
#include "framework/train/run_inputs.h"

namespace dtrain {
namespace fs = std::filesystem;
namespace {

void CheckCanBeSimulated(const RunConfig& config, const Graph& graph) {
  if (!config.weights.from.empty()) {
    throw ConfigError("a simulation begins with drawn weights, not with weights.from",
                      "leave weights.from out, or dtrain train");
  }
  // The all-reduce inside such a layer would have no cost, and in a numeric run the steps of the workers are computed
  // one after the other.
  if (config.workers == 1 || !graph.syncs_workers()) return;
  throw ConfigError("batch normalisation over all workers cannot be simulated",
                    "batch_norm: local, or dtrain train");
}

// Throws ConfigError if the profile's layers with parameters are not the model's.  Other layers may be missing in the
// profile of a fused net.
void CheckProfileFits(const ModelProfile& profile, const LayerGradients& layer_gradients) {
  if (LayerGradientsOf(profile).ranges == layer_gradients.ranges) return;
  throw ConfigError("the profile of " + profile.model + " has other layers than the config's model",
                    "measure it again: dtrain time --config F --profile FILE");
}

// Lists the dead workers in the order of their deaths.
std::vector<DeathSummary> DeathsOf(const SimulationResult& result,
                                   const std::vector<int>& node_of) {
  std::vector<DeathSummary> deaths;
  for (size_t w = 0; w < result.workers.size(); ++w) {
    const SimulatedWorker& worker = result.workers[w];
    if (worker.died < 0) continue;
    const int rank = static_cast<int>(w);
    deaths.push_back({rank, node_of[w], ToSeconds(worker.died), worker.steps});
  }
  std::stable_sort(deaths.begin(), deaths.end(),
                   [](const auto& a, const auto& b) { return a.seconds < b.seconds; });
  return deaths;
}

}  // namespace

ModelProfile ProfileByFlops(const Graph& graph) {
  ModelProfile profile;
  profile.model = graph.name();
  profile.device = "cpu";
  profile.batch = 1;
  for (const GraphLayer& layer : graph.layers()) {
    const int64_t params = layer.param_range.size();
    profile.layers.push_back({layer.name, params, params * static_cast<int64_t>(sizeof(float)), 0,
                              0, layer.cost.forward_flops + layer.cost.backward_flops});
  }
  return profile;
}

SimulatedRun::SimulatedRun(const RunConfig& config, const std::optional<ModelProfile>& profile,
                           bool numeric, std::shared_ptr<Dataset> data)
    : config_(config), data_(std::move(data)) {
  for (const std::string& warning : config.warnings) log::Warning("{}", warning);
  for (const std::string& note : config.notes) log::Info("{}", note);
  const int nodes = config.strategy->Place(static_cast<int>(config.workers)).nodes();
  if (nodes > 1 && !config.cluster.per_node_given) {
    log::Warning("{} is simulated with nodes of one worker each: set cluster.per_node",
                 config.strategy_name);
  }
  if (!config.model.yaml.empty() && config.data.source) {
    if (numeric && !data_) data_ = LoadData(config);
    graph_ =
        std::make_unique<Graph>(data_ ? ReadModel(config, data_->fields()) : ReadModel(config));
    if (data_) DecideTargets(*graph_, *data_);
    CheckCanBeSimulated(config, *graph_);
    if (numeric && config.plan == "measure") {
      throw ConfigError("a simulation does not measure its plan, so that it repeats to the bit",
                        "plan: auto, or the file of dtrain time --tune FILE");
    }
    const int workers = static_cast<int>(config.workers);
    plan_ = DecidePlan(config, *graph_, workers, ThreadsHere(workers));
  } else if (config.plan_is_file()) {
    plan_ = ReadPlan(config.plan);
  }
  setup_.cluster = config.cluster;
  setup_.seed = config.seed;
  int64_t epoch_samples = config.batch * 1000;
  if (config.data.source) epoch_samples = config.data.source->size(Split::kTrain);
  if (data_) epoch_samples = data_->size(Split::kTrain);
  BoundarySchedule rule = BoundaryScheduleOf(config, epoch_samples);
  if (!numeric) rule.evaluate_every_epochs = rule.evaluate_every_steps = 0;
  rule.checkpoint_every_epochs = rule.checkpoint_every_steps = 0;
  DescribeModel(profile, rule);
  DecideCost(profile);
  progress_.last_samples = rule.last_samples;
  PlanBuckets();
  if (!graph_) {  // DecidePlan has not described the run
    plan_.isa = IsaName(CpuIsa());
    plan_.precision = config.precision;
    plan_.workers = static_cast<int>(config.workers);
    plan_.collective = config.collective;
    plan_.buckets = setup_.exchange.actors.buckets;
  }
  if (numeric) MakeEngine();
}

SimulatedRun::~SimulatedRun() = default;

void SimulatedRun::DescribeModel(const std::optional<ModelProfile>& profile,
                                 const BoundarySchedule& rule) {
  if (graph_) {
    setup_.exchange = ExchangeOf(config_, graph_->weights(), LayerGradientsOf(*graph_), rule);
    setup_.profile = profile ? *profile : ProfileByFlops(*graph_);
    CheckProfileFits(setup_.profile, setup_.exchange.layer_gradients);
    return;
  }
  if (!profile) throw UsageError("there is no model to simulate", "give --config or --profile");
  if (config_.compress.coder() != nullptr) {
    throw UsageError("compressor '" + config_.compress.name +
                         "' needs the shapes of the model's parameters, and a profile has none",
                     "name the model as well: --config, or --set model.name");
  }
  setup_.profile = *profile;
  ghost_layout_.entries = {{profile->model, {profile->params()}, {0, profile->params()}, true}};
  setup_.exchange = ExchangeOf(config_, ghost_layout_, LayerGradientsOf(*profile), rule);
}

LayerGradients SimulatedRun::PlannedLayerGradients() const {
  LayerGradients layer_gradients = TimedLayerGradients(setup_);
  if (ReduceTime measured = MeasuredSums(setup_.profile, config_)) {
    layer_gradients.reduce_seconds = std::move(measured);
  }
  return layer_gradients;
}

// The cost is that of the config's file or, with `plan: FILE`, that of the plan if it has one.
void SimulatedRun::DecideCost(const std::optional<ModelProfile>& profile) {
  const CompressCost& own = config_.compress_cost;
  const bool planned =
      plan_.compress_cost.known() && plan_.compress_cost.compressor == config_.compress.cost_name();
  if (!planned) plan_.compress_cost = own;
  setup_.exchange.compress_cost = plan_.compress_cost;
  if (planned || !own.known() || !profile || profile->device == config_.costs_device) return;
  throw ConfigError(
      fmt::format("{}: the compressor costs of {} were measured on device '{}', the profile of {} "
                  "on '{}'",
                  config_.costs_where, own.file, config_.costs_device, profile->model,
                  profile->device),
      "give costs and times of the same machine: dtrain bench topk --device " + profile->device +
          " --costs FILE");
}

// Plans by the times that a run on this cluster would measure, unless `plan: FILE` has them.
void SimulatedRun::PlanBuckets() {
  if (!PlansByTime(config_)) return;
  ExchangeSpec& spec = setup_.exchange;
  // With a graph, DecidePlan has done it.
  if (!graph_) ResolveBuckets(config_, spec.layer_gradients, plan_);
  if (plan_.buckets.empty()) DecideBuckets(config_, PlannedLayerGradients(), plan_);
  spec.actors.buckets = plan_.buckets;
}

void SimulatedRun::MakeEngine() {
  if (!graph_) throw UsageError("a numeric simulation needs a model and data", "give --config");
  engine_ = std::make_unique<NumericEngine>(config_, *graph_, plan_, data_);
  setup_.source = engine_.get();
  setup_.exchange.start.weights = engine_->initial_weights();
}

std::optional<int64_t> SimulatedRun::KeepCheckpoints(const fs::path& output,
                                                     const std::string& resume) {
  if (!engine_) {
    throw UsageError("a simulation of sizes alone has no weights to save",
                     "--numeric computes real gradients");
  }
  if (!config_.cluster.deaths.empty()) {
    throw UsageError("a simulation with deaths writes no checkpoints",
                     "leave out --resume, or cluster.deaths");
  }
  WriteTo(output);
  saves_ = true;
  BoundarySchedule& rule = setup_.exchange.rule;
  rule.checkpoint_every_epochs = config_.checkpoint.every_epochs;
  rule.checkpoint_every_steps = config_.checkpoint.every_steps;
  world_ = WorldOf(config_, *graph_, *data_, RunTime::kVirtual);
  start_ = FindStart(*graph_, *data_, config_, {.resume = resume}, *folder_, RunTime::kVirtual);
  layout_ = ModelLayoutOf(*graph_, *data_);
  layout_.data_hashes = start_.data_hashes.all.empty() ? data_->Hashes() : start_.data_hashes;
  if (!start_.plan) return std::nullopt;
  // The engine may hold samples with the former normalisation.
  if (!start_.images.empty()) MakeEngine();
  rule.step_offset = start_.step_offset;
  rule.last_samples =
      BoundaryScheduleOf(config_, rule.epoch_samples, rule.step_offset).last_samples;
  progress_.last_samples = rule.last_samples;
  engine_->CountFrom(rule.step_offset);
  ExecutionPlan plan = plan_;
  FollowPlanOf(start_, config_, plan);  // warns if it cannot be followed
  plan_.compress_cost = setup_.exchange.compress_cost = plan.compress_cost;
  if (PlansByTime(config_)) {
    plan_.buckets = setup_.exchange.actors.buckets = plan.buckets;
    plan_.predicted_seconds = plan.predicted_seconds;
  }
  GoOn();
  return start_.position.step;
}

void SimulatedRun::StudyGradients(const fs::path& output) {
  if (config_.statistics_every == 0) return;
  if (!engine_) {
    throw ConfigError("a simulation of sizes alone has no gradients to study (gradients.every)",
                      "--numeric computes real gradients; gradients.every: 0 leaves it out");
  }
  if (output.empty()) {
    throw ConfigError("gradients.every needs a folder to write gradients.jsonl to",
                      "give --output DIR, or leave it out with gradients.every: 0");
  }
  statistics_ =
      std::make_unique<StatisticsWithFile>(config_.statistics_every, RunFolder(output).gradients());
  setup_.exchange.statistics = &statistics_->statistics;
}

bool SimulatedRun::IsFinished() const {
  return start_.in_own_folder && TellFinished(*folder_, config_, graph_->metric_names(),
                                              start_.position, start_.so_far, setup_.exchange.rule);
}

void SimulatedRun::GoOn() {
  setup_.exchange.start = {.samples_applied = start_.position.samples_applied,
                           .updates = start_.position.updates,
                           .weights = start_.weights,
                           .solver = &start_.solver,
                           .ranks = &actors_,
                           .kept = &start_.ranks.kept};
  const bool lockstep = config_.strategy->traits().lockstep;
  setup_.first_step = start_.position.step - (lockstep ? 0 : start_.step_offset);
  setup_.first_time = FromSeconds(start_.so_far.training_seconds);
  progress_.steps = start_.position.step * config_.workers;
  for (int worker = 0; worker < setup_.exchange.placement().workers; ++worker) {
    std::copy(start_.state.begin(), start_.state.end(), engine_->State(worker).begin());
  }
  if (!start_.ranks.exact()) return;
  for (size_t i = 0; i < start_.ranks.hashes.size(); ++i) {
    const auto rank = static_cast<Rank>(i);
    RankCheckpoint file = ReadRankCheckpoint(start_.ranks.main, rank, start_.ranks.hashes[i]);
    if (!file.exchange.empty()) actors_[rank] = std::move(file.exchange);
    if (setup_.exchange.placement().IsWorker(rank)) {
      std::vector<float> statistics = std::move(file.host.fields.back().floats);
      file.host.fields.pop_back();
      CopyFrozen(graph_->state(), start_.state.data(), statistics.data());
      std::copy(statistics.begin(), statistics.end(), engine_->State(rank).begin());
    }
    hosts_[rank] = std::move(file.host);
  }
  setup_.hosts = &hosts_;
}

Summary SimulatedRun::Run(const EvaluationCallback& on_evaluation) {
  on_evaluation_ = on_evaluation;
  if (engine_) BeginSession();
  if (statistics_ && !start_.KeptStep()) statistics_->file.KeepNoLines();
  setup_.progress = &progress_;
  Simulation simulation(setup_);
  simulation_ = &simulation;
  SimulationResult result = simulation.Run();
  simulation_ = nullptr;
  timelines_ = std::move(result.timelines);
  return Summarize(result);
}

void SimulatedRun::BeginSession() {
  if (folder_) MakeFolder(folder_->path());
  state_ = start_.state;  // a run that is over comes to no boundary
  if (layout_.parameters.entries.empty()) layout_ = ModelLayoutOf(*graph_, *data_);
  // Only files of weights name the data; KeepCheckpoints has hashed them for its own.
  if (folder_ && config_.checkpoint.keep_best && layout_.data_hashes.all.empty()) {
    layout_.data_hashes = data_->Hashes();
  }
  BoundarySchedule& rule = setup_.exchange.rule;
  session_.emplace(SessionSetup{.config = config_,
                                .graph = *graph_,
                                .dataset = *data_,
                                .plan = plan_,
                                .layout = layout_,
                                .time = RunTime::kVirtual,
                                .folder = folder_ ? folder_->path() : fs::path(),
                                .saves = saves_,
                                .tells = tells_},
                   rule, start_, *this);
  session_->Open(start_);
  CountEpochs();
  session_->EndWhereItEnded();
  rule = session_->position().rule();
  progress_.last_samples = rule.last_samples;
  setup_.exchange.start.over =
      start_.so_far.over && session_->now().samples_applied >= rule.last_samples;
  setup_.at_boundary = [this](const BoundaryState& state, Nanos now, const float* weights) {
    return AtBoundary(state, now, weights);
  };
}

// Starts counting the training results of each epoch, as the ranks of a real run do.
void SimulatedRun::CountEpochs() {
  const int workers = setup_.exchange.placement().workers;
  counters_.assign(static_cast<size_t>(workers),
                   EpochCounter(config_.strategy->traits().lockstep, workers));
  for (EpochCounter& counter : counters_) counter.BoundaryAt(session_->now().samples_applied);
  engine_->Watch([this](int worker, int64_t step, const TrainedEpoch& found) {
    counters_[static_cast<size_t>(worker)].Add(setup_.exchange.rule, step, found);
  });
}

void SimulatedRun::CountEpochSamples(int64_t samples_applied) {
  for (EpochCounter& counter : counters_) {
    session_->Add(counter.Take());
    counter.BoundaryAt(samples_applied);
  }
}

// Does nothing but count and collect in a run that has diverged.
bool SimulatedRun::AtBoundary(const BoundaryState& state, Nanos now, const float* weights) {
  now_ = now;
  weights_ = weights;
  session_->position().MoveTo(state.samples_applied);
  CountEpochSamples(state.samples_applied);
  // A resumed run with nothing left to do keeps the loss from before.
  if (session_->position().samples() > 0) session_->NoteLoss(simulation_->Loss());
  if (state.finite) return session_->AtBoundary(/*stopped=*/false).has_value();
  Collect(false);
  return false;
}

void SimulatedRun::Collect(bool with_solver) {
  state_ = engine_->StateOf(weights_);
  if (with_solver) solver_ = simulation_->SolverState();
}

BoundaryModel SimulatedRun::model() {
  BoundaryModel model{weights_, state_.data()};
  for (const auto& [name, values] : solver_) model.solver[name] = values.data();
  model.updates = simulation_->Updates();
  return model;
}

Evaluation SimulatedRun::Evaluate(Split split, const BestWeights& best) {
  const auto [weights, state] = best.Or(weights_, state_.data());
  return engine_->Evaluate(split, weights, state);
}

std::vector<std::string> SimulatedRun::WriteRankFiles(const fs::path& main,
                                                      const TrainingPosition& position) {
  std::vector<std::string> hashes;
  for (Rank rank = 0; rank < setup_.exchange.placement().ranks(); ++rank) {
    hashes.push_back(SaveRank(main, position, rank));
  }
  return hashes;
}

// Writes the rank file of a rank.  In a synchronous run only the hosts, not the actors, have state beyond the model's
// weights.
std::string SimulatedRun::SaveRank(const fs::path& main, const TrainingPosition& position,
                                   Rank rank) {
  const Placement& placement = setup_.exchange.placement();
  Simulation::SavedRank saved = simulation_->Save(rank);
  RankCheckpoint file = world_;
  file.rank = rank;
  file.step = position.step;
  file.samples_applied = position.samples_applied;
  file.role = placement.RoleOf(rank);
  file.host = std::move(saved.host);
  if (KeepsRankState(config_)) {
    file.holds = std::move(saved.holds);
    file.exchange = std::move(saved.actors);
  }
  if (placement.IsWorker(rank)) {
    const std::span<const float> state = engine_->State(rank);
    file.host.fields.push_back(
        {"", "statistics", StateField::Kind::kFloats, {}, {state.begin(), state.end()}});
  }
  return WriteRankCheckpoint(main, file);
}

Summary SimulatedRun::Summarize(const SimulationResult& result) const {
  Summary summary;
  DescribeConfig(config_, summary);
  if (graph_) DescribeRun(config_, *graph_, plan_, summary);
  summary.model = setup_.profile.model;
  summary.compute = engine_ ? "numeric" : "ghost";
  DescribeEnd(result.end.finite ? ExitCode::kDone : ExitCode::kDiverged, summary);
  RunPosition end(setup_.exchange.rule,
                  {});  // the summary counts from the beginning, also after a resume
  end.MoveTo(result.end.samples_applied);
  end.Describe(summary);
  summary.seconds = ToSeconds(result.time);
  summary.samples_per_second =
      static_cast<double>(result.end.samples_applied) / std::max(summary.seconds, 1e-9);
  summary.step_seconds = StepSecondsOf(result.step_seconds);
  CommunicationSummary communication;
  communication.bytes_sent = result.traffic.bytes_sent;
  if (result.traffic.bytes_inside > 0) {
    communication.bytes_inside_nodes = result.traffic.bytes_inside;
  }
  communication.bytes_received = result.traffic.bytes_received;
  communication.messages = result.traffic.messages;
  for (size_t w = 0; w < result.workers.size(); ++w) {
    const SimulatedWorker& worker = result.workers[w];
    const RankReport report{worker.steps,
                            worker.samples,
                            worker.compute,
                            {.exposed = worker.wait, .worker = worker.protocol}};
    const WorkerSummary detail = WorkerSummaryOf(static_cast<int>(w), "", report, config_.batch);
    communication.exposed_seconds = std::max(communication.exposed_seconds, detail.wait_seconds);
    summary.workers_detail.push_back(detail);
  }
  summary.deaths =
      DeathsOf(result, NodesOfRanks(setup_.exchange.placement(), config_.cluster.per_node()));
  DescribeCompression(result.compression, ToSeconds(result.compress_longest), communication);
  summary.communication = communication;
  DescribeBytesPerGradient(summary);
  DescribeProtocol(result.protocol, summary);
  NameIdleServers(summary);
  if (session_) {
    session_->Describe(summary);
    summary.weights_sha256 =
        WeightsSha256(ModelLayoutOf(*graph_), result.weights.data(), state_.data());
  }
  summary.config_sha256 = config_.config_sha256;
  return summary;
}

std::string ReplayRecord(const RunConfig& given, const RunRecord& record) {
  RunConfig config = given;
  config.node_of = record.node_of;
  config.plan = "auto";  // the record has the plan
  if (record.first_step > 0 || !record.weights.empty()) {
    throw UsageError("the recorded run did not begin with the model's initial weights",
                     "only a run without --resume and --weights can be replayed");
  }
  const std::shared_ptr<Dataset> data = LoadData(config);
  SimulatedRun run(config, std::nullopt, false, data);
  ExecutionPlan plan = record.plan;
  NumericEngine engine(config, run.graph(), plan, data);
  ExecutionPlan present = plan;
  if (config.device != "auto") present.device = NameOf(DeviceKindOf(config.device));
  present.isa = IsaName(CpuIsa());
  present.precision = config.precision;
  const std::string differences = Differences(record.plan, present);
  if (!differences.empty()) log::Warning("not bit-equal to the recorded run: {}", differences);
  SimulationSetup setup = run.setup();
  setup.source = &engine;
  setup.exchange.start.weights = engine.initial_weights();
  std::vector<std::vector<Event>> logs;
  for (const std::string& log : record.logs) logs.push_back(EventLog::Read(log, "record"));
  const std::vector<float> weights = Replay(setup, logs);
  return WeightsSha256(ModelLayoutOf(run.graph()), weights.data(),
                       engine.StateOf(weights.data()).data());
}

}  // namespace dtrain
