// Files from other people, in this process: references to other files are refused by name, a pipe is not waited for,
// and names are printed as text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "framework/checkpoint/checkpoint_folder.h"
#include "framework/checkpoint/weights_file.h"
#include "tests/checkpoint/checkpoint_sample.h"
#include "tests/checkpoint/foreign_hdf5.h"
#include "tests/cli/command_outcome.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kRed[] = "\x1b[31m\u009bred\n";
constexpr char kRedShown[] = "\\u001b[31m\\u009bred\\u000a";

class ForeignFiles : public ::testing::Test {
 protected:
  // Trains on a table with two columns.
  void SetUp() override {
    Spit(folder_ / "net.yaml",
         "name: net\nsample: [2]\nlayers:\n"
         "  - {name: fc, type: inner_product, outputs: 2}\n"
         "  - {name: loss, type: softmax_cross_entropy, input: [fc, label]}\n"
         "  - {name: accuracy, type: accuracy, input: [fc, label]}\n");
    std::string table = "a,b,kind\n";
    for (int i = 0; i < 32; ++i)
      table += std::to_string(i) + ",1," + (i % 2 == 0 ? "green" : "blue") + "\n";
    Spit(folder_ / "t.csv", table);
    Configure("");
    const CommandOutcome trained = RunCommand(Train({"--output", Path("run")}));
    ASSERT_EQ(trained.code, 0) << trained.err;
  }

