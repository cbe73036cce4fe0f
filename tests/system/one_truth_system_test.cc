// Facts of a run that are in two of its files, in its output or in its progress lines, must agree.  The runs are real,
// stopped once in the middle of an epoch and resumed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <regex>
#include <sstream>
#include <vector>

#include <fmt/format.h>

#include "tests/support/event_reader.h"
#include "tests/system/system_fixture.h"

namespace dtrain {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr int kBatch = 48;  // 500 samples: 11 steps an epoch, the last of 20 samples
constexpr int kEpochSamples = 500, kEpochSteps = 11, kEpochs = 3;

// Starts the command that follows and sends it SIGTERM in the middle of its second epoch.
constexpr char kStopInTheMiddle[] =
    "sh -c '\"$@\" & pid=$!; "
    "while kill -0 $pid && ! grep -qsE step.:1[4-9]. run/metrics.jsonl; do sleep 0.05; done; "
    "kill -TERM $pid; wait $pid' sh";

struct Case {
  std::string strategy;
  int workers;
  int servers;
};

std::string LineOf(const std::string& text, const std::string& begin) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(begin)) return line;
  }
  return "no line that begins with " + begin;
}

double NumberBehind(const std::string& text, const std::string& word) {
  std::smatch found;
  if (std::regex_search(text, found, std::regex(word + " ([0-9.e+-]+)")))
    return std::stod(found[1]);
  ADD_FAILURE() << "no number behind '" << word << "' in: " << text;
  return std::nan("");
}

class OneTruthSystemTest : public SystemTest, public testing::WithParamInterface<Case> {
 protected:
  std::string Train(const std::string& more) const {
    const Case& run = GetParam();
    return std::string("train --config $CONFIGS/quickstart.yaml --output run --workers ") +
           std::to_string(run.workers) + " --set strategy.name=" + run.strategy +
           " --set data.train_samples=" + std::to_string(kEpochSamples) +
           " --set data.test_samples=300 --set threads=1 --set batch=" + std::to_string(kBatch) +
           " --set epochs=" + std::to_string(kEpochs) +
           " --set log_first_steps=1000 --set tensorboard=true --set timeline=true "
           "--set gradients.every=4 --set cluster.step_seconds=0.02 " +
           more;
  }

  json FileOf(const std::string& name) const {
    return json::parse(Slurp(folder_ / "run" / name), nullptr, false);
  }
  std::vector<json> LinesOf(const std::string& name) const {
    std::istringstream text(Slurp(folder_ / "run" / name));
    std::vector<json> lines;
    for (std::string line; std::getline(text, line);) lines.push_back(json::parse(line));
    EXPECT_FALSE(lines.empty()) << name;
    return lines;
  }
  json JsonOf(const std::string& command) {
    const Outcome outcome = Run(command);
    EXPECT_EQ(outcome.code, 0) << command << "\n" << outcome.err;
    return json::parse(outcome.out, nullptr, false);
  }

  void ReadAll() {
    summary_ = FileOf("summary.json");
    metrics_ = LinesOf("metrics.jsonl");
    ranks_ = LinesOf("ranks.jsonl");
    from_ = summary_.value("resumed_step", int64_t{0});
  }
  std::vector<json> MetricsOf(const std::string& kind) const {
    std::vector<json> lines;
    for (const json& line : metrics_) {
      if (line["kind"] == kind) lines.push_back(line);
    }
    return lines;
  }

  void ExpectSchemas();
  void ExpectOnePosition();
  void ExpectOneTime();
  void ExpectOneLoss();
  void ExpectOneConfig();
  void ExpectOneTraffic();
  void ExpectOneCheckpoint();
  void ExpectOneTensorBoard();
  void ExpectOneCsv();
  void ExpectOneReport();
  void ExpectOneText(const Outcome& outcome);

