// `dtrain study`: runs a paper's experiment from one file and writes its tables.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "framework/cli/command.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/log.h"
#include "framework/core/printable.h"
#include "framework/core/process.h"
#include "framework/core/text.h"
#include "framework/core/time.h"
#include "framework/device/cpu/threads.h"
#include "framework/launch/world.h"
#include "framework/results/run_folder.h"
#include "framework/results/run_lock.h"
#include "framework/setup/locate_model.h"
#include "framework/study/study_page.h"
#include "framework/study/study_tables.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

constexpr double kShortRun = 2;                 // seconds
constexpr std::string_view kRanks = "{ranks}";  // in --launcher

struct StudyOptions {
  std::string file, output, device, launcher;
  std::vector<std::string> methods;  // empty: all
  int jobs = 1;
  bool dry_run = false, tables = false, keep = false;
};

std::vector<std::string> IdsOf(const std::vector<StudyRun>& runs) {
  std::vector<std::string> ids;
  for (const StudyRun& run : runs) ids.push_back(run.id);
  return ids;
}

// Runs what is missing and keeps the files of the study up to date.
class StudyRunner {
 public:
  StudyRunner(const Study& study, const StudyPlan& plan, const StudyOptions& options,
              const std::string& output)
      : study_(study),
        plan_(plan),
        options_(options),
        output_(output),
        records_(output_ / "jobs.jsonl") {}

  // Returns the signal that stopped it, or 0.
  int Run() {
    const int signal = RunMissing(plan_.tuning_runs(), "tuning run");
    if (signal != 0) return signal;
    if (!plan_.tuning_runs().empty()) WriteAll();  // shows what was tuned while the others run
    return RunMissing(plan_.ResultRuns(records_), "run");
  }
  StudyResults WriteAll() {
    WriteRecords();
    StudyResults results = MakeResults(study_, plan_, records_);
    WriteFileDurably(output_ / "table.md", MarkdownTable(study_, plan_, results));
    WriteFileDurably(output_ / "table.tex", LatexTable(study_, results));
    WriteFileDurably(output_ / "study.html", StudyPage(study_, plan_, records_, results));
    return results;
  }
  const StudyRecords& records() const { return records_; }
  // Returns "METHOD, seed 1: exit code 3" for each run that ended without a result.
  const std::vector<std::string>& failed() const { return failed_; }

  // Returns how many records are of other settings than those of the study.
  size_t others() const { return records_.OthersThan(IdsOf(plan_.AllRuns(records_))); }

 private:
  bool IsChosen(const StudyRun& run) const {
    const std::string& method = study_.methods[run.method].name;
    return options_.methods.empty() || std::find(options_.methods.begin(), options_.methods.end(),
                                                 method) != options_.methods.end();
  }
  // Returns the words of --launcher, with the number of ranks in the place of {ranks}.
  std::vector<std::string> LauncherOf(const StudyRun& run) const {
    std::vector<std::string> words;
    std::istringstream text(options_.launcher);
    for (std::string word; text >> word;) {
      const size_t at = word.find(kRanks);
      if (at != std::string::npos) word.replace(at, kRanks.size(), std::to_string(run.ranks));
      words.push_back(word);
    }
    return words;
  }
  int RunMissing(const std::vector<StudyRun>& runs, const std::string& noun) {
    std::vector<const StudyRun*> missing;
    std::vector<Job> jobs;
    size_t done = 0;
    for (const StudyRun& run : runs) {
      if (!IsChosen(run)) continue;
      if (const JobRecord* const record = records_.Find(run.id)) {
        ++done;
        // A start that was killed may have written the record and not come to the checkpoints.
        if (!record->keeps_checkpoints) ended_folders_.push_back(run.job.folder);
        continue;
      }
      missing.push_back(&run);
      jobs.push_back(run.job);
      jobs.back().launcher = LauncherOf(run);
    }
    if (done > 0) {
      log::Info("{} of {} are done already", done,
                Counted(static_cast<int64_t>(done + jobs.size()), noun));
    }
    return RunJobs(jobs, options_.jobs, done, [&](size_t job, int code, double seconds) {
      return Keep(*missing[job], code, seconds);
    });
  }
  // A run that diverged is a result, too.
  bool Keep(const StudyRun& run, int code, double seconds) {
    const bool diverged = code == static_cast<int>(ExitCode::kDiverged);
    std::optional<JobRecord> record = JobRecord::Read(run.job.folder);
    if ((code != 0 && !diverged) || !record) {
      if (code != static_cast<int>(ExitCode::kStopped)) {
        failed_.push_back(fmt::format("{}: exit code {}", run.job.name, code));
      }
      return false;
    }
    record->id = run.id;
    record->tuning = run.tuning;
    record->case_name = study_.cases[run.case_index].name;
    record->method = study_.methods[run.method].name;
    record->seed = run.seed;
    record->tuned = run.tuned;
    record->exit_code = code;
    record->revision = SourceRevision();
    record->keeps_checkpoints = options_.keep;
    records_.Add(*std::move(record));
    if (!options_.keep) ended_folders_.push_back(run.job.folder);
    // Not after each of a thousand short runs; what a crash loses of them is run again.
    if (seconds > kShortRun || ToSeconds(WallNow() - written_) > kShortRun) WriteRecords();
    return !diverged;
  }
  void WriteRecords() {
    const std::vector<StudyRun> runs = plan_.AllRuns(records_);
    records_.Write(IdsOf(runs));
    WriteFileDurably(output_ / "results.csv", ResultsCsv(study_, runs, records_));
    written_ = WallNow();
    // Checkpoints were for a resume of these runs, and many runs have many of them.
    for (const std::string& folder : ended_folders_) {
      fs::remove_all(RunFolder(folder).checkpoints());
    }
    ended_folders_.clear();
  }

