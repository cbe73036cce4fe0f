#include "framework/study/study_file.h"

#include <gmock/gmock.h>

#include "framework/core/error.h"
#include "tests/study/study_files.h"
#include "tests/support/message_of.h"

namespace dtrain {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class StudyFileTest : public StudyTest {
 protected:
  std::string ErrorOf(const std::string& more) const {
    return MessageOf<ConfigError>([&] { Read(more); });
  }
  static std::vector<std::string> Names(const std::vector<NamedSettings>& all) {
    std::vector<std::string> names;
    for (const NamedSettings& it : all) names.push_back(it.name);
    return names;
  }
};

TEST_F(StudyFileTest, SettingsAreKeysWithPointsOrSectionsOrBoth) {
  const Study study = Read(
      "set: {batch: 128, cluster: {workers: 4, slowdown: [1, 2], network: {latency_us: 5}}, "
      "strategy.servers: 2, data.name: \"1\"}\n");
  EXPECT_THAT(TextsOf(study.set),
              ElementsAre("batch=128", "cluster.workers=4", "cluster.slowdown=[1, 2]",
                          "cluster.network.latency_us=5", "strategy.servers=2", "data.name=\"1\""));
  EXPECT_THAT(Names(study.methods), ElementsAre("A", "B"));
  EXPECT_THAT(study.seeds, ElementsAre(1, 2, 3)) << "by default";
  EXPECT_THAT(Names(study.cases), ElementsAre(""));
  EXPECT_EQ(study.name, "two");
  EXPECT_TRUE(study.simulated);
}

TEST_F(StudyFileTest, CasesAreAMappingOrCrossedMappings) {
  EXPECT_THAT(Names(Read("cases: {slow: {batch: 32}, fast: {batch: 64}}\n").cases),
              ElementsAre("slow", "fast"));
  const Study crossed = Read(
      "cases:\n  - {slow: {cluster.network.latency_us: 9}, fast: {}}\n"
      "  - {\"1,2\": {cluster.slowdown: [1, 2]}, \"1,3\": {cluster.slowdown: [1, 3]}}\n");
  EXPECT_THAT(Names(crossed.cases),
              ElementsAre("slow, 1,2", "slow, 1,3", "fast, 1,2", "fast, 1,3"));
  EXPECT_THAT(TextsOf(crossed.cases[1].settings),
              ElementsAre("cluster.network.latency_us=9", "cluster.slowdown=[1, 3]"));
}

TEST_F(StudyFileTest, MeasuresHaveTheNameOfTheirOnlyValueOrTheirOwn) {
  std::string file = Write("");
  const Study listed = Read("seeds: [4]\n");
  EXPECT_EQ(listed.measures[0].name, "test.accuracy");
  std::ofstream(file) << "run: quickstart\nmethods: {A: {}}\n"
                         "measure: {late: 'seconds_to(test.accuracy, 0.9)', soon: "
                         "'seconds_to(test.accuracy, 0.5)', mb: communication.bytes_sent / 1e6}\n";
  const Study named = ReadStudy(file);
  ASSERT_EQ(named.measures.size(), 3u);
  EXPECT_EQ(named.measures[1].name, "soon");
  EXPECT_EQ(named.measures[2].value.text(), "communication.bytes_sent / 1e6");
}

TEST_F(StudyFileTest, EveryErrorIsNamedWithItsLine) {
  EXPECT_THAT(ErrorOf("set: {seed: 3}\n"),
              AllOf(HasSubstr("two.yaml:6:7: 'seed' differs between the runs"),
                    HasSubstr("list the seeds with the key 'seeds'")));
  EXPECT_THAT(ErrorOf("seeds: [1, 1]\n"), HasSubstr("a seed is given twice"));
  EXPECT_THAT(ErrorOf("tune: {keys: {solver.lr: [0.1, 0.2]}, seeds: [1]}\n"),
              HasSubstr("seed 1 is one of the study's own"));
  EXPECT_THAT(ErrorOf("tune: {keys: {strategy.name: [gssp]}}\n"),
              HasSubstr("method 'A' sets 'strategy.name', which is tuned for every method"));
  EXPECT_THAT(ErrorOf("tune: {keys: {solver.lr: 0.1}}\n"),
              HasSubstr("'solver.lr' should have a list of values"));
  EXPECT_THAT(ErrorOf("tune: {keys: {solver.lr: [1]}, on: test}\n"),
              HasSubstr("tune.on has no choice 'test'"));
  EXPECT_THAT(ErrorOf("profile: nothing.json\n"), HasSubstr("there is no file"));
  EXPECT_THAT(ErrorOf("cases: {a: {profile: two.yaml}, b: {}}\n"),
              HasSubstr("some cases have a profile and some have none"));
  EXPECT_THAT(ErrorOf("rank_by: test.accuracy\n"), HasSubstr("a larger value is better"));
  EXPECT_THAT(ErrorOf("rank_by: seconds\n"), HasSubstr("no measure has the name 'seconds'"));
  EXPECT_THAT(ErrorOf("measures: [a]\n"),
              AllOf(HasSubstr("unknown key 'measures'"), HasSubstr("did you mean 'measure'?")));
  EXPECT_THAT(ErrorOf("why: {batch: }\n"), HasSubstr("a sentence should say why"));
  EXPECT_THAT(ErrorOf("why: [batch]\n"), HasSubstr("expected a mapping of terms to sentences"));
  EXPECT_THAT(ErrorOf("tune: {keys: [solver.lr]}\n"), HasSubstr("keys to lists of values"));
  EXPECT_THAT(ErrorOf("cases: [{a: {batch: 32}}, {}]\n"),
              HasSubstr("there is no case in a mapping"));
  EXPECT_THAT(ErrorOf("cases: {slow: [1]}\n"), HasSubstr("settings are a mapping"));
  EXPECT_THAT(ErrorOf("set: {model: {layers: [{name: a}]}}\n"), HasSubstr("should have a value"));
}

TEST_F(StudyFileTest, ErrorsInClaims) {
  const auto claim = [&](const std::string& rest) {
    return ErrorOf("expect:\n  - {claim: x, " + rest + "}\n");
  };
  EXPECT_THAT(claim("value: accuracy(A), at_least: 1"),
              HasSubstr("no measure has the name 'accuracy'"));
  EXPECT_THAT(claim("value: test.accuracy(C), at_least: 1"),
              HasSubstr("no method has the name 'C'"));
  EXPECT_THAT(claim("value: test.accuracy, at_least: 1"),
              AllOf(HasSubstr("needs a method"), HasSubstr("for example test.accuracy(A)")));
  EXPECT_THAT(claim("value: 'test.accuracy(A, slow)', at_least: 1"),
              HasSubstr("no case has the name 'slow'"));
  EXPECT_THAT(claim("value: test.accuracy(A)"), HasSubstr("a claim needs a bound"));
  EXPECT_THAT(claim("value: test.accuracy(A), about: 0"), HasSubstr("within a share of 0"));
  EXPECT_THAT(claim("at_least: 1"), HasSubstr("a claim needs a value"));
  EXPECT_THAT(claim("untested: no data, value: test.accuracy(A)"), HasSubstr("has no value"));
  EXPECT_THAT(claim("value: 'test.accuracy(A) +', at_least: 1"), HasSubstr("is no expression"));
  EXPECT_EQ(Read("expect: [{claim: x, untested: no data}]\n").claims[0].untested, "no data");
}

TEST_F(StudyFileTest, ErrorsInMeasures) {
  const std::string file = Write("");
  const auto error = [&](const std::string& measure) {
    std::ofstream(file) << "run: quickstart\nmethods: {A: {}}\nmeasure: " << measure << "\n";
    return MessageOf<ConfigError>([&] { ReadStudy(file); });
  };
  EXPECT_THAT(error("['seconds_to(test.accuracy)']"), HasSubstr("needs a result and a number"));
  EXPECT_THAT(error("['second_to(test.accuracy, 1)']"),
              AllOf(HasSubstr("no function 'second_to'"), HasSubstr("did you mean 'seconds_to'")));
  EXPECT_THAT(
      error("['seconds_to(test.acuracy, 1)']"),
      AllOf(HasSubstr("no result 'test.acuracy'"), HasSubstr("did you mean 'test.accuracy'")));
  EXPECT_THAT(error("[seconds, seconds]"), HasSubstr("two measures have the name 'seconds'"));
  EXPECT_THAT(error("[a / b]"), HasSubstr("this measure needs a name"));
  EXPECT_THAT(error("[]"), HasSubstr("nothing is given"));
}

}  // namespace
}  // namespace dtrain