  void ExpectOneTruth(const Outcome& outcome) {
    ReadAll();
    ExpectSchemas();
    ExpectOnePosition();
    ExpectOneTime();
    ExpectOneLoss();
    ExpectOneConfig();
    ExpectOneTraffic();
    ExpectOneText(outcome);
    ExpectOneCheckpoint();
    ExpectOneTensorBoard();
    ExpectOneCsv();
    ExpectOneReport();
  }

  json summary_;
  std::vector<json> metrics_, ranks_;
  int64_t from_ = 0;  // where the summary began to count
};

void OneTruthSystemTest::ExpectSchemas() {
  EXPECT_EQ(summary_["schema"], 2);
  EXPECT_EQ(FileOf("plan.json")["schema"], 1);
  EXPECT_EQ(FileOf("timeline.json")["otherData"]["schema"], 1);
  for (const char* name : {"metrics.jsonl", "ranks.jsonl", "gradients.jsonl"}) {
    for (const json& line : LinesOf(name)) EXPECT_EQ(line["schema"], 1) << name << ": " << line;
  }
}

// Checks steps, samples and epochs.
void OneTruthSystemTest::ExpectOnePosition() {
  const json& last = metrics_.back();
  EXPECT_EQ(summary_["step"], last["step"]);
  EXPECT_NEAR(summary_["steps"].get<double>() * kBatch, last["samples"].get<double>(), 1e-6);
  EXPECT_NEAR(summary_["epochs"].get<double>() * kEpochSamples, last["samples"].get<double>(),
              1e-6);
  EXPECT_EQ(ranks_.back()["step"], summary_["step"]);
  int64_t before = 0;
  for (const json& line : metrics_) {
    const int64_t step = line["step"], samples = line["samples"];
    EXPECT_GE(step, before) << "each once, in order";
    before = step;
    EXPECT_EQ(line["epoch"], std::max<int64_t>(step - 1, 0) / kEpochSteps + 1) << line;
    EXPECT_EQ(step, samples / kEpochSamples * kEpochSteps + samples % kEpochSamples / kBatch);
  }
  double steps = 0;
  for (const json& worker : summary_["workers_detail"]) {
    const bool synchronous = GetParam().servers == 0;
    steps += worker["steps"].get<double>();
    if (synchronous) {
      EXPECT_EQ(worker["own_steps"], summary_["step"].get<int64_t>() - from_);
    }
  }
  // Counts of the workers start at the resume.
  double at_resume = 0;
  for (const json& line : metrics_) {
    if (line["step"] == from_ && line["kind"] == "checkpoint") at_resume = line["samples"];
  }
  EXPECT_NEAR(steps, summary_["steps"].get<double>() - at_resume / kBatch, 1e-9);
  EXPECT_LE(LinesOf("gradients.jsonl").back()["step"].get<int64_t>(),
            GetParam().servers == 0 ? summary_["step"].get<int64_t>() : INT64_MAX);
}

// Both clocks continue after the resume and never go back; training time is a part of the total.
void OneTruthSystemTest::ExpectOneTime() {
  double seconds = 0, training = 0;
  for (const json& line : metrics_) {
    EXPECT_GE(line["seconds"], seconds) << line;
    EXPECT_GE(line["training_seconds"], training) << line;
    EXPECT_GE(line["seconds"], line["training_seconds"]) << line;
    seconds = line["seconds"];
    training = line["training_seconds"];
  }
  EXPECT_GE(summary_["seconds"], seconds);
  double last_window = 0;
  for (const json& line : ranks_) {
    for (const json& at : line["seconds"]) {
      last_window = std::max(last_window, at.get<double>());
    }
  }
  EXPECT_LE(last_window, 1.1 * training + 0.05) << "each rank goes by its own clock";
  EXPECT_GT(last_window, 0.5 * training);
}

