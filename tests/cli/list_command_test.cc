// Tests `dtrain list`: it shows what a config accepts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <set>
#include <string>

#include "framework/core/file.h"
#include "framework/strategies/strategy.h"
#include "tests/cli/command_outcome.h"
#include "tests/data/temp_folder.h"

namespace dtrain {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::StartsWith;

using Keys = std::set<std::string>;

// Returns the section `strategy` of the effective config, without the name.
Keys KeysInForce(const TempFolder& folder, const std::string& strategy) {
  const std::string config =
      folder.Write("run.yaml", "model: {name: " DTRAIN_SOURCE_DIR
                               "/configs/models/lenet5.yaml}\n"
                               "data: {name: digits}\ncluster: {workers: 4}\nstrategy: " +
                                   strategy + "\n");
  const CommandOutcome outcome = RunCommand({"check", "--json", "--config", config});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const auto effective = nlohmann::json::parse(outcome.out);
  Keys keys;
  for (const auto& [key, value] : effective.at("strategy").items()) {
    if (key != "name") keys.insert(key);
  }
  return keys;
}

TEST(ListCommand, StrategiesHaveAllKeysOfTheirSection) {
  const TempFolder folder;
  std::map<std::string, Keys> listed;
  for (const auto& strategy : IndentedJson(RunCommand({"list", "strategies", "--json"}).out)) {
    Keys& keys = listed[strategy.at("name")];
    for (const auto& key : strategy.at("keys")) keys.insert(key.at("key"));
  }
  EXPECT_EQ(listed.size(), StrategyRegistry::Names().size());
  EXPECT_THAT(listed["gssp"], Contains("record"));
  for (const auto& [name, keys] : listed) EXPECT_EQ(keys, KeysInForce(folder, name)) << name;
}

TEST(ListCommand, ANameShowsThatEntryAlone) {
  const auto all = nlohmann::json::parse(RunCommand({"list", "strategies", "--json"}).out);
  const auto one = nlohmann::json::parse(RunCommand({"list", "strategies", "gssp", "--json"}).out);
  ASSERT_EQ(one.size(), 1u);
  EXPECT_THAT(all, Contains(one[0]));
  EXPECT_EQ(one[0].at("name"), "gssp");
  const CommandOutcome text = RunCommand({"list", "layers", "relu"});
  EXPECT_EQ(text.code, 0);
  EXPECT_THAT(text.out, StartsWith("relu "));
  EXPECT_THAT(RunCommand({"list", "solvers", "cosine"}).out, StartsWith("schedule cosine "));
}

TEST(ListCommand, AnUnknownNameIsAnsweredWithTheNearest) {
  const CommandOutcome outcome = RunCommand({"list", "strategies", "gsp"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("dtrain list strategies has no 'gsp'"),
                                 HasSubstr("did you mean 'gssp'?  allowed: ")));
}

TEST(ListCommand, ALineHasTypeRangeAndDefaultOfAKey) {
  const std::string name = "adam" + std::string(21, ' '), beta1 = "  beta1" + std::string(18, ' ');
  EXPECT_THAT(RunCommand({"list", "solvers"}).out,
              AllOf(HasSubstr(name +
                              "Adam: steps scaled by running means of the gradient and of "
                              "its square\n" +
                              beta1 +
                              "decay rate of the running mean of the gradient (number "
                              ">= 0 and < 1, default 0.9)\n"),
                    HasSubstr("\nschedule ")));
  EXPECT_THAT(RunCommand({"list", "datasets"}).out, HasSubstr(" (string, default \"\")\n"));
}

// The products of convolutions and layers alone: 2 * (28^2 * 6 * 25 + 10^2 * 16 * 150 + 48000 + 10080 + 840).
TEST(ListCommand, ModelsHaveTheirSizeAndWork) {
  for (const auto& model : IndentedJson(RunCommand({"list", "models", "--json"}).out)) {
    if (model["name"] != "lenet5") continue;
    const std::string help = model["help"];
    const std::string begin = "61706 parameters, ";
    ASSERT_TRUE(help.starts_with(begin)) << help;
    EXPECT_NEAR(std::stod(help.substr(begin.size())), 0.833, 0.03) << help;
    return;
  }
  FAIL() << "no lenet5";
}

// A program that was copied without its models reports where it looked.
TEST(ListCommand, WithoutModelsItSaysWhereItLooked) {
  const TempFolder folder;
  std::filesystem::create_directories(folder / "a/b/bin");
  const std::string copy = (folder / "a/b/bin/dtrain").string();
  std::filesystem::copy_file(DTRAIN_BINARY_DIR "/dtrain", copy);
  const std::string said = (folder / "said").string();
  const std::string command = "cd " + (folder / "a").string() + " && " + copy + " list models >" +
                              said + " 2>&1; echo \"code $?\" >>" + said;
  ASSERT_EQ(std::system(command.c_str()), 0);
  EXPECT_THAT(ReadFile(said),
              AllOf(HasSubstr("there are no models to list"), HasSubstr("looked for in"),
                    HasSubstr((folder / "a/b/share/dtrain/configs/models").string() + ","),
                    HasSubstr("none of which exists"), HasSubstr("code 2")));
}

}  // namespace
}  // namespace dtrain
