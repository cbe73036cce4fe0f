#include "framework/train/run_session.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "framework/checkpoint/checkpoint_folder.h"
#include "framework/core/bytes.h"
#include "framework/core/file.h"
#include "framework/core/log.h"
#include "framework/core/process.h"
#include "framework/evaluate/guessing.h"
#include "framework/results/summary.h"
#include "framework/setup/data_summary.h"
#include "framework/setup/run_setup.h"

namespace dtrain {
namespace fs = std::filesystem;

RunSession::RunSession(const SessionSetup& setup, const BoundarySchedule& rule,
                       const StartPoint& start, RunHost& host)
    : setup_(setup),
      config_(setup.config),
      host_(host),
      folder_(setup.folder),
      position_(rule, start.position),
      boundary_(start.position),
      saved_samples_(start.SavedSamples()),
      kept_step_(start.KeptStep()),
      results_(setup.graph.metric_names(), setup.config.stop),
      so_far_(start.so_far) {}

MetricsPoint RunSession::Here() const {
  const RunHost::Seconds seconds = host_.Now();
  return {position_.epoch(), now().step, now().samples_applied, seconds.run, seconds.training};
}

void RunSession::Open(const StartPoint& start) {
  if (writes()) {
    metrics_ = std::make_unique<MetricsWriter>(folder_.metrics(), kept_step_, so_far_.evaluations);
    if (config_.tensorboard) {
      tensorboard_ = std::make_unique<TensorBoardWriter>(folder_.tensorboard(), kept_step_);
    }
  }
  if (!setup_.root || start.position.step == 0) return;
  loss_ = so_far_.loss;
  RecallEvaluations(so_far_, start.position.step, results_);
  if (writes() && config_.checkpoint.keep_best && results_.best()) {
    BringBest(BestFile(), start.file, *results_.best());
  }
}

bool RunSession::Agree(bool yes) {
  return host_.FromRoot([&] { return yes ? "yes" : "no"; }) == "yes";
}

// Returns rank 0's answer, since only rank 0 knows the evaluations from before a resume.
bool RunSession::MayEnd() { return config_.stop.any() && Agree(results_.over()); }

void RunSession::EndWhereItEnded() {
  if (!MayEnd()) return;
  EndsEarly();
  position_.EndHere();
}

void RunSession::EndsEarly() const {
  if (setup_.root && setup_.tells) log::Info("the run ends here: {}", results_.WhyOver());
}

void RunSession::Log(const StepMetrics& metrics) {
  if (!setup_.root) return;
  if (metrics_) metrics_->Write(metrics);
  if (tensorboard_) tensorboard_->Write(metrics);
  loss_ = metrics.loss;
}

bool RunSession::CheckpointIsDue(const BoundaryPoint& point) const {
  return setup_.saves && CheckpointDue(config_, point, saved_samples_);
}

std::optional<ExitCode> RunSession::AtBoundary(bool stopped) {
  BoundaryPoint point{boundary_, now(), position_.RunEnds(), stopped};
  bool save = CheckpointIsDue(point);
  const bool evaluate = EvaluationDue(config_, point);
  if (evaluate || save || stopped || point.run_ends) host_.Collect(save);
  if (evaluate) point.run_ends = EvaluateSplits(point.run_ends);
  if (!save && CheckpointIsDue(point)) {
    host_.Collect(true);
    save = true;
  }
  if (save) Save(point);
  boundary_ = now();
  if (point.run_ends) return ExitCode::kDone;
  if (stopped) return ExitCode::kStopped;
  return std::nullopt;
}

// Evaluates the splits that are due.  Returns true if the run ends here, which may be before its last epoch.
bool RunSession::EvaluateSplits(bool run_ends) {
  const std::vector<Split> splits = SplitsToEvaluate(setup_.dataset, run_ends);
  for (const Split split : splits) Evaluate(split);
  if (run_ends || !MayEnd()) return run_ends;
  EndsEarly();
  for (const Split split : SplitsToEvaluate(setup_.dataset, true)) {
    if (std::ranges::find(splits, split) == splits.end()) Evaluate(split);
  }
  return true;
}

void RunSession::Evaluate(Split split) {
  // A run that is resumed at its end was evaluated there.
  const bool begins = now().samples_applied == position_.first().samples_applied;
  if (begins && Agree(results_.Has(split, now().samples_applied))) return;
  host_.Does(Doing::kEvaluating);
  const Nanos started = WallNow();
  const double begun = Here().seconds;
  const BestWeights best = WeightsToTest(split);
  Evaluation evaluation = host_.Evaluate(split, best);
  if (best.step >= 0) evaluation.step = best.step;
  host_.Did(Doing::kEvaluating, started);
  if (!setup_.root) return;
  const MetricsPoint at = Here();
  const EvaluationMetrics metrics = results_.Note(at, split, evaluation, at.seconds - begun);
  if (metrics_) metrics_->Write(metrics);
  if (tensorboard_) tensorboard_->Write(metrics);
  if (setup_.tells) Tell(at, split, evaluation);
  host_.Evaluated(at, split, evaluation);
  KeepBest(split);
}

void RunSession::Tell(const MetricsPoint& at, Split split, const Evaluation& evaluation) const {
  const bool by_steps = config_.evaluate.every_steps > 0;
  std::string where;
  if (setup_.time == RunTime::kVirtual) {
    // One decimal is enough if evaluations are at the ends of epochs.
    where = fmt::format("epoch {:.{}f}, {:.1f} virtual s", position_.epochs(), by_steps ? 2 : 1,
                        at.seconds);
  } else {
    where = fmt::format("epoch {}", at.epoch + 1);
    if (by_steps) where += fmt::format(", step {}", at.step);
  }
  log::Info("{}: {} {}{}", where, split == Split::kValidation ? "validation" : "test",
            dtrain::Describe(evaluation, results_.metric_names()),
            WeightsText(results_.EpochOf(evaluation), evaluation.step));
}

// Returns the weights with which a split is evaluated at the end of a run: the best ones for the test split if the
// config keeps them; else none, and the last ones are evaluated.
BestWeights RunSession::WeightsToTest(Split split) {
  if (split != Split::kTest || !config_.checkpoint.keep_best) return {};
  return FromBytes<BestWeights>(host_.FromRoot([&] {
    if (setup_.folder.empty()) return ToBytes(best_);
    return ToBytes(ReadBest(BestFile(), results_.best(), setup_.layout));
  }));
}

// Keeps the weights of this evaluation if it was the best so far.  In a set without a validation split, the test split
// decides which evaluation is the best, and no weights are chosen by it.
void RunSession::KeepBest(Split split) {
  if (split != Split::kValidation || !config_.checkpoint.keep_best) return;
  if (!results_.best() || results_.best()->step != now().step) return;
  const BoundaryModel model = host_.model();
  const ModelLayout layout = ModelLayoutOf(setup_.graph);
  if (setup_.folder.empty()) {
    best_ = {now().step,
             {model.weights, model.weights + layout.parameters.size()},
             {model.state, model.state + layout.state.size()}};
    return;
  }
  CheckpointInfo info = InfoOf(now());
  info.plan_json.clear();  // a file without a plan is weights alone, not a checkpoint
  MakeFolder(folder_.checkpoints());
  WriteCheckpoint(BestFile(), {info, layout, model.weights, {}, model.state});
}

fs::path RunSession::BestFile() const { return folder_.checkpoints() / kBestName; }

CheckpointInfo RunSession::InfoOf(const TrainingPosition& position) const {
  return {.position = position,
          .seed = config_.seed,
          .model = setup_.graph.name(),
          .solver = config_.solver.name,
          .config_yaml = config_.effective_yaml,
          .plan_json = ToJson(setup_.plan),
          .source_revision = SourceRevision(),
          .text = setup_.layout.text,
          .images = setup_.layout.images,
          .model_yaml = config_.model.yaml,
          .data_hashes = setup_.layout.data_hashes};
}

void RunSession::Save(const BoundaryPoint& point) {
  host_.Does(Doing::kCheckpointing);
  const Nanos started = WallNow();
  const MetricsPoint at = Here();
  TrainingPosition position = now();
  const CheckpointFolder folder(folder_.checkpoints(), static_cast<int>(config_.checkpoint.keep));
  const std::vector<std::string> rank_files =
      host_.WriteRankFiles(folder_.checkpoints() / CheckpointName(position.step), position);
  if (setup_.root) {
    const BoundaryModel model = host_.model();
    position.updates = model.updates;
    position.loss_scale = model.loss_scale;
    StepCount steps = so_far_.steps;
    steps.at_epoch_end =
        position_.rule().PausedForEpoch(boundary_.samples_applied, now().samples_applied);
    CheckpointInfo info = InfoOf(position);
    info.rank_files = rank_files;
    info.so_far = ToJson(RunSoFar{.seconds = at.seconds,
                                  .training_seconds = at.training_seconds.value_or(0),
                                  .epoch = so_far_.epoch,
                                  .loss = loss_,
                                  .steps = steps,
                                  .over = setup_.time == RunTime::kVirtual && point.run_ends,
                                  .evaluations = results_.lines()});
    const ModelLayout layout = ModelLayoutOf(setup_.graph);
    const double begun = Here().seconds;
    const fs::path file = folder.Save({info, layout, model.weights, model.solver, model.state});
    // In virtual time a checkpoint takes none, and metrics.jsonl is the same whether a run was interrupted or not.
    if (setup_.time == RunTime::kReal) {
      metrics_->Write(CheckpointMetrics{at, file.filename().string(), Here().seconds - begun});
    }
  }
  saved_samples_ = position.samples_applied;
  // The other ranks wait for rank 0 here and not in their next step, where a slow disk would look like a stall.
  host_.FromRoot([] { return std::string(); });
  host_.Did(Doing::kCheckpointing, started);
}

void RunSession::Describe(Summary& summary) const {
  summary.data = DescribeData(setup_.dataset);
  summary.train_loss = loss_;
  DescribeTraining(so_far_.epoch, setup_.graph, summary);
  results_.Describe(position_.rule(), now().step, summary);
  DescribeGuess(setup_.graph, setup_.dataset, summary);
}

}  // namespace dtrain