void OneTruthSystemTest::ExpectOneLoss() {
  const std::vector<json> steps = MetricsOf("step"), evaluations = MetricsOf("evaluation");
  EXPECT_EQ(summary_["train"]["loss"], steps.back()["loss"]);
  // The mean over the last epoch's steps, weighted by their samples; asynchronous workers' messages arrive late.
  const int64_t epoch = steps.back()["epoch"];
  double sum = 0, before = 0, all = 0;
  for (const json& line : steps) {
    const double samples = line["samples"].get<double>() - before;
    before = line["samples"];
    if (line["epoch"] != epoch) continue;
    sum += samples * line["loss"].get<double>();
    all += samples;
  }
  const double mean = summary_["train"]["mean_loss"], tolerance = GetParam().servers ? 0.1 : 1e-5;
  EXPECT_NEAR(mean, sum / all, tolerance * mean);
  EXPECT_GT(summary_["train"]["accuracy"], 0.1);
  EXPECT_LE(summary_["train"]["accuracy"], 1);
  if (summary_["status"] != "completed") return;
  EXPECT_EQ(summary_["test"]["loss"], evaluations.back()["loss"]);
  EXPECT_EQ(summary_["test"]["accuracy"], evaluations.back()["accuracy"]);
  EXPECT_FALSE(summary_["test"].contains("step")) << "the last weights were tested";
  const auto best =
      std::max_element(evaluations.begin(), evaluations.end(),
                       [](const json& a, const json& b) { return a["accuracy"] < b["accuracy"]; });
  EXPECT_EQ(summary_["best"]["accuracy"], (*best)["accuracy"]);
  EXPECT_EQ(summary_["best"]["step"], (*best)["step"]);
  EXPECT_EQ(summary_["best"]["epoch"], (*best)["epoch"]);
}

void OneTruthSystemTest::ExpectOneConfig() {
  const json config = JsonOf("check --json --config run/config.yaml"), plan = FileOf("plan.json");
  EXPECT_EQ(summary_["strategy"], config["strategy"]["name"]);
  EXPECT_EQ(summary_["strategy"], GetParam().strategy);
  EXPECT_EQ(summary_["global_batch"], config["batch"]);
  EXPECT_EQ(summary_["seed"], config["seed"]);
  EXPECT_EQ(summary_["dataset"], config["data"]["name"]);
  EXPECT_EQ(summary_["workers"], config["cluster"]["workers"]);
  EXPECT_EQ(summary_["workers"], plan["workers"]);
  EXPECT_EQ(summary_["workers"], summary_["workers_detail"].size());
  EXPECT_EQ(summary_["device"], plan["device"]);
  EXPECT_EQ(summary_["precision"], plan["precision"]);
  EXPECT_EQ(summary_["plan"]["buckets"], plan["buckets"].size());
  if (summary_.contains("collective")) {
    EXPECT_EQ(summary_["collective"], plan["collective"]);
  }
  EXPECT_EQ(summary_.value("servers", 0), GetParam().servers);
  std::map<int, std::string> roles;
  for (const json& line : ranks_) roles[line["rank"]] = line["role"];
  EXPECT_EQ(roles.size(), static_cast<size_t>(GetParam().workers + GetParam().servers));
  const json& bucket = plan["buckets"][0];
  EXPECT_LE(bucket["begin"], bucket["end"]);
}

