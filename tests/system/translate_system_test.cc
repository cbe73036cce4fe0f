// The program on sentences: training, evaluation, translation.
#include <gmock/gmock.h>

#include "tests/support/toy_translation.h"
#include "tests/system/system_fixture.h"

namespace dtrain {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class TranslateSystemTest : public SystemTest {
 protected:
  void SetUp() override {
    SystemTest::SetUp();
    WriteToyTranslation(folder_, 300);
    std::ofstream(folder_ / "run.yaml")
        << "model: {name: toy.yaml}\ndata: {name: multi30k, root: " << folder_.string()
        << "}\nbatch: 32\nepochs: 20\nsolver: {name: adam, lr: 0.01, clip_norm: 1}\n";
  }
  Outcome Translate(const std::string& text, const std::string& options = "") {
    std::ofstream(folder_ / "in") << text;
    return Run("translate --config run.yaml --weights run " + options + " < in");
  }
};

TEST_F(TranslateSystemTest, FromTextToText) {
  const Outcome trained = Run("train --config run.yaml --output run");
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_THAT(trained.out, AllOf(HasSubstr("test perplexity "), HasSubstr(", BLEU ")));
  // Capital letters, an empty line, and no newline at the end.
  const Outcome lines = Translate("Eins ROT blau\n\nHAUS gru\u0308n\nzwei");
  EXPECT_EQ(lines.code, 0) << lines.err;
  EXPECT_EQ(lines.out, "one red blue\n\nhouse green\ntwo\n");
  EXPECT_EQ(Translate("eins rot\n", "--beam 4").out, "one red\n");
  EXPECT_EQ(Translate("eins rot\n", "--max-length 1").out, "one\n");
  EXPECT_EQ(Translate("").out, "");
  EXPECT_EQ(Translate("rot\n", "--json").out, "{\"source\":\"rot\",\"translation\":\"red\"}\n");

  const Outcome evaluated = Run("eval --config run.yaml --weights run --json");
  EXPECT_THAT(evaluated.out, AllOf(HasSubstr("\"perplexity\""), HasSubstr("\"bleu\"")));
  EXPECT_EQ(Run("eval --config run.yaml --weights run --split validation").code, 0);
  EXPECT_EQ(Run("eval --weights run --json").out,
            evaluated.out);  // the checkpoint contains the config
  const std::string red = Translate("rot\n").out;
  EXPECT_EQ(Run("translate --weights run < in").out, red);

  const Outcome broken = Translate("eins\nro\xFFt\n");
  EXPECT_EQ(broken.code, 3);
  EXPECT_THAT(broken.err, HasSubstr("line 2: byte 3 (0xff) is no UTF-8"));
  // Only a comparison needs the data set: it is incomplete, another one, or missing.
  fs::remove(folder_ / "multi30k/raw/val.en");
  const Outcome some = Translate("eins\n");
  EXPECT_EQ(some.out, "one\n");
  EXPECT_THAT(some.err, HasSubstr("vocabularies are not compared with the data set's: "));
  fs::remove_all(folder_ / "multi30k");
  WriteToyTranslation(folder_, 300, "x");
  const Outcome other = Translate("eins\n");
  EXPECT_EQ(other.code, 6);
  EXPECT_THAT(other.err, HasSubstr("has other vocabularies than the data set: 12 and 12 words"));
  fs::remove_all(folder_ / "multi30k");
  EXPECT_EQ(Translate("eins\n").out, "one\n");
}

TEST_F(TranslateSystemTest, OtherWeightsCannotTranslate) {
  ASSERT_EQ(Run(std::string(kSmall) + "--set epochs=1 --output run").code, 0);
  const Outcome outcome = Translate("eins\n");
  EXPECT_EQ(outcome.code, 6);
  EXPECT_THAT(outcome.err, HasSubstr("has no vocabularies: its model does not translate"));
}

}  // namespace
}  // namespace dtrain