  void Configure(const std::string& keys) const {
    Spit(folder_ / "run.yaml",
         "model: {name: ./net.yaml}\nbatch: 8\nepochs: 1\nsolver: {name: sgd, lr: 0.01}\n"
         "data: {name: csv, train: " +
             Path("t.csv") + keys + "}\n");
  }
  std::vector<std::string> Train(const std::vector<std::string>& more) const {
    std::vector<std::string> words = {"train", "--config", Path("run.yaml")};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  std::string Pipe(const std::string& name) const {
    EXPECT_EQ(::mkfifo(Path(name).c_str(), 0600), 0);
    return Path(name);
  }

  fs::path folder_ = FreshFolder();
};

// A sealed checkpoint has a weight that refers to some file of the user's: no command reads or publishes it.
TEST_F(ForeignFiles, AWeightInAnotherFileIsRefusedByEveryCommand) {
  const fs::path path = FindCheckpoint(folder_ / "run");
  const std::string good = Slurp(path), pipe = Pipe("pipe");
  for (const Elsewhere where : kEverywhere) {
    for (const std::string& other : {std::string("/etc/passwd"), pipe}) {
      Spit(path, good);
      MoveTo(path, "model", "fc.weight", {2, 2}, where, other);
      SealAgain(path);
      const std::string file = path.string();
      const auto refused = AllOf(HasSubstr("cannot read " + file), HasSubstr("model/"));
      EXPECT_THAT(RunCommand({"ckpt", "verify", file}).out, refused);
      for (const auto& words : std::vector<std::vector<std::string>>{
               {"ckpt", "verify", Path("run")},
               {"ckpt", "info", file},
               {"eval", "--weights", Path("run")},
               {"predict", "--weights", Path("run"), Path("t.csv")},
               {"export", "--weights", file, "--output", Path("out.safetensors")},
               Train({"--resume", file, "--output", Path("run2")}),
               Train({"--weights", file, "--output", Path("run2")})}) {
        const CommandOutcome outcome = RunCommand(words);
        EXPECT_EQ(outcome.code, 6) << words[0];
        EXPECT_THAT(outcome.out + outcome.err, refused) << words[0];
      }
      EXPECT_FALSE(fs::exists(folder_ / "out.safetensors"));
    }
  }
}

// PyTorch saves neither the model's file nor classes, columns, mean and deviation: the config has them.
TEST_F(ForeignFiles, WeightsOfAnotherProgramPredictByTheConfig) {
  StoredWeights stored = ReadStoredWeights(FindCheckpoint(folder_ / "run"));
  stored.info.images.clear();
  stored.info.model_yaml.clear();
  WriteStoredWeights(Path("bare.safetensors"), WeightsFormat::kSafetensors, stored);
  const CommandOutcome own = RunCommand({"predict", "--weights", Path("run"), Path("t.csv")});
  std::vector<std::string> words = {"predict", "--weights", Path("bare.safetensors"),
                                    Path("t.csv")};
  const CommandOutcome alone = RunCommand(words);
  EXPECT_EQ(alone.code, 6);
  EXPECT_THAT(alone.err, HasSubstr("--config"));
  words.insert(words.end(), {"--config", Path("run.yaml")});
  const CommandOutcome described = RunCommand(words);
  ASSERT_EQ(described.code, 0) << described.err;
  EXPECT_THAT(described.out, AllOf(HasSubstr("green"), HasSubstr("blue")));
  EXPECT_EQ(described.out, own.out);
}

TEST_F(ForeignFiles, PredictTakesSettingsOnlyWithAConfig) {
  const CommandOutcome outcome =
      RunCommand({"predict", "--weights", Path("run"), Path("t.csv"), "--set", "seed=3"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("--set requires --config"));
}

// No process writes into the pipe: a command that opened it would wait for ever.
TEST_F(ForeignFiles, APipeIsNotWaitedFor) {
  for (const char* name : {"p.h5", "p.safetensors", "p"}) {
    const std::string pipe = Pipe(name);
    for (const auto& words : std::vector<std::vector<std::string>>{
             {"ckpt", "verify", pipe},
             {"ckpt", "info", pipe},
             {"ckpt", "diff", Path("run"), pipe},
             {"eval", "--weights", pipe},
             {"predict", "--weights", pipe, Path("t.csv")},
             {"translate", "--weights", pipe},
             {"export", "--weights", pipe, "--output", Path("out.h5")},
             Train({"--resume", pipe, "--output", Path("run2")}),
             Train({"--weights", pipe, "--output", Path("run2")})}) {
      const CommandOutcome outcome = RunCommand(words);
      EXPECT_EQ(outcome.code, 6) << words[0];
      EXPECT_THAT(outcome.out + outcome.err, HasSubstr(pipe + " is a pipe, not a regular file"));
    }
  }
}

TEST_F(ForeignFiles, APipeIsNoData) {
  for (const char* name : {"p.csv", "p.csv.gz", "p.npy", "p.png", "p-idx3-ubyte", "p"}) {
    const CommandOutcome outcome = RunCommand({"predict", "--weights", Path("run"), Pipe(name)});
    EXPECT_EQ(outcome.code, 3);
    EXPECT_THAT(outcome.err, HasSubstr(Path(name)));
  }
  for (const std::string& keys :
       {std::string("name: csv, train: P"), std::string("name: npy, train: P, train_labels: P"),
        std::string("name: hdf5, train: P"),
        std::string("name: idx, train_images: P, train_labels: P"),
        std::string("name: parallel_text, source_language: en, target_language: de, train_source: "
                    "P, train_target: P")}) {
    for (const std::string& file : {Path("p"), Path("p.csv.gz"), std::string("/dev/zero")}) {
      std::string text = keys;
      for (size_t at = text.find(" P"); at != std::string::npos; at = text.find(" P"))
        text.replace(at, 2, " " + file);
      Spit(folder_ / "run.yaml", "model: {name: ./net.yaml}\ndata: {" + text + "}\n");
      const CommandOutcome outcome = RunCommand({"check", "--config", Path("run.yaml")});
      EXPECT_NE(outcome.code, 0) << text;
      EXPECT_THAT(outcome.err, AllOf(HasSubstr(file), HasSubstr("regular file"))) << text;
    }
  }
}

// The pipe replaces an image, and each file of a run.
TEST_F(ForeignFiles, APipeInAFolderIsNotWaitedFor) {
  fs::create_directories(folder_ / "images/cat");
  for (const char* name : {"a", "b", "c"}) Pipe(std::string("images/cat/") + name + ".png");
  Spit(folder_ / "run.yaml", "model: {name: lenet5}\nbatch: 1\ndata: {name: image_folder, train: " +
                                 Path("images") + ", colours: grey, size: [28, 28]}\n");
  EXPECT_THAT(RunCommand(Train({"--output", Path("run2")})).err, HasSubstr("a.png: it is a pipe"));
  for (const char* file : {"summary.json", "metrics.jsonl", "ranks.jsonl", "config.yaml",
                           "plan.json", "timeline.json", "gradients.jsonl"}) {
    fs::remove(folder_ / "run" / file);
    Pipe(std::string("run/") + file);
  }
  EXPECT_THAT(RunCommand({"report", Path("run"), "--output", Path("report.html")}).err,
              HasSubstr("is not a run folder"));
  Configure("");
  EXPECT_THAT(RunCommand(Train({"--resume", "auto", "--output", Path("run")})).err,
              HasSubstr("timeline.json is a pipe, not a regular file"));
  fs::remove(folder_ / "run/run.lock");
  Pipe("run/run.lock");
  EXPECT_THAT(RunCommand(Train({"--resume", "auto", "--output", Path("run")})).err,
              HasSubstr("run.lock is a pipe, not a regular file"));
}

TEST_F(ForeignFiles, APageThatIsNoReportIsNotWrittenOver) {
  Spit(folder_ / "run/report.html", "<html>mine</html>");
  const CommandOutcome refused = RunCommand({"report", Path("run")});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr(Path("run/report.html") + " is no report of dtrain"));
  EXPECT_EQ(Slurp(folder_ / "run/report.html"), "<html>mine</html>");
  EXPECT_EQ(RunCommand({"report", Path("run"), "--output", Path("run/report.html")}).code, 0)
      << "the user has named it";
  EXPECT_EQ(RunCommand({"report", Path("run")}).code, 0) << "it is a report now";
}

// A checkpoint has the class names of its training file, which may contain anything.
TEST_F(ForeignFiles, NamesOfClassesAreShownAsText) {
  std::string table = "a,b,kind\n";
  for (int i = 0; i < 32; ++i)
    table += std::to_string(i) + ",1," + (i % 2 == 0 ? "\x1b[31m\u009bred" : "blue") + "\n";
  Spit(folder_ / "t.csv", table);
  ASSERT_EQ(RunCommand(Train({"--output", Path("red")})).code, 0);
  const CommandOutcome text = RunCommand({"predict", "--weights", Path("red"), Path("t.csv")});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("\\u001b[31m\\u009bred"), Not(HasSubstr("\x1b")),
                              Not(HasSubstr("\u009b"))));
  const CommandOutcome as_json =
      RunCommand({"predict", "--json", "--weights", Path("red"), Path("t.csv")});
  EXPECT_THAT(as_json.out, AllOf(Not(HasSubstr("\x1b")), Not(HasSubstr("\u009b"))));
  const json first = json::parse(as_json.out.substr(0, as_json.out.find('\n')));
  EXPECT_THAT(first.dump(), HasSubstr("red")) << "the same name, for programs";
}