// The traffic that ranks reported since the summary began to count.
void OneTruthSystemTest::ExpectOneTraffic() {
  std::map<int, double> own_steps, compute, wait;
  double sent = 0, received = 0, messages = 0;
  std::vector<int64_t> staleness;
  for (const json& line : ranks_) {
    if (line["step"].get<int64_t>() <= from_) continue;
    const int rank = line["rank"];
    for (const json& count : line["own_steps"]) own_steps[rank] += count.get<double>();
    for (const json& time : line["compute_seconds"]) compute[rank] += time.get<double>();
    for (const json& time : line["wait_seconds"]) wait[rank] += time.get<double>();
    sent += line["bytes_sent"].get<double>();
    received += line["bytes_received"].get<double>();
    messages += line["messages"].get<double>();
    const json counts = line.value("staleness", json::array());
    staleness.resize(std::max(staleness.size(), counts.size()));
    for (size_t s = 0; s < counts.size(); ++s) staleness[s] += counts[s].get<int64_t>();
  }
  double gradients = 0;
  for (const json& worker : summary_["workers_detail"]) {
    const int rank = worker["rank"];
    EXPECT_EQ(worker["own_steps"], own_steps[rank]);
    EXPECT_NEAR(worker["compute_seconds"], compute[rank], 1e-3);
    EXPECT_NEAR(worker["wait_seconds"], wait[rank], 1e-3);
    gradients += own_steps[rank];
  }
  if (summary_.contains("staleness")) {
    EXPECT_EQ(summary_["staleness"]["histogram"], json(staleness));
    EXPECT_EQ(std::accumulate(staleness.begin(), staleness.end(), int64_t{0}), gradients);
  }
  EXPECT_EQ(summary_.contains("communication"), GetParam().workers > 1);
  if (!summary_.contains("communication")) return;
  const json& communication = summary_["communication"];
  EXPECT_EQ(communication["bytes_sent"], sent);
  EXPECT_EQ(communication["bytes_received"], received);
  EXPECT_EQ(communication["messages"], messages);
  EXPECT_NEAR(communication["bytes_per_gradient"], sent / gradients, 1e-6 * sent);
}

void OneTruthSystemTest::ExpectOneCheckpoint() {
  const json info = JsonOf("ckpt info --json run"), logged = MetricsOf("checkpoint").back();
  EXPECT_EQ(info["step"], summary_["step"]);
  EXPECT_EQ(info["step"], logged["step"]);
  EXPECT_EQ(info["samples_applied"], logged["samples"]);
  EXPECT_EQ(info["seed"], summary_["seed"]);
  EXPECT_EQ(info["model"], summary_["model"]);
  EXPECT_EQ(info["weights_sha256"], summary_["weights_sha256"]);
  EXPECT_EQ(info["seconds"], logged["seconds"]);
  EXPECT_EQ(info["training_seconds"], logged["training_seconds"]);
  EXPECT_THAT(info["file"].get<std::string>(), HasSubstr(logged["file"].get<std::string>()));
}

// Events after a step at which a later file begins are void.
void OneTruthSystemTest::ExpectOneTensorBoard() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder_ / "run" / "tensorboard")) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::map<std::pair<int64_t, std::string>, float> scalars;
  for (const fs::path& file : files) {
    for (const ReadEvent& event : EventsOf(Slurp(file))) {
      if (event.starts_session) {
        std::erase_if(scalars, [&](const auto& one) { return one.first.first >= event.step; });
      }
      for (const auto& [tag, value] : event.scalars) scalars[{event.step, tag}] = value;
    }
  }
  size_t expected = 0;
  const auto expect = [&](const json& line, const std::string& tag, const char* key) {
    ++expected;
    const auto at = scalars.find({line["step"].get<int64_t>(), tag});
    ASSERT_NE(at, scalars.end()) << tag << " of " << line;
    EXPECT_EQ(at->second, line[key].get<float>()) << tag << " of " << line;
  };
  for (const json& line : MetricsOf("step")) {
    expect(line, "train/loss", "loss");
    expect(line, "train/learning_rate", "lr");
    expect(line, "train/samples_per_second", "samples_per_second");
    expect(line, "train/exposed_seconds", "exposed_seconds");
  }
  for (const json& line : MetricsOf("evaluation")) {
    expect(line, "test/loss", "loss");
    expect(line, "test/accuracy", "accuracy");
  }
  EXPECT_EQ(scalars.size(), expected) << "and nothing else";
}