  const Study& study_;
  const StudyPlan& plan_;
  const StudyOptions& options_;
  const fs::path output_;
  StudyRecords records_;
  std::vector<std::string> failed_;
  std::vector<std::string> ended_folders_;  // whose checkpoints go once their records are written
  Nanos written_ = 0;
};

// Prints the runs that are missing, with their commands.
void PrintPlan(const Study& study, const StudyPlan& plan, const StudyRunner& runner, bool json) {
  nlohmann::ordered_json missing = nlohmann::ordered_json::array();
  std::string text;
  const std::vector<StudyRun> runs = plan.AllRuns(runner.records());
  for (const StudyRun& run : runs) {
    if (runner.records().Find(run.id) != nullptr) continue;
    std::string command = "dtrain";
    for (const std::string& argument : run.job.arguments) command += " " + ShellWord(argument);
    text += run.job.name + "\n    " + command + "\n";
    missing.push_back({{"name", run.job.name}, {"command", command}});
  }
  const size_t later = plan.results() - (runs.size() - plan.tuning_runs().size());
  if (json) {
    std::cout << JsonText(nlohmann::ordered_json{{"missing", missing}, {"after_tuning", later}}, 2)
              << '\n';
    return;
  }
  std::cout << fmt::format("{}: {}, {}, {}\n", study.title,
                           Counted(static_cast<int64_t>(study.methods.size()), "method"),
                           Counted(static_cast<int64_t>(study.cases.size()), "case"),
                           Counted(static_cast<int64_t>(study.seeds.size()), "seed"));
  for (const UnequalTerm& term : plan.unequal_terms()) {
    std::cout << fmt::format("not equal: {} ({}): {}\n", term.key, term.values, term.why);
  }
  std::cout << text;
  if (later > 0) {
    std::cout << fmt::format("{} follow the tuning\n", Counted(static_cast<int64_t>(later), "run"));
  }
}

// A misspelt name of a number would look like a number that no run has.
void WarnOfEmptyMeasures(const Study& study, const StudyResults& results) {
  for (size_t i = 0; i < study.measures.size(); ++i) {
    const bool empty =
        std::all_of(results.rows.begin(), results.rows.end(),
                    [i](const StudyRow& row) { return row.cells[i].values.empty(); });
    if (empty && results.ended > 0) {
      log::Warning("no run has a value of '{}'", study.measures[i].value.text());
    }
  }
}

void PrintResults(const Study& study, const StudyPlan& plan, const StudyRunner& runner,
                  const StudyResults& results, const std::string& output, bool json) {
  WarnOfEmptyMeasures(study, results);
  if (!json) {
    std::cout << MarkdownTable(study, plan, results);
    for (const std::string& failed : runner.failed()) std::cout << "failed: " << failed << '\n';
    std::cout << "results " << output << '\n';
    return;
  }
  nlohmann::ordered_json said = {{"output", output},
                                 {"ended", results.ended},
                                 {"asked", results.asked},
                                 {"failed", runner.failed()},
                                 {"claims", nlohmann::ordered_json::array()}};
  for (const ClaimResult& result : results.claims) {
    said["claims"].push_back({{"claim", result.claim->text},
                              {"value", result.ours},
                              {"verdict", result.Text()},
                              {"detail", result.detail}});
  }
  std::cout << JsonText(said, 2) << '\n';
}