TEST_F(ForeignFiles, NamesOfFilesAreShownAsText) {
  Spit(folder_ / kRed, "1,2\n");
  const CommandOutcome good = RunCommand({"predict", "--weights", Path("run"), Path(kRed)});
  EXPECT_EQ(good.code, 0) << good.err;
  EXPECT_THAT(good.out, AllOf(HasSubstr(std::string(kRedShown) + "[0]  "), Not(HasSubstr("\x1b"))));
  const std::string missing = Path("\x1b[31m\u009b\xff.csv");
  const CommandOutcome bad = RunCommand({"predict", "--weights", Path("run"), missing});
  EXPECT_THAT(bad.err, AllOf(HasSubstr("\\u001b[31m\\u009b\\xff.csv"), Not(HasSubstr("\x1b"))));
  const CommandOutcome as_json =
      RunCommand({"predict", "--json", "--weights", Path("run"), Path("\xff")});
  EXPECT_EQ(as_json.code, 3) << "and not 1, for a name that JSON has not";
  Spit(folder_ / "\xff", "1,2\n");
  EXPECT_EQ(RunCommand({"predict", "--json", "--weights", Path("run"), Path("\xff")}).code, 0);
}

TEST_F(ForeignFiles, KeysAndColumnsAreShownAsText) {
  Configure(", \"\\e[31mkey\": 1");
  EXPECT_THAT(RunCommand({"check", "--config", Path("run.yaml")}).err,
              AllOf(HasSubstr("\\u001b[31mkey"), Not(HasSubstr("\x1b"))));
  Spit(folder_ / "t.csv", "a,\x1b[31m,kind\n1,oops,2\n");
  Configure("");
  EXPECT_THAT(RunCommand({"check", "--config", Path("run.yaml")}).err,
              AllOf(HasSubstr("\\u001b[31m"), Not(HasSubstr("\x1b"))));
}

// The weights have another user's layer names.
TEST_F(ForeignFiles, NamesOfTensorsAreShownAsText) {
  CheckpointSample sample;
  sample.layout.parameters.entries[0].name = "\x1b[31m.bias";
  sample.info.model = "\x1b]0;title\x07";
  WriteCheckpoint(folder_ / "c.h5", sample.View());
  for (const bool as_json : {false, true}) {
    std::vector<std::string> words = {"ckpt", "info", "--tensors", Path("c.h5")};
    if (as_json) words.emplace_back("--json");
    const CommandOutcome outcome = RunCommand(words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.out,
                AllOf(HasSubstr("\\u001b[31m.bias"), HasSubstr("\\u001b]0;title\\u0007"),
                      Not(HasSubstr("\x1b")), Not(HasSubstr("\x07"))));
  }
  const CommandOutcome mismatch =
      RunCommand(Train({"--weights", Path("c.h5"), "--output", Path("run3")}));
  EXPECT_NE(mismatch.code, 0);
  EXPECT_THAT(mismatch.err, Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace dtrain