// Checks every number of the summary, including lists, and those of metrics.jsonl.
void OneTruthSystemTest::ExpectOneCsv() {
  const Outcome csv = Run("report --csv run");
  ASSERT_EQ(csv.code, 0) << csv.err;
  const auto has = [&](const std::string& place, const std::string& name, const json& value) {
    const std::string begin = "\nrun," + place + "," + name + ",";
    for (size_t at = csv.out.find(begin); at != std::string::npos;
         at = csv.out.find(begin, at + 1)) {
      if (std::stod(csv.out.substr(at + begin.size())) == value.get<double>()) return true;
    }
    return false;
  };
  for (const char* key : {"steps", "step", "epochs", "seconds", "global_batch", "workers"}) {
    EXPECT_TRUE(has("summary,,,,,", key, summary_[key])) << key;
  }
  EXPECT_TRUE(has("summary,,,,,", "train.mean_loss", summary_["train"]["mean_loss"]));
  EXPECT_TRUE(has("summary,,,,,", "train.accuracy", summary_["train"]["accuracy"]));
  for (const json& worker : summary_["workers_detail"]) {
    const std::string place = "summary,," + worker["rank"].dump() + ",,,";
    for (const char* key : {"steps", "own_steps", "compute_seconds", "wait_seconds"}) {
      EXPECT_TRUE(has(place, std::string("workers_detail.") + key, worker[key])) << key;
    }
  }
  if (summary_.contains("staleness")) {
    EXPECT_TRUE(
        has("summary,,,,,", "staleness.histogram[0]", summary_["staleness"]["histogram"][0]));
  }
  const json last = MetricsOf("step").back();
  // The same number may have several texts: the CSV's is fmt's.
  const std::string place =
      fmt::format("step,,,{},{},{}", last["epoch"].get<int64_t>(), last["step"].get<int64_t>(),
                  last["training_seconds"].get<double>());
  for (const char* key : {"loss", "samples", "seconds"}) {
    EXPECT_TRUE(has(place, key, last[key])) << place << " " << key;
  }
}

// The report's sums are those of the whole run, even where the summary's are not.
void OneTruthSystemTest::ExpectOneReport() {
  ASSERT_EQ(Run("report run").code, 0);
  const std::string page = Slurp(folder_ / "run" / "report.html");
  const std::string begin = R"(<script type="application/json" id="data">)";
  const size_t at = page.find(begin);
  ASSERT_NE(at, std::string::npos);
  const size_t end = page.find("</script>", at);
  const json run = json::parse(page.substr(at + begin.size(), end - at - begin.size()))["runs"][0];
  EXPECT_EQ(run["summary"], summary_);
  double sent = 0, logged = 0, own_steps = 0, windows = 0;
  for (const json& rank : run["ranks"]) {
    sent += rank["bytes_sent"].get<double>();
    own_steps += rank["own_steps"].get<double>();
  }
  for (const json& line : ranks_) {
    logged += line["bytes_sent"].get<double>();
    for (const json& count : line["own_steps"]) windows += count.get<double>();
  }
  EXPECT_EQ(sent, logged);
  EXPECT_EQ(own_steps, windows);
}

