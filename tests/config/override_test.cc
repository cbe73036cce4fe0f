#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/config/reader.h"
#include "framework/core/error.h"

namespace dtrain::config {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Reads a solver section in which sgd has momentum and adam has beta; returns the effective config.
std::string Effective(const std::string& text, const std::vector<std::string>& overrides) {
  Document document = Document::FromText(text, "run.yaml", overrides);
  Reader solver = document.root().Section("solver");
  const std::string name = solver.String("name", "sgd");
  const double rate = solver.Number("lr", 0.1).Above(0);
  const double extra = name == "adam" ? solver.Number("beta", 0.9) : solver.Number("momentum", 0);
  const std::string schedule = solver.Section("schedule").String("name", "constant");
  const std::vector<double> slowdown = document.root().Numbers("slowdown", {});
  EXPECT_TRUE(rate > 0 && extra >= 0 && !schedule.empty() && slowdown.size() < 9);
  try {
    document.Finish();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return document.EffectiveYaml();
}

std::string Yaml(const std::string& name, const std::string& rate, const std::string& extra,
                 const std::string& schedule = "constant", const std::string& slowdown = "[]") {
  return "solver:\n  name: " + name + "\n  lr: " + rate + "\n  " + extra +
         "\n  schedule:\n    name: " + schedule + "\nslowdown: " + slowdown + "\n";
}

constexpr char kFile[] = "solver: {name: sgd, lr: 0.5, momentum: 0.25, schedule: {name: step}}\n";

TEST(Override, ChangesOneKeyAndKeepsTheRest) {
  EXPECT_EQ(Effective(kFile, {"solver.lr=0.125"}), Yaml("sgd", "0.125", "momentum: 0.25", "step"));
  EXPECT_EQ(Effective(kFile, {"slowdown=[1, 2]"}),
            Yaml("sgd", "0.5", "momentum: 0.25", "step", "[1, 2]"));
}

TEST(Override, MakesSectionsThatAreMissing) {
  EXPECT_EQ(Effective("", {"solver.schedule.name=cosine"}),
            Yaml("sgd", "0.1", "momentum: 0", "cosine"));
  EXPECT_EQ(Effective("solver:\n", {"solver.lr=2"}), Yaml("sgd", "2", "momentum: 0"));
  EXPECT_EQ(Effective("solver: adam\n", {"solver.lr=2"}), Yaml("adam", "2", "beta: 0.9"));
}

TEST(Override, ANameReplacesItsSectionWhateverTheOrder) {
  const std::string expected = Yaml("adam", "0.25", "beta: 0.9");
  EXPECT_EQ(Effective(kFile, {"solver.name=adam", "solver.lr=0.25"}), expected);
  EXPECT_EQ(Effective(kFile, {"solver.lr=0.25", "solver.name=adam"}), expected);
  EXPECT_EQ(Effective(kFile, {"solver.lr=0.25", "solver=adam"}), expected);
  EXPECT_EQ(Effective(kFile, {"solver.schedule.name=poly", "solver.lr=0.25", "solver.name=adam"}),
            Yaml("adam", "0.25", "beta: 0.9", "poly"));
}

// At the root a name is a key as any other.
TEST(Override, TheNameOfAFileReplacesNothingElse) {
  Document document = Document::FromText("name: a\nbatch: 2\n", "run.yaml", {"name=b"});
  const std::string name = document.root().String("name", "");
  const int64_t batch = document.root().Int("batch", 1);
  document.Finish();
  EXPECT_EQ(name, "b");
  EXPECT_EQ(batch, 2);
}

TEST(Override, AWholeSectionMayBeGiven) {
  EXPECT_EQ(Effective(kFile, {"solver={name: adam, beta: 0.5}"}), Yaml("adam", "0.1", "beta: 0.5"));
}

TEST(Override, TheLaterOfTwoCounts) {
  EXPECT_EQ(Effective("", {"solver.lr=2", "solver.lr=3"}), Yaml("sgd", "3", "momentum: 0"));
}

TEST(Override, ErrorsNameTheArgument) {
  EXPECT_EQ(Effective(kFile, {"solver.lr=-1", "solver.lrr=2", "solver.momentum=no"}),
            "--set solver.lr=-1: solver.lr must be > 0, found -1\n"
            "--set solver.lrr=2: unknown key 'lrr' in solver 'sgd'\n"
            "    did you mean 'lr'?  allowed: lr, momentum, name, schedule\n"
            "--set solver.momentum=no: solver.momentum must be a number, found 'no'\n"
            "3 errors; nothing was started");
}

TEST(Override, TheFileComesBeforeTheArguments) {
  const std::string error = Effective("slowdown: x\n", {"solver.lr=-1"});
  EXPECT_LT(error.find("run.yaml:1:11"), error.find("--set solver.lr=-1"));
}

TEST(Override, MalformedOnesAreErrors) {
  const std::string usage = ": expected key=value or section.key=value\n";
  EXPECT_THAT(Effective("", {"solver.lr"}), HasSubstr("--set solver.lr" + usage));
  EXPECT_THAT(Effective("", {"=1"}), HasSubstr("--set =1" + usage));
  EXPECT_THAT(Effective("", {"solver..lr=1"}), HasSubstr("--set solver..lr=1" + usage));
  EXPECT_THAT(Effective("", {"slowdown=[1"}), HasSubstr("--set slowdown=[1: not valid YAML: "));
  EXPECT_THAT(Effective("slowdown: [1]\n", {"slowdown.x=1"}),
              HasSubstr("--set slowdown.x=1: 'slowdown' is a list, so it has no keys to set\n"
                        "    set the whole list: slowdown=[...]"));
}

TEST(Override, NothingAfterTheEqualsSignIsTheEmptyString) {
  Document document = Document::FromText("root: /data\n", "run.yaml", {"root="});
  const std::string root = document.root().String("root", "x");
  EXPECT_EQ(root, "");
}

// The separators of CSV files are syntax in YAML.
TEST(Override, ACommaOrABarIsThatText) {
  for (const std::string text : {",", "|"}) {
    Document document = Document::FromText("", "run.yaml", {"separator=" + text});
    const std::string separator = document.root().String("separator", "x");
    EXPECT_EQ(separator, text);
  }
}

TEST(Override, AValueMayHoldEqualsSigns) {
  Document document = Document::FromText("", "run.yaml", {"root=a=b"});
  const std::string root = document.root().String("root", "x");
  EXPECT_EQ(root, "a=b");
}

TEST(Override, AQuotedTextIsThatText) {
  for (const std::string text : {"runs/a", "2024", "a: b # c", "{x}", "", "no", "\"'"}) {
    Document document = Document::FromText("", "run.yaml", {"root=" + QuoteYaml(text)});
    const std::string root = document.root().String("root", "x");
    EXPECT_EQ(root, text);
    EXPECT_TRUE(document.errors().empty());
  }
}

TEST(Override, LineNamesTheArgument) {
  Document document = Document::FromText("batch: 1\n", "run.yaml", {"batch=2"});
  EXPECT_EQ(document.root().Line("batch"), "--set batch=2");
}

}  // namespace
}  // namespace dtrain::config
