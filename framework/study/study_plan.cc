#include "framework/study/study_plan.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <set>

#include <fmt/format.h>

#include "framework/config/tree.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/sha256.h"
#include "framework/core/text.h"
#include "framework/setup/run_config.h"
#include "framework/setup/run_exchange.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;
using Values = std::map<std::string, std::string>;  // of a config, by path

constexpr char kServers[] = "strategy.servers";

std::vector<config::PathValue> ParsedValues(const std::string& yaml, const std::string& file,
                                            const std::vector<std::string>& overrides) {
  config::Diagnostics diagnostics;
  std::optional<config::Tree> tree = config::ParseYaml(yaml, config::PlacesIn(file), diagnostics);
  if (!tree) return {};  // reported by ReadRunConfig
  config::ApplyOverrides(overrides, {}, *tree, diagnostics);
  return config::ValuesByPath(*tree);
}

Values ValuesOf(const RunConfig& config) {
  Values values;
  for (const config::PathValue& value : ParsedValues(config.effective_yaml, "", {})) {
    values[value.path] = value.text;
  }
  return values;
}

// True for a key by which a method is what it is.  The number of servers is not: a protocol with four of them has four
// network cards more than one with none.
bool BelongsToMethod(const std::string& key) {
  if (key == kServers) return false;
  return key.starts_with("strategy.") || key.starts_with("compress.") || key == "collective" ||
         key == "overlap_buckets" || key == "window" || key == "output";
}

// True for a key that says where a run is done and how it is watched, not what it does.
bool SaysWhere(const std::string& key) {
  static const std::set<std::string> kKeys = {"device",          "threads",       "output",
                                              "data.root",       "stall_seconds", "log_every_steps",
                                              "log_first_steps", "tensorboard",   "timeline"};
  return kKeys.contains(key);
}

const std::string* ReasonFor(const std::string& key, const Study& study) {
  for (const auto& [term, why] : study.why) {
    if (key == term || key.starts_with(term + ".")) return &why;
  }
  return nullptr;
}

// Finds the keys that are not equal for all methods of a case and adds them to `unequal`, each once.
void CompareTerms(const Study& study, const std::vector<Values>& methods,
                  std::vector<UnequalTerm>& unequal) {
  std::set<std::string> keys;
  for (const Values& values : methods) {
    for (const auto& [key, value] : values) keys.insert(key);
  }
  for (const std::string& key : keys) {
    if (BelongsToMethod(key)) continue;
    std::set<std::string> found;
    std::vector<std::string> said;
    for (size_t m = 0; m < methods.size(); ++m) {
      const auto value = methods[m].find(key);
      // A strategy without servers has nothing to compare there.
      if (value == methods[m].end() && key == kServers) continue;
      const std::string text = value == methods[m].end() ? "none" : value->second;
      found.insert(text);
      said.push_back(study.methods[m].name + " " + text);
    }
    const bool known = std::any_of(unequal.begin(), unequal.end(),
                                   [&](const UnequalTerm& term) { return term.key == key; });
    if (found.size() < 2 || known) continue;
    const std::string* const why = ReasonFor(key, study);
    unequal.push_back({key, Join(said), why == nullptr ? "" : *why});
  }
}

void RefuseUnequalTerms(const Study& study, const std::vector<UnequalTerm>& unequal) {
  std::vector<std::string> errors;
  for (const UnequalTerm& term : unequal) {
    if (term.why.empty()) errors.push_back(fmt::format("{}: {}", term.key, term.values));
  }
  for (const auto& [key, why] : study.why) {
    const bool used =
        std::any_of(unequal.begin(), unequal.end(), [&key = key](const UnequalTerm& term) {
          return term.key == key || term.key.starts_with(key + ".");
        });
    if (!used)
      throw ConfigError(study.file + ": why: '" + key + "' is equal for all methods", "remove it");
  }
  if (errors.empty()) return;
  throw ConfigError(study.file + ": the methods are not on equal terms: " + Join(errors, "; "),
                    "make them equal, or add a sentence for each to 'why'; nothing was started");
}

}  // namespace