// Checks the text for users.
void OneTruthSystemTest::ExpectOneText(const Outcome& outcome) {
  const std::string first = outcome.out.substr(0, outcome.out.find('\n'));
  EXPECT_THAT(first, HasSubstr(summary_["status"].get<std::string>() + " after "));
  EXPECT_NEAR(NumberBehind(first, "after"), summary_["epochs"].get<double>(), 0.051);
  EXPECT_EQ(LineOf(outcome.out, "weights "),
            "weights " + summary_["weights_sha256"].get<std::string>());
  EXPECT_EQ(LineOf(outcome.out, "results "), "results run");
  if (summary_.contains("test") && summary_["status"] == "completed") {
    const std::string test = LineOf(outcome.out, "test ");
    EXPECT_NEAR(NumberBehind(test, "accuracy"), 100 * summary_["test"]["accuracy"].get<double>(),
                0.0051);
    EXPECT_NEAR(NumberBehind(test, "loss"), summary_["test"]["loss"].get<double>(), 5.1e-5);
  }
  size_t epochs = 0;
  for (const json& line : MetricsOf("evaluation")) {
    if (line["step"].get<int64_t>() <= from_) continue;
    const std::string begin = "epoch " + line["epoch"].dump() + ": test ";
    const size_t at = outcome.err.find(begin);
    ASSERT_NE(at, std::string::npos) << begin << "is not in\n" << outcome.err;
    const std::string said = outcome.err.substr(at, outcome.err.find('\n', at) - at);
    EXPECT_NEAR(NumberBehind(said, "loss"), line["loss"].get<double>(), 5.1e-5);
    EXPECT_NEAR(NumberBehind(said, "accuracy"), 100 * line["accuracy"].get<double>(), 0.0051);
    ++epochs;
  }
  EXPECT_GT(epochs, 0U);
  // Progress of a piped run: now and then a line, about a step that is in metrics.jsonl.
  const std::regex progress("epoch ([0-9]+)/([0-9]+)  step ([0-9]+)/([0-9]+) .* loss ([0-9.e+-]+)");
  for (std::sregex_iterator it(outcome.err.begin(), outcome.err.end(), progress), end; it != end;
       ++it) {
    const std::smatch& said = *it;
    EXPECT_EQ(std::stoi(said[2]), kEpochs);
    EXPECT_EQ(std::stoi(said[4]), kEpochs * kEpochSteps);
    const int64_t step = std::stoll(said[3]);
    const auto lines = MetricsOf("step");
    const auto line =
        std::find_if(lines.begin(), lines.end(), [&](const json& l) { return l["step"] == step; });
    ASSERT_NE(line, lines.end()) << said[0];
    EXPECT_EQ((*line)["epoch"], std::stoi(said[1])) << said[0];
    const double loss = (*line)["loss"];
    EXPECT_NEAR(loss, std::stod(said[5]), 1e-3 * loss) << said[0];
  }
  if (from_ > 0) {
    EXPECT_THAT(outcome.err, HasSubstr("resumed after step " + std::to_string(from_)));
  }
}

TEST_P(OneTruthSystemTest, AllFilesOfARunSayTheSame) {
  const Outcome whole = Run(Train(""));
  ASSERT_EQ(whole.code, 0) << whole.err;
  ExpectOneTruth(whole);
  // If no worker waits for gradients, the last ones may arrive together.
  const double over = summary_["epochs"].get<double>() - kEpochs;
  EXPECT_GE(over, 0);
  EXPECT_LE(over * kEpochSamples, GetParam().strategy == "allreduce" ? 0 : kBatch);
}

TEST_P(OneTruthSystemTest, AlsoStoppedAndResumed) {
  const Outcome stopped = Run(Train(""), kStopInTheMiddle);
  ASSERT_EQ(stopped.code, 75) << stopped.err;
  ExpectOneTruth(stopped);
  const json before = summary_;
  EXPECT_EQ(before["status"], "stopped");
  EXPECT_GT(before["epochs"], 1);
  EXPECT_LT(before["epochs"], kEpochs);
  const Outcome resumed = Run(Train("--resume auto"));
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  ExpectOneTruth(resumed);
  EXPECT_EQ(summary_["status"], "completed");
  EXPECT_EQ(summary_["resumed_step"], before["step"]);
  EXPECT_GT(summary_["seconds"], before["seconds"]) << "it goes on";
}

INSTANTIATE_TEST_SUITE_P(Strategies, OneTruthSystemTest,
                         testing::Values(Case{"allreduce", 1, 0}, Case{"allreduce", 2, 0},
                                         Case{"ps_asp", 2, 1}),
                         [](const auto& info) {
                           return info.param.strategy + std::to_string(info.param.workers);
                         });

}  // namespace
}  // namespace dtrain