void CheckMethods(const Study& study, const std::vector<std::string>& methods) {
  const std::vector<std::string> names = NamesOf(study.methods);
  for (const std::string& method : methods) {
    if (std::find(names.begin(), names.end(), method) != names.end()) continue;
    throw UsageError("the study has no method '" + method + "'", SuggestName(method, names));
  }
}

// Takes a path, or the name of a file of configs/studies.
std::string LocateStudy(const std::string& given) {
  const bool path = given.find('/') != std::string::npos || given.ends_with(".yaml");
  return LocateConfig(path ? given : "configs/studies/" + given + ".yaml").string();
}

int RunStudy(const StudyOptions& options, const Invocation& invocation) {
  LimitSpinning(invocation.argv);
  if (InsideMpiLaunch()) {
    throw UsageError("a study starts its runs itself and needs no launcher",
                     "leave mpirun or srun out");
  }
  const std::string file = LocateStudy(options.file);
  RefusePipes({file});
  const Study study = ReadStudy(file);
  CheckMethods(study, options.methods);
  const std::string output = options.output.empty() ? "runs/" + study.name : options.output;
  if (!options.launcher.empty() && options.launcher.find(kRanks) == std::string::npos) {
    throw UsageError("--launcher does not say how many ranks to start",
                     "write {ranks} where their number belongs, as in 'mpirun -n {ranks}'");
  }
  if (!options.launcher.empty() && study.simulated) {
    throw UsageError("--launcher starts the ranks of real runs, and this study simulates",
                     "leave it out, or set 'by: train'");
  }
  const StudyPlan plan(study, output, options.device);
  if (options.dry_run) {
    PrintPlan(study, plan, StudyRunner(study, plan, options, output), invocation.json);
    return 0;
  }
  MakeFolder(output);
  const RunLock lock(output);
  StudyRunner runner(study, plan, options, output);
  if (const size_t others = runner.others(); others > 0) {
    log::Info("jobs.jsonl also has {} of other settings, which are kept",
              Counted(static_cast<int64_t>(others), "result"));
  }
  const int signal = options.tables ? 0 : runner.Run();
  const StudyResults results = runner.WriteAll();
  if (signal != 0) {
    log::Info("the study was stopped; the same command resumes it");
    return static_cast<int>(ExitCode::kStopped);
  }
  PrintResults(study, plan, runner, results, output, invocation.json);
  return runner.failed().empty() ? 0 : static_cast<int>(ExitCode::kInternal);
}

}  // namespace

static void AddStudyCommand(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<StudyOptions>();
  CLI::App* command = AddCommand(
      app, invocation, "study", "run a paper's experiment on equal terms, with tables and verdicts",
      [options, &invocation] { return RunStudy(*options, invocation); });
  command
      ->add_option("FILE", options->file,
                   "the study's YAML file, or the name of one of configs/studies")
      ->required();
  command
      ->add_option("--output", options->output,
                   "folder of results.csv, table.md, table.tex, study.html and the runs; the same "
                   "command again goes on there (default: runs/NAME)")
      ->type_name("DIR");
  command->add_option("--jobs", options->jobs, "number of runs at a time")
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
  command->add_option("--methods", options->methods, "run only these methods (default: all)")
      ->delimiter(',')
      ->type_name("NAME,...");
  AddDeviceOption(*command, options->device);
  command
      ->add_option(
          "--launcher", options->launcher,
          "start the ranks of each run by this command instead of dtrain's own mpirun, e.g. "
          "'mpirun -n {ranks} --hostfile hosts'; {ranks} becomes their number")
      ->type_name("COMMAND");
  command->add_flag("--keep-checkpoints", options->keep,
                    "keep the checkpoints of the runs that have ended");
  command->add_flag("--dry-run", options->dry_run,
                    "print the runs that are missing, and run nothing");
  command->add_flag("--tables", options->tables,
                    "write the tables and the page of the runs that have ended, and run nothing");
}

DTRAIN_COMMAND("study", 46, AddStudyCommand);

}  // namespace dtrain