StudyPlan::StudyPlan(const Study& study, const std::string& output, const std::string& device)
    : study_(study),
      output_(output),
      device_(device),
      run_yaml_(study.run.empty() ? kGhostYaml : config::ReadConfigText(study.run)) {
  CheckConfigs();
  if (study_.tuning.keys.empty()) return;
  for (const uint64_t seed : study_.tuning.seeds) {
    for (const std::vector<Setting>& values : Combinations(study_.tuning.keys)) {
      for (size_t c = 0; c < study_.cases.size(); ++c) {
        for (size_t m = 0; m < study_.methods.size(); ++m) {
          tuning_runs_.push_back(MakeRun(true, c, m, seed, values));
        }
      }
    }
  }
}

StudyPlan::MethodFacts StudyPlan::FactsOf(const RunConfig& config,
                                          const std::string& profile_hash) {
  MethodFacts facts;
  facts.ranks = PlacementOf(config).ranks();
  facts.holds_out = config.data.source == nullptr || !config.data.source->has_validation();
  facts.files = "model " + Sha256::Of(config.model.yaml) + "\nprofile " + profile_hash;
  if (config.compress_cost.known()) facts.files += "\ncosts " + config.compress_cost.sha256;
  return facts;
}

// The values of tuned keys are read in the first case.
void StudyPlan::CheckConfigs() {
  const std::vector<std::vector<Setting>> tuned = Combinations(study_.tuning.keys);
  const auto read = [&](const StudyRun& run) {
    const std::vector<std::string> overrides = TextsOf(SettingsOf(run));
    config::Document document =
        config::Document::FromText(run_yaml_, study_.run, overrides, {}, study_.places);
    return study_.run.empty() ? ReadGhostConfig(document) : ReadRunConfig(document);
  };
  for (size_t c = 0; c < study_.cases.size(); ++c) {
    std::vector<Values> methods;
    const std::string& profile = study_.cases[c].profile;
    const std::string profile_hash = profile.empty() ? "" : Sha256::Of(ReadFile(profile));
    facts_.emplace_back(study_.methods.size());
    for (size_t m = 0; m < study_.methods.size(); ++m) {
      const RunConfig config = read({false, c, m, study_.seeds.front(), tuned.front()});
      facts_[c][m] = FactsOf(config, profile_hash);
      methods.push_back(ValuesOf(config));
      for (const VariedSetting& key : study_.tuning.keys) methods.back().erase(key.key);
      if (study_.tuning.keys.empty()) continue;
      for (const std::vector<Setting>& values : tuned) {
        const RunConfig trial = read({true, c, m, study_.tuning.seeds.front(), values});
        facts_[c][m].tuning_work = static_cast<double>(trial.epochs) /
                                   static_cast<double>(std::max<int64_t>(config.epochs, 1));
        if (c > 0) break;
      }
    }
    CompareTerms(study_, methods, unequal_);
  }
  RefuseUnequalTerms(study_, unequal_);
}

std::vector<Setting> StudyPlan::SettingsOf(const StudyRun& run) const {
  std::vector<Setting> settings = study_.set;
  const auto add = [&](const std::vector<Setting>& more) {
    settings.insert(settings.end(), more.begin(), more.end());
  };
  add(study_.cases[run.case_index].settings);
  add(study_.methods[run.method].settings);
  add(run.tuned);
  if (run.tuning) {
    add(study_.tuning.set);
    if (facts_[run.case_index][run.method].holds_out)
      add({{"data.validation", fmt::format("{}", study_.tuning.validation)}});
  }
  add({{"seed", std::to_string(run.seed)}});
  return settings;
}

std::string StudyPlan::IdOf(const std::vector<std::string>& overrides,
                            const std::string& files) const {
  std::vector<std::string> lines;
  for (const config::PathValue& value : ParsedValues(run_yaml_, study_.run, overrides)) {
    if (!SaysWhere(value.path)) lines.push_back(value.path + "=" + value.text);
  }
  std::sort(lines.begin(), lines.end());
  lines.push_back(std::string("by ") + (study_.simulated ? "simulate" : "train"));
  lines.push_back(files);
  return Sha256::Of(Join(lines, "\n")).substr(0, 16);
}

