#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "framework/config/reader.h"
#include "framework/core/error.h"

namespace dtrain::config {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class OverlayTest : public ::testing::Test {
 protected:
  OverlayTest()
      : file_((std::filesystem::temp_directory_path() /
               ("dtrain-overlay-" + std::to_string(::getpid()) + ".yaml"))
                  .string()) {}
  ~OverlayTest() override { std::filesystem::remove(file_); }

  // Returns the effective config after a file with the text `over` is laid over `text`, or the
  // errors.
  std::string Effective(const std::string& text, const std::string& over,
                        const std::vector<std::string>& overrides = {}) const {
    std::ofstream(file_) << over;
    Document document = Document::FromText(text, "run.yaml", overrides, {file_, "cluster"});
    Reader cluster = document.root().Section("cluster");
    const std::vector<int64_t> read = {cluster.Int("workers", 1).Min(1), cluster.Int("per_node", 1),
                                       cluster.Section("network").Int("rate", 10),
                                       cluster.Section("network").Int("latency", 50)};
    const std::vector<int64_t> slowdown = cluster.Ints("slowdown", {1});
    EXPECT_TRUE(read[0] > 0 && !slowdown.empty());
    try {
      document.Finish();
    } catch (const ConfigError& error) {
      return error.what();
    }
    return document.EffectiveYaml();
  }
  static std::string Yaml(const std::string& workers, const std::string& per_node,
                          const std::string& rate, const std::string& latency,
                          const std::string& slowdown) {
    return "cluster:\n  workers: " + workers + "\n  per_node: " + per_node +
           "\n  network:\n    rate: " + rate + "\n    latency: " + latency +
           "\n  slowdown: " + slowdown + "\n";
  }

  const std::string file_;
};

constexpr char kConfig[] =
    "cluster: {workers: 4, per_node: 2, network: {rate: 1, latency: 9}, slowdown: [1, 2, 3, 4]}\n";

TEST_F(OverlayTest, ItsKeysCountAndTheOthersStay) {
  EXPECT_EQ(Effective(kConfig, "cluster: {workers: 2, network: {rate: 7}, slowdown: [5]}\n"),
            Yaml("2", "2", "7", "9", "[5]"));
}

TEST_F(OverlayTest, AConfigWithoutTheSectionGetsIt) {
  EXPECT_EQ(Effective("", "cluster: {workers: 2}\n"), Yaml("2", "1", "10", "50", "[1]"));
  EXPECT_EQ(Effective("cluster:\n", "cluster: {workers: 2}\n"), Yaml("2", "1", "10", "50", "[1]"));
}

TEST_F(OverlayTest, OverridesCountMore) {
  EXPECT_EQ(Effective(kConfig, "cluster: {workers: 2, slowdown: [5]}\n", {"cluster.workers=8"}),
            Yaml("8", "2", "1", "9", "[5]"));
}

TEST_F(OverlayTest, ErrorsAreReportedAtTheirPlaceInItsFile) {
  EXPECT_THAT(Effective(kConfig, "cluster:\n  wrkers: 2\n  per_node: x\n"),
              AllOf(HasSubstr(file_ + ":2:3: unknown key 'wrkers'"), HasSubstr(file_ + ":3:"),
                    HasSubstr("2 errors; nothing was started")));
  EXPECT_THAT(Effective(kConfig, "cluster: {workers: 2\n"), HasSubstr(file_ + ":"));
}

// The config's come first, then the overlay's by its lines, then those of the command line.
TEST_F(OverlayTest, ErrorsComeInTheOrderOfTheFiles) {
  const std::string errors = Effective("cluster: {latency: 1}\n\n\nother: 1\n",
                                       "cluster:\n  wrkers: 2\n  per_node: x\n", {"x=1"});
  size_t last = 0;
  for (const std::string& place : {std::string("run.yaml:1:11"), std::string("run.yaml:4:1"),
                                   file_ + ":2:3", file_ + ":3:13", std::string("--set x=1")}) {
    const size_t at = errors.find(place + ": ");
    ASSERT_NE(at, std::string::npos) << place << " in " << errors;
    EXPECT_GE(at, last) << errors;
    last = at;
  }
}

TEST_F(OverlayTest, TheFileHasItsSectionAndNothingElse) {
  EXPECT_THAT(Effective(kConfig, "workers: 2\n"),
              AllOf(HasSubstr(file_ + ":1:1: there is no section 'cluster'"),
                    HasSubstr(file_ + ":1:1: 'workers' does not belong here"),
                    HasSubstr("such a file has the section 'cluster' and nothing else")));
  EXPECT_THAT(Effective(kConfig, "cluster: {workers: 2}\nseed: 3\n"),
              HasSubstr(file_ + ":2:1: 'seed' does not belong here"));
  EXPECT_THAT(Effective(kConfig, ""), HasSubstr("there is no section 'cluster'"));
}

TEST_F(OverlayTest, AFileThatCannotBeReadIsNamed) {
  try {
    Document::FromText(kConfig, "run.yaml", {}, {"no/such.yaml", "cluster"});
    FAIL() << "no error";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("no/such.yaml"));
  }
}

}  // namespace
}  // namespace dtrain::config