StudyRun StudyPlan::MakeRun(bool tuning, size_t case_index, size_t method, uint64_t seed,
                            std::vector<Setting> tuned) const {
  StudyRun run{tuning, case_index, method, seed, std::move(tuned)};
  const std::vector<std::string> overrides = TextsOf(SettingsOf(run));
  const MethodFacts& facts = facts_[case_index][method];
  run.id = IdOf(overrides, facts.files);
  run.ranks = facts.ranks;
  const std::string& case_name = study_.cases[case_index].name;
  const std::string& method_name = study_.methods[method].name;
  run.job.name = (case_name.empty() ? "" : case_name + ": ") + method_name;
  for (const Setting& setting : run.tuned) run.job.name += ", " + setting.text();
  run.job.name += fmt::format(", seed {}{}", seed, tuning ? " (tuning)" : "");
  // The id tells apart what has the same name, and results of other settings that are in the folder.
  const fs::path folder =
      fs::path(output_) / "runs" /
      (FolderNameFor(case_name.empty() ? method_name : case_name + "-" + method_name) +
       fmt::format("-seed{}-{}", seed, run.id.substr(0, 8)));
  run.job.folder = folder.string();
  std::vector<std::string>& arguments = run.job.arguments;
  arguments = {study_.simulated ? "simulate" : "train"};
  if (!study_.run.empty()) arguments.insert(arguments.end(), {"--config", study_.run});
  if (study_.sizes_only()) {
    arguments.insert(arguments.end(), {"--profile", study_.cases[case_index].profile});
  } else if (study_.simulated) {
    arguments.emplace_back("--numeric");
  }
  for (const std::string& setting : overrides)
    arguments.insert(arguments.end(), {"--set", setting});
  if (!device_.empty()) arguments.insert(arguments.end(), {"--device", device_});
  arguments.insert(arguments.end(), {"--output", run.job.folder});
  if (!study_.sizes_only()) arguments.insert(arguments.end(), {"--resume", "auto"});
  if (tuning) run.job.work = facts.tuning_work;
  return run;
}

std::vector<StudyRun> StudyPlan::ResultRuns(const StudyRecords& records) const {
  std::vector<StudyRun> runs;
  for (const uint64_t seed : study_.seeds) {
    for (size_t c = 0; c < study_.cases.size(); ++c) {
      for (size_t m = 0; m < study_.methods.size(); ++m) {
        const auto tuned = TunedOf(c, m, records);
        if (tuned) runs.push_back(MakeRun(false, c, m, seed, *tuned));
      }
    }
  }
  return runs;
}

std::vector<StudyRun> StudyPlan::AllRuns(const StudyRecords& records) const {
  std::vector<StudyRun> runs = tuning_runs_;
  for (StudyRun& run : ResultRuns(records)) runs.push_back(std::move(run));
  return runs;
}

std::optional<std::vector<Setting>> StudyPlan::TunedOf(size_t case_index, size_t method,
                                                       const StudyRecords& records) const {
  if (study_.tuning.keys.empty()) return std::vector<Setting>();
  constexpr double kWorst = -std::numeric_limits<double>::infinity();
  std::optional<std::vector<Setting>> best;
  double best_score = kWorst;
  for (const std::vector<Setting>& values : Combinations(study_.tuning.keys)) {
    double score = 0;
    for (const StudyRun& run : tuning_runs_) {
      if (run.case_index != case_index || run.method != method || run.tuned != values) continue;
      const JobRecord* const record = records.Find(run.id);
      if (record == nullptr) return std::nullopt;
      const double found = record->completed() ? record->ValidationScore() : kWorst;
      score += std::isnan(found) ? kWorst : found;
    }
    // The first of equal ones is taken, and one that diverged only if all did.
    if (!best || score > best_score) {
      best = values;
      best_score = score;
    }
  }
  return best;
}

size_t StudyPlan::results() const {
  return study_.seeds.size() * study_.cases.size() * study_.methods.size();
}

}  // namespace dtrain
